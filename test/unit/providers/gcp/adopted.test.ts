import { describe, expect, it } from 'vitest';
import type { CloudPool } from '../../../../providers/cloud.ts';
import { adoptProblems, clusterOfID, lookAtAdopted } from '../../../../providers/gcp/adopted.ts';
import { driftOf } from '../../../../providers/gcp/drift.ts';
import { existingAt } from '../../../../providers/gcp/existing.ts';
import { gcpLabelsOf } from '../../../../providers/gcp/labels.ts';
import type { adopted } from '../../../../providers/gcp/programs/adopted.ts';
import { programs } from '../../../../providers/gcp/programs.ts';
import { validateCluster } from '../../../../providers/gcp/validate.ts';
import { graphOf } from '../../../kit/pulumi-graph.ts';
import { FakeGoogle } from './fake-google.ts';
import { answers, clusterInputs, context, owner, pool, profile } from './fixtures.ts';

type AdoptedInputs = Parameters<typeof adopted>[0];

const PATH = 'projects/demo-project/locations/europe-west3/clusters/theirs';
const ZONAL = 'projects/demo-project/locations/europe-west3-a/clusters/theirs';
const CLUSTER = 'gcp:container/cluster:Cluster';
const NODE_POOL = 'gcp:container/nodePool:NodePool';
const adopt = { id: PATH, deletionPolicy: 'Release' as const };

describe('the ID of a GKE cluster to adopt', () => {
  it.each([
    [PATH, 'theirs', 'demo-project', 'europe-west3'],
    [ZONAL, 'theirs', 'demo-project', 'europe-west3-a'],
    [`https://container.googleapis.com/v1/${PATH}`, 'theirs', 'demo-project', 'europe-west3'],
    ['theirs', 'theirs', undefined, undefined],
  ])('%s is parsed', (id, name, project, location) => {
    expect(clusterOfID(id)).toEqual({ name, ...(project && { project, location }) });
  });

  it.each([
    ['theirs', 'europe-west3', undefined],
    [PATH, 'europe-west3', undefined],
    [ZONAL, 'europe-west3', undefined],
    [PATH, 'us-east1', 'set spec.region'],
    ['projects/demo-project/global/networks/n', 'europe-west3', 'neither the name of a GKE cluster nor projects/'],
    ['a/b', 'europe-west3', 'neither the name of a GKE cluster nor projects/'],
    ['../../evil', 'europe-west3', 'neither the name of a GKE cluster nor projects/'],
  ])('%s in %s has problem: %s', (id, region, expected) => {
    const problems = validateCluster({ ...clusterInputs(), region, pools: [], adopt: { ...adopt, id } }, profile);
    expect(problems).toEqual(adoptProblems({ ...adopt, id }, region));
    if (expected) expect(problems[0]?.message).toContain(expected);
    else expect(problems).toEqual([]);
  });
});

