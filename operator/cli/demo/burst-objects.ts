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

/** Namespace of the clusters and the policy. */
export const CLUSTERS_IN = 'burst-demo';
/** Namespace of the work; with the neutral hub also of ClusterProfiles and the PlacementDecision. */
export const FLEET = 'burst-demo-fleet';
/** Name of Hub and CloudProfile. */
export const DEMO = 'burst-demo';
export const PRIVATE = 'private';
export const POLICY = 'peak';
export const WORK = 'web';
/** Label by which the demo recognizes objects of an earlier run. */
export const MARK = { [LABELS.managedBy]: 'coppice-demo' };

const CURRENCY = 'USD';
/** Cloud machines whose prices the demo uses, by candidate: both have 2 CPUs, as local machines report. */
const SOLD_AS = [
  { candidate: 'aws', profile: 'aws', machineType: 'm5.large', region: 'eu-central-1' },
  { candidate: 'gcp', profile: 'gcp', machineType: 'e2-standard-2', region: 'europe-west3' },
];

/** Cloud machine that a local machine represents. */
export interface StandInMachine {
  readonly candidate: string;
  readonly machineType: string;
  readonly region: string;
  /** USD per hour. */
  readonly hourly: string;
}

/** On-demand prices of these machines, from Coppice's CloudProfiles. Throws if a profile lacks one. */
export const soldAs = (profiles: readonly CloudProfile[]): StandInMachine[] =>
  SOLD_AS.map(({ candidate, profile, machineType, region }) => {
    const type = profiles
      .find(({ metadata }) => metadata.name === profile)
      ?.spec.machineTypes.find(({ name }) => name === machineType);
    const price = type?.price?.currency === CURRENCY ? machinePrice(type, region, false) : undefined;
    if (price === undefined) throw new Error(`CloudProfile ${profile} has no price of ${machineType} in ${region}`);
    return { candidate, machineType, region, hourly: formatMoney(price) };
  });

/** Three replicas fit on a node of 2 CPUs beside the system pods. */
export const REPLICA = { cpu: '500m', memory: '32Mi' };
export const FIT = 3;
/** Replicas that fit once the private cluster has its second node. */
export const RISEN = 6;
/** More replicas than the private cluster holds with both nodes. */
export const PEAK = 9;

/** Deployment of pause pods with minimal requests. Every local machine has the image. */
export const demoWorkOf = (name: string, replicas: number): Deployment => ({
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

/** Objects that exist before the demo begins. */
export function stageObjects(
  local: CloudProfile,
  sold: readonly StandInMachine[],
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
      // An interrupted demo may leave work that nobody removes.
      drain: { timeout: '1m', force: true },
      ...hub,
    },
  };
  const labels = { ...MARK, ...podSecurityLabels('restricted') };
  const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: CLUSTERS_IN, labels } };
  return [namespace, profile, demo];
}

/** Labels by which the policy finds the cluster whose pool it may grow. */
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

/** Policy with times far shorter than a paying user would choose. */
export const policy = (sold: readonly StandInMachine[]): BurstPolicy => ({
  apiVersion: ALPHA_API_VERSION,
  kind: 'BurstPolicy',
  metadata: { name: POLICY, namespace: CLUSTERS_IN },
  spec: {
    hub: DEMO,
    // Ignore other work of the hub.
    namespaces: [FLEET],
    trigger: { pendingFor: '1ms' },
    // Using an owned machine costs nothing more.
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
