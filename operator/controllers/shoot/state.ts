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

/** What was done and seen of metrics-server inside of the shoot. */
export interface MetricsServerState {
  /** Fingerprint of what was last applied; of the last word that API servers have of it. */
  readonly applied?: string;
  readonly served?: string;
  /** What of it an admission policy of the shoot refused. */
  readonly refused?: string;
  /** Who serves its API instead, as `namespace/name` of a Service. */
  readonly foreign?: string;
  /** Nothing of it is there. */
  readonly gone?: boolean;
}

/** Keys of a shoot in memory. */
interface KnownKeys {
  /** UID of the Shoot: another one of its name has other keys. */
  readonly uid: string | undefined;
  readonly data: PKIData;
  /** Resource version of the Secret that has them. */
  readonly version: string | undefined;
}

/** Of the control plane controllers that cannot lead, nodes that cannot register, system components that can have no pods. */
export type BlockedPart = 'control-plane' | 'nodes' | 'system';

/** What the operator remembers of one shoot between reconciles. All of it can be lost: it is only ever a shortcut. */
export interface ShootState {
  /** As it was last worked on. */
  shoot: Shoot | undefined;
  /** Aborted when the spec changes or the shoot is deleted while an operation runs. */
  abort: AbortController | undefined;
  /** Why its deletion has not begun although it was asked for. Absent: nothing holds it. */
  held: string | undefined;
  /** generation and deletion mark that the running operation was started for. */
  target: string | undefined;
  connection: ClusterConnection | undefined;
  /** While an operation runs: says that something of the shoot may look different, so that the status is written in time. */
  changed: (() => void) | undefined;
  /** Something changed while no operation ran: the next one may wait for minutes, and must tell it first. */
  untold: boolean;
  /** Whether the admin's kubeconfig works; undefined: the API server was not asked yet. */
  usable: { ok: boolean; message: string } | undefined;
  /** The kubeconfig that this was seen of. */
  usableFor: string | undefined;
  operation: LastOperation | undefined;
  /** How long the running operation was going to take, and when; undefined: nothing to be told. */
  timeLeft: TimeLeft | undefined;
  /** While an operation runs: says that the status was written just now, and how far it is with it. */
  told: (() => void) | undefined;
  readonly statusWrites: InTurn;
  /** What is kept for several readers in one Secret: two that add to it at once would each leave out what the other one has. */
  readonly secretWrites: InTurn;
  errors: Map<string, LastError>;
  /** How often in a row tasks have failed, by task. */
  failures: Map<string, number>;
  draining: Map<string, string>;
  /** What was done about machines whose nodes are unwell, and what people are told of that, a line each. */
  repairs: RepairMemory;
  repairing: readonly string[];
  /** When the API server was last known not to answer though it had served. Absent: not since this operator began. */
  awayAt: Date | undefined;
  /** Takes the next step of that; undefined: no operation has begun yet. */
  repair: ((signal: AbortSignal) => Promise<{ requeueAfterMs: number } | undefined>) | undefined;
  /** What the API server says of webhooks that are in the way of a part. */
  readonly blocked: Map<BlockedPart, string>;
  /** How far it is with machines of the control plane that are made anew, one after the other. */
  replacing: string | undefined;
  /** Fingerprint of what was last applied inside of the shoot. */
  systemApplied: string | undefined;
  /** What of it an admission policy of the shoot refused. */
  systemRefused: string | undefined;
  /** Whether what lets API servers call kubelets (kubeletAccess) was applied inside of the shoot. */
  kubeletAccess: boolean;
  /** The same of the agents of the tunnel. */
  tunnelApplied: string | undefined;
  tunnelRefused: string | undefined;
  /** The same of what makes volumes on its machines. */
  volumesApplied: string | undefined;
  volumesRefused: string | undefined;
  /** Since when an admission policy of the shoot has refused something at each look. */
  refusedSince: Date | undefined;
  metricsServer: MetricsServerState;
  nextRenewal: Date | undefined;
  /** The keys (version of their Secret, and what they depend on) that need nothing until nextRenewal. */
  soundKeys: string | undefined;
  /** The keys as they were last read or written; absent: not yet. */
  keys: KnownKeys | undefined;
  /** Which keys were lost, and what to do. Absent: none were. */
  keysLost: string | undefined;
  /** When what is stored changes by itself. */
  machinesChangeAt: Date | undefined;
  /** Size at which etcd's members were last seen to be as wanted. */
  etcdSettled: number | undefined;
  /** The pods that hosted etcd's members were in then: one that is replaced may have come to another volume. */
  etcdPods: string | undefined;
  /** When the machines of a control plane, and etcd on them, were last seen to be as wanted. */
  machinesSettled: Date | undefined;
  /** The generation whose operation has succeeded. */
  settledGeneration: number | undefined;
  listMachines: (() => Promise<Machine[]>) | undefined;
  /** Absent until the records were first looked at. */
  dns: DNSState | undefined;
  /** Absent until the first operation has ended well. */
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

/** What an admission policy of the shoot refused of all that the operator applies there; undefined: nothing. */
export const refusedOf = (
  state: Pick<ShootState, 'systemRefused' | 'tunnelRefused' | 'volumesRefused'>,
): string | undefined => state.systemRefused ?? state.tunnelRefused ?? state.volumesRefused;

/** Something of the shoot may look different. */
export function noteChange(state: ShootState): void {
  if (state.changed) state.changed();
  else state.untold = true;
}
