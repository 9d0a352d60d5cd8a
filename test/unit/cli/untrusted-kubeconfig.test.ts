import { once } from 'node:events';
import { access, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { dump } from 'js-yaml';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { main } from '../../../operator/cli/main.ts';
import { createTerminal } from '../../../operator/cli/terminal.ts';
import { cluster } from './objects.ts';

let home: string;
let server: Server;
let personal: string;
let ran: string;
let writes: number;
let objects: Record<string, object>;

const kubeconfig = (clusterFields: object, user: object) =>
  dump({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'c', cluster: clusterFields }],
    users: [{ name: 'u', user }],
    contexts: [{ name: 'ctx', context: { cluster: 'c', user: 'u' } }],
    'current-context': 'ctx',
  });

/** A garden in which somebody wrote the kubeconfig of cluster "demo" themselves: a plugin that leaves a file behind when it runs. */
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'coppice-untrusted-'));
  ran = join(home, 'the-plugin-ran');
  const exec = {
    apiVersion: 'client.authentication.k8s.io/v1',
    command: 'touch',
    args: [ran],
    interactiveMode: 'Never',
  };
  const forged = kubeconfig({ server: 'https://127.0.0.1:9' }, { exec });
  objects = {
    'secrets/demo-kubeconfig': { data: { value: Buffer.from(forged).toString('base64') } },
    'workerclusters/demo': cluster('demo', {}, { kubeconfigRef: { name: 'demo-kubeconfig', key: 'value' } }),
  };
  const theirs = { mode: 'Attached', attached: { kubeconfigSecretRef: { name: 'handed-over', key: 'config' } } };
  objects['workerclusters/theirs'] = { ...cluster('theirs'), spec: theirs };
  objects['workerclusters/self'] = { ...cluster('self'), spec: { mode: 'Attached', attached: { garden: true } } };
  const good = kubeconfig({ server: 'https://theirs.example.com' }, { token: 'theirs' });
  objects['secrets/handed-over'] = { data: { config: Buffer.from(good).toString('base64') } };
  // Nobody's of these: the name alone says nothing of an attached cluster.
  objects['secrets/theirs-kubeconfig'] = objects['secrets/demo-kubeconfig']!;
  const far = { server: 'https://far.example.com', 'proxy-url': 'http://ada:hush@127.0.0.1:1' };
  objects['secrets/far'] = { data: { kubeconfig: Buffer.from(kubeconfig(far, { token: 't' })).toString('base64') } };
  objects['seeds/far'] = { metadata: { name: 'far' }, spec: { kubeconfigRef: { name: 'far' } } };
  objects['shoots/hosted'] = {
    metadata: { name: 'hosted', namespace: 'default' },
    spec: { seedName: 'far', provider: { type: 'local', workers: [] }, kubernetes: { version: '1.36.3' } },
  };
  writes = 0;
  server = createServer((request, response) => {
    if (request.method !== 'GET') writes++;
    const found = Object.entries(objects).find(([end]) => (request.url ?? '').split('?')[0]!.endsWith(`/${end}`))?.[1];
    response.writeHead(found ? 200 : 404, { 'content-type': 'application/json' });
    response.end(JSON.stringify(found ?? { kind: 'Status', code: 404, reason: 'NotFound', message: 'not found' }));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  personal = join(home, 'config');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  await writeFile(personal, kubeconfig({ server: url }, { token: 'administrator' }));
});

afterEach(async () => {
  server.closeAllConnections();
  server.close();
  await rm(home, { recursive: true });
});

async function coppice(...argv: string[]) {
  let [out, err] = ['', ''];
  const env = { COPPICE_HOME: join(home, 'garden'), KUBECONFIG: personal, HOME: home };
  const terminal = createTerminal({
    out: { write: (text) => (out += text) },
    err: { write: (text) => (err += text) },
    env,
  });
  const code = await main(argv, terminal, env, new AbortController().signal);
  const pluginRan = await access(ran).then(
    () => true,
    () => false,
  );
  return { code, out, err, pluginRan };
}

const REFUSED =
  /the kubeconfig in Secret default\/demo-kubeconfig is refused: user "u" of context "ctx" has exec.*Put a kubeconfig there/;

it("describe does not run the plugin of a cluster's kubeconfig, and names the fault", async () => {
  const { code, out, pluginRan } = await coppice('describe', 'demo');
  expect(out.replace(/\s+/g, ' ')).toMatch(/kubeconfig in Secret/);
  expect({ code, pluginRan }).toEqual({ code: 0, pluginRan: false });
});

it('describe reaches a seed by the proxy in its kubeconfig, which an administrator wrote', async () => {
  const { out } = await coppice('describe', 'shoot', 'hosted');
  expect(out.replace(/\s+/g, ' ')).toContain('proxy http://127.0.0.1:1 cannot be used: connect ECONNREFUSED');
});

it.each([['--secret', '--merge'], ['--secret']])(
  'does not hand out a kubeconfig that would run a plugin (%s)',
  async (...flags) => {
    const { code, out, err } = await coppice('kubeconfig', 'demo', ...flags);
    expect({ code, out }).toEqual({ code: 1, out: '' });
    expect(err).toMatch(REFUSED);
  },
);

it('kubeconfig prints that of an attached cluster, and that of the garden if the garden is the cluster', async () => {
  const { code, out } = await coppice('kubeconfig', 'theirs');
  expect({ code, out }).toEqual({ code: 0, out: expect.stringContaining('https://theirs.example.com') });
  const { code: none, err } = await coppice('kubeconfig', 'self');
  expect({ none, err }).toEqual({
    none: 3,
    err: 'error: WorkerCluster "self" is the garden itself; run "coppice kubeconfig --garden"\n',
  });
});

it('kubeconfig prints only what it has parsed, and refuses what kubectl would read otherwise', async () => {
  const text = (user: string) => `clusters: [{name: c, cluster: {server: "https://theirs.example.com"}}]
users: [{name: t, ${user}}] # a remark
contexts: [{name: ctx, context: {cluster: c, user: t}}]
current-context: ctx
`;
  const hand = (yaml: string) => {
    objects['secrets/handed-over'] = { data: { config: Buffer.from(yaml).toString('base64') } };
    return coppice('kubeconfig', 'theirs');
  };
  const { code, out } = await hand(text('user: {token: theirs}'));
  expect({ code, out }).toEqual({ code: 0, out: expect.not.stringContaining('remark') });
  expect(out).toContain('token: "theirs"');
  const merged = await hand(text(`<<: {user: {exec: {command: touch, args: ["${ran}"]}}}`));
  expect({ code: merged.code, out: merged.out }).toEqual({ code: 1, out: '' });
  expect(merged.err).toContain('Secret default/handed-over is refused: user "t" of context "ctx" has <<');
});

it('scale refuses an attached cluster', async () => {
  const { code, err } = await coppice('scale', 'theirs', '--nodes', '3');
  expect({ code, err, writes }).toEqual({
    code: 1,
    err: 'error: WorkerCluster "theirs" is attached: others made it, and Coppice changes nothing of it; use the tool that manages it\n',
    writes: 0,
  });
});
