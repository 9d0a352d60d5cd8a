import { describe, expect, it } from 'vitest';
import type { CloudPool, ManagedClusterInputs } from '../../../../providers/cloud.ts';
import { programs } from '../../../../providers/gcp/programs.ts';
import { graphOf } from '../../../kit/pulumi-graph.ts';
import { answers, clusterInputs, labels, pool } from './fixtures.ts';

const CLUSTER = 'gcp:container/cluster:Cluster';
const NODE_POOL = 'gcp:container/nodePool:NodePool';

const plain = await graphOf(programs.cluster!, clusterInputs(), answers);
const declared = async (changes?: Partial<ManagedClusterInputs>) =>
  changes ? await graphOf(programs.cluster!, clusterInputs(changes), answers) : plain;
const clusterOf = async (changes?: Partial<ManagedClusterInputs>) => (await declared(changes)).one(CLUSTER);
const nodePoolsOf = async (...pools: CloudPool[]) => (await declared({ pools })).all(NODE_POOL);
const nodePoolOf = async (changes: Partial<CloudPool>) =>
  (await nodePoolsOf(pool({ zones: ['europe-west3-a'], ...changes })))[0]!;

describe('a GKE cluster', () => {
  it('is regional and VPC-native, with private nodes and Dataplane V2', async () => {
    expect((await clusterOf()).inputs).toMatchObject({
      name: 'shoot--shop--one',
      location: 'europe-west3',
      nodeLocations: ['europe-west3-a', 'europe-west3-b', 'europe-west3-c'],
      network: 'projects/p/global/networks/n',
      subnetwork: 'projects/p/regions/europe-west3/subnetworks/n-nodes',
      networkingMode: 'VPC_NATIVE',
      datapathProvider: 'ADVANCED_DATAPATH',
      ipAllocationPolicy: { clusterSecondaryRangeName: 'pods', servicesSecondaryRangeName: 'services' },
      privateClusterConfig: { enablePrivateNodes: true, enablePrivateEndpoint: false },
    });
  });

  it('stays at the requested version, without deletion protection', async () => {
    expect((await clusterOf()).inputs).toMatchObject({
      minMasterVersion: '1.36',
      releaseChannel: { channel: 'UNSPECIFIED' },
      deletionProtection: false,
    });
  });

  it('encrypts Secrets with its own key, which GKE may use before the cluster starts', async () => {
    const graph = await declared();
    const key = graph.one('gcp:kms/cryptoKey:CryptoKey');
    expect(key.inputs).toMatchObject({ keyRing: '<keys.id>', rotationPeriod: '7776000s', labels });
    expect(graph.one('gcp:kms/cryptoKeyIAMMember:CryptoKeyIAMMember').inputs).toEqual({
      cryptoKeyId: '<secrets.id>',
      role: 'roles/cloudkms.cryptoKeyEncrypterDecrypter',
      member: 'serviceAccount:service-1234@container-engine-robot.iam.gserviceaccount.com',
    });
    const { inputs, options } = graph.one(CLUSTER);
    expect(inputs.databaseEncryption).toEqual({ state: 'ENCRYPTED', keyName: '<secrets.id>' });
    expect(options.dependsOn).toContain('secrets-gke');
  });

  it('authenticates workloads by workload identity, and admits nobody anonymous', async () => {
    expect((await clusterOf()).inputs).toMatchObject({
      workloadIdentityConfig: { workloadPool: 'demo.svc.id.goog' },
      enableShieldedNodes: true,
      anonymousAuthenticationConfig: { mode: 'LIMITED' },
      masterAuth: { clientCertificateConfig: { issueClientCertificate: false } },
    });
  });

  it('is open to authorized networks, or to all without authorized networks', async () => {
    expect((await clusterOf()).inputs).not.toHaveProperty('masterAuthorizedNetworksConfig');
    const { inputs } = await clusterOf({ authorizedNetworks: ['198.51.100.0/24', '203.0.113.9/32'] });
    expect(inputs.masterAuthorizedNetworksConfig).toEqual({
      cidrBlocks: [{ cidrBlock: '198.51.100.0/24' }, { cidrBlock: '203.0.113.9/32' }],
      gcpPublicCidrsAccessEnabled: false,
    });
  });

  it('runs its nodes with a service account that has the default node role only', async () => {
    const graph = await declared();
    const email = `${graph.one('gcp:serviceaccount/account:Account').inputs.accountId}@demo.iam.gserviceaccount.com`;
    const grants = graph.all('gcp:projects/iAMMember:IAMMember').map(({ inputs }) => inputs);
    expect(grants).toEqual([
      { project: 'demo', role: 'roles/container.defaultNodeServiceAccount', member: `serviceAccount:${email}` },
    ]);
    for (const { inputs } of graph.all(NODE_POOL)) expect(inputs.nodeConfig.serviceAccount).toBe(email);
    const { inputs, options } = graph.one(CLUSTER);
    expect(inputs.nodeConfig.serviceAccount).toBe(email);
    expect(options.dependsOn).toContain('nodes roles/container.defaultNodeServiceAccount');
  });

  it('has no default node pool, and is not replaced for changes of that pool', async () => {
    const { inputs, options } = await clusterOf();
    expect(inputs).toMatchObject({ removeDefaultNodePool: true, initialNodeCount: 1 });
    expect(options.ignoreChanges).toEqual(['nodeConfig']);
  });

  it('outputs how to reach it', async () => {
    expect((await declared()).outputs).toEqual({
      name: 'shoot--shop--one',
      endpoint: 'https://203.0.113.7',
      certificateAuthority: 'CERTIFICATE',
      version: '1.36.3-gke.1000',
      extra: { project: 'demo', location: 'europe-west3' },
    });
  });

  it("has the owner's labels wherever Google permits labels", async () => {
    const graph = await declared();
    expect((await clusterOf()).inputs.resourceLabels).toEqual(labels);
    for (const { inputs } of graph.all(NODE_POOL)) {
      expect(inputs.nodeConfig.resourceLabels).toEqual({ ...labels, 'coppice-pool': 'workers' });
    }
    expect(graph.one('gcp:serviceaccount/account:Account').inputs.description).toContain(labels['coppice-uid']);
  });

  it('is declared equally for equal inputs', async () => {
    expect((await declared({})).resources).toEqual((await declared()).resources);
  });
});

