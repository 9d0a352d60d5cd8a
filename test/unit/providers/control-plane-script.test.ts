import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';

/** Notes what it is told, and says of which version it is. */
const KUBEADM = `#!/bin/bash
[ "$1" = version ] && { echo "$VERSION"; exit; }
echo "$*" >>"$ROOT/told"
[ -z "$FAILS" ]
`;
const script = await readFile(new URL('../../../providers/local/control-plane.sh', import.meta.url), 'utf8');

let root: string;
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'control-plane-'));
  await writeFile(join(root, 'kubeadm'), KUBEADM);
  await chmod(join(root, 'kubeadm'), 0o755);
});
afterEach(() => rm(root, { recursive: true, force: true }));

/** Runs what a machine does before its kubelet starts, over the data in `root`. */
async function follow(version: string, { fails = false } = {}): Promise<number> {
  const found = /^follow_version\(\) \{.*?^\}/ms.exec(script)?.[0];
  if (!found) throw new Error('there is no follow_version in control-plane.sh');
  const program = `STATE=${root}; say() { :; }; kubeadm_configuration() { :; }\n${found}\nfollow_version`;
  const env = { PATH: `${root}:${process.env.PATH}`, ROOT: root, VERSION: version, FAILS: fails ? 'yes' : '' };
  const [code] = await once(spawn('bash', ['-uc', program], { env }), 'close');
  return code as number;
}
const noted = (file: string) => readFile(join(root, file), 'utf8').catch(() => '');
const joined = (version: string) =>
  Promise.all([writeFile(join(root, 'joined'), ''), writeFile(join(root, 'version'), `${version}\n`)]);

it('a machine of another version than its data gets static pods of its own, once, and etcd is left alone', async () => {
  await joined('v1.35.4');
  expect(await follow('v1.36.3')).toBe(0);
  expect(await noted('told')).toMatch(/^init phase control-plane all --config=\S+\n$/);
  expect(await noted('version')).toBe('v1.36.3\n');
  await follow('v1.36.3');
  expect((await noted('told')).trim().split('\n')).toHaveLength(1);
});

it('one that could not make them tries again', async () => {
  await joined('v1.35.4');
  expect(await follow('v1.36.3', { fails: true })).not.toBe(0);
  expect(await noted('version')).toBe('v1.35.4\n');
});

it('one that has yet to join leaves all to kubeadm', async () => {
  expect(await follow('v1.36.3')).toBe(0);
  expect(await noted('told')).toBe('');
});
