import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, it } from 'vitest';

/** Files that can open a connection, and how each keeps to HTTPS_PROXY (docs/tasks/install.md). */
const BY_PROXY: Record<string, string> = {
  'operator/kube/http/http-proxy.ts': 'opens connections by the proxy',
  'operator/kube/http/transport.ts':
    'of API servers, by the proxy that requests/api-requests.ts looks up for all clients',
  'operator/kube/http/http2-pool.ts': 'speaks on connections that it is given',
  'operator/kube/pod-streams.ts': 'gives client-node the proxy; pod-exec.ts and pod-tunnel.ts take it from here',
  'operator/kube/pod-exec.ts': 'by pod-streams.ts',
  'operator/kube/pod-tunnel.ts': 'by pod-streams.ts',
  'operator/kube/kubeconfig.ts': 'runs the credential plugins of a person, which are programs of their own',
  'operator/garden/toolchain/network.ts': 'by environmentConnector',
  'operator/garden/images/upstream/registry.ts': 'by environmentConnector',
  'providers/cloud-http.ts': 'by environmentConnector',
  'providers/json-api.ts': 'by toClouds',
  'providers/bucket-transfer.ts': 'by toClouds',
  'providers/aws/api.ts': 'by toClouds',
  'profiles/renew/price-list.ts': 'by toClouds',
};
const NEAR: Record<string, string> = {
  'operator/etcd/etcd-client.ts': 'a Service of the seed, or a stream of pod-tunnel.ts',
  'operator/chart/check-release.ts': 'a pod of the same namespace',
  'operator/garden/seed/apiserver-relay.ts': 'this machine',
  'operator/garden/control-plane/control-plane.ts': 'this machine',
  'operator/garden/seed/node-ports.ts': 'this machine',
  'operator/garden/seed/rootless-namespaces.ts': 'this machine',
  'operator/garden/seed/seed-proxy-main.ts': 'this machine',
  'operator/garden/host/listeners.ts': 'looks which ports of this machine are free',
  'operator/garden/egress/dns-relay.ts': 'name servers, which no HTTP proxy leads to',
};
const OPENS = ['connect', 'tlsConnect', 'request', 'fetch', 'createSocket', 'Agent', 'EnvHttpProxyAgent', 'ProxyAgent'];

const files = ['operator', 'providers', 'profiles', 'examples'].flatMap((folder) =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => join(folder, name)),
);
const text = (file: string) => readFileSync(file, 'utf8');

function canConnect(file: string): boolean {
  const code = text(file);
  const imports = code.matchAll(/import (?!type\b)([^;]*?) from '(?:node:(?:net|tls|https?|http2|dgram)|undici)'/g);
  const names = [...imports].flatMap(([, list = '']) =>
    list.split(/[{},]/).map((name) => name.trim().split(' as ')[0]!),
  );
  return (
    OPENS.some((name) => names.includes(name)) ||
    names.some((name) => name.startsWith('* as ')) ||
    /import\('(@kubernetes\/client-node|undici|node:https?)'\)/.test(code) ||
    /(?<![.\w#])fetch\(/.test(code)
  );
}

it('only listed files open connections: through the proxy, or to nearby addresses', () => {
  expect(files.filter(canConnect).sort()).toEqual([...Object.keys(BY_PROXY), ...Object.keys(NEAR)].sort());
});

it('only the operator reaches API servers without the proxy, in its own network', () => {
  const direct = files.filter((file) => /\bproxy: false\b/.test(text(file)) && !file.startsWith('operator/kube/'));
  expect(direct).toEqual(['operator/controllers/shoot/connect.ts']);
});

it('each request to a cloud sets its dispatcher', () => {
  for (const file of ['providers/json-api.ts', 'providers/bucket-transfer.ts', 'providers/aws/api.ts']) {
    const requests = text(file).match(/\brequest\(/g) ?? [];
    expect([file, text(file).match(/dispatcher: toClouds/g)?.length]).toEqual([file, requests.length]);
  }
});

/** A file, and our files that it imports at run time. */
function loadedBy(file: string, known = new Set<string>()): Set<string> {
  if (known.has(file)) return known;
  known.add(file);
  const imports = text(file).matchAll(/^(?:import|export) (?!type\b)[^;]*? from '(\.[^']+)'/gm);
  for (const [, path] of imports) loadedBy(join(dirname(file), path!), known);
  return known;
}

it('`coppice rehearse` loads no HTTP client, which would double its start-up time', () => {
  const clients = [...loadedBy('operator/cli/commands/rehearse.ts')].filter((file) => /from 'undici'/.test(text(file)));
  expect(clients).toEqual([]);
});
