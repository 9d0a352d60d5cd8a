import type { Condition } from '../api/meta.ts';
import { formatBytes, formatCpu, parseBytes, parseCount, parseCpu } from '../api/quantity.ts';
import { type KubeObject, keyOf } from '../kube/resources.ts';
import { GPU } from './amounts.ts';
import type { Amounts, Demand } from './contract.ts';

interface PodSet {
  readonly name: string;
  readonly count?: number;
  /** Of all its pods together, as Kueue counts them: with what defaults and overhead add. */
  readonly resourceUsage?: Readonly<Record<string, string>>;
}

/** A Workload, as far as it is read here. */
export type DispatchedWorkload = KubeObject & {
  spec?: { active?: boolean };
  status?: {
    conditions?: Condition[];
    clusterName?: string;
    nominatedClusterNames?: string[];
    admission?: { podSetAssignments?: PodSet[] };
    admissionChecks?: { name: string; state: string; lastTransitionTime?: string }[];
    reclaimablePods?: { name: string; count: number }[];
  };
};

/**
 * Jobs that all clusters were asked to take, and none has taken. One that waits for quota of the hub is not among them: that is a limit that
 * somebody has set, and a cluster more would not change it. Pure.
 * @param check name of the AdmissionCheck by which they are dispatched
 * @param clusters those that Kueue can ask
 */
export function waitingJobs(
  workloads: readonly DispatchedWorkload[],
  check: string,
  clusters: readonly string[],
): Demand[] {
  return workloads.flatMap((workload) => {
    const { spec, status = {}, metadata } = workload;
    const { nominatedClusterNames: asked = [], admissionChecks = [], reclaimablePods = [] } = status;
    const is = (type: string) => status.conditions?.some((one) => one.type === type && one.status === 'True') ?? false;
    const own = admissionChecks.find(({ name, state }) => name === check && state === 'Pending');
    if (!own || status.clusterName || spec?.active === false || metadata.deletionTimestamp) return [];
    if (!is('QuotaReserved') || is('Evicted') || is('Finished')) return [];
    // Kueue may ask a few at a time, and the next ones after minutes.
    if (!clusters.every((one) => asked.includes(one))) return [];
    const owner = metadata.ownerReferences?.find(({ controller }) => controller) ?? metadata.ownerReferences?.[0];
    return (status.admission?.podSetAssignments ?? []).flatMap((podSet): Demand[] => {
      const done = reclaimablePods.find(({ name }) => name === podSet.name)?.count ?? 0;
      const each = eachOf(podSet);
      const count = (podSet.count ?? 0) - done;
      if (count <= 0 || !each) return [];
      const uid = owner?.uid ?? metadata.uid;
      return [
        {
          source: `Workload ${keyOf(workload)}`,
          ...(uid && { uid }),
          namespace: metadata.namespace,
          count,
          each,
          since: own.lastTransitionTime ?? '',
          inOneCluster: true,
        },
      ];
    });
  });
}

/** @returns undefined: nobody can read it. */
function eachOf({ count = 0, resourceUsage = {} }: PodSet): Amounts | undefined {
  const { cpu, memory, [GPU]: gpu } = resourceUsage;
  try {
    return {
      ...(cpu && { cpu: formatCpu(Math.ceil(parseCpu(cpu) / count)) }),
      ...(memory && { memory: formatBytes(Math.ceil(parseBytes(memory) / count)) }),
      ...(gpu && { gpu: String(Math.ceil(parseCount(gpu) / count)) }),
    };
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}
