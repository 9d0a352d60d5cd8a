import { existsSync, readdirSync } from 'node:fs';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { LABELS } from '../../../operator/api/group.ts';
import { profileManifests } from '../../../operator/api/profiles.ts';
import type { KubeTaint } from '../../../operator/kube/resources.ts';
import { awsClusters } from '../../../providers/aws/index.ts';
import { azureClusters } from '../../../providers/azure/index.ts';
import type { CloudPool, ManagedClusters, Owner } from '../../../providers/cloud.ts';
import { gcpClusters } from '../../../providers/gcp/index.ts';
import type { PulumiRunner } from '../../../providers/pulumi/runner.ts';
import { OWNER_TAGS } from '../../../providers/tags.ts';
import { type CloudName, type CloudResource, type FakeCloud, fakeCloud, type WebEndpoints } from '../cloud/index.ts';
import { engineFor, testRunner } from '../stacks/runner.ts';
import type { CloudTestbed, SeenPool } from './cloud-testbed.ts';

/** What of a cloud the testbed must know to see and to break pools. */
interface Face {
  cloud: CloudName;
  open(runner: PulumiRunner, web: WebEndpoints): ManagedClusters;
  /** Keys of the credentials that are secret. */
  secret: string[];
  cluster: string;
  pool: string;
  /** The cluster that a pool belongs to, by its name. */
  clusterOf(pool: CloudResource['inputs']): string;
  seen(pool: CloudResource['inputs'], cloud: FakeCloud): SeenPool;
  /** Whether the groups of a pool that were made last are the first to lose nodes. Absent: no. */
  lastShrinks?: boolean;
}

/** `NO_SCHEDULE` as Kubernetes writes it. */
const effect = (text: string): string =>
  text
    .toLowerCase()
    .split('_')
    .map((word) => word[0]!.toUpperCase() + word.slice(1))
    .join('');

const taint = (key: string, value: string | undefined, how: string): KubeTaint => ({
  key,
  ...(value && { value }),
  effect: how as KubeTaint['effect'],
});

const FACES: Record<'aws' | 'gcp' | 'azure', Face> = {
  aws: {
    cloud: 'aws',
    open: (runner, web) => awsClusters(runner, web.aws),
    secret: ['secretAccessKey'],
    cluster: 'aws:eks:Cluster',
    pool: 'aws:eks:NodeGroup',
    clusterOf: ({ clusterName }) => clusterName,
    seen: (group, cloud) => ({
      machineTypes: group.instanceTypes,
      nodes: group.scalingConfig.desiredSize,
      spot: group.capacityType === 'SPOT',
      labels: group.labels,
      taints: (group.taints ?? []).map((one: Record<string, string>) =>
        taint(one.key!, one.value, effect(one.effect!)),
      ),
      zones: group.subnetIds.map((id: string) => cloud.resource('aws:ec2:Subnet', id).inputs.availabilityZone),
    }),
  },
  gcp: {
    cloud: 'gcp',
    open: (runner, web) => gcpClusters(runner, web.gcp),
    secret: ['serviceaccount.json'],
    cluster: 'gcp:container:Cluster',
    pool: 'gcp:container:NodePool',
    clusterOf: ({ cluster }) => cluster,
    lastShrinks: true,
    seen: ({ nodeConfig, nodeCount = 0, initialNodeCount = 0, nodeLocations }) => ({
      machineTypes: [nodeConfig.machineType],
      nodes: nodeCount || initialNodeCount,
      spot: nodeConfig.spot === true,
      labels: nodeConfig.labels,
      taints: (nodeConfig.taints ?? []).map((one: Record<string, string>) =>
        taint(one.key!, one.value, effect(one.effect!)),
      ),
      zones: nodeLocations,
    }),
  },
  azure: {
    cloud: 'azure-native',
    open: (runner, web) => azureClusters(runner, web.azure),
    secret: ['clientSecret'],
    cluster: 'azure-native:containerservice:ManagedCluster',
    pool: 'azure-native:containerservice:AgentPool',
    clusterOf: ({ resourceName }) => resourceName,
    seen: (pool) => ({
      machineTypes: [pool.vmSize],
      nodes: pool.count,
      spot: pool.scaleSetPriority === 'Spot',
      labels: pool.nodeLabels,
      taints: (pool.nodeTaints ?? []).map((text: string) => {
        const [, key, value, how] = /^(.+)=(.*):(\w+)$/.exec(text)!;
        return taint(key!, value, how!);
      }),
      zones: pool.availabilityZones,
    }),
  },
};

