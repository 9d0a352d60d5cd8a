import { describe, expect, test } from 'vitest';
import { archiveFor, publishedDigest } from '../../../operator/garden/toolchain/archive-source.ts';
import { Network, OfflineError } from '../../../operator/garden/toolchain/network.ts';

const A = 'a'.repeat(64);
const B = 'b'.repeat(64);

describe('publishedDigest reads the checksum', () => {
  test('of one file, with and without its name', () => {
    expect(publishedDigest(A, 'list', 'kubelet')).toBe(A);
    expect(publishedDigest(`${A}\n`, 'list', 'kubelet')).toBe(A);
    expect(publishedDigest(`${A}  release/x.tgz\n`, 'list', 'x.tgz')).toBe(A);
  });
  test('of many files', () => {
    expect(publishedDigest(`${A}  x.tgz\n${B} *y.tgz\n`, 'list', 'y.tgz')).toBe(B);
  });
  test.each([
    ['another file only', `${A}  x.tgz\n`],
    ['an error page', '<html>Not Found</html>'],
    ['nothing', ''],
    ['several digests without names', `${A}\n${B}\n`],
  ])('refuses %s', (_, text) => {
    expect(() => publishedDigest(text, 'list', 'y.tgz')).toThrow(/no checksum/);
  });
  test('of an asset at GitHub', () => {
    const release = { assets: [{ name: 'x' }, { name: 'kwok-linux-amd64', digest: `sha256:${A}` }] };
    expect(publishedDigest(JSON.stringify(release), 'github-asset', 'kwok-linux-amd64')).toBe(A);
    expect(() => publishedDigest(JSON.stringify(release), 'github-asset', 'x')).toThrow(/no checksum/);
  });
});

test("archiveFor returns the machine's archive, or throws", () => {
  expect(archiveFor('kubelet', 'arm64', 'linux').url).toMatch(/linux\/arm64\/kubelet$/);
  expect(archiveFor('etcd', 'x64', 'linux').member).toMatch(/linux-amd64\/etcd$/);
  expect(archiveFor('pulumi', 'x64', 'linux').url).toMatch(/-linux-x64\.tar\.gz$/);
  expect(() => archiveFor('kubelet', 's390x', 'linux')).toThrow(/no release archive/);
  expect(() => archiveFor('kubelet', 'arm64', 'darwin')).toThrow(/no release archive/);
  expect(() => archiveFor('iptables', 'x64', 'linux')).toThrow(/no release archive/);
});

describe('Network', () => {
  test('tries an unreachable host once', async () => {
    let asked = 0;
    const network = new Network(async () => {
      asked++;
      throw Object.assign(new Error('no'), { code: 'ENOTFOUND' });
    });
    const outcomes = await Promise.allSettled([1, 2, 3].map((n) => network.get(`https://nowhere.invalid/${n}`)));
    for (const outcome of outcomes) expect(outcome).toMatchObject({ reason: expect.any(OfflineError) });
    await expect(network.get('https://nowhere.invalid/4')).rejects.toThrow(/cannot be resolved \(ENOTFOUND\)/);
    expect(asked).toBe(1);
    await network.close();
  });

  test('does not wait for a silent resolver', async () => {
    let asked = 0;
    const network = new Network(() => {
      asked++;
      return new Promise(() => {});
    });
    await expect(network.get('https://silent.invalid/')).rejects.toThrow(/did not resolve/);
    await expect(network.get('https://silent.invalid/')).rejects.toThrow(/did not resolve/);
    expect(asked).toBe(1);
    await network.close();
  });

  test('remembers a refusing host', async () => {
    const network = new Network(async () => {});
    await expect(network.get('https://127.0.0.1:1/')).rejects.toThrow(OfflineError);
    await expect(network.get('https://127.0.0.1:1/again')).rejects.toThrow(/cannot be reached/);
    await network.close();
  });
});
