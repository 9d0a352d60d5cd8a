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
 * Where the machines of a self-hosted control plane are: all that differs with it, for one graph (selfHostedTasks), one status and one
 * deletion. Every method does nothing where nothing is to be done.
 */
export interface ControlPlaneInfrastructure {
  /** The machines that run the control plane. */
  readonly pool: Pool;
  /** What people see of the tasks that are called otherwise here, or take another time. */
  readonly tasks: {
    readonly endpoint: Named & Pick<Task, 'id'>;
    readonly machines: Named;
    readonly serves: Times;
    readonly size: Times;
    /** How long machines may take to be ready, milliseconds. */
    readonly readyMs: number;
    /** How long another key of Secrets may take, for which all machines are replaced or made anew three times, milliseconds. */
    readonly rotationMs: number;
  };
  /** How the API server of the first machine is waited for. */
  readonly apiServer: APIServerWait;
  /** How long it may take until somebody looks again, milliseconds; absent: whoever lost a machine tells. */
  readonly lookAgainMs?: number;

  /** Why the control plane cannot be here; undefined: it can. Pure. */
  problem(values: ControlPlane): string | undefined;

  /** Why machines that run another Kubernetes version cannot come to that of the values; undefined: they can. Pure. */
  versionProblem(op: Operation, running: string): string | undefined;

  /** Whether machines are to come to another version still, as caches show them; yes where nobody has asked a cluster that has served. Pure. */
  isOutdated(op: Operation): boolean;

  /** Makes where the API server is reached, which all else names: certificates and machines carry it. */
  makeEndpoint(op: Operation, signal: AbortSignal): Promise<void>;

  /** Makes the machine that begins the cluster. From the note on none does. */
  begin(op: Operation): Promise<void>;

  /** Rejects as soon as it is seen that the control plane cannot come, or cannot come back; otherwise when it is aborted. */
  untilHopeless(op: Operation, signal: AbortSignal): Promise<never>;

  /** Writes the note that the cluster has begun, and on which machines its state is. Called where there is none. */
  noteBegun(op: Operation, signal: AbortSignal): Promise<void>;

  /** Objects that nodes of the control plane need here, whether or not there are machines for workloads. */
  systemComponents(op: Operation): KubeObject[];

  /** Takes the control plane from the machines it has to those it should have, one safe step at a time. */
  reconcileSize(op: Operation, signal: AbortSignal): Promise<void>;

  /**
   * Changes back what others changed, if that is wanted: before the API server is asked for, which may be cut off by it, and once more when
   * the machines are as many as they should be. Absent: nobody else can change anything.
   * @param isLast what cannot be mended now is left
   */
  mend?(op: Operation, isLast: boolean): Promise<void>;

  /** The machines that should be ready, by the names of their nodes; where these are not known before, those that there are. Pure. */
  names(nodes: readonly Node[], desired: number): string[];

  /** Whether a machine is up, by the name of its node, which says so for a while after the machine has gone. */
  isUp(op: Operation): (name: string) => boolean;

  /** What changes with `isUp`. */
  informers(op: Operation): Informer<any>[];

  /** Machines of the control plane, some seconds ago at most. */
  list(op: Operation): Promise<Machine[]>;

  /** Takes away what the provider's deleteAll leaves, in any half-built state. */
  delete(op: Operation): Promise<void>;
}
