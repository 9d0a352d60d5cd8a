import type { ErrorCode } from '../../operator/api/errors.ts';
import type { Capacity } from '../machine-types.ts';
import { draw } from './random.ts';
import type { SimulationSettings, Spread } from './settings.ts';

/** Usage that counts against quotas. */
export interface QuotaUsage {
  nodes: number;
  millicores: number;
  gpus: number;
}

/** A token bucket: number of requests that may be made at once. Negative: this many wait. */
export interface Bucket {
  tokens: number;
  /** Milliseconds, on the caller's clock. */
  at: number;
}

/** State of an account when a machine is requested. */
export interface Account {
  /** In the requested region. */
  usage: QuotaUsage;
  /** Absent: no request yet. */
  bucket?: Bucket;
}

/** A request for one machine. */
interface MachineRequest {
  /** `namespace/name` of the cluster. */
  cluster: string;
  /** Number of earlier requests for the cluster: makes requests differ. */
  sequence: number;
  region: string;
  /** Acceptable zones by preference; empty: the region has none. */
  zones: readonly string[];
  machineType: string;
  capacity: Capacity;
  spot: boolean;
}

/** A granted machine. Times in milliseconds from the request. */
export interface GivenMachine {
  zone?: string;
  /** Time until its node is Ready. */
  readyAfterMs: number;
  /** Time until the cloud interrupts it; absent: never. */
  lostAfterMs?: number;
}

/** Why the cloud grants no machine. */
export interface MachineRefusal {
  code: ErrorCode;
  message: string;
  /** Whether a request for the pool's next machine would fail alike at this moment. */
  general: boolean;
}

type Answer = { bucket: Bucket } & ({ machine: GivenMachine } | { refusal: MachineRefusal });

export const NO_USAGE: QuotaUsage = { nodes: 0, millicores: 0, gpus: 0 };

/** Usage after adding machines (negative: removing). */
export const added = (usage: QuotaUsage, { millicores, gpus }: Capacity, machines = 1): QuotaUsage => ({
  nodes: usage.nodes + machines,
  millicores: usage.millicores + machines * millicores,
  gpus: usage.gpus + machines * gpus,
});

/** Requests one machine from the simulated cloud at `now` (milliseconds). Pure and deterministic. */
export function requestMachine(
  simulation: SimulationSettings,
  request: MachineRequest,
  account: Account,
  now: number,
): Answer {
  const { waitMs, bucket } = throttle(simulation.throttling, account.bucket, now);
  const { giveUpAfter } = simulation.throttling ?? {};
  if (giveUpAfter !== undefined && waitMs > giveUpAfter) {
    const message = `the cloud takes ${simulation.throttling!.requestsPerSecond} requests per second: this one would wait ${Math.round(waitMs / 1000)} s`;
    // A request that gives up takes no token.
    return refused(account.bucket ?? bucket, 'ERR_INFRA_RATE_LIMITS_EXCEEDED', message, true);
  }
  const over = quotaProblem(simulation.quota, account.usage, request);
  if (over) return refused(bucket, 'ERR_INFRA_QUOTA_EXCEEDED', over, true);

  const { cluster, sequence, machineType, region, spot } = request;
  const zones = request.zones.length > 0 ? request.zones : [undefined];
  const free = zones.findIndex((zone) => !isDepleted(simulation, { region, zone, machineType, spot }, now));
  if (free < 0) {
    const message = `no ${spot ? 'spot ' : ''}${machineType} left in ${request.zones.length > 0 ? request.zones.join(', ') : region}`;
    return refused(bucket, 'ERR_INFRA_RESOURCES_DEPLETED', message, true);
  }
  const { seed } = simulation;
  const key = [cluster, sequence] as const;
  if (draw(seed, 'failure', ...key) < simulation.machines.failureRate) {
    return refused(bucket, 'ERR_RETRYABLE_INFRA_DEPENDENCIES', `the cloud failed to make a ${machineType}`, false);
  }
  const zone = zones[free];
  const rate = spot ? simulation.spot.interruptionsPerHour : 0;
  return {
    bucket,
    machine: {
      ...(zone !== undefined && { zone }),
      readyAfterMs: waitMs + sample(simulation.machines.creation, seed, 'creation', ...key),
      ...(rate > 0 && { lostAfterMs: waitMs + exponential(rate / 3_600_000, draw(seed, 'interruption', ...key)) }),
    },
  };
}

