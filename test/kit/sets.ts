import { readdirSync } from 'node:fs';
import { hasTurn, type Rotation, type Turns } from './rotation.ts';

/**
 * Which run has a file. `short`: `npm test`. `ci`: `.ci/run`, each time. Turns: `.ci/run`, by turns. `all`: `npm run test:all` alone.
 * Each of them has what stands before it as well.
 */
export type TestSet = 'short' | 'ci' | 'all' | Turns;

/**
 * The set of each test file, by its path or by its folder; the longest entry that fits counts. A file that is in none fails
 * `test/unit/house/sets.test.ts`.
 */
const TABLE: Readonly<Record<string, TestSet>> = {
  'test/unit/': 'short',

  'test/integration/api/': 'short',
  'test/integration/burst/': 'short',
  'test/integration/chart/': 'short',
  'test/integration/clusters/': 'short',
  'test/integration/fleet/': 'short',
  'test/integration/garden/': 'short',
  'test/integration/kit/': 'short',
  'test/integration/kube/': 'short',
  'test/integration/machines/': 'short',
  'test/integration/managed/': 'short',
  // These two run in Pulumi's engine, which takes minutes to build.
  'test/integration/managed/bad-input.test.ts': 'ci',
  'test/integration/managed/depleted.test.ts': 'ci',
  'test/integration/mesh/': 'short',
  'test/integration/quota/': 'short',
  // It packs all that a release has.
  'test/integration/release/': 'ci',
  'test/integration/shoot/': 'short',
  'test/integration/cloud/': 'ci',
  'test/integration/cloud/azurite.test.ts': { of: 4, turns: [1] },
  'test/integration/cloud/moto.test.ts': { of: 4, turns: [3] },
  'test/integration/conformance/': 'ci',
  'test/integration/conformance/dns-simulated.test.ts': 'short',
  'test/integration/conformance/simulated.test.ts': 'short',
  'test/integration/pulumi/': 'ci',
  'test/integration/hubs/': 'ci',
  'test/integration/hubs/cluster-profile.test.ts': 'short',
  'test/integration/hubs/karmada.test.ts': 'short',
  'test/integration/hubs/argo-cd.test.ts': { of: 3, turns: [0] },
  'test/integration/hubs/open-cluster-management.test.ts': { of: 3, turns: [0] },
  'test/integration/hubs/clusternet.test.ts': { of: 3, turns: [1] },
  'test/integration/hubs/karmada-pull.test.ts': { of: 3, turns: [1] },
  'test/integration/hubs/flux.test.ts': { of: 3, turns: [2] },
  'test/integration/hubs/kueue.test.ts': { of: 3, turns: [2] },

  'test/e2e/burst.test.ts': 'short',
  'test/e2e/cli.test.ts': 'short',
  'test/e2e/deletion.test.ts': 'short',
  'test/e2e/local-cluster.test.ts': 'short',
  'test/e2e/scaling.test.ts': 'short',
  'test/e2e/apis.test.ts': 'ci',
  'test/e2e/argo-cd.test.ts': 'ci',
  'test/e2e/autoscaling.test.ts': 'ci',
  'test/e2e/backups.test.ts': 'ci',
  'test/e2e/bad-input.test.ts': 'ci',
  'test/e2e/burst-kills.test.ts': 'ci',
  'test/e2e/chaos.test.ts': 'ci',
  'test/e2e/chart.test.ts': 'ci',
  'test/e2e/conformance.test.ts': 'ci',
  'test/e2e/control-plane-size.test.ts': 'ci',
  'test/e2e/dns.test.ts': 'ci',
  'test/e2e/ends.test.ts': 'ci',
  'test/e2e/first-pages.test.ts': 'ci',
  'test/e2e/foreign-seed.test.ts': 'ci',
  'test/e2e/hosted-in-a-cloud.test.ts': 'ci',
  'test/e2e/idle.test.ts': 'ci',
  'test/e2e/isolation.test.ts': 'ci',
  'test/e2e/managed-cluster.test.ts': 'ci',
  'test/e2e/repair.test.ts': 'ci',
  'test/e2e/rootless.test.ts': 'ci',
  'test/e2e/scale.test.ts': 'ci',
  'test/e2e/self-managed-in-a-cloud.test.ts': 'ci',
  'test/e2e/self-managed.test.ts': 'ci',
  'test/e2e/simulated.test.ts': 'ci',
  'test/e2e/tenants.test.ts': 'ci',
  'test/e2e/tunnel.test.ts': 'ci',
  // They need all of Kubernetes once more, 10 to 28 minutes of two cores.
  'test/e2e/self-managed-upgrade-in-a-cloud.test.ts': 'all',
  'test/e2e/self-managed-upgrade.test.ts': 'all',
  'test/e2e/upgrade.test.ts': 'all',
};

