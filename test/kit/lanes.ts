/** How many end-to-end files run at once: each waits for machines and control planes most of the time. */
export const LANES = 2;

/**
 * End-to-end files that run beside others, and what each must have to itself meanwhile. A file that is not here gets the whole garden to
 * itself, and comes after all of these: it restarts the operator, changes the seed, or looks at all that there is in the garden.
 *
 * `clouds`: what is a cloud's, as the folder of its plugins, profiles, load balancers of the seed, addresses on the host. `placement`: more than
 * one seed to which a simulated cluster could come, or such a cluster.
 */
const BESIDE: Readonly<Record<string, readonly string[]>> = {
  'test/e2e/bad-input.test.ts': ['placement'],
  'test/e2e/chaos.test.ts': [],
  'test/e2e/conformance.test.ts': [],
  'test/e2e/control-plane-size.test.ts': [],
  'test/e2e/dns.test.ts': [],
  'test/e2e/foreign-seed.test.ts': [],
  'test/e2e/hosted-in-a-cloud.test.ts': ['clouds', 'placement'],
  'test/e2e/isolation.test.ts': [],
  'test/e2e/local-cluster.test.ts': [],
  'test/e2e/scaling.test.ts': [],
  'test/e2e/self-managed-in-a-cloud.test.ts': ['clouds'],
  'test/e2e/simulated.test.ts': ['placement'],
  'test/e2e/tunnel.test.ts': ['clouds'],
};

/** The file to begin now, of those that wait in the order in which they are wanted; undefined: none can be begun beside what runs. */
export function nextFile(waiting: readonly string[], running: readonly string[], beside = BESIDE): string | undefined {
  const besides = waiting.filter((file) => beside[file]);
  if (running.length === 0) return besides[0] ?? waiting[0];
  if (running.length >= LANES || running.some((file) => !beside[file])) return undefined;
  const taken = running.flatMap((file) => beside[file]!);
  return besides.find((file) => !beside[file]!.some((what) => taken.includes(what)));
}

/** The files of BESIDE; that each exists is for a test to see. */
export const filesBeside = (): string[] => Object.keys(BESIDE);
