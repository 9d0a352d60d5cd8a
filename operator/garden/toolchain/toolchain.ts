import { readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { CoppiceError } from '../../api/errors.ts';
import { type Log, silent } from '../../kube/log.ts';
import { fetchArchive } from './archive-source.ts';
import { Batcher } from './batcher.ts';
import { ToolCache, toolsDirectory } from './cache.ts';
import { findGo, goBuild, listDependencies } from './go-source.ts';
import { withLock } from './lock.ts';
import { Network } from './network.ts';
import { installPackages, whyNoPackages } from './package-source.ts';
import { findOnPath, NOT_INSTALLED, wanted } from './path-source.ts';
import { estimateRemaining, learnedSpeed, type ProgressEvent, type ToolSource, type ToolWork } from './progress.ts';
import { cacheFolder, programOf, TOOL_NAMES, TOOLS, type ToolName, toolBundleOf } from './tools.ts';

/** Time for which builds and packages wait for more tools to join. */
const GATHER_MS = 1_500;
const TICK_MS = 1_000;
/** Share of compiling in a build; the rest is linking. */
const COMPILING_SHARE = 0.95;
/** A build with more than this share already compiled does not measure the machine's speed. */
const TELLING_SHARE = 0.6;

export interface ToolchainOptions {
  /** Folder of the cache; default `toolsDirectory()`. */
  dir?: string;
  log?: Log;
  onProgress?: (event: ProgressEvent) => void;
  /** Aborts downloads, builds and installs. */
  signal?: AbortSignal;
  /** Replacements of the real sources, for tests. */
  sources?: Partial<Sources>;
}

/** External sources of tools. */
export interface Sources {
  findOnPath: typeof findOnPath;
  fetchArchive: typeof fetchArchive;
  findGo: typeof findGo;
  dependencies: typeof listDependencies;
  goBuild: typeof goBuild;
  whyNoPackages: typeof whyNoPackages;
  installPackages: typeof installPackages;
}

const REAL_SOURCES: Sources = {
  findOnPath,
  fetchArchive,
  findGo,
  dependencies: listDependencies,
  goBuild,
  whyNoPackages,
  installPackages,
};

interface RunningBuild {
  names: ToolName[];
  started: number;
  fraction: number;
}

/** A source failed for a reason that is reported. */
class SourceFailed extends Error {}

const reasonOf = (error: unknown) => (error instanceof Error ? error.message : String(error));

/**
 * Fetches pinned tools, each from the first source that has it: cache, PATH, official release, `go build`, distribution
 * package. Only requested tools are built. Any number of processes may share one cache.
 */
export class Toolchain {
  readonly dir: string;
  readonly #cache: ToolCache;
  readonly #log: Log;
  readonly #onProgress: (event: ProgressEvent) => void;
  readonly #signal: AbortSignal | undefined;
  readonly #sources: Sources;
  readonly #network = new Network();
  readonly #found = new Map<ToolName, string>();
  readonly #underWay = new Map<ToolName, Promise<string>>();
  readonly #archives = new Map<string, Promise<void>>();
  readonly #dependencies = new Map<string, Promise<Set<string>>>();
  readonly #compiled = new Map<string, Set<string>>();
  readonly #builds: Batcher<ToolName>;
  readonly #packages: Batcher<string>;
  #running: RunningBuild | undefined;
  #speed: number | undefined;
  #isSpeedRead = false;

  constructor(options: ToolchainOptions = {}) {
    this.dir = options.dir ?? toolsDirectory();
    this.#cache = new ToolCache(this.dir);
    this.#log = options.log ?? silent;
    this.#onProgress = options.onProgress ?? (() => {});
    this.#signal = options.signal;
    this.#sources = { ...REAL_SOURCES, ...options.sources };
    this.#builds = new Batcher({
      take: firstGroup,
      run: (names) => this.#buildGroup(names),
      patienceMs: GATHER_MS,
    });
    this.#packages = new Batcher({
      take: (pending) => [...pending],
      run: (packages) => this.#installPackages([...new Set(packages)]),
      patienceMs: GATHER_MS,
    });
  }

  /** File of a tool fetched by `ensure`. Throws otherwise. */
  path(name: ToolName): string {
    const file = this.#found.get(name);
    if (!file) throw new Error(`ensure(['${name}']) must come before path('${name}')`);
    return file;
  }

  /**
   * Fetches tools and resolves to their files. Concurrent calls share work. Throws one CoppiceError that names each
   * unavailable tool, the reason, and what to install.
   */
  async ensure<Name extends ToolName>(names: readonly Name[]): Promise<Record<Name, string>> {
    const unique = [...new Set(names)];
    const settled = await Promise.allSettled(unique.map((name) => this.#get(name)));
    const files = {} as Record<Name, string>;
    const failed: { name: ToolName; error: unknown }[] = [];
    for (const [i, outcome] of settled.entries()) {
      if (outcome.status === 'fulfilled') files[unique[i]!] = outcome.value;
      else failed.push({ name: unique[i]!, error: outcome.reason });
    }
    if (failed.length === 0) return files;
    this.#signal?.throwIfAborted();
    throw nothingLeft(failed);
  }

  /** Ends connections; nothing else is left open. */
  async close(): Promise<void> {
    await this.#network.close();
  }

  #get(name: ToolName): Promise<string> {
    const known = this.#underWay.get(name);
    if (known) return known;
    const work = this.#obtain(name).then((file) => {
      this.#found.set(name, file);
      return file;
    });
    this.#underWay.set(name, work);
    // A later call retries: the person may have installed the tool meanwhile.
    work.catch(() => this.#underWay.delete(name));
    return work;
  }

  async #obtain(name: ToolName): Promise<string> {
    const { archive, build, package: pkg } = TOOLS[name];
    const reasons: string[] = [];
    // No await precedes this: all tools of one ensure() are expected before any is dismissed.
    if (build) this.#builds.expect();
    if (pkg) this.#packages.expect();
    let isBuildExpected = build !== undefined;
    let isPackageExpected = pkg !== undefined;

    const attempt = async (source: ToolSource, get: () => Promise<string>): Promise<string | undefined> => {
      try {
        const file = await get();
        this.#emit({ tool: name, phase: 'ready', source, detail: file });
        return file;
      } catch (error) {
        this.#signal?.throwIfAborted();
        const reason = reasonOf(error);
        reasons.push(`${SOURCE_WORDS[source]}: ${reason}`);
        if (reason !== NOT_INSTALLED) this.#emit({ tool: name, phase: 'skipped', source, detail: reason });
        const level = source === 'path' ? 'debug' : 'info';
        this.#log[level]({ tool: name, source, reason }, 'this source cannot provide it');
        return undefined;
      }
    };

    try {
      const cached = await this.#cache.find(name);
      if (cached) {
        this.#emit({ tool: name, phase: 'ready', source: 'cache', detail: cached });
        return cached;
      }
      const onPath = await attempt('path', () => this.#fromPath(name));
      if (onPath) return onPath;
      if (archive) {
        const fetched = await attempt('archive', () => this.#fromArchive(name));
        if (fetched) return fetched;
      }
      if (build) {
        const built = await attempt('build', async () => {
          const submitted = this.#builds.submit(name);
          isBuildExpected = false;
          await submitted;
          return this.#cache.file(name);
        });
        if (built) return built;
      }
      if (pkg) {
        const installed = await attempt('package', async () => {
          const why = await this.#sources.whyNoPackages();
          if (why) throw new SourceFailed(why);
          const submitted = this.#packages.submit(pkg);
          isPackageExpected = false;
          await submitted;
          return this.#fromPath(name);
        });
        if (installed) return installed;
      }
    } finally {
      if (isBuildExpected) this.#builds.dismiss();
      if (isPackageExpected) this.#packages.dismiss();
    }
    throw new SourceFailed(reasons.join('; '));
  }

  async #fromPath(name: ToolName): Promise<string> {
    const found = await this.#sources.findOnPath(name);
    if ('file' in found) return found.file;
    throw new SourceFailed(found.reason);
  }

  async #fromArchive(name: ToolName): Promise<string> {
    const folder = cacheFolder(name);
    let fetching = this.#archives.get(folder);
    if (!fetching) {
      fetching = this.#fetch(name);
      this.#archives.set(folder, fetching);
      fetching.catch(() => this.#archives.delete(folder));
    }
    await fetching;
    return this.#cache.file(name);
  }

  async #fetch(name: ToolName): Promise<void> {
    const lock = this.#cache.lockFile(`archive-${cacheFolder(name)}`);
    const onWait = () => this.#emit({ tool: name, phase: 'waiting', source: 'archive', detail: 'another process' });
    await withLock(
      lock,
      async () => {
        if (await this.#cache.find(name)) return;
        const workFolder = await this.#cache.workFolder();
        const started = performance.now();
        let told = 0;
        const onFraction = (fraction: number) => {
          const now = performance.now();
          if (now - told < TICK_MS) return;
          told = now;
          const remainingSeconds = Math.round(((now - started) / 1000) * (1 / fraction - 1));
          this.#emit({ tool: name, phase: 'working', source: 'archive', fraction, remainingSeconds });
        };
        try {
          await this.#sources.fetchArchive(name, this.#cache, this.#network, {
            onFraction,
            workFolder,
            signal: this.#signal,
          });
        } finally {
          await rm(workFolder, { recursive: true, force: true });
        }
      },
      { onWait, signal: this.#signal },
    );
  }

  async #buildGroup(names: ToolName[]): Promise<void> {
    const go = await this.#sources.findGo();
    if (!go) throw new SourceFailed('Go is not installed');
    const onWait = () => {
      for (const tool of names) {
        this.#emit({ tool, phase: 'waiting', source: 'build', detail: 'another process builds' });
      }
    };
    await withLock(this.#cache.lockFile('build'), () => this.#buildMissing(go, names), {
      onWait,
      signal: this.#signal,
    });
  }

  async #buildMissing(go: string, names: ToolName[]): Promise<void> {
    const { module, group } = TOOLS[names[0]!].build!;
    const missing: ToolName[] = [];
    // A bundle is useless while incomplete. Tools of another group have their own build.
    for (const name of new Set(names.flatMap(toolBundleOf))) {
      if (TOOLS[name].build?.group === group && !(await this.#cache.find(name))) missing.push(name);
    }
    if (missing.length === 0) return;

    const running: RunningBuild = { names: missing, started: performance.now(), fraction: 0 };
    this.#running = running;
    await this.#readSpeed();
    const tick = setInterval(() => this.#emitBuilding('compiling'), TICK_MS);
    const workFolder = await this.#cache.workFolder();
    try {
      this.#emitBuilding('fetching modules');
      const wantedPackages = await this.#dependenciesOf(go, missing);
      // Modules of later builds are downloaded while this one uses the processors.
      void this.#fetchAhead(go);
      const compiled = this.#compiled.get(module) ?? new Set<string>();
      this.#compiled.set(module, compiled);
      let left = [...wantedPackages].filter((pkg) => !compiled.has(pkg)).length;
      const toCompile = Math.max(1, left);
      const started = performance.now();
      await this.#sources.goBuild(go, missing, workFolder, {
        signal: this.#signal,
        onPackage: (pkg) => {
          if (compiled.has(pkg)) return;
          compiled.add(pkg);
          left--;
          running.fraction = COMPILING_SHARE * (1 - left / toCompile);
        },
      });
      const seconds = (performance.now() - started) / 1000;
      for (const name of missing) await this.#cache.install(name, join(workFolder, programOf(name)));
      if (1 - left / toCompile > TELLING_SHARE) await this.#learn(missing, seconds);
      this.#log.info({ tools: missing, seconds: Math.round(seconds), source: 'build' }, 'built');
    } finally {
      clearInterval(tick);
      this.#running = undefined;
      await rm(workFolder, { recursive: true, force: true });
    }
  }

  #dependenciesOf(go: string, names: ToolName[]): Promise<Set<string>> {
    const key = names.join(' ');
    let known = this.#dependencies.get(key);
    if (!known) {
      known = this.#sources.dependencies(go, names, this.#signal);
      this.#dependencies.set(key, known);
      known.catch(() => this.#dependencies.delete(key));
    }
    return known;
  }

  async #fetchAhead(go: string): Promise<void> {
    const pending = this.#builds.pending;
    while (pending.length > 0 && !this.#signal?.aborted) {
      const group = firstGroup(pending);
      await this.#dependenciesOf(go, group).catch(() => {});
      for (const name of group) pending.splice(pending.indexOf(name), 1);
    }
  }

  async #installPackages(packages: string[]): Promise<void> {
    // Reported for one tool of the batch: apt-get's output for each would fill two thirds of a first start's log.
    const tool = TOOL_NAMES.find((name) => packages.includes(TOOLS[name].package ?? '') && this.#underWay.has(name));
    const tell = (phase: 'working' | 'waiting', detail: string) => {
      if (tool) this.#emit({ tool, phase, source: 'package', detail });
    };
    await withLock(
      this.#cache.lockFile('packages'),
      async () => {
        this.#log.info({ packages }, 'installing distribution packages');
        tell('working', `installing ${packages.join(', ')} with apt-get`);
        await this.#sources.installPackages(packages, { signal: this.#signal });
        await this.#cache.noteInstalled(packages);
      },
      { onWait: () => tell('waiting', 'another process installs packages'), signal: this.#signal },
    );
  }

  #emitBuilding(detail: string): void {
    const running = this.#running;
    if (!running) return;
    const work: ToolWork[] = [
      {
        weight: weightOf(running.names),
        fraction: running.fraction,
        elapsedSeconds: (performance.now() - running.started) / 1000,
      },
      ...this.#builds.pending.map((name) => ({ weight: TOOLS[name].build!.weight })),
    ];
    const remainingSeconds = estimateRemaining(work, this.#speed ?? 1);
    for (const tool of running.names) {
      const what = running.fraction >= COMPILING_SHARE ? 'linking' : detail;
      const { fraction } = running;
      this.#emit({ tool, phase: 'working', source: 'build', fraction, remainingSeconds, detail: what });
    }
  }

  #emit(event: ProgressEvent): void {
    this.#onProgress(event);
  }

  get #speedFile(): string {
    return join(this.dir, 'speed.json');
  }

  async #readSpeed(): Promise<void> {
    if (this.#isSpeedRead) return;
    this.#isSpeedRead = true;
    try {
      const { secondsPerWeight } = JSON.parse(await readFile(this.#speedFile, 'utf8')) as { secondsPerWeight: unknown };
      if (typeof secondsPerWeight === 'number' && secondsPerWeight > 0) this.#speed = secondsPerWeight;
    } catch {
      // First build here, or an unreadable file: the table's weights apply.
    }
  }

  async #learn(names: ToolName[], seconds: number): Promise<void> {
    const weight = weightOf(names);
    // Builds of seconds are dominated by the linker's start, and would distort the estimate for long ones.
    if (weight < 20) return;
    this.#speed = learnedSpeed(this.#speed, weight, seconds);
    const draft = `${this.#speedFile}.${process.pid}`;
    await writeFile(draft, `${JSON.stringify({ secondsPerWeight: Number(this.#speed.toFixed(3)) })}\n`);
    await rename(draft, this.#speedFile);
  }
}

const SOURCE_WORDS: Record<ToolSource, string> = {
  cache: 'cache',
  path: 'on PATH',
  archive: 'release archive',
  build: 'go build',
  package: 'distribution package',
};

const weightOf = (names: readonly ToolName[]) => names.reduce((sum, name) => sum + TOOLS[name].build!.weight, 0);

/** Pending tools to build next: the first in the table's order, with its group. */
function firstGroup(pending: readonly ToolName[]): ToolName[] {
  const ordered = TOOL_NAMES.filter((name) => pending.includes(name));
  const group = TOOLS[ordered[0]!].build!.group;
  return ordered.filter((name) => TOOLS[name].build!.group === group);
}

function nothingLeft(failed: { name: ToolName; error: unknown }[]): CoppiceError {
  const what = failed.map(({ name, error }) => `${name} (${reasonOf(error)})`).join(', ');
  const packages = new Set<string>();
  const others: string[] = [];
  let needsGo = false;
  for (const { name } of failed) {
    const { build, package: pkg } = TOOLS[name];
    if (pkg) packages.add(pkg);
    else {
      needsGo ||= build !== undefined;
      others.push(`${toolBundleOf(name).join(', ')} (${wanted(name)})`);
    }
  }
  const advice: string[] = [];
  if (packages.size > 0)
    advice.push(`Install what is missing, on Debian and Ubuntu by: apt-get install ${[...packages].join(' ')}.`);
  if (needsGo) advice.push(`Install Go 1.26 or later so that it can be built, or put on PATH: ${others.join(', ')}.`);
  return new CoppiceError('ERR_CONFIGURATION_PROBLEM', `No source has ${what}`, { advice: advice.join(' ') });
}
