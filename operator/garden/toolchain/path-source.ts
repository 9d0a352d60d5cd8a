import { execFile } from 'node:child_process';
import { dirname, join } from 'node:path';
import { isExecutable } from './cache.ts';
import { isStaticExecutable } from './elf.ts';
import { programOf, TOOLS, type ToolName, toolBundleOf } from './tools.ts';
import { isFitting } from './version.ts';

/** Folders of system tools that a person's PATH often lacks. */
const MORE_FOLDERS = ['/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin', '/sbin', '/bin'];
/** Reason when no file of the name exists. */
export const NOT_INSTALLED = 'not installed';

const PATIENCE_MS = 5_000;

/** Output of a program's version command; empty when it cannot be run. */
const output = (file: string, args: string[]): Promise<string> =>
  new Promise((resolve) => {
    execFile(file, args, { timeout: PATIENCE_MS, killSignal: 'SIGKILL' }, (_, stdout, stderr) =>
      resolve(`${stdout}\n${stderr}`),
    );
  });

/** Version that a tool reports, if it can be queried. */
async function versionOf(name: ToolName, file: string): Promise<string | undefined> {
  const { asks } = TOOLS[name];
  return asks ? asks.pattern.exec(await output(file, asks.args))?.[1] : undefined;
}

/** Finds an installed tool of a suitable version. `reason`: why none is suitable. */
export async function findOnPath(
  name: ToolName,
  searchPath = process.env.PATH ?? '',
): Promise<{ file: string } | { reason: string }> {
  const tool = TOOLS[name];
  const folders = tool.folders ?? [
    ...searchPath.split(':').filter((folder) => folder.startsWith('/')),
    ...MORE_FOLDERS,
  ];
  const reasons: string[] = [];
  for (const folder of new Set(folders)) {
    const file = join(folder, programOf(name));
    if (!(await isExecutable(file))) continue;
    const missing = await companionsMissing(name, dirname(file));
    if (missing.length > 0) {
      reasons.push(`${missing.join(', ')} is missing beside ${file}`);
      continue;
    }
    if (tool.asks) {
      const version = await versionOf(name, file);
      if (version === undefined || !isFitting(version, tool.oldest ?? tool.version, tool.accepts)) {
        reasons.push(`${file} is ${version ?? 'of unknown version'}, needed is ${wanted(name)}`);
        continue;
      }
    }
    if (tool.isStatic && !(await isStaticExecutable(file))) {
      reasons.push(`${file} is linked to the machine's C library and cannot run in an image`);
      continue;
    }
    return { file };
  }
  return { reason: reasons.join('; ') || NOT_INSTALLED };
}

async function companionsMissing(name: ToolName, folder: string): Promise<ToolName[]> {
  const missing: ToolName[] = [];
  for (const other of toolBundleOf(name))
    if (!(await isExecutable(join(folder, programOf(other))))) missing.push(other);
  return missing;
}

/** Suitable versions, for messages. */
export const wanted = (name: ToolName): string => {
  const { version, oldest, accepts } = TOOLS[name];
  if (accepts === 'any') return 'any version';
  return accepts === 'same-minor' ? `${version} or a later patch` : `${oldest ?? version} or later`;
};
