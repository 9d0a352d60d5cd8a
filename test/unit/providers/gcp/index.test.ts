import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { Change } from '../../../../providers/cloud.ts';
import { GCP_VERSION, gcpClusters, gcpProvider } from '../../../../providers/gcp/index.ts';
import type { StackRequest } from '../../../../providers/pulumi/request.ts';
import type { StackRunner } from '../../../../providers/pulumi/stack-runner.ts';
import { pool, context as providerContext } from '../fixtures.ts';
import { FakeGoogle } from './fake-google.ts';
import { clusterInputs, context, owner, profile } from './fixtures.ts';

const { owner: _, network, ...cluster } = clusterInputs();
const made = { name: 'one', endpoint: 'https://203.0.113.7', certificateAuthority: 'PEM', version: '1.36.3' };

/** Keeps what it is asked; every stack is as the programs would leave it. */
function recording(drift: Change[] = []) {
  const requests: StackRequest[] = [];
  const outputs = ({ stack }: StackRequest) => ({ ...(stack.layer === 'network' ? network : made) });
  const kept =
    <T>(answer: (request: StackRequest) => T) =>
    async (request: StackRequest): Promise<T> => {
      requests.push(request);
      return answer(request);
    };
  const runner: StackRunner = {
    preview: kept(() => []),
    apply: kept((request) => ({ outputs: outputs(request), changes: [] })),
    drift: kept(({ stack }) => (stack.layer === 'cluster' ? drift : [])),
    destroy: kept(() => {}),
    outputs: async (request) => outputs(request),
  };
  return { runner, requests };
}

describe('the GKE provider', () => {
  it('applies a network and then a cluster by its own programs', async () => {
    const { runner, requests } = recording();
    expect(await gcpClusters(runner).apply(context(), cluster)).toEqual(made);
    expect(requests.map(({ stack, program }) => [stack, program])).toEqual([
      [
        { technicalID: owner.technicalID, layer: 'network' },
        { provider: 'gcp', layer: 'network' },
      ],
      [
        { technicalID: owner.technicalID, layer: 'cluster' },
        { provider: 'gcp', layer: 'cluster' },
      ],
    ]);
    expect(requests[1]!.inputs).toEqual({ ...cluster, owner, network });
  });

  it('passes the plugin the key, the project and the region, and nothing else', async () => {
    const { runner, requests } = recording();
    await gcpClusters(runner).apply(context(), cluster);
    expect(Object.keys(requests[0]!.credentials)).toEqual(['GOOGLE_CREDENTIALS']);
    expect(requests[0]!.settings).toEqual({ GOOGLE_PROJECT: 'demo-project', GOOGLE_REGION: 'europe-west3' });
  });

  it("passes the plugin a token for the machine's own identity", async () => {
    await using google = await FakeGoogle.start(() => ({ body: { access_token: 'ya29.machine', expires_in: 3600 } }));
    const { runner, requests } = recording();
    const lending = { ...profile, spec: { ...profile.spec, providerConfig: { machineIdentity: true } } };
    const account = { id: 'demo-project', credentials: { projectID: 'demo-project' } };
    await gcpClusters(runner, google.endpoints).apply(context({ account, profile: lending }), cluster);
    expect(requests[0]!.credentials).toEqual({ GOOGLE_OAUTH_ACCESS_TOKEN: 'ya29.machine' });
  });

  it('starts nothing with unusable credentials', async () => {
    const { runner, requests } = recording();
    const account = { id: 'demo-project', credentials: {} };
    await expect(gcpClusters(runner).apply(context({ account }), cluster)).rejects.toMatchObject({
      code: 'ERR_INFRA_UNAUTHENTICATED',
    });
    expect(requests).toEqual([]);
  });

  it('classifies errors of Google by their codes', async () => {
    const { runner, requests } = recording();
    await gcpClusters(runner).apply(context(), cluster);
    expect(requests[0]!.classify!({ text: "googleapi: Error 403: Quota 'CPUS' exceeded., quotaExceeded" })).toBe(
      'ERR_INFRA_QUOTA_EXCEEDED',
    );
  });

  it('reports changes by others as drift, and not those of Google', async () => {
    const change = (resource: string, ...properties: string[]) => ({ operation: 'update', resource, properties });
    const { runner } = recording([
      change('gcp:container/cluster:Cluster cluster', 'masterVersion', 'resourceLabels'),
      change('gcp:container/nodePool:NodePool workers-a', 'managedInstanceGroupUrls'),
      change('gcp:container/nodePool:NodePool workers-b', 'nodeCount'),
      { operation: 'delete', resource: 'gcp:kms/cryptoKey:CryptoKey secrets' },
    ]);
    expect(await gcpClusters(runner).drift(context(), cluster)).toEqual([
      change('gcp:container/cluster:Cluster cluster', 'resourceLabels'),
      change('gcp:container/nodePool:NodePool workers-b', 'nodeCount'),
      { operation: 'delete', resource: 'gcp:kms/cryptoKey:CryptoKey secrets' },
    ]);
  });

  it('names the SDK version of its programs', () => {
    const { dependencies } = JSON.parse(readFileSync('package.json', 'utf8'));
    expect(GCP_VERSION).toContain(`gcp ${dependencies['@pulumi/gcp']},`);
  });
});

describe('the machine provider of Google', () => {
  it('lists machines at the endpoint of the profile', async () => {
    await using google = await FakeGoogle.start(({ path }) => (path === '/token' ? undefined : { body: {} }));
    const elsewhere = { ...profile, spec: { ...profile.spec, providerConfig: { endpoints: google.endpoints } } };
    const ctx = providerContext({ cloud: async () => context({ profile: elsewhere }) });
    const provider = gcpProvider(recording().runner);
    await provider.reconcilePools!(ctx, [pool()]);
    expect(await provider.listMachines(ctx)).toEqual([]);
    expect(google.calls).toContain('GET /compute/v1/projects/demo-project/aggregated/instances');
  });
});
