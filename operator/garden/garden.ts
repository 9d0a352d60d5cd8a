import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { selfContainedKubeconfig } from '../kube/kubeconfig.ts';
import type { User } from './control-plane/certificates.ts';
import { isApiserverReady } from './control-plane/control-plane.ts';
import { codeDigest } from './daemon/code-digest.ts';
import { type DaemonStatus, readStatus } from './daemon/status.ts';
import { type EgressPolicy, type EgressStatus, egressLine, writePolicy } from './egress/policy.ts';
import { diskRoom } from './host/disk-room.ts';
import { readText, writeIfChanged } from './host/files.ts';
import type { ProcessIdentity } from './host/process-identity.ts';
import type { Ranges } from './host/ranges.ts';
import { changeSettings, type RegistryWords } from './images/upstream/settings.ts';
import { CODE } from './processes/child-environment.ts';
import { lastError } from './processes/logs.ts';
import { daemonPidFile, endLeftOvers, runsSomething } from './processes/pid-files.ts';
import { endGroup, signalGroup, startDetached, whenGone } from './processes/processes.ts';
import type { ProcessState } from './processes/supervisor.ts';
import { removeEverything, takeDownSeed } from './seed/cleanup.ts';
import { type GardenProgress, toolProgress } from './state/garden-progress.ts';
import { isHeldHere, takeHold } from './state/holder.ts';
import { StateDirectory } from './state/state.ts';
import { isLocked, withLock } from './toolchain/lock.ts';

const DAEMON = fileURLToPath(new URL('./daemon/daemon.ts', import.meta.url));
/**
 * V8's young generation: the daemon is busy only during the start, and would keep 13 MiB from it
 * (docs/seen/benchmarks.md).
 */
const YOUNG_GENERATION = '--max-semi-space-size=1';
/** Filled by bin/setup. */
const COMPILE_CACHE = fileURLToPath(new URL('../../node_modules/.cache/coppice', import.meta.url));
const POLL_MS = 60;
const PID_FILE_POLL_MS = 3;
/** Interval of checks whether another command ended the garden. */
const END_POLL_MS = 500;
/** Time in which a killed daemon may be replaced by one of another version. */
const REPLACED_PATIENCE_MS = 10_000;
const STOP_PATIENCE_MS = 45_000;
const DAEMON_PATIENCE_MS = 20_000;
const KILL_PATIENCE_MS = 5_000;
const MIB = 1024 * 1024;
/** Initial size of etcd's file. */
const LEAST_ROOM_MIB = 64;
/** Environment variables passed to the daemon: none of the caller's terminal or session. */
const PASSED =
  /^(PATH|HOME|LANG|TZ|USER|GO.*|(HTTPS?|NO|ALL)_PROXY|(https?|no|all)_proxy|COPPICE_.*|NODE_COMPILE_CACHE|NODE_EXTRA_CA_CERTS|SSL_CERT_.*|DOCKER_CONFIG|REGISTRY_AUTH_FILE|XDG_RUNTIME_DIR|DEBIAN_FRONTEND)$/;

interface GardenInfo {
  id: string;
  /** e.g. `https://127.0.0.1:21000`. */
  server: string;
  /** File with the administrator's kubeconfig. */
  kubeconfigFile: string;
  seed: 'local' | 'kubeconfig' | 'none';
  ranges: Ranges;
  /** Durations of the daemon's start, which may be in the past. */
  apiserverAfterMs?: number;
  readyAfterMs?: number;
  /** For example why there is no seed, with advice. */
  notice?: string;
}

export interface ComponentStatus {
  name: string;
  state: ProcessState;
  pid?: number;
  restarts: number;
  /** Why it last ended, if it did. */
  message?: string;
}

export interface GardenStatus {
  /** Whether the daemon runs. */
  running: boolean;
  /** `unattended`: the daemon was killed, and its processes run without it. */
  phase: 'absent' | 'starting' | 'ready' | 'stopping' | 'stopped' | 'failed' | 'unattended';
  error?: string;
  notice?: string;
  components: ComponentStatus[];
  apiserver?: { server: string; ready: boolean };
  seed?: { kind: 'local' | 'kubeconfig' | 'none'; ranges: Ranges };
  egress?: EgressStatus;
}

/** Free disk space of a folder, in whole MiB. */
const roomIn = async (folder: string): Promise<number> => Math.floor((await diskRoom(folder)) / MIB);

/** Refuses to begin work for which disk space is insufficient. */
async function needRoom(folder: string): Promise<void> {
  const left = await roomIn(folder);
  if (left >= LEAST_ROOM_MIB) return;
  const what = `the disk of ${folder} has ${left} MiB left, and a garden needs ${LEAST_ROOM_MIB} MiB to start`;
  throw new Error(`${what}; free some space there, then run "coppice up" again`);
}

