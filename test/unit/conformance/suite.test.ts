import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { mergedPath } from '../../conformance/debian.ts';
import { kubernetesSources, TEST_IMAGES, unknownImages } from '../../conformance/images.ts';
import { parseOptions } from '../../conformance/options.ts';
import { progressOf } from '../../conformance/progress.ts';

test('parseOptions reads the focus, the parallel tests and the number of nodes', () => {
  expect(parseOptions([])).toEqual({ focus: undefined, parallel: 4, nodes: 2, limit: 240, help: false });
  expect(parseOptions(['--focus', 'DNS|Services', '--parallel=2', '--nodes', '3'])).toMatchObject({
    focus: 'DNS|Services',
    parallel: 2,
    nodes: 3,
  });
  expect(() => parseOptions(['--focus', '('])).toThrow('--focus');
  expect(() => parseOptions(['--nodes', '0'])).toThrow('--nodes is a number from 1 to 20, not 0');
  expect(() => parseOptions(['--skip'])).toThrow('unknown argument --skip');
});

test("mergedPath resolves the root's symbolic links of a package's files", () => {
  expect(mergedPath('/bin/dash')).toBe('/usr/bin/dash');
  expect(mergedPath('/lib/x86_64-linux-gnu/libc.so.6')).toBe('/usr/lib/x86_64-linux-gnu/libc.so.6');
  expect(mergedPath('/usr/bin/curl')).toBe('/usr/bin/curl');
  expect(mergedPath('/etc/nginx/nginx.conf')).toBe('/etc/nginx/nginx.conf');
});

test('unknownImages returns test images that Kubernetes no longer lists', () => {
  const listed = Object.keys(TEST_IMAGES).map((ref) => `${ref}\n`);
  expect(unknownImages(listed.join(''))).toEqual([]);
  expect(unknownImages(listed.slice(1).join(''))).toEqual([Object.keys(TEST_IMAGES)[0]]);
});

test('kubernetesSources finds sources of images outside of the tool folder', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'coppice-go-'));
  try {
    // As Go answers then: of a module that is not there it lists no folder.
    const go = `#!/bin/sh\ncase "$1" in mod) echo '{"Dir": "/modules/k8s.io/kubernetes"}' ;; *) echo ;; esac\n`;
    await writeFile(join(folder, 'go'), go, { mode: 0o755 });
    vi.stubEnv('PATH', `${folder}:${process.env.PATH}`);
    expect(await kubernetesSources()).toBe('/modules/k8s.io/kubernetes/test/images');
  } finally {
    vi.unstubAllEnvs();
    await rm(folder, { recursive: true });
  }
});

test("progressOf counts passed and failed tests in ginkgo's output", () => {
  const log = `Will run 4 of 7579 specs
SSS••SSSS
------------------------------
• [FAILED] [305.100 seconds]
[sig-network] DNS [It] should provide DNS [Conformance] [sig-network, Conformance]
k8s.io/kubernetes/test/e2e/network/dns.go:1

  [FAILED] timed out
------------------------------
•S`;
  expect(progressOf(log)).toEqual({ passed: 3, failed: ['[sig-network] DNS should provide DNS [Conformance]'] });
});
