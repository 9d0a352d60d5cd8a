import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

/** What a process of Node used until it had loaded modules. */
export interface Load {
  seconds: number;
  cpuSeconds: number;
  /** Anonymous memory afterwards, MiB. */
  anonymous: number;
}

/** Runs in a process of its own, which does nothing else. */
const SCRIPT = `
  const { readFileSync } = await import('node:fs');
  for (const module of process.argv.slice(1)) await import(module);
  const { userCPUTime, systemCPUTime } = process.resourceUsage();
  const [, anonymous] = /^Anonymous: +(\\d+)/m.exec(readFileSync('/proc/self/smaps_rollup', 'latin1'));
  console.log(JSON.stringify({
    seconds: performance.now() / 1000,
    cpuSeconds: (userCPUTime + systemCPUTime) / 1e6,
    anonymous: anonymous / 1024,
  }));
`;

const PULUMI = '@pulumi/pulumi/automation/index.js';
const programsOf = (provider: string) =>
  fileURLToPath(new URL(`../../providers/${provider}/programs.ts`, import.meta.url));

/** What is loaded by a worker, and what by one that runs programs of a cloud; by title. */
const LOADS: Readonly<Record<string, readonly string[]>> = {
  'Node alone': [],
  'Automation API': [PULUMI],
  'with the programs and SDK of aws': [PULUMI, programsOf('aws')],
  'with those of gcp': [PULUMI, programsOf('gcp')],
  'with those of azure': [PULUMI, programsOf('azure')],
};

/** Measures each load, first without anything in the compile cache and then with it. */
export async function measureLoads(
  found: (title: string, cache: 'cold' | 'warm', load: Load) => void,
  signal: AbortSignal,
): Promise<void> {
  for (const [title, modules] of Object.entries(LOADS)) {
    const cache = await mkdtemp(join(tmpdir(), 'coppice-bench-cache-'));
    try {
      const load = async (): Promise<Load> => {
        const { stdout } = await promisify(execFile)(
          process.execPath,
          ['--input-type=module', '--eval', SCRIPT, '--', ...modules],
          { cwd: fileURLToPath(new URL('.', import.meta.url)), env: { PATH: '', NODE_COMPILE_CACHE: cache }, signal },
        );
        return JSON.parse(stdout) as Load;
      };
      found(title, 'cold', await load());
      found(title, 'warm', await load());
    } finally {
      await rm(cache, { recursive: true, force: true });
    }
  }
}