interface Options {
  onProgress?: (event: GardenProgress) => void;
}

interface UpOptions extends Options {
  signal?: AbortSignal;
  /** Whether the garden outlives the command that starts it. */
  isInBackground?: boolean;
}

/** A running daemon. */
interface EnsuredDaemon {
  /** Status at the time of the check. */
  before: Awaited<ReturnType<typeof readStatus>>;
  /** Whether it was already running. */
  isUp: boolean;
  /** Whether a garden, also of another version, was running and not stopping. */
  wasAtWork: boolean;
  /**
   * Why a newly started daemon exited before it could report; undefined while it has not. Absent: it was already
   * running.
   */
  daemonFailure?: () => string | undefined;
}

interface GardenOptions {
  /** Default $COPPICE_HOME or ~/.coppice. */
  home?: string;
  /** Kubeconfig of a cluster to use as the seed. */
  seedKubeconfig?: string;
  /** Registry settings that `up` applies to the image mirror. */
  registries?: RegistryWords;
  /** Outbound policy that `up` applies. */
  egress?: EgressPolicy;
}

/** An embedded garden, running or not. */
export class Garden {
  readonly directory: StateDirectory;
  readonly #seedKubeconfig: string | undefined;
  readonly #registries: RegistryWords;
  readonly #egress: EgressPolicy | undefined;

  private constructor({ home, seedKubeconfig, registries = {}, egress }: GardenOptions) {
    this.directory = new StateDirectory(home);
    this.#seedKubeconfig = seedKubeconfig && resolve(seedKubeconfig);
    this.#registries = registries;
    this.#egress = egress;
  }

  static open(options: GardenOptions = {}): Garden {
    return new Garden(options);
  }

