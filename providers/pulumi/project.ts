import { lstatSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { StackRequest } from './request.ts';

/** Pulumi's project of all our stacks: part of every URN, so it stays. */
export const PROJECT = 'coppice';

export const stackNameOf = ({ technicalID, layer }: StackRequest['stack']): string => `${technicalID}.${layer}`;

/** Makes the home of engines and workers. */
export function prepareHome(home: string): void {
  mkdirSync(home, { recursive: true, mode: 0o700 });
  // Every start of the engine would write a log there, with every value of every resource in it, and there is no setting
  // against it; where no folder can be, it goes without.
  const logs = join(home, 'logs');
  const there = lstatSync(logs, { throwIfNoEntry: false });
  if (there?.isFile()) return;
  if (there) rmSync(logs, { recursive: true });
  writeFileSync(logs, 'Not a folder, so that the engine writes no logs: they have secrets in them.\n', { mode: 0o600 });
}

/** Makes the working directory of a stack, and returns it. One for each: engines write the project's settings there. */
export function prepareWorkDir(home: string, stackName: string, plugins: Readonly<Record<string, string>>): string {
  const workDir = join(home, 'stacks', stackName);
  mkdirSync(workDir, { recursive: true, mode: 0o700 });
  const providers = Object.entries(plugins).map(([name, path]) => ({ name, path }));
  const project = { name: PROJECT, runtime: 'nodejs', ...(providers.length > 0 && { plugins: { providers } }) };
  // YAML takes JSON.
  writeFileSync(join(workDir, 'Pulumi.yaml'), JSON.stringify(project), { mode: 0o600 });
  return workDir;
}
