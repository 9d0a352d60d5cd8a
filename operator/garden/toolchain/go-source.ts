import { spawn } from 'node:child_process';
import { constants as os, setPriority } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { isExecutable } from './cache.ts';
import { GO_MODULES, programOf, TOOLS, type ToolName } from './tools.ts';

/** Go's default locations, often not on PATH. */
const MORE_GO = ['/usr/local/go/bin/go', '/usr/lib/go/bin/go', '/snap/bin/go'];
const KEPT_LINES = 12;
/**
 * The linker strips debug information anyway; omitting it saves a seventh of the compile time and a quarter of the
 * cache.
 */
const NO_DEBUG_INFORMATION = '-gcflags=all=-dwarf=false';

/** Path of the go command, or undefined. */
export async function findGo(searchPath = process.env.PATH ?? ''): Promise<string | undefined> {
  const candidates = [
    ...searchPath
      .split(':')
      .filter(Boolean)
      .map((folder) => join(folder, 'go')),
    ...MORE_GO,
  ];
  for (const candidate of candidates) if (await isExecutable(candidate)) return candidate;
  return undefined;
}

const environment = (): NodeJS.ProcessEnv => ({
  ...process.env,
  CGO_ENABLED: '0',
  GOWORK: 'off',
  // Overrides the person's flags: only the committed go.mod and go.sum decide the build.
  GOFLAGS: '-mod=readonly -buildvcs=false',
});

interface Run {
  onLine?: (line: string) => void;
  onErrorLine?: (line: string) => void;
  signal?: AbortSignal;
}

/** Runs go in a module's folder. Rejects with the end of its standard error. */
function runGo(go: string, module: string, args: string[], { onLine, onErrorLine, signal }: Run): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn(go, args, {
      cwd: join(GO_MODULES, module),
      env: environment(),
      stdio: ['ignore', 'pipe', 'pipe'],
      signal,
    });
    // Lower priority: a running garden precedes builds in the background.
    if (child.pid !== undefined) {
      try {
        setPriority(child.pid, os.priority.PRIORITY_BELOW_NORMAL);
      } catch {}
    }
    const last: string[] = [];
    createInterface({ input: child.stdout }).on('line', (line) => onLine?.(line));
    createInterface({ input: child.stderr }).on('line', (line) => {
      onErrorLine?.(line);
      if (isPackage(line)) return;
      last.push(line);
      if (last.length > KEPT_LINES) last.shift();
    });
    child.on('error', reject);
    child.on('close', (code, killedBy) => {
      if (code === 0) resolve();
      else reject(new Error(`go ${args[0]} failed with ${killedBy ?? code}: ${last.join(' | ') || 'no output'}`));
    });
  });
}

/** Whether a line of `go build -v` names a compiled package. */
const isPackage = (line: string): boolean => /^[\w./~+-]+$/.test(line) && !line.startsWith('#');

/** Import paths of all packages of some tools in a module. Downloads missing modules. */
export async function listDependencies(go: string, names: ToolName[], signal?: AbortSignal): Promise<Set<string>> {
  const found = new Set<string>();
  const builds = names.map((name) => TOOLS[name].build!);
  const { module, isTest } = builds[0]!;
  await runGo(go, module, ['list', '-deps', ...(isTest ? ['-test'] : []), ...builds.map((build) => build.package)], {
    onLine: (line) => found.add(line),
    signal,
  });
  return found;
}

/**
 * Builds tools of one group into a folder, each with its program's name. `onPackage` is called with each compiled
 * package.
 */
export async function goBuild(
  go: string,
  names: ToolName[],
  folder: string,
  options: { onPackage?: (importPath: string) => void; signal?: AbortSignal },
): Promise<void> {
  const builds = names.map((name) => TOOLS[name].build!);
  const { module, ldflags, isTest } = builds[0]!;
  // With several packages go names each file by package, which in groups equals the program's name.
  const output = names.length === 1 ? join(folder, programOf(names[0]!)) : `${folder}/`;
  const packages = builds.map((build) => build.package);
  // Without -trimpath: with it go keeps packages apart by requested module version even where `replace` makes them
  // equal, and would compile half of Kubernetes' libraries again for CoreDNS. Test builds list no compiled packages, so
  // they have no progress.
  const command = isTest ? ['test', '-c', '-vet=off'] : ['build', '-v'];
  const args = [...command, NO_DEBUG_INFORMATION, '-ldflags', ldflags, '-o', output, ...packages];
  await runGo(go, module, args, {
    onErrorLine: (line) => isPackage(line) && options.onPackage?.(line),
    signal: options.signal,
  });
}
