import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmod,
  lutimes,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rm,
  stat,
  symlink,
  utimes,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadAll } from 'js-yaml';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

/** Notes what it is told, and says of which version it is. Makes a kubelet's kubeconfig where it is told to. */
const KUBEADM = `#!/bin/bash
[ "$1" = version ] && { echo "$VERSION"; exit; }
echo "$*" >>"$ROOT/told"
[ -z "$FAILS" ] || exit 1
for word; do case $word in --kubeconfig-dir=*) folder=\${word#--kubeconfig-dir=} ;; esac; done
[ "$4" != kubelet ] || printf '  client-certificate-data: %s\n  client-key-data: %s\n' "$(base64 <<<CERT)" "$(base64 <<<KEY)" >"$folder/kubelet.conf"
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

async function run(name: string, more: Record<string, string>, words = ''): Promise<number> {
  const functions = [name, 'take_secrets_keys'].map((one) => {
    const found = new RegExp(`^${one}\\(\\) \\{.*?^\\}`, 'ms').exec(script)?.[0];
    if (!found) throw new Error(`there is no ${one} in control-plane.sh`);
    return (
      found
        .replaceAll('/etc/kubernetes', join(root, 'kubernetes'))
        .replaceAll('/var/lib/kubelet', join(root, 'kubelet'))
        .replaceAll('/run/kubeadm', root)
        // Others run a controller manager here, which is not to be ended.
        .replaceAll('/proc/', join(root, 'proc/'))
    );
  });
  const known = `STATE=${root} CERTIFICATE_DAYS=60; say() { :; }; nap() { sleep 0.02; }; kubeadm_configuration() { :; }`;
  const program = [known, ...functions, `${name} ${words}`].join('\n');
  const env = { PATH: `${root}:${process.env.PATH}`, ROOT: root, FAILS: '', ...more };
  const [code] = await once(spawn('bash', ['-uc', program], { env }), 'close');
  return code as number;
}
const noted = (file: string) => readFile(join(root, file), 'utf8').catch(() => '');
const joined = (version: string) =>
  Promise.all([writeFile(join(root, 'joined'), ''), writeFile(join(root, 'version'), `${version}\n`)]);

it('a machine with a newer version than its data renews its static pods once, and keeps etcd', async () => {
  await joined('v1.35.4');
  expect(await follow('v1.36.3')).toBe(0);
  expect(await noted('told')).toMatch(/^init phase control-plane all --config=\S+\n$/);
  expect(await noted('version')).toBe('v1.36.3\n');
  await follow('v1.36.3');
  expect((await noted('told')).trim().split('\n')).toHaveLength(1);
});

it('a machine that failed to renew its static pods tries again', async () => {
  await joined('v1.35.4');
  expect(await follow('v1.36.3', { fails: true })).not.toBe(0);
  expect(await noted('version')).toBe('v1.35.4\n');
});

it('a machine that has not joined yet leaves all to kubeadm', async () => {
  expect(await follow('v1.36.3')).toBe(0);
  expect(await noted('told')).toBe('');
});

describe('the encryption keys of Secrets on a machine', () => {
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

  it("have the machine's revision: the machine waits until they are delivered", async () => {
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

  it('can be newer, and any if they have never changed', async () => {
    await bring(3, 'NEWER');
    expect([await take('2', '3'), await kept()]).toEqual([0, 'NEWER']);
    await bring(0, 'FIRST');
    expect([await take('', '0'), await kept()]).toEqual([0, 'FIRST']);
  });
});

describe('a machine that initializes or joins a cluster', () => {
  const AUTHORITIES = 'ca.crt ca.key etcd-ca.crt etcd-ca.key front-proxy-ca.crt front-proxy-ca.key sa.pub sa.key';
  const begin = async (...files: string[]) => {
    const told = join(root, 'authorities');
    await mkdir(told);
    await Promise.all(files.map((file) => writeFile(join(told, file), file)));
    const code = await run('begin_or_join', { CONFIG: root, ORDINAL: '0', MAY_INITIALISE: 'yes' });
    const there = await readdir(join(root, 'kubernetes/pki')).catch(() => []);
    return { code, there, told: await noted('told') };
  };

  it('gets the encryption keys of Secrets before kubeadm starts anything', async () => {
    const { code, there, told } = await begin(...AUTHORITIES.split(' '), 'encryption.json');
    expect([code, told]).toEqual([0, expect.stringContaining('init --config')]);
    expect(there).toContain('encryption.json');
  });

  it('continues without encryption keys in a cluster that never had any', async () => {
    const { code, there, told } = await begin(...AUTHORITIES.split(' '));
    expect([code, told]).toEqual([0, expect.stringContaining('init --config')]);
    expect(there).not.toContain('encryption.json');
  });

  it('starts nothing without its CAs', async () => {
    expect(await begin('ca.crt')).toMatchObject({ code: 1, told: '' });
  });
});

describe('the certificates on a machine', () => {
  const daysAgo = (days: number) => new Date(Date.now() - days * 24 * 3600_000 - 60_000);

  it("are valid for 60 days by the machine's kubeadm configuration: earlier scripts renew after 90", async () => {
    const brought = await readFile(new URL('../shoot/golden/kubeadm-init.yaml', import.meta.url), 'utf8');
    expect(brought).not.toContain('certificateValidityPeriod');
    await writeFile(join(root, 'init.yaml'), brought);
    const words = { CONFIG: root, NODE_NAME: 'one', ADDRESS: '10.1.0.20' };
    expect(await run('own_words', words, 'init.yaml >$ROOT/own')).toBe(0);
    const [init, cluster] = loadAll(await noted('own')) as [object, object];
    expect(init).toMatchObject({
      nodeRegistration: { name: 'one' },
      localAPIEndpoint: { advertiseAddress: '10.1.0.20' },
    });
    expect(init).not.toHaveProperty('certificateValidityPeriod');
    expect(cluster).toMatchObject({ kind: 'ClusterConfiguration', certificateValidityPeriod: '1440h' });
  });

  it.each([
    [47, false],
    [48, true],
  ])('of kubeadm that are %i days old are renewed: %s', async (days, isRenewed) => {
    await writeFile(join(root, 'renewed'), '');
    await utimes(join(root, 'renewed'), daysAgo(days), daysAgo(days));
    expect(await run('renew_certificates', {})).toBe(0);
    expect((await noted('told')).includes('certs renew all')).toBe(isRenewed);
    expect(Date.now() - +(await stat(join(root, 'renewed'))).mtime < 3600_000).toBe(isRenewed);
  });

  describe('of a kubelet without renewal of its own', () => {
    const current = () => noted('kubelet/pki/kubelet-client-current.pem');
    const renew = async (days: number, more: Record<string, string> = {}) => {
      const folder = join(root, 'kubelet/pki');
      await mkdir(folder, { recursive: true });
      await writeFile(join(folder, 'kubelet-client-1.pem'), 'EARLIER');
      await symlink(join(folder, 'kubelet-client-1.pem'), join(folder, 'kubelet-client-current.pem'));
      await lutimes(join(folder, 'kubelet-client-current.pem'), daysAgo(days), daysAgo(days));
      return run('renew_kubelet', more);
    };

    it("are issued by the machine's CAs before their expiry", async () => {
      expect([await renew(54), await current()]).toEqual([0, 'CERT\nKEY\n']);
      expect((await stat(join(root, 'kubelet/pki/kubelet-client-current.pem'))).mode & 0o077).toBe(0);
      expect(await run('renew_kubelet', {})).toBe(0);
      expect((await noted('told')).trim().split('\n')).toHaveLength(1);
    });

    it('are left to a kubelet that can renew them', async () => {
      expect([await renew(53), await current(), await noted('told')]).toEqual([0, 'EARLIER', '']);
    });

    it('stay if they cannot be issued', async () => {
      expect([await renew(54, { FAILS: 'yes' }), await current()]).toEqual([1, 'EARLIER']);
    });

    it('are not required on a machine that has not joined yet', async () => {
      expect([await run('renew_kubelet', {}), await noted('told')]).toEqual([0, '']);
    });
  });
});
