import { lstatSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { StackRequest } from './request.ts';

/** Pulumi project of all our stacks: part of every URN, so it must never change. */
export const PROJECT = 'coppice';

export const stackNameOf = ({ technicalID, layer }: StackRequest['stack']): string => `${technicalID}.${layer}`;

/** Creates the home folder of engines and workers. */
export function prepareHome(home: string): void {
  mkdirSync(home, { recursive: true, mode: 0o700 });
  // A file in place of the log folder: the engine writes a log with all values of all resources on every start, which
  // no setting prevents; without a folder it skips the log.
  const logs = join(home, 'logs');
  const there = lstatSync(logs, { throwIfNoEntry: false });
  if (there?.isFile()) return;
  if (there) rmSync(logs, { recursive: true });
  writeFileSync(logs, 'Not a folder, so that the engine writes no logs: they have secrets in them.\n', { mode: 0o600 });
}

/**
 * Creates and returns the working directory of a stack. One per stack, because engines write project settings there.
 */
export function prepareWorkDir(home: string, stackName: string, plugins: Readonly<Record<string, string>>): string {
  const workDir = join(home, 'stacks', stackName);
  mkdirSync(workDir, { recursive: true, mode: 0o700 });
  const providers = Object.entries(plugins).map(([name, path]) => ({ name, path }));
  const project = { name: PROJECT, runtime: 'nodejs', ...(providers.length > 0 && { plugins: { providers } }) };
  // JSON is valid YAML.
  writeFileSync(join(workDir, 'Pulumi.yaml'), JSON.stringify(project), { mode: 0o600 });
  return workDir;
}
