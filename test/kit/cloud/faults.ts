import type { Operation } from './model.ts';
import type { Store } from './store.ts';

/** Something that goes wrong with one operation. */
export interface Failure {
  operation: Operation;
  /** As Pulumi prints it (`aws:eks:Cluster`); `*` for all. */
  type: string;
  /** Physical name. Absent: any. */
  name?: string;
  /** Whether the cloud had done what it was asked for. */
  when: 'before' | 'after';
  /**
   * - `error`: the answer is an error, and Pulumi does not learn that anything was made
   * - `partial`: the answer is an error, and Pulumi learns what was made (only with `after`)
   * - `lost`: no answer: the plugin's process ends
   * - `engine`: the Pulumi engine is killed (SIGKILL); the plugin goes on, as a real one does
   */
  how: 'error' | 'partial' | 'lost' | 'engine';
  /** The cloud's own words. Absent: that something inside it broke. */
  message?: string;
  /** How often. Default 1. */
  times?: number;
}

/** What is wrong with the cloud now. Read again at every request, so it can be changed while an engine runs. */
export interface Faults {
  /** Milliseconds that an operation takes, by type or `*`. */
  latencyMs?: Record<string, number | Partial<Record<Operation, number>>>;
  /**
   * Requests per second and account: 0.1 is one in ten seconds. `retryForMs` is how long the provider tries by itself,
   * as real ones do. Default 0. `retryAfter` is for how many seconds the HTTP APIs ask to wait. Default: they do not say.
   */
  throttle?: { perSecond: number; retryForMs?: number; retryAfter?: number };
  /** How many of a type an account may have (in a region, for what is regional). */
  quotas?: Record<string, number>;
  /** Machines that are sold out; what is absent matches all. */
  depleted?: { machineType?: string; zone?: string; spot?: boolean }[];
  /** Eventual consistency: how long after its creation a resource cannot be read, by type or `*`. */
  unreadableForMs?: Record<string, number>;
  failures?: Failure[];
  /** Regions that the accounts may not use. */
  closedRegions?: string[];
  /** Credentials (Account.key) that the cloud no longer takes. */
  revoked?: string[];
  /** Permissions that nobody has, in the cloud's names: `eks:CreateCluster`. */
  denied?: string[];
}

const FILE = 'faults.json';
const FIRED = 'fired.json';

/** What is wrong now; nothing when no test said anything. */
export const readFaults = (store: Store): Faults => store.readJSON<Faults>(FILE) ?? {};

/** From now on exactly this is wrong. Failures count from the start again. */
export function writeFaults(store: Store, faults: Faults): void {
  store.writeJSON({}, FIRED);
  store.writeJSON(faults, FILE);
}

/** The value for the type, or for all types. */
export const forType = <T>(values: Record<string, T> | undefined, type: string): T | undefined =>
  values?.[type] ?? values?.['*'];

/** How long the operation takes, in milliseconds. */
export function latencyOf(faults: Faults, type: string, operation: Operation): number {
  const value = forType(faults.latencyMs, type) ?? 0;
  return typeof value === 'number' ? value : (value[operation] ?? 0);
}

/** Whether machines of this type are sold out in the zone. */
export const isDepleted = (faults: Faults, machine: { machineType: string; zone: string; spot: boolean }): boolean =>
  (faults.depleted ?? []).some(
    (row) =>
      (row.machineType ?? machine.machineType) === machine.machineType &&
      (row.zone ?? machine.zone) === machine.zone &&
      (row.spot ?? machine.spot) === machine.spot,
  );

/** The failure that is due, counted as used up once more; undefined when all goes well. */
export async function nextFailure(
  store: Store,
  occasion: { operation: Operation; type: string; name: string; when: Failure['when'] },
): Promise<Failure | undefined> {
  const matching = (readFaults(store).failures ?? [])
    .map((failure, index) => ({ failure, index }))
    .filter(
      ({ failure }) =>
        failure.operation === occasion.operation &&
        failure.when === occasion.when &&
        (failure.type === '*' || failure.type === occasion.type) &&
        (failure.name ?? occasion.name) === occasion.name,
    );
  if (matching.length === 0) return undefined;
  return store.transaction(() => {
    const fired = store.readJSON<Record<string, number>>(FIRED) ?? {};
    const due = matching.find(({ failure, index }) => (fired[index] ?? 0) < (failure.times ?? 1));
    if (!due) return undefined;
    store.writeJSON({ ...fired, [due.index]: (fired[due.index] ?? 0) + 1 }, FIRED);
    return due.failure;
  });
}

/** Takes one request from the account's allowance of the second; false when it is used up. */
export async function takeRequest(store: Store, account: string, perSecond: number, now: number): Promise<boolean> {
  const windowMs = 1000 * Math.max(1, 1 / perSecond);
  return store.transaction(() => {
    const file = ['throttle', `${account.replaceAll(/[^\w.-]/g, '_')}.json`] as const;
    const recent = (store.readJSON<number[]>(...file) ?? []).filter((at) => at > now - windowMs);
    if (recent.length >= perSecond) return false;
    store.writeJSON([...recent, now], ...file);
    return true;
  });
}
