import type { HubMember } from '../burst/clusters/model.ts';
import type { FitNode, FitPod } from '../burst/fit/model.ts';
import type { Pod } from '../kube/resources.ts';
import type { WorkKind, WorkNodes, WorkSize } from './trace/trace-line.ts';
import type { WaitHistogram } from './waits.ts';

/** Replicas or jobs that came at the same time and wait. */
interface Waiting {
  since: number;
  count: number;
  /** Of jobs. */
  readonly lifeMs?: number | undefined;
  /** They ran before, and were moved: if they run at once, nobody waited. */
  readonly isMoved?: boolean;
}

/** Work of one name, of which each asks for the same and may go to the same clusters. */
export interface WorkGroup {
  readonly name: string;
  /** namespace/name of the cluster that it belongs to; undefined: it is the hub's. */
  readonly cluster: string | undefined;
  readonly isJobs: boolean;
  readonly size: WorkSize;
  readonly millicores: number;
  readonly object: Pod;
  readonly pod: FitPod;
  readonly accepts: ((member: HubMember) => boolean) | undefined;
  /** Absent: every cluster serves its kind. */
  readonly kind?: WorkKind | undefined;
  /** Of its pods. Absent: 0. */
  readonly priority?: number | undefined;
  /** The longest wait first. */
  waiting: Waiting[];
  waitingCount: number;
  running: number;
  /** How many run on which node, by its name in `room`. */
  readonly on: Map<string, number>;
  /** How many groups came before it. */
  readonly rank: number;
}

/** A Ready node that takes work. */
export interface WorkNode {
  /** namespace/name of its cluster. */
  readonly cluster: string;
  readonly node: string;
  /** As its kubelet offers it: with what the system takes of it. */
  readonly fit: FitNode;
  /** What the system runs on it. */
  readonly daemons: readonly FitPod[];
  readonly member: HubMember;
  readonly readyAt: number;
  /** How long the cloud took for it: since the order of its cluster, where that is younger, or of the machine. */
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

/** How long work waited, in three ways. */
export interface WorkWaits {
  /** From the moment in which it was asked for. */
  readonly all: WaitHistogram;
  /** Without those that ran at once. */
  readonly waited: WaitHistogram;
  /** Of those: what is left when the time is taken off that the cloud took for their node. */
  readonly beyondStartup: WaitHistogram;
  /** Of those that were given up before they ran: until then. */
  readonly givenUp: WaitHistogram;
}

/** Whether clusters have these labels; undefined: no label is asked for. */
export function withLabels(labels: Readonly<Record<string, string>> = {}): WorkGroup['accepts'] {
  const wanted = Object.entries(labels);
  return wanted.length === 0 ? undefined : (member) => wanted.every(([name, value]) => member.labels[name] === value);
}

/** Whether a hub places work on a member of this name and labels, room aside. */
export const mayGoTo = ({ accepts, kind }: WorkGroup, member: HubMember): boolean =>
  (accepts?.(member) ?? true) && (withLabels(kind?.labels)?.(member) ?? true);

/** A pod of this size, as whoever owns it makes them. */
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
