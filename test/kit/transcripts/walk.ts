import { delimiter, dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { maskOutput } from './masks.ts';
import { Shell } from './shell.ts';
import { ELSEWHERE, type Step, stepsOf } from './steps.ts';

export const ROOT = fileURLToPath(new URL('../../..', import.meta.url));

/** Pages whose commands run as they stand, in this order and in one garden. */
export const PAGES = ['README.md', 'docs/getting-started.md'] as const;

/** What a page takes for granted after `npm start`: its cluster is as `npm start` makes it. */
const STARTED = ['bin/coppice apply -f examples/local.yaml', 'bin/coppice wait demo --timeout 5m'];

/** The garden in which pages are walked, and a kubeconfig that is theirs alone. */
export interface Place {
  home: string;
  tools: string;
  kubectl: string;
  kubeconfig: string;
}

/** A shell as a person has it who has cloned the repository, with nothing of the caller's own clusters. */
export function openShell({ home, tools, kubectl, kubeconfig }: Place): Shell {
  const { COPPICE_KUBECONFIG: _, ...own } = process.env;
  const PATH = [dirname(kubectl), own.PATH].join(delimiter);
  return new Shell(ROOT, {
    ...own,
    PATH,
    NO_COLOR: '1',
    COPPICE_HOME: home,
    COPPICE_TOOLS: tools,
    KUBECONFIG: kubeconfig,
  });
}

/**
 * Runs all commands of a page but those of ELSEWHERE. Rejects at the first that fails, with what it said.
 * @param shown is told of each step whose output the page shows; `look` runs its last command (again) and returns the masked output
 */
export async function walk(
  page: string,
  shell: Shell,
  shown: (step: Step, look: () => Promise<string>) => Promise<void>,
): Promise<void> {
  const run = async (command: string, line: number) => {
    const { code, output } = await shell.run(command);
    if (code !== 0) throw new Error(`line ${line}: ${command}: exit code ${code}: ${output}`);
    return output;
  };
  for (const command of STARTED) await run(command, 0);
  for (const step of stepsOf(page)) {
    const commands = step.commands.filter((command) => !(command in ELSEWHERE));
    const last = step.output === undefined ? undefined : commands.pop();
    for (const command of commands) await run(command, step.line);
    if (last !== undefined) await shown(step, async () => maskOutput(await run(last, step.line)));
  }
}
