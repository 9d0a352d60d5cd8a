import type { Machine } from '../../../providers/contract.ts';
import type { LastError, LastOperation } from '../../api/meta.ts';
import type { Shoot } from '../../api/shoot.ts';
import type { ClusterConnection } from '../../clusters/cluster-connection.ts';
import { InTurn } from '../../kube/in-turn.ts';
import type { PKIData } from '../../shoot/pki.ts';
import type { DNSState } from './dns/dns-outcome.ts';
import type { DriftState } from './drift/drift-state.ts';
import { NO_REPAIRS, type RepairMemory } from './machines/plan-repair.ts';
import type { TimeLeft } from './status/told-operation.ts';

/** State of metrics-server inside of the shoot. */
export interface MetricsServerState {
  /** Fingerprint of the last applied objects; and of those whose API the API servers confirmed. */
  readonly applied?: string;
  readonly served?: string;
  /** Objects that the shoot's admission policy refused. */
  readonly refused?: string;
  /** `namespace/name` of a foreign Service that serves its API. */
  readonly foreign?: string;
  /** All its objects are deleted. */
  readonly gone?: boolean;
}

/** A shoot's keys in memory. */
interface KnownKeys {
  /** UID of the Shoot: a later one of the same name has other keys. */
  readonly uid: string | undefined;
  readonly data: PKIData;
  /** Resource version of their Secret. */
  readonly version: string | undefined;
}

/**
 * Parts that webhooks may block: controllers that cannot lead, nodes that cannot register, system components without
 * pods.
 */
export type BlockedPart = 'control-plane' | 'nodes' | 'system';

/** Memory about a shoot between reconciles. All of it can be lost. */
export interface ShootState {
  /** Object of the last reconcile. */
  shoot: Shoot | undefined;
  /** Aborted when the spec changes or the shoot is deleted during an operation. */
  abort: AbortController | undefined;
  /** Why the requested deletion has not begun. Absent: no hold. */
  held: string | undefined;
  /** Generation and deletion mark that the running operation was started for. */
  target: string | undefined;
  connection: ClusterConnection | undefined;
  /** During an operation: call it after a change, so that the status is written in time. */
  changed: (() => void) | undefined;
  /** Something changed between operations: the next one reports it first. */
  untold: boolean;
  /** Whether the admin's kubeconfig works; undefined: not probed yet. */
  usable: { ok: boolean; message: string } | undefined;
  /** The kubeconfig of that result. */
  usableFor: string | undefined;
  operation: LastOperation | undefined;
  /** Estimated remaining time of the running operation, with the time of the estimate; undefined: none. */
  timeLeft: TimeLeft | undefined;
  /** During an operation: called after each status write, with progress. */
  told: (() => void) | undefined;
  readonly statusWrites: InTurn;
  /** Serialises writes to a Secret with several writers, which would overwrite each other's additions. */
  readonly secretWrites: InTurn;
  errors: Map<string, LastError>;
  /** Consecutive failures by task. */
  failures: Map<string, number>;
  draining: Map<string, string>;
  /** Repairs of machines with unhealthy nodes, and their texts, a line each. */
  repairs: RepairMemory;
  repairing: readonly string[];
  /** Last time when an API server that served did not answer. Absent: not since the start. */
  awayAt: Date | undefined;
  /** Takes the next repair step; undefined: no operation has begun yet. */
  repair: ((signal: AbortSignal) => Promise<{ requeueAfterMs: number } | undefined>) | undefined;
  /** The API server's texts about webhooks that block a part. */
  readonly blocked: Map<BlockedPart, string>;
  /** Progress of replacing control plane machines. */
  replacing: string | undefined;
  /** Fingerprint of the objects last applied inside of the shoot. */
  systemApplied: string | undefined;
  /** Objects that the shoot's admission policy refused. */
  systemRefused: string | undefined;
  /** Whether the RBAC rules for API servers at kubelets (kubeletAccess) were applied inside of the shoot. */
  kubeletAccess: boolean;
  /** Like systemApplied, for konnectivity agents. */
  tunnelApplied: string | undefined;
  tunnelRefused: string | undefined;
  /** Like systemApplied, for the volume provisioner of machines. */
  volumesApplied: string | undefined;
  volumesRefused: string | undefined;
  /** Since when the shoot's admission policy refuses something. */
  refusedSince: Date | undefined;
  metricsServer: MetricsServerState;
  nextRenewal: Date | undefined;
  /** Keys (version of their Secret, and inputs) that need no change until nextRenewal. */
  soundKeys: string | undefined;
  /** The keys as last read or written; absent: not yet. */
  keys: KnownKeys | undefined;
  /** Restores lost keys from memory; undefined: no operation has begun yet, or the shoot is being destroyed. */
  restoreKeys: ((signal: AbortSignal) => Promise<void>) | undefined;
  /** Lost keys with advice. Absent: none. */
  keysLost: string | undefined;
  /** Next change of stored machines by time alone. */
  machinesChangeAt: Date | undefined;
  /** Size at which etcd's members were last seen as desired. */
  etcdSettled: number | undefined;
  /** Pods of hosted etcd members at that time: a replaced one may have another volume. */
  etcdPods: string | undefined;
  /** When control plane machines with their etcd were last seen as desired. */
  machinesSettled: Date | undefined;
  /** Generation whose operation has succeeded. */
  settledGeneration: number | undefined;
  listMachines: (() => Promise<Machine[]>) | undefined;
  /** Absent until the first check of records. */
  dns: DNSState | undefined;
  /** Absent until the first successful operation. */
  drift: DriftState | undefined;
}

export const newShootState = (): ShootState => ({
  shoot: undefined,
  abort: undefined,
  target: undefined,
  held: undefined,
  connection: undefined,
  changed: undefined,
  untold: false,
  usable: undefined,
  usableFor: undefined,
  operation: undefined,
  timeLeft: undefined,
  told: undefined,
  statusWrites: new InTurn(),
  secretWrites: new InTurn(),
  errors: new Map(),
  failures: new Map(),
  draining: new Map(),
  repairs: NO_REPAIRS,
  repairing: [],
  awayAt: undefined,
  repair: undefined,
  blocked: new Map(),
  replacing: undefined,
  systemApplied: undefined,
  systemRefused: undefined,
  kubeletAccess: false,
  tunnelApplied: undefined,
  tunnelRefused: undefined,
  volumesApplied: undefined,
  volumesRefused: undefined,
  refusedSince: undefined,
  metricsServer: {},
  nextRenewal: undefined,
  soundKeys: undefined,
  keys: undefined,
  restoreKeys: undefined,
  keysLost: undefined,
  machinesChangeAt: undefined,
  etcdSettled: undefined,
  etcdPods: undefined,
  machinesSettled: undefined,
  settledGeneration: undefined,
  listMachines: undefined,
  dns: undefined,
  drift: undefined,
});

/** Objects of the operator that the shoot's admission policy refused; undefined: none. */
export const refusedOf = (
  state: Pick<ShootState, 'systemRefused' | 'tunnelRefused' | 'volumesRefused'>,
): string | undefined => state.systemRefused ?? state.tunnelRefused ?? state.volumesRefused;

/** Signals a visible change of the shoot. */
export function noteChange(state: ShootState): void {
  if (state.changed) state.changed();
  else state.untold = true;
}
