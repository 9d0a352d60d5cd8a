import { execFileSync } from 'node:child_process';
import { mkdtemp, readFile, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { checksumLines, digestOfFile, writeArchive } from '../../../operator/release/archive.ts';
import { cliArchive } from '../../../operator/release/cli-archive.ts';
import { releaseProblems } from '../../../operator/release/problems.ts';
import { releaseSbom } from '../../../operator/release/sbom.ts';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'coppice-release-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

describe('writeArchive', () => {
  it('writes equal bytes for equal contents, whatever their order and dates', async () => {
    const from = join(folder, 'file');
    await writeFile(from, 'text', { mode: 0o600 });
    const files = [
      { name: 'a/run', from, isExecutable: true },
      { name: 'a/b.txt', content: 'b' },
    ];
    await writeArchive(join(folder, 'one.tgz'), files);
    await utimes(from, 1, 1);
    await writeArchive(join(folder, 'two.tgz'), files.toReversed());
    expect(await digestOfFile(join(folder, 'two.tgz'))).toBe(await digestOfFile(join(folder, 'one.tgz')));
  });

  it('writes an archive that tar unpacks with executable bits', async () => {
    await writeArchive(join(folder, 'c.tgz'), [
      { name: 'c/run', content: '#!/bin/sh\necho ran\n', isExecutable: true },
      { name: 'c/text', content: 't' },
    ]);
    execFileSync('tar', ['-xzf', 'c.tgz'], { cwd: folder });
    expect(execFileSync(join(folder, 'c/run'), { encoding: 'utf8' })).toBe('ran\n');
    expect(await readFile(join(folder, 'c/text'), 'utf8')).toBe('t');
  });
});

it('checksumLines are read by sha256sum --check', async () => {
  await writeFile(join(folder, 'x'), 'x');
  const digests = new Map([['x', await digestOfFile(join(folder, 'x'))]]);
  await writeFile(join(folder, 'SHA256SUMS'), checksumLines(digests));
  expect(execFileSync('sha256sum', ['--check', 'SHA256SUMS'], { cwd: folder, encoding: 'utf8' })).toBe('x: OK\n');
});

it('cliArchive has what the command line reads, and no tests, docs or setup', () => {
  const manifest = { name: 'coppice', version: '1.2.3', license: 'Apache-2.0' };
  const tracked = ['bin/coppice', 'bin/setup', 'operator/cli/main.ts', 'test/run.ts', 'docs/README.md', 'LICENSE'];
  const modules = ['node_modules/pino/pino.js'];
  const files = cliArchive('/clone', manifest, { tracked, modules, node: '24.21.0' });
  expect(files.map(({ name }) => name)).toEqual([
    'coppice-1.2.3/README.txt',
    'coppice-1.2.3/package.json',
    'coppice-1.2.3/bin/coppice',
    'coppice-1.2.3/operator/cli/main.ts',
    'coppice-1.2.3/LICENSE',
    'coppice-1.2.3/node_modules/pino/pino.js',
  ]);
  expect(files.filter(({ isExecutable }) => isExecutable).map(({ name }) => name)).toEqual([
    'coppice-1.2.3/bin/coppice',
  ]);
  expect(files[0]!.content).toContain('Node 24 or later');
  expect(JSON.parse(files[1]!.content!)).toMatchObject({ version: '1.2.3', engines: { node: '>=24' } });
});

describe('releaseProblems', () => {
  const ready = {
    version: '1.2.0',
    appVersion: '1.2.0',
    changelog: '# Changes\n\n## 1.2.0 (2026-11-29)\n',
    changed: [],
  };

  it('finds none in a checkout that is ready', () => expect(releaseProblems(ready)).toEqual([]));

  it('names each change that git does not have, the chart, and the missing section', () => {
    const problems = releaseProblems({
      ...ready,
      appVersion: '1.1.0',
      changelog: '## 1.2.0-rc.1 (2026-11-01)',
      changed: ['a', 'b', 'c', 'd', 'e'],
    });
    expect(problems).toEqual([
      'commit or remove what git does not have: a, b, c and 2 more',
      'set appVersion in charts/coppice/Chart.yaml to 1.2.0, the version of package.json',
      'add a section "## 1.2.0 (date)" to CHANGELOG.md',
    ]);
  });
});

describe('releaseSbom', () => {
  const printed = (serialNumber: string, timestamp: string, name: string) =>
    JSON.stringify({
      bomFormat: 'CycloneDX',
      serialNumber,
      metadata: { timestamp, component: { name } },
      components: [{ name: 'pino' }],
    });
  const node = { name: 'node', version: '24.21.0', purl: 'pkg:generic/node@24.21.0' };
  const committed = '2026-11-29T04:00:00Z';

  it('gives equal bytes for equal packages, in any folder and at any time', () => {
    const one = releaseSbom(printed('urn:uuid:1', 'now', 'clone'), [node], committed);
    expect(releaseSbom(printed('urn:uuid:2', 'later', 'other'), [node], committed)).toBe(one);
    expect(releaseSbom(printed('urn:uuid:1', 'now', 'clone'), [], committed)).not.toBe(one);
  });

  it('names Coppice, the time of the commit, and programs that npm does not know', () => {
    const document = JSON.parse(releaseSbom(printed('urn:uuid:1', 'now', 'clone'), [node], committed));
    expect(document).toMatchObject({
      metadata: { timestamp: committed, component: { name: 'coppice' } },
      components: [{ name: 'pino' }, { name: 'node', version: '24.21.0', purl: node.purl }],
    });
    expect(document.serialNumber).toMatch(/^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}$/);
  });
});
