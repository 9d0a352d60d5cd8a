/** What is run; each one measures several figures. The last three need no garden. */
export const SCENARIOS = [
  'garden',
  'one',
  'five',
  'nodes',
  'grow',
  'autoscale',
  'scale',
  'idle',
  'reach',
  'members',
  'clouds',
  'decisions',
] as const;
export type Scenario = (typeof SCENARIOS)[number];
const WITHOUT_GARDEN: readonly Scenario[] = ['members', 'clouds', 'decisions'];

export const needsGarden = (scenarios: ReadonlySet<Scenario>): boolean =>
  [...scenarios].some((scenario) => !WITHOUT_GARDEN.includes(scenario));

/** Words for --only, with what they run. */
export const TOPICS: Readonly<Record<string, readonly Scenario[]>> = {
  garden: ['garden'],
  one: ['one'],
  five: ['five'],
  'control-plane': ['one', 'five'],
  delete: ['one', 'five'],
  cpu: ['one', 'five', 'idle'],
  writes: ['one', 'five', 'idle'],
  nodes: ['nodes'],
  timeline: ['nodes'],
  grow: ['grow'],
  autoscale: ['autoscale'],
  scale: ['scale'],
  idle: ['idle'],
  memory: ['idle', 'nodes'],
  reach: ['reach'],
  members: ['members'],
  clouds: ['clouds', 'decisions'],
  decisions: ['decisions'],
};

export interface Options {
  /** How often each scenario is run. */
  runs: number;
  scenarios: ReadonlySet<Scenario>;
  /**
   * How many clusters without control planes are made at once in scenario scale, or join one hub in scenario members, one size after the
   * other.
   */
  clusters: readonly number[];
  help: boolean;
}

export const USAGE = `npm run bench -- [--runs N] [--only TOPIC,...] [--clusters N,...]

  --runs N   how often each measurement is made (default 10)
  --only     ${Object.keys(TOPICS).join(', ')} (default: all)
  --clusters sizes of topics scale and members, each run once (default 100)

Makes a garden of its own in a temporary folder, measures, and takes it down. Needs root and the tools in the cache (those
that are missing are made first). Clouds are the test kit's, without a garden and without root. Writes test-results/bench.json and test-results/bench.md.
`;

/** Throws an error that says what is wrong with the arguments. */
export function parseOptions(args: readonly string[]): Options {
  let runs = 10;
  let scenarios = new Set<Scenario>(SCENARIOS);
  let clusters: readonly number[] = [100];
  let help = false;
  for (let i = 0; i < args.length; i++) {
    const [, name = args[i]!, inline] = /^(--[a-z]+)=(.*)$/.exec(args[i]!) ?? [];
    const value = () => {
      const found = inline ?? args[++i];
      if (found === undefined || found === '') throw new Error(`${name} needs a value`);
      return found;
    };
    if (name === '--help' || name === '-h') help = true;
    else if (name === '--runs') {
      const text = value();
      runs = Number(text);
      if (!Number.isInteger(runs) || runs < 1 || runs > 1000)
        throw new Error(`--runs is a number from 1 to 1000, not ${text}`);
    } else if (name === '--clusters') clusters = value().split(',').map(clustersOf);
    else if (name === '--only') scenarios = new Set(value().split(',').flatMap(scenariosOf));
    else throw new Error(`unknown argument ${args[i]}`);
  }
  return { runs, scenarios, clusters, help };
}

function clustersOf(text: string): number {
  const count = Number(text);
  if (!Number.isInteger(count) || count < 1 || count > 10_000)
    throw new Error(`--clusters takes numbers from 1 to 10000, not ${text}`);
  return count;
}

function scenariosOf(topic: string): readonly Scenario[] {
  const found = Object.hasOwn(TOPICS, topic) ? TOPICS[topic] : undefined;
  if (!found) throw new Error(`--only knows ${Object.keys(TOPICS).join(', ')}, but not ${topic}`);
  return found;
}
