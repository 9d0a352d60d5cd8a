import type { CloudProfile } from '../../api/cloudprofile.ts';
import { findCondition, HIBERNATED, WAKING } from '../../api/conditions.ts';
import { LABELS } from '../../api/group.ts';
import type { HubSpec } from '../../api/hub.ts';
import { formatBytes, formatCpu, readBytes, readCpu } from '../../api/quantity.ts';
import { isAttached, profileNameOf, type WorkerCluster } from '../../api/workercluster.ts';
import { clusterResource } from '../../clusters/capacity.ts';
import type { OpenCluster } from '../../clusters/open-clusters.ts';
import type { ApiServerEndpoint, HubAmounts, Member } from '../../hubs/contract.ts';
import { conditionIsTrue, type Node } from '../../kube/resources.ts';
import { labelsOf, zonesOf } from './member-labels.ts';
import { plannedCapacity, plannedSizes } from './planned-capacity.ts';
import type { KeptCredential, MembershipReceipt } from './receipt.ts';

/** Endpoint of a cluster's API server for its hub. */
export function memberEndpointOf(
  spec: HubSpec,
  { namespace = '', name }: { namespace?: string; name: string },
  open: OpenCluster,
): ApiServerEndpoint {
  const { endpoint, proxyURL } = spec.member ?? {};
  const server = endpoint?.replaceAll('{namespace}', namespace).replaceAll('{name}', name);
  return { server: server ?? open.server, ca: open.client.ca, ...(proxyURL && { proxyURL }) };
}

/**
 * Why a cluster cannot take work yet, a sentence; undefined: it can. One without nodes by design can, with its planned
 * ones: the hub must see it to request nodes. Pure.
 */
export function whyNotUsable(cluster: WorkerCluster, open: OpenCluster | undefined): string | undefined {
  if (!isAnswering(cluster, open)) return 'the API server of the cluster does not answer yet';
  if (isAsleep(cluster)) return 'the cluster sleeps';
  // Requests of a join would slow down a starting control plane.
  const lacking = cluster.status?.conditions?.find(
    ({ type, status }) => WORKS_WITH.includes(type) && status === 'False',
  );
  if (lacking) return `the cluster is not healthy yet: ${lacking.message}`;
  const desired = cluster.status?.nodes?.desired ?? cluster.spec.dataPlaneNodes;
  // An attached cluster's desired number is unknown: it may have no nodes at all.
  if ((desired === 0 && !isAttached(cluster)) || open!.nodes.list().some(takesPods)) return undefined;
  return 'no node of the cluster can run pods yet';
}

/** Conditions that work requires, if present. */
const WORKS_WITH = ['ControlPlaneHealthy', 'SystemComponentsHealthy'];

/** Whether the cluster must sleep. */
export const isAsleep = ({ status }: WorkerCluster): boolean => status?.hibernation?.asleep === true;

/** Whether its BurstPolicy wants the cluster emptied. */
export const isEmptied = (cluster: WorkerCluster): boolean => isClosedBy(cluster, LABELS.burstEmptying);

/** Whether its BurstPolicy keeps the cluster warm: joined, but not opened. */
export const isWarm = (cluster: WorkerCluster): boolean => isClosedBy(cluster, LABELS.burstWarm);

/** A cluster taken from its policy is open even with the label, which nobody would remove. */
const isClosedBy = ({ metadata: { labels = {}, ownerReferences = [] } }: WorkerCluster, label: string): boolean =>
  labels[label] === 'true' &&
  labels[LABELS.burstPolicy] !== undefined &&
  ownerReferences.some(({ kind }) => kind === 'BurstPolicy');

/** Whether the API server is known not to answer although it should: a sleeping or waking one is not silent. */
export function isSilent(cluster: WorkerCluster | undefined): boolean {
  const serves = findCondition(cluster?.status?.conditions, 'APIServerAvailable');
  return serves?.status === 'False' && serves.reason !== HIBERNATED && serves.reason !== WAKING;
}

