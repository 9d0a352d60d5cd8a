import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { MirrorRig, pull, type Running, statusOf } from '../../kit/mirror.ts';
import {
  digestOf,
  listening,
  push,
  randomImage,
  startBlobStore,
  startRegistry,
  startTokens,
} from '../../kit/registry.ts';

const LOGIN = 'jane:secret of hers';
const basic = (text: string) => `Basic ${Buffer.from(text).toString('base64')}`;
const rig = new MirrorRig();

describe('a registry with login', () => {
  let host: string;
  let tokens: Awaited<ReturnType<typeof startTokens>>;
  const secret = randomImage(500);

  beforeAll(async () => {
    tokens = await startTokens(LOGIN);
    const registry = await startRegistry({ root: rig.store, tokens });
    host = registry.host;
    rig.atEnd(registry.close, tokens.close);
    await push(rig.plain.host, 'public/app', 'v1', randomImage(500));
    await push(rig.plain.host, 'private/app', 'v1', secret);
  });

  const trusted = () => [host, new URL(tokens.url).host];
  const login = async ({ folder }: Running) => {
    await mkdir(join(folder, '.docker'), { recursive: true });
    const auths = { [host]: { auth: Buffer.from(LOGIN).toString('base64') } };
    await writeFile(join(folder, '.docker', 'config.json'), JSON.stringify({ auths }));
  };
  const ask = (mirror: Running, init?: RequestInit) =>
    mirror.ask(host, 'private/app/manifests/v1', { method: 'HEAD', ...init });

  it('serves public images for an anonymous token', async () => {
    const mirror = await rig.mirror({ trusted: trusted() });
    await pull(mirror, host, 'public/app', 'v1');
    expect(tokens.asked.at(-1)).toBeUndefined();
  });

  it("never gets this machine's login unless a person allowed it", async () => {
    const mirror = await rig.mirror({ trusted: trusted() });
    await login(mirror);
    const before = tokens.asked.length;
    const response = await ask(mirror);
    expect(response.headers.get('www-authenticate')).toMatch(/^Basic/);
    expect(`${response.status} ${response.statusText}`).toMatch(
      /^401 .*private\/app does not exist, or needs a login: .*coppice up --registry-login 127.0.0.1:\d+/,
    );
    expect(tokens.asked.slice(before).filter(Boolean)).toEqual([]);
    // Not even for another one.
    await mirror.settings({ trusted: trusted(), logins: ['ghcr.io'] });
    expect((await ask(mirror)).status).toBe(401);
    expect(tokens.asked.slice(before).filter(Boolean)).toEqual([]);
  });

  it('gets the login from the next pull after it is allowed, until that is revoked', async () => {
    const api = apiServer();
    const mirror = await rig.mirror({ trusted: trusted() }, {}, ['--kubeconfig', await api.kubeconfig]);
    await login(mirror);
    expect((await ask(mirror)).status).toBe(401);
    await mirror.settings({ trusted: trusted(), logins: [host] });
    expect((await pull(mirror, host, 'private/app', 'v1')).blobs).toEqual(secret.blobs);
    // What is in the cache by then is not for everybody either.
    await mirror.settings({ trusted: trusted() });
    expect((await ask(mirror)).status).toBe(401);
    expect((await mirror.ask(host, `private/app/blobs/${digestOf(secret.blobs[1]!)}`)).status).toBe(401);
  });

  it('does not get the login while others have access to the garden', async () => {
    const api = apiServer();
    const mirror = await rig.mirror({ trusted: trusted(), logins: [host] }, {}, ['--kubeconfig', await api.kubeconfig]);
    await login(mirror);
    api.bind('jane');
    const before = tokens.asked.length;
    expect(await statusOf(ask(mirror))).toMatch(
      /^401 this machine's login at 127.0.0.1:\d+ is not used, because RoleBinding shop\/dev gives jane access/,
    );
    expect(tokens.asked.slice(before).filter(Boolean)).toEqual([]);
  });

  it("gets the pod's own login, and its images are cached for nobody else", async () => {
    const mirror = await rig.mirror({ trusted: trusted() });
    const own = { headers: { authorization: basic(LOGIN) } };
    expect((await pull(mirror, host, 'private/app', 'v1', own)).blobs).toEqual(secret.blobs);
    expect((await ask(mirror)).status).toBe(401);
    expect(await statusOf(ask(mirror, { headers: { authorization: basic('jane:wrong') } }))).toMatch(
      /^403 .* rejects the credentials for private\/app/,
    );
    expect(await readdir(join(mirror.folder, 'cache'))).toEqual(['drafts']);
    expect(await readdir(join(mirror.folder, 'cache', 'drafts'))).toEqual([]);
  });

  it('redirects blob requests to a store, which does not see the token', async () => {
    const store = await startBlobStore(rig.store);
    const registry = await startRegistry({ root: rig.store, tokens, blobsAt: store.url });
    rig.afterTest(registry.close, store.close);
    const mirror = await rig.mirror({ trusted: [...trusted(), registry.host, new URL(store.url).host] });
    await pull(mirror, registry.host, 'public/app', 'v1');
    expect(store.requests.length).toBeGreaterThan(0);
    expect(store.requests.filter(({ headers }) => headers.authorization)).toEqual([]);
  });

  /** Answers who has roles in a garden. */
  function apiServer() {
    const items: object[] = [
      {
        metadata: { name: 'cluster-admin', labels: { 'kubernetes.io/bootstrapping': 'rbac-defaults' } },
        subjects: [{ kind: 'Group', name: 'system:authenticated' }],
      },
      { metadata: { name: 'operator' }, subjects: [{ kind: 'User', name: 'coppice:operator' }] },
    ];
    const server = createServer((request, response) => {
      response.setHeader('content-type', 'application/json');
      const isCluster = request.url?.includes('clusterrolebindings');
      const kind = isCluster ? 'ClusterRoleBindingList' : 'RoleBindingList';
      const apiVersion = 'rbac.authorization.k8s.io/v1';
      response.end(JSON.stringify({ apiVersion, kind, metadata: {}, items: isCluster ? [] : items }));
    });
    rig.afterTest(() => new Promise((resolve) => server.close(resolve).closeAllConnections()));
    const kubeconfig = listening(server).then(async (port) => {
      const file = join(rig.root, `kubeconfig-${port}`);
      const cluster = { name: 'g', cluster: { server: `http://127.0.0.1:${port}` } };
      const context = { name: 'g', context: { cluster: 'g', user: 'g' } };
      const text = {
        apiVersion: 'v1',
        kind: 'Config',
        'current-context': 'g',
        clusters: [cluster],
        contexts: [context],
        users: [{ name: 'g', user: { token: 't' } }],
      };
      await writeFile(file, JSON.stringify(text));
      return file;
    });
    const bind = (name: string) =>
      items.push({ metadata: { name: 'dev', namespace: 'shop' }, subjects: [{ kind: 'User', name }] });
    return { kubeconfig, bind };
  }
});
