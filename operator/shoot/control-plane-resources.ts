import { COMPONENTS } from '../api/names.ts';
import { formatBytes, formatCpu } from '../api/quantity.ts';

/** What a container of a control plane is given. */
interface ContainerResources {
  /** Of one core, in thousandths: what the scheduler keeps free for it, and its weight where several want more. */
  readonly cpuMillis: number;
  /** MiB that the scheduler keeps free for it. */
  readonly memoryMiB: number;
  /** MiB at which the kernel ends it. */
  readonly limitMiB: number;
}

/**
 * Requests and limits of control planes, one entry a container. Measured (docs/seen/benchmarks.md, "Memory of an idle control plane" and "CPU of an
 * idle garden"; command `npm run bench`), each idle: cores, MiB resident, MiB anonymous; `peak` is the most that the cgroup of a running one had
 * (memory.max_usage_in_bytes), in MiB.
 *
 * Requests of memory are what is resident: a seed that keeps less free thrashes. Requests of CPU are some times what an idle one uses and far
 * less than what one takes while it starts: ten control planes ask for one core, so that a seed with two takes them, and each gets
 * what nobody else wants. There is no limit of CPU: an API server takes 4 to 5 CPU-seconds to start, and one that is held back then, or
 * while it renews leases, is taken for dead.
 *
 * Limits of memory protect the other clusters of the seed's node from one whose tenant fills it. They are many times what was measured, since
 * who meets one has an outage.
 */
const MEASURED: Readonly<Record<string, ContainerResources>> = {
  // 0.008 cores; 43, 21; peak 25 to 47. Its database may grow to 2 GiB (its quota), which it maps; the rest is index and buffers.
  [COMPONENTS.etcd]: { cpuMillis: 20, memoryMiB: 50, limitMiB: 3072 },
  // 0.020 cores; 233, 152; peak 160 to 287.
  [COMPONENTS.apiServer]: { cpuMillis: 50, memoryMiB: 230, limitMiB: 4096 },
  // 0.012 cores; 106, 36; peak 42 to 55.
  [COMPONENTS.controllerManager]: { cpuMillis: 20, memoryMiB: 70, limitMiB: 1024 },
  // 0.002 cores; 63, 13; peak 14 to 21.
  [COMPONENTS.scheduler]: { cpuMillis: 10, memoryMiB: 50, limitMiB: 1024 },
  // Not in the benchmarks: by the size of its executable.
  [COMPONENTS.konnectivityServer]: { cpuMillis: 5, memoryMiB: 20, limitMiB: 512 },
};

/** Up to so many nodes limits are those above. */
const NODES_OF_FIRST_LIMIT = 200;
/** Go's collector works harder from here on, before the kernel ends the process. */
const SOFT_LIMIT = 0.9;

/**
 * By how much more limits are than for a small cluster: double for each doubling of nodes beyond the first two hundred. In steps, because
 * each change rolls the control plane. Not measured: what API servers hold grows with objects, and these with nodes.
 */
const growth = (nodes: number): number => 2 ** Math.max(0, Math.ceil(Math.log2(nodes / NODES_OF_FIRST_LIMIT)));

const MIB = 2 ** 20;

/**
 * Requests and limits of a container, as pods have them, and what Go is told of its limit. etcd's limit does not grow: its quota does not.
 * @param nodes that the cluster may have
 * @throws RangeError for a container that is not in the table
 */
export function resourcesOf(
  container: string,
  nodes: number,
): { resources: object; env: { name: string; value: string }[] } {
  const entry = MEASURED[container];
  if (!entry) throw new RangeError(`there are no requests and limits for container ${container}`);
  const { cpuMillis, memoryMiB, limitMiB } = entry;
  const limit = container === COMPONENTS.etcd ? limitMiB : limitMiB * growth(nodes);
  // As the API server writes them: what it writes differently would be applied anew for ever.
  const requests = { cpu: formatCpu(cpuMillis), memory: formatBytes(memoryMiB * MIB) };
  return {
    resources: { requests, limits: { memory: formatBytes(limit * MIB) } },
    env: [{ name: 'GOMEMLIMIT', value: `${Math.floor(limit * SOFT_LIMIT)}MiB` }],
  };
}