  /**
   * Starts the garden and resolves when everything serves. No-op when it runs; otherwise it continues from its state,
   * whichever processes died. Throws the reason of a failure; an aborted `signal` only ends the wait.
   */
  async up(options: UpOptions = {}): Promise<GardenInfo> {
    const { onProgress, signal, isInBackground = false } = options;
    const { directory } = this;
    // State written by a newer Coppice stays unchanged.
    await directory.read();
    await directory.make();
    await changeSettings(directory.registriesFile, this.#registries);
    if (this.#egress) await writePolicy(directory.egressFile, this.#egress);
    if (this.#seedKubeconfig) {
      const text = selfContainedKubeconfig(await readFile(this.#seedKubeconfig, 'utf8'), this.#seedKubeconfig);
      const changed = await writeIfChanged(directory.seedKubeconfig, text);
      if (changed) await this.stop();
    }
    const waits = () =>
      onProgress?.({ stage: 'garden', message: 'waiting for another coppice command, which is changing the garden' });
    const ensure = async () => {
      const daemon = await this.#ensureDaemon(onProgress);
      // A full disk must not block access to a running garden.
      await takeHold(directory.holderFile, isInBackground, daemon.wasAtWork).catch(() => {});
      return daemon;
    };
    const daemon = await withLock(directory.changeLock, ensure, {
      onWait: waits,
      ...(signal && { signal }),
    });
    return this.#whenUp(daemon, options);
  }

  /** Reports the daemon's progress until the whole garden serves. Throws the reason when it fails. */
  async #whenUp(
    { before, isUp, daemonFailure }: EnsuredDaemon,
    { onProgress, signal }: Options & { signal?: AbortSignal },
  ): Promise<GardenInfo> {
    const { directory } = this;
    let seen = isUp && before?.phase === 'ready' ? Number.POSITIVE_INFINITY : 0;
    const logFile = directory.logFile('daemon');
    const startedAt = performance.now();
    for (;;) {
      signal?.throwIfAborted();
      const status = await readStatus(directory.statusFile);
      // Until the new daemon has written, the file is its predecessor's.
      const isOld = !isUp && status?.startedAt === before?.startedAt && status?.daemon.pid === before?.daemon.pid;
      if (status && !isOld) {
        const { sequence, events } = status.progress;
        for (const event of events.slice(Math.max(0, seen - sequence))) onProgress?.(event);
        seen = Math.max(seen, sequence + events.length);
        const isAsked = !this.#egress || !status.egress || status.egress.policy === this.#egress;
        const isPatient = performance.now() - startedAt < DAEMON_PATIENCE_MS;
        if (status.phase === 'ready' && (isAsked || !isPatient)) {
          // A daemon that was not ready then creates them itself.
          if (isUp && before?.phase === 'ready') await this.#restoreBindings(signal);
          return this.#info(status);
        }
        if (status.phase === 'failed') throw new Error(status.error ?? `the garden failed: see ${logFile}`);
        // A `stopping` daemon may be about to report why it failed.
        if (status.phase === 'stopped') throw new Error('another coppice command stopped the garden: run this again');
        if (!status.isAlive) throw new Error(`the garden's daemon exited: ${await lastError(logFile)} (${logFile})`);
      } else {
        const failure = daemonFailure?.();
        if (failure) throw new Error(`the garden's daemon does not start: ${failure} (${logFile})`);
        if (performance.now() - startedAt > DAEMON_PATIENCE_MS)
          throw new Error(`the garden's daemon does not start: ${await lastError(logFile)} (${logFile})`);
      }
      await sleep(POLL_MS, undefined, { signal }).catch(() => {});
    }
  }

  async #restoreBindings(signal?: AbortSignal): Promise<void> {
    const { restoreBindings } = await import('./daemon/daemon-client.ts');
    await restoreBindings(this.directory, signal);
  }

  /** Starts a daemon where none is running. Resolves when `stop` would find it. */
  async #ensureDaemon(onProgress: Options['onProgress']): Promise<EnsuredDaemon> {
    const { directory } = this;
    // Another command may have removed everything meanwhile.
    await directory.make();
    const before = await readStatus(directory.statusFile);
    const code = codeDigest();
    const isReady = before?.isAlive && before.phase === 'ready';
    const isStarting = before?.isAlive && before.phase === 'starting';
    // A starting daemon may be installing system packages, which killing it would leave broken.
    const wasAtWork = Boolean(isReady || isStarting);
    if (isStarting || (isReady && before.code === code)) return { before, isUp: true, wasAtWork };
    await needRoom(directory.root);
    if (isReady) await this.#endDaemonAlone(before.daemon, onProgress);
    else if (before?.isAlive) await endGroup(before.daemon, STOP_PATIENCE_MS);
    return { before, isUp: false, wasAtWork, daemonFailure: await this.#startDaemon(code) };
  }

  /**
   * Kills the daemon alone: SIGTERM would stop the garden, while after SIGKILL the next daemon takes over its unchanged
   * processes.
   */
  async #endDaemonAlone(daemon: ProcessIdentity, onProgress: Options['onProgress']): Promise<void> {
    const { readyToTakeOver } = await import('./daemon/take-over.ts');
    await readyToTakeOver(this.directory, (event) => {
      const news = toolProgress(event);
      if (news) onProgress?.(news);
    });
    onProgress?.({
      stage: 'garden',
      message: 'replacing the daemon of another version of Coppice; pods keep running',
    });
    await signalGroup(daemon, 'SIGKILL');
    await whenGone(daemon, KILL_PATIENCE_MS);
  }

  /** Returns a function that tells why the daemon exited before it could report; undefined while it has not. */
  async #startDaemon(code: string): Promise<() => string | undefined> {
    const env = Object.fromEntries(
      Object.entries(process.env).filter(
        (entry): entry is [string, string] => PASSED.test(entry[0]) && entry[1] !== undefined,
      ),
    );
    const pidFile = daemonPidFile(this.directory);
    const child = startDetached(
      {
        command: [process.execPath, YOUNG_GENERATION, DAEMON],
        env: { NODE_COMPILE_CACHE: COMPILE_CACHE, ...env, COPPICE_HOME: this.directory.home, [CODE]: code },
      },
      { logFile: this.directory.logFile('daemon'), pidFile: { file: pidFile, digest: 'daemon' } },
    );
    let failure: string | undefined;
    child.once('error', (error) => {
      failure = error.message;
    });
    child.once('exit', (code, signal) => {
      // A daemon that exits with success has found another running one.
      if (code !== 0) failure = signal ? `it was killed by ${signal}` : `it exited with code ${code}`;
    });
    const ended = new Promise((resolve) => child.once('close', resolve).once('error', resolve));
    child.unref();
    // Until the pid file exists, `stop` would not find the daemon.
    const isOver = () => failure !== undefined || child.exitCode !== null || child.signalCode !== null;
    while (!existsSync(pidFile) && !isOver()) await Promise.race([sleep(PID_FILE_POLL_MS), ended]);
    return () => failure;
  }

