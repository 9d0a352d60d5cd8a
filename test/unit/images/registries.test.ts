import { once } from 'node:events';
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { LABELS } from '../../../operator/api/group.ts';
import { installManifests } from '../../../operator/api/install.ts';
import { gardenBindings } from '../../../operator/garden/control-plane/administrators.ts';
import { parseLocalAddresses, parseLocalAddresses6 } from '../../../operator/garden/host/own-addresses.ts';
import { judgeAddress } from '../../../operator/garden/images/upstream/admission.ts';
import { machineLogin } from '../../../operator/garden/images/upstream/credentials.ts';
import { otherUser } from '../../../operator/garden/images/upstream/others.ts';
import { Registries } from '../../../operator/garden/images/upstream/registry.ts';
import { changeSettings, parseSettings } from '../../../operator/garden/images/upstream/settings.ts';
import { startProxy } from '../../kit/connect-proxy.ts';

let home: string;
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'coppice-registries-'));
});
afterEach(() => rm(home, { recursive: true, force: true }));

describe('the registry settings of the mirror', () => {
  const DEFAULT = { trusted: [], logins: [], cacheBytes: 10 * 2 ** 30 };
  const said = async () => parseSettings(await readFile(join(home, 'registries.json'), 'utf8').catch(() => undefined));
  const say = (words: Parameters<typeof changeSettings>[1]) => changeSettings(join(home, 'registries.json'), words);

  it('permit nothing at first, and persist until they are changed', async () => {
    await say({});
    expect(await said()).toEqual(DEFAULT);
    await say({ trusted: ['localhost:5001', 'http://reg.lan'], cache: '20Gi' });
    await say({ logins: ['GHCR.io'] });
    await say({});
    const all = { trusted: ['http://reg.lan', 'localhost:5001'], logins: ['ghcr.io'], cacheBytes: 20 * 2 ** 30 };
    expect(await said()).toEqual(all);
    await say({ logins: ['none'] });
    expect(await said()).toEqual({ ...all, logins: [] });
  });

  it.each([
    { trusted: ['a b'] },
    { logins: ['ghcr.io/team'] },
    { logins: ['http://ghcr.io'] },
    { cache: 'much' },
    { cache: '-1' },
    { cache: '10' },
  ])('is refused where it is no registry or no size: %j', async (words) => {
    await expect(say(words)).rejects.toThrow(/is not (a|the name of a) (registry|size)/);
    expect(await said()).toEqual(DEFAULT);
  });

  it.each(['', 'nonsense', 'null', '[]', '{"logins":"ghcr.io","trusted":[1],"cacheBytes":-1}'])(
    'is nothing where its file says %j',
    (text) => expect(parseSettings(text)).toEqual(DEFAULT),
  );
});

describe("this machine's login", () => {
  const config = async (value: object, ...path: string[]) => {
    const file = join(home, ...path);
    await mkdir(join(file, '..'), { recursive: true });
    await writeFile(file, JSON.stringify(value));
  };
  const login = (registry: string, env = {}) => machineLogin(registry, { HOME: home, PATH: join(home, 'bin'), ...env });
  const JANE = Buffer.from('jane:secret').toString('base64');

  it('is read from docker login, for that registry only', async () => {
    await config(
      { auths: { 'ghcr.io': { auth: JANE }, 'https://index.docker.io/v1/': { auth: 'hub' } } },
      '.docker',
      'config.json',
    );
    expect(await login('ghcr.io')).toBe(JANE);
    expect(await login('docker.io')).toBe('hub');
    expect(await login('ghcr.io:444')).toBeUndefined();
    expect(await login('evil.io')).toBeUndefined();
  });

  it('is read from podman login', async () => {
    await config({ auths: { 'quay.io': { auth: JANE } } }, '.config', 'containers', 'auth.json');
    expect(await login('quay.io')).toBe(JANE);
    await config({ auths: { 'quay.io': { auth: 'other' } } }, 'auth.json');
    expect(await login('quay.io', { REGISTRY_AUTH_FILE: join(home, 'auth.json') })).toBe('other');
  });

  it('is read from a credential helper', async () => {
    await mkdir(join(home, 'bin'));
    const helper = join(home, 'bin', 'docker-credential-test');
    const script = `#!/bin/sh\nread -r asked\n[ "$asked" = ghcr.io ] || { echo 'credentials not found'; exit 1; }\necho '{"Username":"jane","Secret":"secret"}'\n`;
    await writeFile(helper, script);
    await chmod(helper, 0o755);
    await config({ credHelpers: { 'ghcr.io': 'test' } }, '.docker', 'config.json');
    expect(await login('ghcr.io')).toBe(JANE);
    await config({ credsStore: 'test' }, '.docker', 'config.json');
    expect(await login('ghcr.io')).toBe(JANE);
    expect(await login('quay.io')).toBeUndefined();
    await config({ credsStore: 'not-there' }, '.docker', 'config.json');
    expect(await login('ghcr.io')).toBeUndefined();
    await config({ credsStore: '../bin/x' }, '.docker', 'config.json');
    expect(await login('ghcr.io')).toBeUndefined();
  });
});