/** What a whole run can be: `npm test`, `.ci/run`, `npm run test:all`. */
export const RUNS = ['short', 'ci', 'all'] as const;
export type WholeRun = (typeof RUNS)[number];
export const isWholeRun = (word: string | undefined): word is WholeRun => RUNS.includes(word as WholeRun);

/** The tiers that whole runs have, in the order in which they begin. */
const TIERS = ['unit', 'integration', 'e2e'] as const;
export type TierName = (typeof TIERS)[number];
export const tierOf = (file: string): TierName => file.split('/')[1] as TierName;

/** All entries of the table, for the test that holds it. */
export const SETS = Object.keys(TABLE);

/** The entry of the table that says which set a file is in: its own, or that of its nearest folder; undefined: it is in none. */
export function entryOf(file: string): string | undefined {
  for (let entry = file; entry.length > 0; entry = entry.slice(0, entry.lastIndexOf('/', entry.length - 2) + 1))
    if (entry in TABLE) return entry;
  return undefined;
}

/** The set of a test file. Throws where the table has none. */
export function setOf(file: string): TestSet {
  const entry = entryOf(file);
  if (entry === undefined) throw new Error(`${file} is in no set: give it one in test/kit/sets.ts`);
  return TABLE[entry]!;
}

/** Test files of all tiers of whole runs, from the root, by name. */
export function listTestFiles(): string[] {
  const files = TIERS.flatMap((tier) =>
    readdirSync(`test/${tier}`, { recursive: true, encoding: 'utf8' }).map((name) => `test/${tier}/${name}`),
  );
  return files.filter((file) => file.endsWith('.test.ts')).toSorted();
}

/** Whether a whole run of this rotation has files of this set. */
export function hasSet(run: WholeRun, set: TestSet, rotation: Rotation): boolean {
  if (set === 'short' || run === 'all') return true;
  if (set === 'all' || run === 'short') return false;
  return set === 'ci' || hasTurn(rotation, set.of, set.turns);
}

/** What a whole run begins one after the other: what `npm test` has, then the rest. */
export function stagesOf(run: WholeRun, rotation: Rotation, files: readonly string[] = listTestFiles()): string[][] {
  const chosen = files.filter((file) => hasSet(run, setOf(file), rotation));
  const isShort = (file: string) => setOf(file) === 'short';
  return [chosen.filter(isShort), chosen.filter((file) => !isShort(file))].filter(({ length }) => length > 0);
}

/** What a whole run does not have, for whoever watches it: lines with the files of each tier, and the command that runs them. */
export function tellLeftOut(run: WholeRun, rotation: Rotation, files: readonly string[] = listTestFiles()): string[] {
  const left = files.filter((file) => !hasSet(run, setOf(file), rotation));
  if (left.length === 0) return [];
  const lines = TIERS.map((tier) => ({ tier, names: left.filter((file) => tierOf(file) === tier).map(shortName) }))
    .filter(({ names }) => names.length > 0)
    .map(({ tier, names }) => `not in this run, of ${tier}: ${names.join(', ')}`);
  if (run === 'short') lines.push('not in this run: most cases of properties, and what rotates by the commit');
  return [...lines, 'npm run test:all runs all of it; CONTRIBUTING.md has the command for one file'];
}

/** A file's path in its tier, without what all have. */
const shortName = (file: string): string => file.slice(`test/${tierOf(file)}/`.length, -'.test.ts'.length);