describe('lookAtAdopted at Google', () => {
  const described = {
    name: 'theirs',
    location: 'europe-west3',
    locations: ['europe-west3-b', 'europe-west3-a'],
    status: 'RUNNING',
    currentMasterVersion: '1.35.4-gke.1000',
    resourceLabels: { team: 'shop' },
    workloadIdentityConfig: { workloadPool: 'demo-project.svc.id.goog' },
    releaseChannel: { channel: 'REGULAR' },
  };
  type Changes = Omit<Partial<ReturnType<typeof clusterInputs>>, 'adopt'> & { id?: string };

  async function look(clusters: Record<string, object>, { id = PATH, ...changes }: Changes = {}) {
    await using google = await FakeGoogle.start(({ path }) => {
      if (path === '/token') return undefined;
      const body = clusters[path.replace('/v1/', '')];
      return body ? { body } : { status: 404, body: { error: { message: 'Not found' } } };
    });
    const wanted = { ...clusterInputs({ kubernetesVersion: '', pools: [], ...changes }), adopt: { ...adopt, id } };
    return await lookAtAdopted(context(), google.endpoints, wanted);
  }

  const facts = {
    name: 'theirs',
    project: 'demo-project',
    location: 'europe-west3',
    version: '1.35.4-gke.1000',
    zones: ['europe-west3-a', 'europe-west3-b'],
    labels: { team: 'shop' },
    workloadIdentity: true,
    inChannel: true,
  };

  it('returns the facts that the program needs', async () => {
    expect(await look({ [PATH]: described })).toEqual({ isTaken: false, facts });
    const { releaseChannel: _, workloadIdentityConfig: _none, ...plain } = described;
    const { facts: found } = await look({ [PATH]: plain });
    expect(found).toEqual({ ...facts, workloadIdentity: false, inChannel: false });
  });

  it('finds a cluster by name in the region or one zone, and rejects several', async () => {
    const zonal = { ...described, location: 'europe-west3-a' };
    expect((await look({ [ZONAL]: zonal }, { id: 'theirs' })).facts.location).toBe('europe-west3-a');
    await expect(look({ [PATH]: described, [ZONAL]: zonal }, { id: 'theirs' })).rejects.toThrow(
      'europe-west3 and europe-west3-a have one of that name each',
    );
  });

  it('recognizes an adopted cluster by its labels', async () => {
    const resourceLabels = { team: 'shop', 'coppice-adopted-by': owner.uid, 'coppice-adopted-as': 'shop__one' };
    const { isTaken, facts: found } = await look({ [PATH]: { ...described, resourceLabels } });
    expect(isTaken).toBe(true);
    expect(found.labels).toEqual({ team: 'shop' });
  });

  const other = { 'coppice-adopted-by': 'x', 'coppice-adopted-as': 'bank__two_b' };
  it.each<[string, object, Changes, string]>([
    ['is not there', described, { id: 'other' }, 'has none of that name in europe-west3, europe-west3-a'],
    ['is in another project', described, { id: PATH.replace('demo', 'their') }, 'are of project demo-project'],
    ['is being deleted', { ...described, status: 'STOPPING' }, {}, 'it is STOPPING'],
    ['is of another garden', { ...described, resourceLabels: other }, {}, 'taken over for WorkerCluster bank/two.b'],
    ['we made', { ...described, resourceLabels: gcpLabelsOf(owner) }, {}, 'it was made for WorkerCluster shop/one'],
    [
      'is to go back',
      described,
      { kubernetesVersion: '1.34' },
      'it runs Kubernetes 1.35.4-gke.1000, and 1.34 is older',
    ],
    ['has no node pools', { ...described, autopilot: { enabled: true } }, { pools: [pool()] }, 'in Autopilot mode'],
  ])('refuses a cluster that %s', async (_, cluster, changes, expected) => {
    const looking = look({ [PATH]: cluster }, changes);
    await expect(looking).rejects.toMatchObject({ code: 'ERR_CONFIGURATION_PROBLEM' });
    await expect(looking).rejects.toThrow(expected);
  });

  it('does not report a cluster as missing when Google refuses the call', async () => {
    await using google = await FakeGoogle.start(({ path }) =>
      path === '/token' ? undefined : { status: 403, body: { error: { code: 403, status: 'PERMISSION_DENIED' } } },
    );
    const looking = lookAtAdopted(context(), google.endpoints, { ...clusterInputs(), adopt });
    await expect(looking).rejects.toMatchObject({ code: 'ERR_INFRA_UNAUTHORIZED' });
  });
});