describe('further users of a garden', () => {
  const binding = (subjects: { kind: string; name: string }[], labels = {}) => ({
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'RoleBinding',
    metadata: { name: 'dev', namespace: 'shop', labels },
    subjects,
  });
  const user = (name: string) => [{ kind: 'User', name }];
  const group = (name: string) => [{ kind: 'Group', name }];

  it.each([
    ['nobody', [], undefined],
    ["the garden's own programs", user('coppice:operator'), undefined],
    ["Kubernetes' own", user('system:kube-scheduler'), undefined],
    [
      'a ServiceAccount, whose token somebody may have',
      [{ kind: 'ServiceAccount', name: 'argo', namespace: 'ci' }],
      'RoleBinding shop/dev gives ServiceAccount ci/argo access',
    ],
    ['a person', user('jane'), 'RoleBinding shop/dev gives jane access'],
    ['a person beside ours', [...user('coppice:operator'), ...user('jane')], 'RoleBinding shop/dev gives jane access'],
    ['a team', group('shop-developers'), 'RoleBinding shop/dev gives shop-developers access'],
    ['everybody', group('system:authenticated'), 'RoleBinding shop/dev gives system:authenticated access'],
  ])('is %s', (_, subjects, expected) => expect(otherUser([binding(subjects)])).toBe(expected));

  it("are none in a new garden, with Coppice's own bindings", () => {
    const made = [...installManifests(), ...gardenBindings()].filter(({ kind }) =>
      /^(Cluster)?RoleBinding$/.test(kind),
    );
    expect(made.length).toBeGreaterThan(3);
    expect(otherUser(made)).toBeUndefined();
    const given = { ...binding(group('system:authenticated')), roleRef: { kind: 'ClusterRole', name: 'edit' } };
    expect(otherUser([...made, given])).toBe('RoleBinding shop/dev gives system:authenticated access');
  });

  it("exclude Kubernetes' default roles", () => {
    const labels = { 'kubernetes.io/bootstrapping': 'rbac-defaults' };
    expect(otherUser([binding(group('system:authenticated'), labels)])).toBeUndefined();
  });

  it("exclude a membership's account in a garden that is its hub", () => {
    const labels = { [LABELS.membership]: 'uid' };
    expect(otherUser([binding([{ kind: 'ServiceAccount', name: 'member' }], labels)])).toBeUndefined();
  });
});

describe('a permitted address of a registry', () => {
  const refused = (address: string) => {
    try {
      judgeAddress(['10.160.0.0/16'])(address);
      return false;
    } catch {
      return true;
    }
  };

  it("is none of this machine's, also without a carrier", async () => {
    const trie = await readFile('/proc/net/fib_trie', 'utf8');
    const all = new Set([...trie.matchAll(/\|-- (\S+)\n\s+\/32 host LOCAL/g)].map(([, address]) => address!));
    for (const address of all) expect([address, refused(address)]).toEqual([address, true]);
    expect(refused('8.8.8.8')).toBe(false);
    // Docker's bridge without containers: no list of interfaces that run has it.
    const text = [
      'Main:',
      '  +-- 0.0.0.0/0 3 0 5',
      'Local:',
      '     |-- 172.17.0.0',
      '        /16 link UNICAST',
      '     |-- 172.17.0.1',
      '        /32 host LOCAL',
    ];
    expect(parseLocalAddresses(text.join('\n'))).toEqual(['172.17.0.1']);
    const six =
      'fe80000000000000021122fffe334455 02 40 20 80     eth0\n00000000000000000000000000000001 01 80 10 80 lo\n';
    expect(parseLocalAddresses6(six)).toEqual([
      'fe80:0000:0000:0000:0211:22ff:fe33:4455',
      '0000:0000:0000:0000:0000:0000:0000:0001',
    ]);
  });
});

