import { COMPONENTS } from '../api/names.ts';
import { formatBytes, formatCpu } from '../api/quantity.ts';

/** Resources of a control plane container. */
interface ContainerResources {
  /** CPU request in millicores. */
  readonly cpuMillis: number;
  /** Memory request in MiB. */
  readonly memoryMiB: number;
  /** Memory limit in MiB. */
  readonly limitMiB: number;
}

/**
 * Requests and limits of control planes, one entry per container. Measured (docs/seen/benchmarks.md, "Memory of an idle
 * control plane" and "CPU of an idle garden"; command `npm run bench`), each idle: cores, MiB resident, MiB anonymous;
 * `peak` is the maximum of a running one's cgroup (memory.max_usage_in_bytes), in MiB.
 *
 * Memory requests equal the resident size: a seed that reserves less thrashes. CPU requests are a multiple of idle use
 * and far below the use at startup: ten control planes request one core, so that a seed with two cores takes them, and
 * each may use idle CPU. There is no CPU limit: an API server takes 4 to 5 CPU-seconds to start, and one throttled
 * then, or while it renews leases, would count as dead.
 *
 * Memory limits protect the other clusters on the seed's node from a tenant that fills one. They are many times the
 * measured use, since reaching one means an outage.
 */
const MEASURED: Readonly<Record<string, ContainerResources>> = {
  // // 0.008 cores; 43, 21; peak 25 to 47. Its database may grow to 2 GiB (its quota), which is memory-mapped; the rest
  // is index and buffers.
  [COMPONENTS.etcd]: { cpuMillis: 20, memoryMiB: 50, limitMiB: 3072 },
  // 0.020 cores; 233, 152; peak 160 to 287.
  [COMPONENTS.apiServer]: { cpuMillis: 50, memoryMiB: 230, limitMiB: 4096 },
  // 0.012 cores; 106, 36; peak 42 to 55.
  [COMPONENTS.controllerManager]: { cpuMillis: 20, memoryMiB: 70, limitMiB: 1024 },
  // 0.002 cores; 63, 13; peak 14 to 21.
  [COMPONENTS.scheduler]: { cpuMillis: 10, memoryMiB: 50, limitMiB: 1024 },
  // // Not measured: by the size of its executable.
  [COMPONENTS.konnectivityServer]: { cpuMillis: 5, memoryMiB: 20, limitMiB: 512 },
};

/** Largest number of nodes for the limits above. */
const NODES_OF_FIRST_LIMIT = 200;
/** Share of the limit from which Go's collector works harder, before the kernel kills the process. */
const SOFT_LIMIT = 0.9;

/**
 * Factor of limits for larger clusters: doubles with each doubling of nodes beyond 200. In steps, because each change
 * rolls the control plane. Not measured: an API server's memory grows with objects, and these with nodes.
 */
const growth = (nodes: number): number => 2 ** Math.max(0, Math.ceil(Math.log2(nodes / NODES_OF_FIRST_LIMIT)));

const MIB = 2 ** 20;

/**
 * Requests and limits of a container in pod form, and Go's memory limit. etcd's limit does not grow: its quota does
 * not.
 * @param nodes maximum nodes of the cluster
 * @throws RangeError for an unknown container
 */
export function resourcesOf(
  container: string,
  nodes: number,
): { resources: object; env: { name: string; value: string }[] } {
  const entry = MEASURED[container];
  if (!entry) throw new RangeError(`there are no requests and limits for container ${container}`);
  const { cpuMillis, memoryMiB, limitMiB } = entry;
  const limit = container === COMPONENTS.etcd ? limitMiB : limitMiB * growth(nodes);
  // // In the API server's canonical form: other forms would be applied again and again.
  const requests = { cpu: formatCpu(cpuMillis), memory: formatBytes(memoryMiB * MIB) };
  return {
    resources: { requests, limits: { memory: formatBytes(limit * MIB) } },
    env: [{ name: 'GOMEMLIMIT', value: `${Math.floor(limit * SOFT_LIMIT)}MiB` }],
  };
}
