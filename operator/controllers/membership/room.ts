import type { CloudProfile } from '../../api/cloudprofile.ts';
import { formatBytes, formatCpu, readBytes, readCount, readCpu } from '../../api/quantity.ts';
import type { WorkerCluster } from '../../api/workercluster.ts';
import type { HubAmounts } from '../../hubs/contract.ts';
import { podRequests } from '../../kube/pod-requests.ts';
import type { Pod } from '../../kube/resources.ts';
import { isWork, type SystemNamespaces } from './members-work.ts';
import { plannedCapacity } from './planned-capacity.ts';

/** Another member of the hub that could take work. */
interface OtherMember {
  readonly cluster: WorkerCluster;
  readonly profile: CloudProfile | undefined;
}

/** Millicores, bytes, whole GPUs. */
interface Sizes {
  cpu: number;
  memory: number;
  gpu: number;
}
const KEYS = ['cpu', 'memory', 'gpu'] as const;

/**
 * Why other members lack room for a leaving cluster's work, a sentence; undefined: they have it, by sums and the
 * largest pod. Potential growth of their pools counts. Pure.
 * @param pods of the leaving cluster
 */
export function whyNoRoom(
  { name: hubName, spec }: { readonly name: string; readonly spec: SystemNamespaces },
  pods: readonly Pod[],
  others: readonly OtherMember[],
): string | undefined {
  const needed: Sizes = { cpu: 0, memory: 0, gpu: 0 };
  const largest: Sizes = { cpu: 0, memory: 0, gpu: 0 };
  for (const pod of pods.filter((one) => isWorkOnNode(spec, one))) {
    const size = podRequests(pod);
    for (const key of KEYS) {
      needed[key] += size[key];
      largest[key] = Math.max(largest[key], size[key]);
    }
  }
  const free: Sizes = { cpu: 0, memory: 0, gpu: 0 };
  const piece: Sizes = { cpu: 0, memory: 0, gpu: 0 };
  for (const other of others) {
    const { grown, node } = growth(other);
    const { available, continuous } = other.cluster.status?.resource ?? {};
    const [left, whole] = [sizes(available), sizes(continuous)];
    for (const key of KEYS) {
      free[key] += Math.max(0, left[key]) + grown[key];
      piece[key] = Math.max(piece[key], whole[key], node[key]);
    }
  }
  const where = `the other ${others.length} members of Hub ${hubName}`;
  const lacking = KEYS.filter((key) => needed[key] > free[key]);
  // Without the free amounts, which change every second.
  if (lacking.length > 0) return `${where} have no room for the ${said(needed, lacking)} that pods here request`;
  const tooLarge = KEYS.filter((key) => largest[key] > piece[key]);
  if (tooLarge.length > 0)
    return `no node of ${where} has room for a pod here that requests ${said(largest, tooLarge)}`;
  return undefined;
}

/** Whether a pod is movable work on a node. */
export const isWorkOnNode = (hub: SystemNamespaces, pod: Pod): boolean =>
  pod.spec.nodeName !== undefined && pod.metadata.deletionTimestamp === undefined && isWork(hub, pod);

/** Potential growth of a cluster's pools, and its largest node. */
function growth({ cluster, profile }: OtherMember): { grown: Sizes; node: Sizes } {
  const grown: Sizes = { cpu: 0, memory: 0, gpu: 0 };
  const node: Sizes = { cpu: 0, memory: 0, gpu: 0 };
  if (!profile) return { grown, node };
  const [most, now] = [sizes(plannedCapacity(cluster, profile)), sizes(cluster.status?.resource?.total)];
  for (const key of KEYS) grown[key] = Math.max(0, most[key] - now[key]);
  if (grown.cpu === 0) return { grown, node };
  for (const { machineType } of cluster.status?.admitted?.pools ?? []) {
    const type = profile.spec.machineTypes.find(({ name }) => name === machineType);
    if (!type) continue;
    const size = sizes({ cpu: String(type.cpu), memory: String(type.memory), gpu: String(type.gpu ?? 0) });
    for (const key of KEYS) node[key] = Math.max(node[key], size[key]);
  }
  return { grown, node };
}

const sizes = ({ cpu = '0', memory = '0', gpu = '0' }: HubAmounts = {}): Sizes => ({
  cpu: readCpu(cpu),
  memory: readBytes(memory),
  gpu: readCount(gpu),
});

function said({ cpu, memory, gpu }: Sizes, keys: readonly (keyof Sizes)[]): string {
  const words = { cpu: `${formatCpu(cpu)} CPU`, memory: `${formatBytes(memory)} memory`, gpu: `${gpu} GPU` };
  return keys.map((key) => words[key]).join(', ');
}
