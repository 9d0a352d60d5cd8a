import { once } from 'node:events';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { gardenKubeconfigFile } from '../../../operator/cli/garden.ts';
import { main } from '../../../operator/cli/main.ts';
import { createTerminal } from '../../../operator/cli/terminal.ts';
import { writeKubeconfigText } from '../../../operator/pki/kubeconfig.ts';

/** What a garden's API server answers, by the last word of the path of a list. */
let lists: Record<string, object[]>;
/** Its one Secret, by whatever name it is asked for. */
let secret: object | undefined;
let server: Server;
let home: string;

beforeEach(async () => {
  lists = {};
  secret = undefined;
  server = createServer((request, response) => {
    const path = (request.url ?? '').split('?')[0]!;
    response.setHeader('content-type', 'application/json');
    if (path.endsWith('/namespaces/kube-system')) {
      response.end(JSON.stringify({ metadata: { name: 'kube-system', uid: 'g1' } }));
      return;
    }
    if (secret && path.includes('/secrets/')) {
      response.end(JSON.stringify(secret));
      return;
    }
    const items = lists[path.split('/').at(-1)!] ?? [];
    response.end(JSON.stringify({ apiVersion: 'v1', kind: 'List', metadata: { resourceVersion: '1' }, items }));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  home = await mkdtemp(join(tmpdir(), 'coppice-cli-'));
  const file = gardenKubeconfigFile({ COPPICE_HOME: home });
  await mkdir(dirname(file), { recursive: true });
  const { port } = server.address() as AddressInfo;
  await writeFile(
    file,
    writeKubeconfigText({ server: `http://127.0.0.1:${port}`, ca: '', token: 't', name: 'garden', user: 'admin' }),
  );
});
afterEach(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  await rm(home, { recursive: true, force: true });
});

async function cli(line: string) {
  const out: string[] = [];
  const err: string[] = [];
  const terminal = createTerminal({
    out: { write: (text) => void out.push(text) },
    err: { write: (text) => void err.push(text) },
    env: {},
  });
  const code = await main(line.split(' '), terminal, { COPPICE_HOME: home, HOME: home }, new AbortController().signal);
  return { out: out.join(''), err: err.join(''), code };
}

const cluster = (name: string, mode: string, reason: string) => ({
  metadata: { name, namespace: 'shop', uid: name },
  spec: { cloudProvider: 'aws' },
  status: { mode, conditions: [{ type: 'InfrastructureReady', status: 'False', reason, lastTransitionTime: '' }] },
});

describe('coppice down', () => {
  it('refuses to leave clusters in a cloud that only this garden knows', async () => {
    lists.workerclusters = [
      cluster('made', 'Managed', 'Applied'),
      cluster('half-made', 'Managed', 'Creating'),
      cluster('never-made', 'Managed', 'Pending'),
      cluster('here', 'Hosted', 'Applied'),
    ];
    const { err, code } = await cli('down');
    expect(code).toBe(1);
    expect(err).toBe(
      'error: shop/made, shop/half-made would remain in the cloud and cost money; delete them first ("coppice delete NAME -n NAMESPACE --wait"), or use --leave-clouds\n',
    );
  });
});

describe('coppice sweep', () => {
  it('searches accounts known only from DNS names of clusters and domains of seeds', async () => {
    const spec = { type: 'aws', regions: [{ name: 'eu-central-1' }], kubernetes: { versions: [] }, machineTypes: [] };
    lists.cloudprofiles = [{ metadata: { name: 'aws' }, spec }];
    const dns = { domain: 'x.org', providers: [{ type: 'aws-route53', credentialsRef: { name: 'zones' } }] };
    lists.workerclusters = [{ metadata: { name: 'one', namespace: 'shop' }, spec: { cloudProvider: 'local', dns } }];
    const internal = { type: 'aws-route53', domain: 'y.org', credentialsRef: { name: 'platform' } };
    lists.seeds = [{ metadata: { name: 'local' }, spec: { provider: {}, dns: { internal } } }];
    const { err, code } = await cli('sweep');
    expect(err).toContain('shop/zones');
    expect(err).toContain('kube-system/platform');
    expect([err.match(/No orphans|neither a cluster/), code]).toEqual([null, 1]);
  });

  it('does not report a place as free of orphans when the search failed', async () => {
    const regions = [{ name: 'here' }];
    const spec = { type: 'aws', kubernetes: {}, machineTypes: [], regions };
    lists.cloudprofiles = [{ metadata: { name: 'aws' }, spec }];
    lists.credentialsbindings = [
      { metadata: { name: 'b', namespace: 'shop' }, provider: { type: 'aws' }, credentialsRef: { name: 'keys' } },
    ];
    secret = { metadata: { name: 'keys', namespace: 'shop' }, data: { accessKeyID: 'eA==' } };
    const { err, code } = await cli('sweep');
    expect(err).toContain('could not check: aws here with Secret shop/keys');
    expect([err.match(/No orphans.*/)?.[0], code]).toEqual(['No orphans were found where it could be checked.', 1]);
  });

  it('says that it has no credentials', async () => {
    const { err, code } = await cli('sweep');
    expect(code).toBe(3);
    expect(err).toContain('neither a cluster nor a CredentialsBinding names credentials');
  });

  it('does not use credentials of profiles that were not asked for', async () => {
    const regions = [{ name: 'here' }];
    lists.cloudprofiles = [
      { metadata: { name: 'aws' }, spec: { type: 'aws', kubernetes: {}, machineTypes: [], regions } },
    ];
    lists.credentialsbindings = [
      {
        metadata: { name: 'b', namespace: 'shop' },
        provider: { type: 'aws' },
        credentialsRef: { kind: 'Secret', name: 'keys' },
      },
    ];
    expect((await cli('sweep --provider gcp')).err).toContain('neither a cluster nor a CredentialsBinding');
  });
});