/**
 * Whether the API server answers, as last noticed. A cluster being deleted lacks the condition, so only its connection
 * tells.
 */
export const isAnswering = (cluster: WorkerCluster | undefined, open: OpenCluster | undefined): boolean =>
  open?.answers === true && !isSilent(cluster);

const takesPods = (node: Node): boolean => !node.spec.unschedulable && conditionIsTrue(node, 'Ready');

/** Rounded capacity: nodes change by a few Ki without meaning. */
function capacityOf(
  cluster: WorkerCluster,
  open: OpenCluster | undefined,
  profile: CloudProfile | undefined,
): HubAmounts {
  const { total } = clusterResource(open?.nodes.list() ?? [], []);
  if (total && readCpu(total.cpu ?? '0') > 0) return amounts(total);
  return profile ? amounts(plannedCapacity(cluster, profile)) : {};
}

const amounts = ({ cpu, memory, gpu }: HubAmounts): HubAmounts => ({
  ...(cpu && readCpu(cpu) > 0 && { cpu }),
  ...(memory && readBytes(memory) > 0 && { memory }),
  ...(gpu && gpu !== '0' && { gpu }),
});

/** Rounding steps: nodes of one kind differ by a few Ki. */
const CPU_STEP = 10;
const MEMORY_STEP = 64 * 2 ** 20;
/** Most reported node sizes. */
const MOST_SIZES = 16;

/** Node sizes for hubs, of existing or else planned nodes. Pure. */
export function nodeSizesOf(
  cluster: WorkerCluster,
  open: OpenCluster | undefined,
  profile: CloudProfile | undefined,
): HubAmounts[] {
  const nodes = (open?.nodes.list() ?? []).flatMap((node) => clusterResource([node], []).total ?? []);
  const sizes = nodes.length > 0 ? nodes : profile ? plannedSizes(cluster, profile) : [];
  const rounded = sizes
    .map(({ cpu = '0', memory = '0' }) => ({
      cpu: Math.floor(readCpu(cpu) / CPU_STEP) * CPU_STEP,
      memory: Math.floor(readBytes(memory) / MEMORY_STEP) * MEMORY_STEP,
    }))
    .filter(({ cpu, memory }) => cpu > 0 && memory > 0)
    .sort((a, b) => b.cpu - a.cpu || b.memory - a.memory)
    .map(({ cpu, memory }) => ({ cpu: formatCpu(cpu), memory: formatBytes(memory) }));
  return [...new Map(rounded.map((size) => [`${size.cpu} ${size.memory}`, size])).values()].slice(0, MOST_SIZES);
}

/** The cluster for the hub's code. */
export function memberOf(
  receipt: MembershipReceipt,
  hub: ApiServerEndpoint,
  {
    cluster,
    open,
    profiles,
    closed,
  }: {
    cluster: WorkerCluster | undefined;
    open: OpenCluster | undefined;
    profiles: { get(key: string): CloudProfile | undefined };
    closed: Member['closed'];
  },
): Member {
  const { hub: ofHub, member, membership } = receipt;
  const profile = cluster && profiles.get(profileNameOf(cluster));
  return {
    name: member.name,
    hubName: ofHub.name,
    cluster: { namespace: membership.namespace, name: receipt.cluster },
    id: member.id,
    endpoint: member.endpoint,
    hub,
    labels: cluster ? labelsOf(cluster, ofHub.spec, { open, profile }) : {},
    ranges: cluster?.status?.networking,
    zones: cluster ? zonesOf(cluster, { open, profile }) : [],
    version: cluster?.status?.kubernetesVersion,
    capacity: cluster ? capacityOf(cluster, open, profile) : {},
    nodeSizes: cluster ? nodeSizesOf(cluster, open, profile) : [],
    answers: isAnswering(cluster, open),
    ...(closed && { closed }),
    credentials: Object.fromEntries(receipt.credentials.map((one) => [one.identity, credentialOf(one)])),
  };
}

const credentialOf = ({ token, expiresAt }: KeptCredential) => ({ token, ...(expiresAt && { expiresAt }) });
