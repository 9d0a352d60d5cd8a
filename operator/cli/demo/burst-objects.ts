import type { BurstPolicy } from '../../api/burstpolicy.ts';
import type { CloudProfile, MachineType } from '../../api/cloudprofile.ts';
import { ALPHA_API_VERSION, API_VERSION, LABELS } from '../../api/group.ts';
import type { Hub, HubSpec } from '../../api/hub.ts';
import type { WorkerCluster } from '../../api/workercluster.ts';
import { formatMoney } from '../../cost/money.ts';
import { machinePrice } from '../../cost/price.ts';
import { IMAGES } from '../../garden/images/catalog.ts';
import { podSecurityLabels } from '../../kube/pod-security.ts';
import type { Deployment, KubeObject } from '../../kube/resources.ts';

/** Namespace of the clusters and of the policy. */
export const CLUSTERS_IN = 'burst-demo';
/** Namespace of the work, in whatever has it; with the neutral hub also of ClusterProfiles and the PlacementDecision. */
export const FLEET = 'burst-demo-fleet';
/** Name of the Hub and of the CloudProfile. */
export const DEMO = 'burst-demo';
export const PRIVATE = 'private';
export const POLICY = 'peak';
export const WORK = 'web';
/** By this the demo knows what an earlier run of it has left. */
export const MARK = { [LABELS.managedBy]: 'coppice-demo' };

const CURRENCY = 'USD';
/** Machines whose prices are taken, by candidate: both have 2 CPUs, as a local machine says that it has. */
const SOLD_AS = [
  { candidate: 'aws', profile: 'aws', machineType: 'm5.large', region: 'eu-central-1' },
  { candidate: 'gcp', profile: 'gcp', machineType: 'e2-standard-2', region: 'europe-west3' },
];

/** A machine of a cloud that a local one stands for. */
export interface Sold {
  readonly candidate: string;
  readonly machineType: string;
  readonly region: string;
  /** In USD. */
  readonly hourly: string;
}

/** What machines of clouds cost on demand, by the profiles that come with Coppice. Throws where they do not say. */
export const soldAs = (profiles: readonly CloudProfile[]): Sold[] =>
  SOLD_AS.map(({ candidate, profile, machineType, region }) => {
    const type = profiles
      .find(({ metadata }) => metadata.name === profile)
      ?.spec.machineTypes.find(({ name }) => name === machineType);
    const price = type?.price?.currency === CURRENCY ? machinePrice(type, region, false) : undefined;
    if (price === undefined) throw new Error(`CloudProfile ${profile} has no price of ${machineType} in ${region}`);
    return { candidate, machineType, region, hourly: formatMoney(price) };
  });

/** Three of them fit beside the system on a node of 2 CPUs. */
export const REPLICA = { cpu: '500m', memory: '32Mi' };
export const FIT = 3;
/** With a second node of the private cluster. */
export const RISEN = 6;
/** For which it is too small with both. */
export const PEAK = 9;

/** So many replicas of this, with no more than a pod needs. Every local machine has the image. */
export const workOf = (name: string, replicas: number): Deployment => ({
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name, namespace: FLEET },
  spec: {
    replicas,
    selector: { matchLabels: { app: name } },
    template: {
      metadata: { labels: { app: name } },
      spec: {
        terminationGracePeriodSeconds: 1,
        containers: [{ name: 'idle', image: IMAGES.pause.ref, resources: { requests: REPLICA } }],
      },
    },
  },
});

/** What is there before the story begins. */
export function stage(
  local: CloudProfile,
  sold: readonly Sold[],
  hub: Pick<HubSpec, 'type'> & Partial<HubSpec>,
): KubeObject[] {
  const [own] = local.spec.machineTypes;
  const machineTypes = sold.map(
    ({ machineType, hourly }): MachineType => ({
      ...own!,
      name: machineType,
      price: { hourly, currency: CURRENCY },
    }),
  );
  const profile: CloudProfile = {
    apiVersion: API_VERSION,
    kind: 'CloudProfile',
    metadata: { name: DEMO, labels: MARK },
    spec: { ...local.spec, machineTypes, defaults: { ...local.spec.defaults, machineType: machineTypes[0]!.name } },
  };
  const demo: Hub = {
    apiVersion: ALPHA_API_VERSION,
    kind: 'Hub',
    metadata: { name: DEMO, labels: MARK },
    spec: {
      allowedNamespaces: [CLUSTERS_IN],
      // A demo that was interrupted may leave work that nobody takes back.
      drain: { timeout: '1m', force: true },
      ...hub,
    },
  };
  const labels = { ...MARK, ...podSecurityLabels('restricted') };
  const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: CLUSTERS_IN, labels } };
  return [namespace, profile, demo];
}

/** By this the policy finds the cluster whose pool it may have grow. */
const GROWS = { fleet: 'private' };

export const privateCluster: WorkerCluster = {
  apiVersion: API_VERSION,
  kind: 'WorkerCluster',
  metadata: { name: PRIVATE, namespace: CLUSTERS_IN, labels: GROWS },
  spec: {
    cloudProvider: 'local',
    controlPlaneNodes: 1,
    pools: [{ name: 'own', minimum: 1, maximum: 2, autoscale: 'Coppice', scaleInAfter: '5s' }],
  },
};

/** With times so short as nobody would have them who pays. */
export const policy = (sold: readonly Sold[]): BurstPolicy => ({
  apiVersion: ALPHA_API_VERSION,
  kind: 'BurstPolicy',
  metadata: { name: POLICY, namespace: CLUSTERS_IN },
  spec: {
    hub: DEMO,
    // Of a hub that has other work as well nothing else is bought for.
    namespaces: [FLEET],
    trigger: { pendingFor: '1ms' },
    // Machines that somebody owns cost nothing more when they are used.
    grow: [{ name: PRIVATE, clusterSelector: { matchLabels: GROWS }, maximumNodes: 1, assumedHourly: '0' }],
    candidates: sold.map(({ candidate, machineType }) => ({
      name: candidate,
      template: {
        spec: {
          cloudProvider: DEMO,
          controlPlaneNodes: 1,
          pools: [{ name: 'workers', machineType, maximum: 2 }],
        },
      },
    })),
    maximumClusters: 1,
    budget: { hourly: '1', currency: CURRENCY },
    scaleIn: { idleFor: '5s', minimumLife: '10s' },
    cooldown: { scaleOut: '5s', scaleIn: '5s' },
  },
});