describe('the Google program of an adopted cluster', () => {
  const found: AdoptedInputs['found'] = {
    name: 'theirs',
    project: 'demo',
    location: 'europe-west3-a',
    version: '1.35.4-gke.1000',
    zones: ['europe-west3-a', 'europe-west3-b'],
    labels: { team: 'shop' },
    workloadIdentity: true,
    inChannel: false,
  };
  const made = (changes: Partial<AdoptedInputs> = {}) =>
    graphOf(
      programs.adopted!,
      { ...clusterInputs({ kubernetesVersion: '', pools: [] }), adopt, found, leaving: false, ...changes },
      answers,
    );
  const withPool = async (changes: Partial<CloudPool>, facts: Partial<AdoptedInputs['found']> = {}) =>
    await made({ pools: [pool(changes)], found: { ...found, ...facts } });

  it('declares the cluster as it is, and no network, key or service account', async () => {
    const graph = await made();
    const { inputs, options } = graph.one(CLUSTER, 'adopted');
    expect(inputs).toEqual({
      name: 'theirs',
      location: 'europe-west3-a',
      deletionProtection: true,
      resourceLabels: {
        team: 'shop',
        'coppice-adopted-by': owner.uid,
        'coppice-adopted-as': 'shop__one',
        'coppice-adopted-until': 'release',
      },
    });
    expect(options.ignoreChanges).toEqual(
      expect.arrayContaining(['network', 'databaseEncryption', 'minMasterVersion', 'masterAuthorizedNetworksConfig']),
    );
    expect(options.ignoreChanges).not.toContain('resourceLabels');
    expect(graph.resources.map(({ type }) => type)).toEqual([CLUSTER]);
    expect(graph.outputs).toMatchObject({
      name: 'theirs',
      endpoint: 'https://203.0.113.7',
      extra: { location: 'europe-west3-a' },
    });
  });

  it('changes only the requested fields of the cluster', async () => {
    const { inputs, options } = (await made({ kubernetesVersion: '1.36', authorizedNetworks: ['192.0.2.0/24'] })).one(
      CLUSTER,
    );
    expect(inputs).toMatchObject({
      minMasterVersion: '1.36',
      masterAuthorizedNetworksConfig: { cidrBlocks: [{ cidrBlock: '192.0.2.0/24' }] },
    });
    expect(options.ignoreChanges).not.toContain('minMasterVersion');
    expect(options.ignoreChanges).not.toContain('masterAuthorizedNetworksConfig');
    expect(options.ignoreChanges).toContain('privateClusterConfig');
  });

  it.each([
    ['Release', { leaving: true }, { team: 'shop' }, true],
    ['Delete', { adopt: { id: PATH, deletionPolicy: 'Delete' as const } }, undefined, false],
  ])('retains the cluster unless deletionPolicy is Delete: %s', async (_, changes, labels, retained) => {
    const { inputs, options } = (await made(changes)).one(CLUSTER);
    expect(options.retainOnDelete ?? false).toBe(retained);
    expect(inputs.deletionProtection).toBe(retained);
    if (labels) expect(inputs.resourceLabels).toEqual(labels);
  });

  it("puts Coppice's node pools into the cluster's zones, with the owner's labels and their own service account", async () => {
    const graph = await withPool({ name: 'a', desired: 3 });
    const pools = graph.all(NODE_POOL).map(({ inputs }) => inputs);
    expect(pools.map(({ nodeLocations, nodeCount }) => [nodeLocations, nodeCount])).toEqual([
      [['europe-west3-a'], 2],
      [['europe-west3-b'], 1],
    ]);
    for (const one of pools) {
      expect(one).toMatchObject({ cluster: 'theirs', location: 'europe-west3-a', version: '1.36.3-gke.1000' });
      expect(one.nodeConfig.resourceLabels).toMatchObject({ 'coppice-uid': owner.uid, 'coppice-pool': 'a' });
      expect(one.nodeConfig.serviceAccount).toMatch(/@demo\.iam\.gserviceaccount\.com$/);
      // As their own nodes: there may be no NAT in their network.
      expect(one).not.toHaveProperty('networkConfig');
    }
    expect(graph.all('gcp:serviceaccount/account:Account')).toHaveLength(1);
  });

  it.each([true, false])(
    'sets upgrades and metadata of nodes only where the cluster permits them: %s',
    async (allowed) => {
      const graph = await withPool({ zones: ['europe-west3-a'] }, { workloadIdentity: allowed, inChannel: allowed });
      const [one] = graph.all(NODE_POOL);
      expect(one?.inputs.management).toEqual({ autoRepair: true, autoUpgrade: allowed });
      expect('workloadMetadataConfig' in one!.inputs.nodeConfig).toBe(allowed);
    },
  );
});

describe('findExisting for an adopted GKE cluster', () => {
  const wanted = (type: string, name: string, inputs: object) => ({ urn: 'urn', type, name, inputs: { ...inputs } });
  const never = new AbortController().signal;

  it('imports the cluster where it was found, retained, and node pools in it', async () => {
    const ours = { config: { resourceLabels: gcpLabelsOf(owner) } };
    await using google = await FakeGoogle.start(({ path }) =>
      path === `/v1/${ZONAL}/nodePools/a-1` ? { body: ours } : undefined,
    );
    const look = existingAt(google.endpoints, context());
    const at = { location: 'europe-west3-a' };
    expect(await look(wanted(CLUSTER, 'adopted', { name: 'theirs', ...at }), never)).toEqual({
      id: ZONAL,
      retain: true,
    });
    expect(await look(wanted(NODE_POOL, 'a', { name: 'a-1', cluster: 'theirs', ...at }), never)).toEqual({
      id: 'demo-project/europe-west3-a/theirs/a-1',
    });
  });
});

it("an upgrade of nodes by Google is no drift when the cluster's upgrades are not managed", () => {
  const upgraded = { operation: 'update', resource: `${NODE_POOL} a`, properties: ['version'] };
  expect(driftOf([upgraded], { adopt })).toEqual([]);
  expect(driftOf([upgraded], {})).toEqual([upgraded]);
});
