import { z } from 'zod';
import type { CloudProfile } from '../../operator/api/cloudprofile.ts';
import { parseDuration } from '../../operator/api/duration.ts';
import { configurationProblem } from '../../operator/api/errors.ts';

const duration = z
  .string()
  .refine((text) => parseDuration(text) !== undefined, { error: 'is no duration such as 45s, 5m or 1h30m' })
  .transform((text) => parseDuration(text)!);

/** How long something takes: log-normal through two points that people measure; without p95 always p50. */
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
  /** Another seed is another run; the same one is the same run again. */
  seed: z.int().min(0).max(Number.MAX_SAFE_INTEGER).default(0),
  machines: z
    .strictObject({
      /** From the request to the Ready node. */
      creation: spread.default({ p50: 0 }),
      /** Share of requests that the cloud fails for no reason of its customer. */
      failureRate: share.default(0),
    })
    .prefault({}),
  controlPlane: z
    .strictObject({
      /** From asking for a cluster to an API server that serves. For rehearsals and where `run` is false: else it is real. */
      creation: spread.default({ p50: 0 }),
      /** false: none is run at all, and nothing answers behind the kubeconfig. For scale tests: docs/tasks/scale-tests.md. */
      run: z.boolean().default(true),
    })
    .prefault({}),
  capacity: z
    .strictObject({
      /** Share of time that a machine type is sold out in a zone, each zone for itself. */
      depletionRate: share.default(0),
      /** The same for spot machines. Absent: as depletionRate. */
      spotDepletionRate: share.optional(),
      /** How long it stays as it is: time is cut into windows of this length. */
      window: duration
        .refine((ms) => ms >= 1000 && ms <= WEEK_MS, { error: 'must be from 1s to 168h' })
        .default(1_800_000),
      /** Sold out for good; a field that is absent means all. */
      depleted: z
        .array(z.strictObject({ zone: z.string().min(1).optional(), machineType: z.string().min(1).optional() }))
        .max(1000)
        .default([]),
    })
    .prefault({}),
  /** Requests for machines, of all clusters of the profile. Who is throttled waits, as the clouds' SDKs do. */
  throttling: z
    .strictObject({
      requestsPerSecond: z.number().positive().max(1e6),
      burst: z.int().min(1).max(1e6).default(1),
      /** Who would wait longer is refused. Absent: nobody is. */
      giveUpAfter: duration.optional(),
    })
    .optional(),
  /** What all clusters of the profile may have together in one region. */
  quota: z
    .strictObject({
      nodes: z.int().min(0).optional(),
      cpu: z.int().min(0).optional(),
      gpu: z.int().min(0).optional(),
    })
    .prefault({}),
  spot: z
    .strictObject({
      /** How often a spot machine is taken away, per hour of its life; the time of it is exponentially distributed. */
      interruptionsPerHour: z.number().min(0).max(3600).default(0),
    })
    .prefault({}),
});

/** How a simulated cloud behaves: `spec.providerConfig.simulation` of a profile with its defaults. Durations in milliseconds. */
export type Simulation = z.output<typeof simulationSchema>;

const PATH = 'spec.providerConfig.simulation';

function described(issue: z.core.$ZodIssue): string {
  const path = [PATH, ...issue.path.map(String)].join('.');
  if (issue.code === 'unrecognized_keys') return `${path} has no field ${issue.keys.join(', ')}`;
  const what = issue.message.replace(/^Invalid input: /, '');
  return `${path}: ${what}`;
}

/** By profile: deciders ask again and again about the same one. */
const known = new WeakMap<CloudProfile, { simulation: Simulation } | { problem: string }>();

function read(profile: CloudProfile): { simulation: Simulation } | { problem: string } {
  const before = known.get(profile);
  if (before) return before;
  const result = simulationSchema.safeParse(profile.spec.providerConfig?.simulation ?? {});
  const found = result.success
    ? { simulation: result.data }
    : { problem: `CloudProfile ${profile.metadata.name}: ${result.error.issues.map(described).join('; ')}` };
  known.set(profile, found);
  return found;
}

/** What is wrong with the profile's simulation; undefined when nothing is. Pure. */
export function simulationProblem(profile: CloudProfile): string | undefined {
  const found = read(profile);
  return 'problem' in found ? found.problem : undefined;
}

/** The settings of the profile's simulation; without any, a cloud that gives everything at once. Throws a configuration problem. */
export function simulationOf(profile: CloudProfile): Simulation {
  const found = read(profile);
  if ('simulation' in found) return found.simulation;
  throw configurationProblem(
    found.problem,
    'Correct the profile; docs/concepts/real-and-simulated.md lists the fields.',
  );
}