/** Time until a cluster's control plane serves, milliseconds. Pure. */
export const controlPlaneCreation = (simulation: SimulationSettings, cluster: string, sequence: number): number =>
  sample(simulation.controlPlane.creation, simulation.seed, 'control-plane', cluster, sequence);

const refused = (bucket: Bucket, code: ErrorCode, message: string, general: boolean): Answer => ({
  bucket,
  refusal: { code, message, general },
});

/** Whether a machine type is sold out in a zone at a moment. Pure. */
export function isDepleted(
  { seed, capacity }: SimulationSettings,
  where: { region: string; zone: string | undefined; machineType: string; spot: boolean },
  now: number,
): boolean {
  const { region, zone = '', machineType, spot } = where;
  const named = capacity.depleted.some(
    (entry) => (entry.zone ?? zone) === zone && (entry.machineType ?? machineType) === machineType,
  );
  if (named) return true;
  const rate = spot ? (capacity.spotDepletionRate ?? capacity.depletionRate) : capacity.depletionRate;
  if (rate === 0) return false;
  const window = Math.floor(now / capacity.window);
  return draw(seed, spot ? 'spot-capacity' : 'capacity', region, zone, machineType, window) < rate;
}

/** Waiting time of one request in the token bucket. */
function throttle(limit: SimulationSettings['throttling'], before: Bucket | undefined, now: number) {
  if (!limit) return { waitMs: 0, bucket: { tokens: 0, at: now } };
  const perMs = limit.requestsPerSecond / 1000;
  const refilled = before ? Math.min(limit.burst, before.tokens + (now - before.at) * perMs) : limit.burst;
  const tokens = refilled - 1;
  return { waitMs: tokens >= 0 ? 0 : Math.ceil(-tokens / perMs), bucket: { tokens, at: now } };
}

function quotaProblem(
  quota: SimulationSettings['quota'],
  usage: QuotaUsage,
  { capacity, region }: MachineRequest,
): string {
  const rows = [
    ['nodes', usage.nodes, 1, quota.nodes],
    ['CPUs', usage.millicores / 1000, capacity.millicores / 1000, quota.cpu],
    ['GPUs', usage.gpus, capacity.gpus, quota.gpu],
  ] as const;
  return rows
    .filter(([, used, more, limit]) => limit !== undefined && more > 0 && used + more > limit)
    .map(([what, used, more, limit]) => `${used} of ${limit} ${what} are in use in ${region}, no room for ${more} more`)
    .join('; ');
}

/** The 95th percentile of the standard normal distribution. */
const Z95 = 1.6448536269514722;

function sample({ p50, p95 = p50 }: Spread, seed: number, ...key: readonly (string | number)[]): number {
  if (p95 === p50) return p50;
  const sigma = Math.log(p95 / p50) / Z95;
  return Math.round(p50 * Math.exp(sigma * normal(draw(seed, ...key, 'a'), draw(seed, ...key, 'b'))));
}

/** Box-Muller transform: a standard normal number from two uniform ones. */
const normal = (a: number, b: number): number => Math.sqrt(-2 * Math.log(1 - a)) * Math.cos(2 * Math.PI * b);

/** A lifetime in whole milliseconds, at least 1: no machine is lost at the moment of its creation. */
const exponential = (perMs: number, uniform: number): number => Math.max(1, Math.round(-Math.log(1 - uniform) / perMs));
