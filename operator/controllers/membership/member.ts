import type { CloudProfile } from '../../api/cloudprofile.ts';
import { findCondition, HIBERNATED, WAKING } from '../../api/conditions.ts';
import { LABELS } from '../../api/group.ts';
import type { HubSpec } from '../../api/hub.ts';
import { formatBytes, formatCpu, readBytes, readCpu } from '../../api/quantity.ts';
import { isAttached, profileNameOf, type WorkerCluster } from '../../api/workercluster.ts';
import { clusterResource } from '../../clusters/capacity.ts';
import type { OpenCluster } from '../../clusters/open-clusters.ts';
import type { Amounts, Endpoint, Member } from '../../hubs/contract.ts';
import { conditionIsTrue, type Node } from '../../kube/resources.ts';
import { labelsOf, zonesOf } from './member-labels.ts';
import { planned, plannedSizes } from './planned-capacity.ts';
import type { KeptCredential, MembershipReceipt } from './receipt.ts';

/** Where the API server of a cluster is, as its hub is to reach it. */
export function endpointOf(
  spec: HubSpec,
  { namespace = '', name }: { namespace?: string; name: string },
  open: OpenCluster,
): Endpoint {
  const { endpoint, proxyURL } = spec.member ?? {};
  const server = endpoint?.replaceAll('{namespace}', namespace).replaceAll('{name}', name);
  return { server: server ?? open.server, ca: open.client.ca, ...(proxyURL && { proxyURL }) };
}

/**
 * Why a cluster cannot take work yet, a sentence; undefined: it can. One that is to have no nodes now can, with what was planned for it: the
 * hub has to see it to ask for nodes. Pure.
 */
export function whyNotUsable(cluster: WorkerCluster, open: OpenCluster | undefined): string | undefined {
  if (!answers(cluster, open)) return 'the API server of the cluster does not answer yet';
  if (isAsleep(cluster)) return 'the cluster sleeps';
  // What a join asks of a control plane that is still starting would be taken from its start.
  const lacking = cluster.status?.conditions?.find(
    ({ type, status }) => WORKS_WITH.includes(type) && status === 'False',
  );
  if (lacking) return `the cluster is not healthy yet: ${lacking.message}`;
  const desired = cluster.status?.nodes?.desired ?? cluster.spec.dataPlaneNodes;
  // How many nodes an attached one should have nobody here knows: none may be all that it has.
  if ((desired === 0 && !isAttached(cluster)) || open!.nodes.list().some(takesPods)) return undefined;
  return 'no node of the cluster can run pods yet';
}

/** Conditions without which a cluster runs no work well, where it has them. */
const WORKS_WITH = ['ControlPlaneHealthy', 'SystemComponentsHealthy'];

/** Whether the cluster is to sleep. */
export const isAsleep = ({ status }: WorkerCluster): boolean => status?.hibernation?.asleep === true;

/** Whether its BurstPolicy wants the work of a cluster moved away. */
export const isEmptied = (cluster: WorkerCluster): boolean => isClosedBy(cluster, LABELS.burstEmptying);

/** Whether its BurstPolicy has a cluster wait: all of a join is made, and it is not opened for work. */
export const isWarm = (cluster: WorkerCluster): boolean => isClosedBy(cluster, LABELS.burstWarm);

/** One that was taken from its policy is open, though nobody takes off the label: it would be closed for ever. */
const isClosedBy = ({ metadata: { labels = {}, ownerReferences = [] } }: WorkerCluster, label: string): boolean =>
  labels[label] === 'true' &&
  labels[LABELS.burstPolicy] !== undefined &&
  ownerReferences.some(({ kind }) => kind === 'BurstPolicy');

/** Whether the API server of a cluster is known not to answer, though it should: one that sleeps or wakes is not silent. */
export function isSilent(cluster: WorkerCluster | undefined): boolean {
  const serves = findCondition(cluster?.status?.conditions, 'APIServerAvailable');
  return serves?.status === 'False' && serves.reason !== HIBERNATED && serves.reason !== WAKING;
}

/**
 * Whether the API server of a cluster answers, as far as it was noticed. A cluster that is being deleted has no condition that says so: of one
 * that died just before, only its connection tells.
 */
export const answers = (cluster: WorkerCluster | undefined, open: OpenCluster | undefined): boolean =>
  open?.answers === true && !isSilent(cluster);

const takesPods = (node: Node): boolean => !node.spec.unschedulable && conditionIsTrue(node, 'Ready');

/** Nodes come and go by themselves: what each of them adds is shown, but not each change of a few Ki. */
function capacityOf(cluster: WorkerCluster, open: OpenCluster | undefined, profile: CloudProfile | undefined): Amounts {
  const { total } = clusterResource(open?.nodes.list() ?? [], []);
  if (total && readCpu(total.cpu ?? '0') > 0) return amounts(total);
  return profile ? amounts(planned(cluster, profile)) : {};
}

const amounts = ({ cpu, memory, gpu }: Amounts): Amounts => ({
  ...(cpu && readCpu(cpu) > 0 && { cpu }),
  ...(memory && readBytes(memory) > 0 && { memory }),
  ...(gpu && gpu !== '0' && { gpu }),
});

/** Nodes of one kind differ by a few Ki, and are one size. */
const CPU_STEP = 10;
const MEMORY_STEP = 64 * 2 ** 20;
/** A cluster has few sizes; a hub is told no more of them than this. */
const MOST_SIZES = 16;

/** The sizes of its nodes, as hubs are told; of those that it is to have, where it has none. Pure. */
export function nodeSizesOf(
  cluster: WorkerCluster,
  open: OpenCluster | undefined,
  profile: CloudProfile | undefined,
): Amounts[] {
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

/** What the hub's code is told of a cluster. */
export function memberOf(
  receipt: MembershipReceipt,
  hub: Endpoint,
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
    answers: answers(cluster, open),
    ...(closed && { closed }),
    credentials: Object.fromEntries(receipt.credentials.map((one) => [one.identity, credentialOf(one)])),
  };
}

const credentialOf = ({ token, expiresAt }: KeptCredential) => ({ token, ...(expiresAt && { expiresAt }) });
