import type { HubMember } from '../burst/clusters/model.ts';
import type { FitNode, FitPod } from '../burst/fit/model.ts';
import type { Pod } from '../kube/resources.ts';
import type { WorkKind, WorkNodes, WorkSize } from './trace/trace-line.ts';
import type { WaitHistogram } from './waits.ts';

/** Waiting replicas or jobs of the same time. */
interface Waiting {
  since: number;
  count: number;
  /** Of jobs. */
  readonly lifeMs?: number | undefined;
  /** The replicas ran before and were moved: if they restart at once, their wait is zero. */
  readonly isMoved?: boolean;
}

/** Workloads of one name, size and set of permitted clusters. */
export interface WorkGroup {
  readonly name: string;
  /** namespace/name of the cluster that it belongs to; undefined: the hub's. */
  readonly cluster: string | undefined;
  readonly isJobs: boolean;
  readonly size: WorkSize;
  readonly millicores: number;
  readonly object: Pod;
  readonly pod: FitPod;
  readonly accepts: ((member: HubMember) => boolean) | undefined;
  /** Absent: every cluster serves its kind. */
  readonly kind?: WorkKind | undefined;
  /** Priority of its pods. Absent: 0. */
  readonly priority?: number | undefined;
  /** The longest wait first. */
  waiting: Waiting[];
  waitingCount: number;
  running: number;
  /** Running pods per node, by its name in `room`. */
  readonly on: Map<string, number>;
  /** Order of creation. */
  readonly rank: number;
}

/** A Ready node that takes workloads. */
export interface WorkNode {
  /** namespace/name of its cluster. */
  readonly cluster: string;
  readonly node: string;
  /** Its allocatable, with the system's share. */
  readonly fit: FitNode;
  /** What the system runs on it. */
  readonly daemons: readonly FitPod[];
  readonly member: HubMember;
  readonly readyAt: number;
  /** Startup time in the cloud: since the order of its cluster, where that is later, or of the machine. */
  readonly startupMs: number;
  readonly jobs: Set<JobRun>;
}

/** Jobs that began together on a node. */
export interface JobRun {
  readonly group: WorkGroup;
  readonly count: number;
  readonly lifeMs: number;
  isLive: boolean;
}

/** Waits of workloads, measured in several ways. */
export interface WorkWaits {
  /** Since the request. */
  readonly all: WaitHistogram;
  /** Without those that ran at once. */
  readonly waited: WaitHistogram;
  /** Of those: without the startup time of their node. */
  readonly beyondStartup: WaitHistogram;
  /** Of workloads cancelled before they ran: until the cancellation. */
  readonly givenUp: WaitHistogram;
}

/** Whether clusters have these labels; undefined: no label is required. */
export function withLabels(labels: Readonly<Record<string, string>> = {}): WorkGroup['accepts'] {
  const wanted = Object.entries(labels);
  return wanted.length === 0 ? undefined : (member) => wanted.every(([name, value]) => member.labels[name] === value);
}

/** Whether a hub permits the workload on such a member, apart from capacity. */
export const mayGoTo = ({ accepts, kind }: WorkGroup, member: HubMember): boolean =>
  (accepts?.(member) ?? true) && (withLabels(kind?.labels)?.(member) ?? true);

/** A pod of this size with its usual owner. */
export function podOf({ cpu, memory, gpu }: WorkSize, isJob: boolean, nodes: WorkNodes = {}): Pod {
  const requests = { cpu, memory, ...(gpu !== undefined && { 'nvidia.com/gpu': gpu }) };
  const owner = {
    apiVersion: isJob ? 'batch/v1' : 'apps/v1',
    kind: isJob ? 'Job' : 'ReplicaSet',
    name: 'work',
    uid: '',
  };
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'work', namespace: 'default', ownerReferences: [{ ...owner, controller: true }] },
    spec: { ...nodes, containers: [{ name: 'work', resources: { requests } }] },
  };
}
