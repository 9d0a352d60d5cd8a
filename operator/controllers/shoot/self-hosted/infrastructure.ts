import type { Machine, Pool } from '../../../../providers/contract.ts';
import type { Task } from '../../../flow/graph.ts';
import type { Informer } from '../../../kube/informer.ts';
import type { KubeObject, Node } from '../../../kube/resources.ts';
import type { ControlPlane } from '../../../shoot/values.ts';
import type { APIServerWait } from '../connect.ts';
import type { Operation } from '../operation.ts';

type Times = Pick<Task, 'expectedMs' | 'timeoutMs'>;
type Named = Times & Pick<Task, 'title'>;

/**
 * Infrastructure of self-hosted control plane machines: everything that differs by place, for one task graph
 * (selfHostedTasks), status and deletion. Methods do nothing when done already.
 */
export interface ControlPlaneInfrastructure {
  /** The machines that run the control plane. */
  readonly pool: Pool;
  /** Titles and times of tasks that differ here. */
  readonly tasks: {
    readonly endpoint: Named & Pick<Task, 'id'>;
    readonly machines: Named;
    readonly serves: Times;
    readonly size: Times;
    /** Time for machines to become ready, milliseconds. */
    readonly readyMs: number;
    /** Time for a key rotation, which replaces or recreates all machines three times, milliseconds. */
    readonly rotationMs: number;
  };
  /** How to wait for the first machine's API server. */
  readonly apiServer: APIServerWait;
  /** Longest time until the next reconcile, milliseconds; absent: lost machines are reported by events. */
  readonly lookAgainMs?: number;

  /** Why the control plane cannot be here; undefined: it can. Pure. */
  problem(values: ControlPlane): string | undefined;

  /** Why machines with another Kubernetes version cannot be upgraded; undefined: they can. Pure. */
  versionProblem(op: Operation, running: string): string | undefined;

  /**
   * Whether machines have yet to be upgraded, by the caches; true if a cluster that served was not observed yet. Pure.
   */
  isOutdated(op: Operation): boolean;

  /** Creates the API server's endpoint, which certificates and machines contain. */
  makeEndpoint(op: Operation, signal: AbortSignal): Promise<void>;

  /** Creates the machine that initialises the cluster. Never again after noteBegun. */
  begin(op: Operation): Promise<void>;

  /** Rejects once the control plane is known not to come (back); else on abort. */
  untilHopeless(op: Operation, signal: AbortSignal): Promise<never>;

  /** Records that the cluster was initialised, and which machines hold its state. Called once. */
  noteBegun(op: Operation, signal: AbortSignal): Promise<void>;

  /** Objects that control plane nodes need here, with or without worker machines. */
  systemComponents(op: Operation): KubeObject[];

  /** Changes the control plane's machines to the desired ones, one safe step at a time. */
  reconcileSize(op: Operation, signal: AbortSignal): Promise<void>;

  /**
   * Reverts drift if wanted: before the API server is needed, which drift may have cut off, and again once the machines
   * are complete. Absent: no drift is possible.
   * @param isLast give up what cannot be reverted now
   */
  mend?(op: Operation, isLast: boolean): Promise<void>;

  /** Names of nodes that should be ready; the existing ones if names are not predictable. Pure. */
  names(nodes: readonly Node[], desired: number): string[];

  /** Whether a machine is up, by node name: a Node stays Ready for a while after its machine is gone. */
  isUp(op: Operation): (name: string) => boolean;

  /** Informers that `isUp` depends on. */
  informers(op: Operation): Informer<any>[];

  /** Control plane machines, at most some seconds old. */
  list(op: Operation): Promise<Machine[]>;

  /** Deletes what the provider's deleteAll does not cover, in any half-built state. */
  delete(op: Operation): Promise<void>;
}
