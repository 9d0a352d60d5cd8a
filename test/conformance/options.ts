export interface Options {
  /** Regular expression of the names of tests to run; absent: all. */
  focus: string | undefined;
  /** How many tests run at once; those marked [Serial] come after all others, alone. */
  parallel: number;
  /** Machines of the cluster. */
  nodes: number;
  /** Minutes after which tests that still run are ended. */
  limit: number;
  help: boolean;
}

export const USAGE = `npm run test:conformance -- [--focus REGEX] [--parallel N] [--nodes N] [--limit MINUTES]

  --focus REGEX    only tests with such names (default: all conformance tests)
  --parallel N     how many run at once; [Serial] ones come last, alone (default 4)
  --nodes N        machines of the cluster (default 2)
  --limit MINUTES  what still runs then is ended (default 240)

Makes a garden of its own in a temporary folder and a local cluster in it, runs Kubernetes' own conformance tests, and takes all down.
Needs root and Go; tools and images that are missing are made first. Writes test-results/conformance.
`;

/** Throws an error that says what is wrong with the arguments. */
export function parseOptions(args: readonly string[]): Options {
  const options: Options = { focus: undefined, parallel: 4, nodes: 2, limit: 240, help: false };
  for (let i = 0; i < args.length; i++) {
    const [, name = args[i]!, inline] = /^(--[a-z]+)=([\s\S]*)$/.exec(args[i]!) ?? [];
    const value = () => {
      const found = inline ?? args[++i];
      if (found === undefined || found === '') throw new Error(`${name} needs a value`);
      return found;
    };
    if (name === '--help' || name === '-h') options.help = true;
    else if (name === '--focus') options.focus = regex(value());
    else if (name === '--parallel') options.parallel = count(name, value(), 1, 64);
    else if (name === '--nodes') options.nodes = count(name, value(), 1, 20);
    else if (name === '--limit') options.limit = count(name, value(), 1, 24 * 60);
    else throw new Error(`unknown argument ${args[i]}`);
  }
  return options;
}

function regex(text: string): string {
  try {
    new RegExp(text);
  } catch (error) {
    throw new Error(`--focus: ${(error as Error).message}`);
  }
  return text;
}

function count(name: string, text: string, least: number, most: number): number {
  const number = Number(text);
  if (!Number.isInteger(number) || number < least || number > most)
    throw new Error(`${name} is a number from ${least} to ${most}, not ${text}`);
  return number;
}