/** What the cloud's own groups of one pool are together: GKE has one in each zone. */
const together = (parts: SeenPool[]): SeenPool => ({
  ...parts[0]!,
  machineTypes: [...new Set(parts.flatMap(({ machineTypes }) => machineTypes))],
  nodes: parts.reduce((sum, { nodes }) => sum + nodes, 0),
  zones: [...new Set(parts.flatMap(({ zones }) => zones))].sort(),
});

/** The real provider, the real engine and the real SDKs, over a fake cloud with nothing in it. */
export async function fakeCloudTestbed(name: keyof typeof FACES): Promise<CloudTestbed> {
  const face = FACES[name];
  const profile = (await profileManifests()).find(({ metadata }) => metadata.name === name)!;
  const cloud = await fakeCloud();
  const dir = await mkdtemp(join(tmpdir(), 'coppice-conformance-'));
  const runner = await testRunner(cloud, join(dir, 'home'), engineFor(face.cloud, 'managed'));
  const region = profile.spec.defaults!.region!;
  const zones = profile.spec.regions.find((one) => one.name === region)!.zones!.map((zone) => zone.name);
  const { versions = [] } = profile.spec.kubernetes;
  const state = join(dir, 'state');
  await mkdir(state);

  function groupsOf(owner: Owner, pool: CloudPool): CloudResource[] {
    const clusters = cloud.resources({ type: face.cluster, tags: { [OWNER_TAGS.uid]: owner.uid } });
    const names = clusters.map((one) => one.name);
    return cloud.resources({ type: face.pool }).filter(({ inputs }) => {
      const { labels } = face.seen(inputs, cloud);
      return names.includes(face.clusterOf(inputs)) && labels[LABELS.pool] === pool.name;
    });
  }

  const requestsToChange = () =>
    cloud.requests().filter(({ operation }) => ['create', 'update', 'delete'].includes(operation)).length;
  const history = join(state, '.pulumi/history');
  const updatesOfState = () => (existsSync(history) ? readdirSync(history, { recursive: true }).length : 0);

  return {
    managed: face.open(runner, await cloud.web()),
    profile,
    region,
    zones: [zones[0]!, zones[1]!],
    versions: { old: versions[1]!.version, new: versions[0]!.version },
    account: (number) => cloud.account(face.cloud, number),
    secrets: ({ credentials }) => face.secret.map((key) => credentials[key]!),
    state: async () => ({ url: pathToFileURL(state).href, passphrase: 'a phrase for tests', env: {} }),
    async loseState() {
      await rm(state, { recursive: true });
      await mkdir(state);
    },
    cutShort: () =>
      cloud.faults.set({ failures: [{ operation: 'delete', type: face.cluster, when: 'after', how: 'engine' }] }),
    resources: ({ id }) => cloud.resources({ account: id }).map((one) => `${one.type} ${one.id}`),
    writes: () => requestsToChange() + updatesOfState(),
    pool(owner, pool) {
      const groups = groupsOf(owner, pool);
      return groups.length === 0 ? undefined : together(groups.map(({ inputs }) => face.seen(inputs, cloud)));
    },
    nodes(owner, pool) {
      const groups = groupsOf(owner, pool);
      return (face.lastShrinks ? groups.reverse() : groups).flatMap((group) => cloud.nodes(group));
    },
    async damage(owner, pool) {
      for (const { id } of groupsOf(owner, pool)) await cloud.remove(face.pool, id);
    },
    troubles: [
      {
        what: 'revoked credentials',
        code: 'ERR_INFRA_UNAUTHENTICATED',
        everything: true,
        begin: () => cloud.faults.set({ revoked: [cloud.account(face.cloud).key] }),
      },
      {
        what: 'too many requests',
        code: 'ERR_INFRA_RATE_LIMITS_EXCEEDED',
        everything: true,
        begin: () => cloud.faults.set({ throttle: { perSecond: 0 } }),
      },
      {
        what: 'credentials revoked before a change',
        code: 'ERR_INFRA_UNAUTHENTICATED',
        begin: () => cloud.faults.set({ revoked: [cloud.account(face.cloud).key] }),
      },
      {
        what: 'a quota',
        code: 'ERR_INFRA_QUOTA_EXCEEDED',
        begin: () => cloud.faults.set({ quotas: { [face.pool]: cloud.resources({ type: face.pool }).length } }),
      },
      {
        what: 'machines that are sold out',
        code: 'ERR_INFRA_RESOURCES_DEPLETED',
        begin: () => cloud.faults.set({ depleted: [{}] }),
      },
    ],
    heal: () => cloud.faults.clear(),
    async close() {
      await runner.close(5_000);
      await cloud.close();
      await rm(dir, { recursive: true, force: true });
    },
  };
}