  async #info(status: DaemonStatus): Promise<GardenInfo> {
    const state = await this.directory.read();
    if (!state) throw new Error(`${this.directory.stateFile} has disappeared`);
    const { apiserverAfterMs, readyAfterMs, egress } = status;
    const notice = status.notice ?? (egress?.problem && egressLine(egress));
    return {
      id: state.id,
      server: `https://127.0.0.1:${state.ports.apiserver}`,
      kubeconfigFile: this.directory.kubeconfigFile('admin'),
      seed: state.seed,
      ranges: state.ranges,
      ...(apiserverAfterMs !== undefined && { apiserverAfterMs }),
      ...(readyAfterMs !== undefined && { readyAfterMs }),
      ...(notice && { notice }),
    };
  }

  /** Whether the garden ends with this command, rather than with another or none. */
  isHeldHere(): Promise<boolean> {
    return isHeldHere(this.directory.holderFile);
  }

  /** Present status. Never throws because a component is down. */
  async status(): Promise<GardenStatus> {
    const { directory } = this;
    const [status, state, ca] = await Promise.all([
      readStatus(directory.statusFile),
      directory.read(),
      readText(directory.pki('ca.crt')),
    ]);
    const running = status?.isAlive ?? false;
    const ready = state && ca ? await isApiserverReady(state.ports.apiserver, ca) : false;
    const phase = !status || !state ? 'absent' : running || status.phase === 'failed' ? status.phase : 'stopped';
    const isUnattended = phase === 'stopped' && (await runsSomething(directory));
    const room = await roomIn(directory.root).catch(() => Number.POSITIVE_INFINITY);
    const notice =
      room < 1 ? `the disk of ${directory.root} is full, so this status may be out of date` : status?.notice;
    return {
      running,
      phase: isUnattended ? 'unattended' : phase,
      ...(status?.error && { error: status.error }),
      ...(notice && { notice }),
      components: (running ? (status?.processes ?? []) : []).map(({ lastExit, ...process }) => ({
        ...process,
        ...(lastExit && { message: lastExit }),
      })),
      ...(state && {
        apiserver: { server: `https://127.0.0.1:${state.ports.apiserver}`, ready },
        seed: { kind: state.seed, ranges: state.ranges },
      }),
      ...(running && status?.egress && { egress: status.egress }),
    };
  }

  /**
   * Resolves when another command has ended the garden: `stopped`, `gone` with its state, or `dead` when its daemon was
   * killed or failed. Undefined when `signal` aborts first.
   */
  async whenEnded(signal: AbortSignal): Promise<'stopped' | 'gone' | 'dead' | undefined> {
    let silentSince: number | undefined;
    // Confirmed by a second check: the lock may be released before the status is written.
    let wasStopped = false;
    while (!signal.aborted) {
      const status = await readStatus(this.directory.statusFile);
      if (!status) return 'gone';
      if (status.isAlive) silentSince = undefined;
      else if (status.phase === 'stopped') {
        // A deletion stops the garden first, and holds the lock until the state is gone.
        const isChanging = await isLocked(this.directory.changeLock);
        if (!isChanging && wasStopped) return 'stopped';
        wasStopped = !isChanging;
      } else {
        // A daemon of another version may be about to replace it.
        silentSince ??= performance.now();
        if (status.phase === 'failed' || performance.now() - silentSince > REPLACED_PATIENCE_MS) return 'dead';
      }
      await sleep(END_POLL_MS, undefined, { signal }).catch(() => {});
    }
    return undefined;
  }

  /** Ends every process, including pods; the state stays for the next `up`, which waits for the stop. */
  async stop({ onProgress }: Options = {}): Promise<void> {
    const { directory } = this;
    if (!existsSync(directory.root)) return;
    await withLock(directory.changeLock, () => this.#stop(onProgress));
    onProgress?.({ stage: 'garden', message: 'stopped', fraction: 1 });
  }

  async #stop(onProgress: Options['onProgress']): Promise<void> {
    const { directory } = this;
    const status = await readStatus(directory.statusFile);
    if (status?.isAlive) {
      onProgress?.({ stage: 'garden', message: 'stopping' });
      await endGroup(status.daemon, STOP_PATIENCE_MS);
    }
    await endLeftOvers(directory);
    await takeDownSeed(directory);
  }

  /** Removes everything: processes, mounts, network, cgroups, state. */
  async down({ onProgress }: Options = {}): Promise<void> {
    const { directory } = this;
    const remove = async () => {
      await this.#stop(onProgress);
      onProgress?.({ stage: 'garden', message: 'removing the state' });
      await removeEverything(directory);
    };
    await (existsSync(directory.root) ? withLock(directory.changeLock, remove) : remove());
    onProgress?.({ stage: 'garden', message: 'gone', fraction: 1 });
  }

  /** A user's kubeconfig as YAML. Throws when the garden was never up. */
  async kubeconfig(user: User = 'admin'): Promise<string> {
    const text = await readText(this.directory.kubeconfigFile(user));
    if (text === undefined) throw new Error('there is no garden here: start one with "coppice up"');
    return text;
  }
}
