import { execFile } from 'node:child_process';
import { chmod, cp, mkdir, mkdtemp, readdir, readFile, realpath, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';

const BIN = fileURLToPath(new URL('../../../bin', import.meta.url));

let root: string;
beforeEach(async () => {
  root = await realpath(await mkdtemp(join(tmpdir(), 'coppice launcher-')));
  await cp(BIN, join(root, 'bin'), { recursive: true });
  await writeFile(join(root, 'package-lock.json'), '{}');
});
afterEach(() => rm(root, { recursive: true, force: true }));

const run = (file: string, args: string[], path: string) =>
  new Promise<{ code: number; text: string }>((resolve) => {
    const env = { PATH: path, HOME: root };
    execFile(file, args, { env, cwd: '/' }, (error, stdout, stderr) =>
      resolve({ code: Number(error?.code ?? 0), text: `${stdout}${stderr}` }),
    );
  });

const script = async (file: string, text: string) => {
  await mkdir(join(root, file, '..'), { recursive: true });
  await writeFile(join(root, file), `#!/bin/sh\n${text}\n`);
  await chmod(join(root, file), 0o755);
};

const SYSTEM = '/usr/bin:/bin';

describe('bin/coppice', () => {
  test('runs the command line on the pinned Node, through links', async () => {
    await script('node_modules/node/bin/node', 'echo "$NODE_COMPILE_CACHE|$@"');
    await symlink('../bin/coppice', join(root, 'node_modules/kubectl-coppice'));
    await symlink(join(root, 'node_modules/kubectl-coppice'), join(root, 'again'));
    const { code, text } = await run(join(root, 'again'), ['get', 'a b'], SYSTEM);
    expect(code).toBe(0);
    expect(text).toBe(`${root}/node_modules/.cache/coppice|${root}/operator/cli/main.ts get a b\n`);
  });

  test('prints one line on how to set up', async () => {
    await script('old/node', 'echo 20');
    const { code, text } = await run(join(root, 'bin/coppice'), [], `${root}/old:${SYSTEM}`);
    expect(code).toBe(1);
    expect(text).toBe(`coppice: not set up yet: run ${root}/bin/setup\n`);
  });
});

describe('bin/setup', () => {
  const NPM = `mkdir -p node_modules/node/bin && echo "ran $*" >> npm-runs
    printf '#!/bin/sh\\n[ -z "$NODE_COMPILE_CACHE" ] || echo "$NODE_COMPILE_CACHE $*" >compiled\\necho v24.0.0\\n' > node_modules/node/bin/node && chmod +x node_modules/node/bin/node`;
  const runs = async () => (await readdir(root)).includes('npm-runs');

  test('installs once, and again after a change of the lock file', async () => {
    await script('fake/npm', NPM);
    const path = `${root}/fake:${SYSTEM}`;
    const first = await run(join(root, 'bin/setup'), [], path);
    expect(first.text).toMatch(/installing node modules[\s\S]*done in \d+ s, Node v24\.0\.0/);
    expect(await runs()).toBe(true);
    // Where bin/coppice and the garden's processes look for it.
    const compiled = await readFile(join(root, 'compiled'), 'utf8');
    expect(compiled).toMatch(/^node_modules\/\.cache\/coppice .* \/.*\/operator\/operator\.ts /);
    await rm(join(root, 'npm-runs'));
    expect(await run(join(root, 'bin/setup'), [], path)).toEqual({ code: 0, text: '' });
    expect(await runs()).toBe(false);
    await writeFile(join(root, 'package-lock.json'), '{"changed":true}');
    await run(join(root, 'bin/setup'), [], path);
    expect(await runs()).toBe(true);
  });

  test('fails with one line', async () => {
    await script('fake/npm', 'echo ENOTFOUND >&2; exit 1');
    const { code, text } = await run(join(root, 'bin/setup'), [], `${root}/fake:${SYSTEM}`);
    expect(code).toBe(1);
    expect(text.trim().split('\n').at(-1)).toMatch(/^setup: npm ci failed .*run bin\/setup again$/);
  });
});