describe('a GKE node pool', () => {
  it('of a fixed size is one per zone, each with its share', async () => {
    const pools = await nodePoolsOf(pool({ desired: 5 }));
    expect(pools.map(({ name, inputs }) => [name, inputs.nodeLocations, inputs.nodeCount])).toEqual([
      ['workers-a', ['europe-west3-a'], 2],
      ['workers-b', ['europe-west3-b'], 2],
      ['workers-c', ['europe-west3-c'], 1],
    ]);
    expect(pools.every(({ inputs }) => inputs.autoscaling === undefined)).toBe(true);
  });

  it('of an autoscaled size is one for all zones, with total limits', async () => {
    const [only, ...others] = await nodePoolsOf({ ...pool({ minimum: 1, maximum: 50 }), desired: undefined! });
    expect(others).toEqual([]);
    expect(only!.inputs).toMatchObject({
      nodeLocations: ['europe-west3-a', 'europe-west3-b', 'europe-west3-c'],
      autoscaling: { totalMinNodeCount: 1, totalMaxNodeCount: 50, locationPolicy: 'BALANCED' },
      ignoreNodeCountChanges: true,
    });
    expect(only!.inputs).not.toHaveProperty('nodeCount');
    expect(only!.options.ignoreChanges).toContain('initialNodeCount');
  });

  it('belongs to the cluster and runs its version', async () => {
    expect((await nodePoolOf({})).inputs).toMatchObject({
      cluster: 'shoot--shop--one',
      location: 'europe-west3',
      version: '1.36.3-gke.1000',
      management: { autoRepair: true, autoUpgrade: false },
      networkConfig: { enablePrivateNodes: true },
    });
  });

  it('has shielded machines and workload metadata', async () => {
    expect((await nodePoolOf({})).inputs.nodeConfig).toMatchObject({
      shieldedInstanceConfig: { enableSecureBoot: true, enableIntegrityMonitoring: true },
      workloadMetadataConfig: { mode: 'GKE_METADATA' },
      metadata: { 'disable-legacy-endpoints': 'true' },
      kubeletConfig: { insecureKubeletReadonlyPortEnabled: 'FALSE' },
    });
  });

  it('of spot machines uses any zone with capacity', async () => {
    const [only] = await nodePoolsOf({ ...pool({ spot: true }), desired: undefined! });
    expect(only!.inputs.nodeConfig.spot).toBe(true);
    expect(only!.inputs.autoscaling.locationPolicy).toBe('ANY');
  });

  it('of GPU machines has accelerators with a driver, and no secure boot that would block the driver', async () => {
    const { inputs } = await nodePoolOf({ machineType: 'a3-highgpu-8g', gpu: 8 });
    expect(inputs.nodeConfig).toMatchObject({
      machineType: 'a3-highgpu-8g',
      guestAccelerators: [
        { type: 'nvidia-h100-80gb', count: 8, gpuDriverInstallationConfig: { gpuDriverVersion: 'DEFAULT' } },
      ],
      shieldedInstanceConfig: { enableSecureBoot: false },
    });
    expect((await nodePoolOf({})).inputs.nodeConfig).not.toHaveProperty('guestAccelerators');
  });

  it("has the pool's labels, taints and disk", async () => {
    const { inputs } = await nodePoolOf({
      labels: { tier: 'burst' },
      taints: [
        { key: 'dedicated', value: 'ml', effect: 'NoSchedule' },
        { key: 'spot', effect: 'PreferNoSchedule' },
      ],
      diskGiB: 200,
    });
    expect(inputs.nodeConfig).toMatchObject({
      labels: { tier: 'burst', 'multi-cluster.demo.io/pool': 'workers' },
      taints: [
        { key: 'dedicated', value: 'ml', effect: 'NO_SCHEDULE' },
        { key: 'spot', value: '', effect: 'PREFER_NO_SCHEDULE' },
      ],
      diskSizeGb: 200,
    });
    expect((await nodePoolOf({})).inputs.nodeConfig).not.toHaveProperty('diskSizeGb');
  });

  it('gets another name only for changes that GKE cannot make in place', async () => {
    const nameOf = async (changes: Partial<CloudPool>) => (await nodePoolOf(changes)).inputs.name;
    const name = await nameOf({});
    for (const inPlace of [
      { desired: 9 },
      { labels: { a: 'b' } },
      { diskGiB: 50 },
      { machineType: 'e2-standard-8' },
    ] as Partial<CloudPool>[]) {
      expect(await nameOf(inPlace), JSON.stringify(inPlace)).toBe(name);
    }
    const replaced = [
      { spot: true },
      { architecture: 'arm64', machineType: 'c4a-standard-4' },
      { gpu: 1, machineType: 'g2-standard-4' },
    ] as Partial<CloudPool>[];
    const names = new Set([name]);
    for (const changes of replaced) names.add(await nameOf(changes));
    expect(names.size).toBe(4);
  });
});
