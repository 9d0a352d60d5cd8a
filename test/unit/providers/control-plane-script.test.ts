import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

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
const follow = (version: string, { fails = false } = {}): Promise<number> =>
  run('follow_version', { VERSION: version, FAILS: fails ? 'yes' : '' });

async function run(name: string, more: Record<string, string>): Promise<number> {
  const functions = [name, 'take_secrets_keys'].map((one) => {
    const found = new RegExp(`^${one}\\(\\) \\{.*?^\\}`, 'ms').exec(script)?.[0];
    if (!found) throw new Error(`there is no ${one} in control-plane.sh`);
    return found.replaceAll('/etc/kubernetes', join(root, 'kubernetes'));
  });
  const known = `STATE=${root}; say() { :; }; nap() { sleep 0.02; }; kubeadm_configuration() { :; }`;
  const program = [known, ...functions, name].join('\n');
  const env = { PATH: `${root}:${process.env.PATH}`, ROOT: root, FAILS: '', ...more };
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

describe('the keys of Secrets on a machine', () => {
  const kept = () => noted('kubernetes/pki/encryption.json');
  /** What the seed's kubelet brings, all at once. */
  const bring = async (revision: number, text: string) => {
    await mkdir(join(root, 'authorities'), { recursive: true });
    await writeFile(join(root, 'authorities/encryption.json'), text);
    await writeFile(join(root, 'control-plane.env'), `ENCRYPTION_REVISION='${revision}'\n`);
  };
  const take = (wanted: string, has: string) =>
    run('take_secrets_keys', { CONFIG: root, ENCRYPTION_REVISION: has, WANTED_ENCRYPTION_REVISION: wanted });
  beforeEach(() => mkdir(join(root, 'kubernetes/pki'), { recursive: true }));

  it('are those that it was made for: it waits until they are brought', async () => {
    await writeFile(join(root, 'kubernetes/pki/encryption.json'), 'EARLIER');
    await bring(1, 'EARLIER');
    const taken = take('2', '1');
    expect(await Promise.race([taken, new Promise((resolve) => setTimeout(resolve, 200, 'waits'))])).toBe('waits');
    expect(await kept()).toBe('EARLIER');
    await bring(2, 'NEW');
    expect([await taken, await kept()]).toEqual([0, 'NEW']);
    expect((await stat(join(root, 'kubernetes/pki/encryption.json'))).mode & 0o077).toBe(0);
    expect(await readdir(join(root, 'kubernetes/pki'))).toEqual(['encryption.json']);
  });

  it('are newer ones where these came first, and any where keys have never changed', async () => {
    await bring(3, 'NEWER');
    expect([await take('2', '3'), await kept()]).toEqual([0, 'NEWER']);
    await bring(0, 'FIRST');
    expect([await take('', '0'), await kept()]).toEqual([0, 'FIRST']);
  });
});

describe('a machine that begins or joins', () => {
  const AUTHORITIES = 'ca.crt ca.key etcd-ca.crt etcd-ca.key front-proxy-ca.crt front-proxy-ca.key sa.pub sa.key';
  const begin = async (...files: string[]) => {
    const told = join(root, 'authorities');
    await mkdir(told);
    await Promise.all(files.map((file) => writeFile(join(told, file), file)));
    const code = await run('begin_or_join', { CONFIG: root, ORDINAL: '0', MAY_INITIALISE: 'yes' });
    const there = await readdir(join(root, 'kubernetes/pki')).catch(() => []);
    return { code, there, told: await noted('told') };
  };

  it('has the keys of Secrets before kubeadm starts anything', async () => {
    const { code, there, told } = await begin(...AUTHORITIES.split(' '), 'encryption.json');
    expect([code, told]).toEqual([0, expect.stringContaining('init --config')]);
    expect(there).toContain('encryption.json');
  });

  it('of a cluster from before Secrets were encrypted goes on without', async () => {
    const { code, there, told } = await begin(...AUTHORITIES.split(' '));
    expect([code, told]).toEqual([0, expect.stringContaining('init --config')]);
    expect(there).not.toContain('encryption.json');
  });

  it('starts nothing without its authorities', async () => {
    expect(await begin('ca.crt')).toMatchObject({ code: 1, told: '' });
  });
});
