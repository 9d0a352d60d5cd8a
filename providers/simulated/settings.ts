import { z } from 'zod';
import type { CloudProfile } from '../../operator/api/cloudprofile.ts';
import { parseDuration } from '../../operator/api/duration.ts';
import { configurationProblem } from '../../operator/api/errors.ts';

const duration = z
  .string()
  .refine((text) => parseDuration(text) !== undefined, { error: 'is no duration such as 45s, 5m or 1h30m' })
  .transform((text) => parseDuration(text)!);

/** A log-normal duration given by two percentiles; without p95 always p50. */
const spread = z
  .strictObject({ p50: duration, p95: duration.optional() })
  .refine(({ p50, p95 }) => p95 === undefined || (p95 >= p50 && p50 > 0), {
    error: 'p95 must not be below p50, nor p50 be 0 beside it',
  });

/** Milliseconds; see `spread`. */
export type Spread = z.output<typeof spread>;

const share = z.number().min(0).max(1);
const WEEK_MS = 7 * 24 * 3_600_000;

const simulationSchema = z.strictObject({
  /** Equal seeds give equal runs. */
  seed: z.int().min(0).max(Number.MAX_SAFE_INTEGER).default(0),
  machines: z
    .strictObject({
      /** From the request to the Ready node. */
      creation: spread.default({ p50: 0 }),
      /** Share of requests that fail at random. */
      failureRate: share.default(0),
    })
    .prefault({}),
  controlPlane: z
    .strictObject({
      /** From the request to a serving API server. Used in rehearsals and with `run: false`; otherwise real. */
      creation: spread.default({ p50: 0 }),
      /** false: no control plane runs, and the kubeconfig leads nowhere. For scale tests: docs/tasks/scale-tests.md. */
      run: z.boolean().default(true),
    })
    .prefault({}),
  capacity: z
    .strictObject({
      /** Share of time that a machine type is sold out in a zone, independently per zone. */
      depletionRate: share.default(0),
      /** The same for spot machines. Absent: depletionRate. */
      spotDepletionRate: share.optional(),
      /** Length of the time windows in which availability is constant. */
      window: duration
        .refine((ms) => ms >= 1000 && ms <= WEEK_MS, { error: 'must be from 1s to 168h' })
        .default(1_800_000),
      /** Permanently sold out; an absent field means all. */
      depleted: z
        .array(z.strictObject({ zone: z.string().min(1).optional(), machineType: z.string().min(1).optional() }))
        .max(1000)
        .default([]),
    })
    .prefault({}),
  /**
   * Rate limit for machine requests of all clusters of the profile. Throttled requests wait, as in the clouds' SDKs.
   */
  throttling: z
    .strictObject({
      requestsPerSecond: z.number().positive().max(1e6),
      burst: z.int().min(1).max(1e6).default(1),
      /** Requests that would wait longer are refused. Absent: none. */
      giveUpAfter: duration.optional(),
    })
    .optional(),
  /** Limits for all clusters of the profile in one region. */
  quota: z
    .strictObject({
      nodes: z.int().min(0).optional(),
      cpu: z.int().min(0).optional(),
      gpu: z.int().min(0).optional(),
    })
    .prefault({}),
  spot: z
    .strictObject({
      /** Interruptions of a spot machine per hour, exponentially distributed. */
      interruptionsPerHour: z.number().min(0).max(3600).default(0),
    })
    .prefault({}),
});

/**
 * Behaviour of a simulated cloud: `spec.providerConfig.simulation` of a profile with defaults. Durations in
 * milliseconds.
 */
export type SimulationSettings = z.output<typeof simulationSchema>;

const PATH = 'spec.providerConfig.simulation';

function described(issue: z.core.$ZodIssue): string {
  const path = [PATH, ...issue.path.map(String)].join('.');
  if (issue.code === 'unrecognized_keys') return `${path} has no field ${issue.keys.join(', ')}`;
  const what = issue.message.replace(/^Invalid input: /, '');
  return `${path}: ${what}`;
}

/** Cache by profile: deciders ask repeatedly. */
const known = new WeakMap<CloudProfile, { simulation: SimulationSettings } | { problem: string }>();

function read(profile: CloudProfile): { simulation: SimulationSettings } | { problem: string } {
  const before = known.get(profile);
  if (before) return before;
  const result = simulationSchema.safeParse(profile.spec.providerConfig?.simulation ?? {});
  const found = result.success
    ? { simulation: result.data }
    : { problem: `CloudProfile ${profile.metadata.name}: ${result.error.issues.map(described).join('; ')}` };
  known.set(profile, found);
  return found;
}

/** Fault in the profile's simulation settings; undefined: none. Pure. */
export function simulationProblem(profile: CloudProfile): string | undefined {
  const found = read(profile);
  return 'problem' in found ? found.problem : undefined;
}

/**
 * Simulation settings of the profile; by default a cloud that grants everything at once. Throws a configuration
 * problem.
 */
export function simulationOf(profile: CloudProfile): SimulationSettings {
  const found = read(profile);
  if ('simulation' in found) return found.simulation;
  throw configurationProblem(
    found.problem,
    'Correct the profile; docs/concepts/real-and-simulated.md lists the fields.',
  );
}