describe('a proxy of the mirror', () => {
  const OWN = ['10.160.0.0/16'];
  const wanted = (registry: string) => ({ registry, repository: 'team/app', access: { key: 'public' } });
  let proxy: Awaited<ReturnType<typeof startProxy>>;
  beforeEach(async () => {
    proxy = await startProxy({});
    for (const name of ['HTTP_PROXY', 'http_proxy', 'https_proxy', 'NO_PROXY', 'no_proxy']) vi.stubEnv(name, undefined);
  });
  afterEach(async () => {
    vi.unstubAllEnvs();
    await proxy.close();
  });
  /** What becomes of a pull, where names have these addresses. */
  async function pulled(registry: string, addresses: string[], variable: string): Promise<string> {
    vi.stubEnv('HTTPS_PROXY', undefined);
    vi.stubEnv(variable, proxy.url);
    const lookup = async () => {
      if (addresses.length === 0) throw Object.assign(new Error('no such name'), { code: 'ENOTFOUND' });
      return addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }));
    };
    const registries = new Registries(OWN, () => [], lookup);
    try {
      return await registries.ask(wanted(registry), 'manifests/v1').then(
        () => 'answered',
        (error: Error) => error.message,
      );
    } finally {
      await registries.close();
    }
  }

  it.each([
    ['loopback', ['127.0.0.1']],
    ['loopback of IPv6', ['::1']],
    ['loopback beside another', ['203.0.113.7', '127.0.0.53']],
    ['the metadata of a cloud', ['169.254.169.254']],
    ['the garden', ['10.160.3.4']],
  ])('is not asked for a name that means %s', async (_, addresses) => {
    for (const variable of ['HTTPS_PROXY', 'HTTP_PROXY']) {
      expect(await pulled('registry.tenant.example', addresses, variable)).toMatch(/^address .* pods may not reach it/);
      expect(proxy.asked).toEqual([]);
    }
  });

  it.each(['localhost', 'x.localhost.', '127.1', '2130706433', '0x7f000001', '169.254.169.254', '10.160.3.4:5000'])(
    'is not asked for %s',
    async (registry) => {
      expect(await pulled(registry, ['203.0.113.7'], 'HTTPS_PROXY')).toMatch(/^address .* pods may not reach it/);
      expect(proxy.asked).toEqual([]);
    },
  );

  it.each([
    ['other machines', ['203.0.113.7']],
    ['something that only the proxy knows', []],
  ])('is asked for a name that means %s', async (_, addresses) => {
    for (const variable of ['HTTPS_PROXY', 'HTTP_PROXY'])
      expect(await pulled('registry.example', addresses, variable)).toBe(
        `this machine cannot reach registry.example (proxy ${proxy.url} did not open a connection to registry.example:443: 403 Forbidden): check HTTPS_PROXY and NO_PROXY, or load the image with "coppice load"`,
      );
    expect(proxy.asked).toEqual(['registry.example:443', 'registry.example:443']);
  });

  it('is used for no registry on this machine, and for none without TLS', async () => {
    const server = createServer((_, response) => void response.end('{}')).listen(0, '127.0.0.1');
    await once(server, 'listening');
    for (const name of ['HTTPS_PROXY', 'HTTP_PROXY']) vi.stubEnv(name, proxy.url);
    const registry = `localhost:${(server.address() as AddressInfo).port}`;
    const registries = new Registries(OWN, () => [registry]);
    try {
      const { body, statusCode } = await registries.ask(wanted(registry), 'manifests/v1');
      expect([statusCode, await body.text()]).toEqual([200, '{}']);
      expect(proxy.asked).toEqual([]);
    } finally {
      await registries.close();
      server.close();
    }
  });
});
