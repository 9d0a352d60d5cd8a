import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { pino } from 'pino';
import { CoppiceError, errorText } from '../../api/errors.ts';
import { KubeClient } from '../../kube/client.ts';
import { unlessAborted } from '../../kube/clock.ts';
import { steadyOutput } from '../../kube/log-output.ts';
import { ensureCertificates } from '../control-plane/certificates.ts';
import { apiServerProcess, controllerManager, etcdProcess, schedulerProcess } from '../control-plane/control-plane.ts';
import { encryptEarlierSecrets, ensureSecretsEncryption } from '../control-plane/secrets-encryption.ts';
import { noNodesMessage, type SeedPossible, seedPossible, simulatedOnly } from '../host/capabilities.ts';
import { endCommands } from '../host/command.ts';
import { readText } from '../host/files.ts';
import { mostMachines, thisComputer } from '../host/machine-limit.ts';
import { ownIdentity } from '../host/process-identity.ts';
import { CODE, childEnvironment } from '../processes/child-environment.ts';
import { boundLogs } from '../processes/logs.ts';
import { endLeftOvers, forgetDaemon, runsSomething } from '../processes/pid-files.ts';
import { Supervisor } from '../processes/supervisor.ts';
import { mirrorOf } from '../seed/image-mirror.ts';
import { LocalSeed } from '../seed/local-seed.ts';
import { INSTALLED_TOOLS, NODE_TOOLS } from '../seed/node.ts';
import { type GardenProgress, toolProgress } from '../state/garden-progress.ts';
import { type GardenState, StateDirectory } from '../state/state.ts';
import { kubectlForPerson } from '../toolchain/kubectl.ts';
import { withLock } from '../toolchain/lock.ts';
import { Toolchain } from '../toolchain/toolchain.ts';
import { daemonClient } from './daemon-client.ts';
import { inventoryManifests } from './inventory.ts';
import { applyKinds, applyObjects, foreignSeed, localSeed, networksOf } from './manifests.ts';
import { prepareState } from './prepare-state.ts';
import { StatusFile } from './status.ts';

/** Limits V8's young generation: 80 MiB less memory while 1000 clusters are created, for a fifth more CPU (docs/seen/benchmarks/scale.md). */
const YOUNG_GENERATION = '--max-semi-space-size=4';
const OPERATOR = fileURLToPath(new URL('../../main.ts', import.meta.url));
const HOUSEKEEPING_MS = 15_000;
const RENEWAL_MS = 24 * 3600 * 1000;
/** Retry after a failed renewal of certificates, for example on a full disk. */
const RENEWAL_AGAIN_MS = 5 * 60_000;
/** Programs that must be installed before the seed can start. */
const HOST_TOOLS = ['ip', 'mount', 'umount', 'unshare', 'nsenter'] as const;

/**
 * Order in which processes stop: a process stops before those it depends on. Pods stop between lines two and three, or
 * with their namespaces.
 */
const STOP_ORDER = [
  ['operator', 'kubelet', 'kube-proxy'],
  ['kube-controller-manager', 'kube-scheduler', 'image-mirror', 'egress'],
  ['containerd', 'seed-proxy'],
  ['seed-namespaces'],
  ['kube-apiserver'],
  ['etcd'],
];

/**
 * The long-running process of an embedded garden. Starts all other processes, restarts those that exit, and stops them
 * on SIGTERM. Resolves when all have stopped; at once when another daemon runs. The state directory is that of
 * $COPPICE_HOME.
 */
export async function runDaemon(home?: string): Promise<void> {
  const directory = new StateDirectory(home);
  await directory.make();
  const taken = new AbortController();
  try {
    await withLock(directory.daemonLock, () => new Daemon(directory).run(), {
      onWait: () => taken.abort(),
      signal: taken.signal,
    });
  } catch (error) {
    if (!taken.signal.aborted) throw error;
  } finally {
    await forgetDaemon(directory);
  }
}

class Daemon {
  readonly #directory: StateDirectory;
  readonly #log = pino({ name: 'garden' }, steadyOutput());
  readonly #stopping = new AbortController();
  readonly #supervisor: Supervisor;
  readonly #toolchain: Toolchain;
  readonly #startedAt = performance.now();
  #status!: StatusFile;
  #state!: GardenState;
  #client: KubeClient | undefined;
  #seed: LocalSeed | undefined;

  constructor(directory: StateDirectory) {
    this.#directory = directory;
    this.#supervisor = new Supervisor({ directory, log: this.#log, onChange: () => this.#status?.touch() });
    this.#toolchain = new Toolchain({
      log: this.#log,
      signal: this.#stopping.signal,
      onProgress: (event) => {
        const news = toolProgress(event);
        if (news) this.#status.progress(news);
      },
    });
  }

  async run(): Promise<void> {
    this.#status = new StatusFile(this.#directory.statusFile, await ownIdentity(), () => this.#supervisor.status());
    this.#status.set({ code: process.env[CODE] });
    const stop = () => this.#stopping.abort(new Error('stop requested'));
    process.on('SIGTERM', stop);
    process.on('SIGINT', stop);
    process.on('SIGHUP', () => {});
    const timers = [
      setInterval(() => void boundLogs(this.#directory.path('log')).catch(() => {}), HOUSEKEEPING_MS),
      setInterval(() => void this.#renew(), RENEWAL_MS),
    ];
    // Processes of an earlier daemon keep running if this one cannot start.
    const isRunning = await runsSomething(this.#directory);
    let failure: unknown;
    try {
      await unlessAborted(this.#bringUp(), this.#stopping.signal);
      this.#status.set({ phase: 'ready', readyAfterMs: this.#elapsedMs() });
      this.#log.info({ afterMs: this.#elapsedMs() }, 'garden is up');
      await unlessAborted(new Promise(() => {}), this.#stopping.signal);
    } catch (error) {
      if (!this.#stopping.signal.aborted) failure = error;
    }
    if (failure) this.#log.error({ error: String(failure) }, 'the garden cannot start');
    for (const timer of timers) clearInterval(timer);
    this.#stopping.abort();
    this.#status.set({ phase: 'stopping' });
    await (failure && isRunning ? this.#leave() : this.#shutDown());
    const advice = failure instanceof CoppiceError ? `. ${failure.advice}` : '';
    const message = failure instanceof Error ? `${failure.message}${advice}` : String(failure);
    this.#status.set(failure ? { phase: 'failed', error: message } : { phase: 'stopped' });
    await this.#status.flush();
    process.exitCode = failure ? 1 : 0;
    // Handles left open by a failed start must not keep a stopped garden's process alive.
    setTimeout(() => process.exit(), 500).unref();
  }

  #elapsedMs(): number {
    return Math.round(performance.now() - this.#startedAt);
  }

  #say(stage: string, message: string, more: Partial<GardenProgress> = {}): void {
    this.#log.info({ stage, ...more }, message);
    this.#status.progress({ stage, message, ...more });
  }

  async #bringUp(): Promise<void> {
    const tools = this.#toolchain;
    this.#say('garden', 'preparing');
    const first = early(tools.ensure(['etcd', 'kube-apiserver']));
    const controllers = early(tools.ensure(['kube-controller-manager']));
    const foreign = await readText(this.#directory.seedKubeconfig);
    const possible = foreign ? {} : await this.#seedPossible();
    const isLocal = !foreign && possible.why === undefined;
    // Only a garden that is its own seed has nodes and pods to schedule.
    const placing = isLocal ? early(tools.ensure(['kube-scheduler'])) : undefined;
    // Requested separately: a joint request would report a missing tool only after the last build.
    const installed = isLocal ? early(tools.ensure(INSTALLED_TOOLS)) : undefined;
    if (isLocal) void early(tools.ensure(NODE_TOOLS));
    this.#tellOfSeed(possible);
    this.#state = await prepareState(
      this.#directory,
      { seed: isLocal ? 'local' : foreign ? 'kubeconfig' : 'none', rootless: possible.rootless !== undefined },
      (stage, message) => this.#say(stage, message),
    );
    if (isLocal) this.#seed = this.#localSeed();
    await this.#seed?.prepare();
    await this.#certify();
    await ensureSecretsEncryption(this.#directory, new Date());

    // No build of minutes begins when its result could not run here.
    const files = await (installed ? Promise.race([first, installed.then(() => first)]) : first);
    this.#say('control plane', 'starting etcd and the API server');
    await this.#supervisor.start(etcdProcess(this.#directory, this.#state, files.etcd));
    const served = this.#serve(files['kube-apiserver']);
    const seed = this.#seed && early(this.#seed.start(served));
    await served;
    this.#status.set({ apiserverAfterMs: this.#elapsedMs() });
    this.#say('control plane', `serving at https://127.0.0.1:${this.#state.ports.apiserver}`, { fraction: 1 });

    const manifests = this.#applyManifests(foreign);
    void this.#encryptEarlier();
    const started = [
      controllers.then((got) =>
        this.#supervisor.start(controllerManager(this.#directory, this.#state, got['kube-controller-manager'])),
      ),
      placing?.then((got) => this.#supervisor.start(schedulerProcess(this.#directory, got['kube-scheduler']))),
    ];
    await Promise.all([manifests, ...started, seed]);
    void (this.#seed?.fillImages() ?? this.#getKubectl());
  }

  /** Reports the limits of a garden without root or Linux. */
  #tellOfSeed({ why, rootless }: SeedPossible): void {
    if (why !== undefined) {
      this.#status.set({ notice: noNodesMessage(why) });
      this.#say('seed', noNodesMessage(why), { fraction: 1 });
    }
    if (rootless !== undefined) {
      this.#status.set({ notice: simulatedOnly(rootless) });
      this.#say('seed', simulatedOnly(rootless));
    }
  }

  /** Without a local seed, which fetches it with its images. */
  async #getKubectl(): Promise<void> {
    await kubectlForPerson(this.#toolchain).catch((error) => this.#say('tools', errorText(error)));
  }

  /** @returns a client of the API server, once it serves */
  async #serve(program: string): Promise<KubeClient> {
    await this.#supervisor.start(await apiServerProcess(this.#directory, this.#state, program));
    this.#client = await daemonClient(this.#directory);
    return this.#client;
  }

  #localSeed(): LocalSeed {
    return new LocalSeed({
      directory: this.#directory,
      state: this.#state,
      supervisor: this.#supervisor,
      toolchain: this.#toolchain,
      log: this.#log,
      signal: this.#stopping.signal,
      say: (stage, message, more) => this.#say(stage, message, more),
      onEgress: (egress) => this.#status.set({ egress }),
    });
  }

  /** `why`: reason for no local seed, or for a `rootless` one. */
  async #seedPossible(): Promise<SeedPossible> {
    if (process.platform === 'linux' && process.getuid?.() === 0) await this.#toolchain.ensure(HOST_TOOLS);
    return seedPossible();
  }

  #certify(): Promise<Set<string>> {
    const { ranges, ports } = this.#state;
    return ensureCertificates(this.#directory, { ranges, apiserverPort: ports.apiserver, now: new Date() });
  }

  async #renew(): Promise<void> {
    try {
      const changed = await this.#certify();
      const isNewKey = await ensureSecretsEncryption(this.#directory, new Date());
      if (changed.size === 0 && !isNewKey) return;
      const restarted = await this.#supervisor.refresh();
      this.#log.info({ changed: [...changed], restarted }, 'certificates and keys renewed');
      await this.#encryptEarlier();
    } catch (error) {
      this.#log.error({ error: String(error) }, 'certificates cannot be renewed; next try in five minutes');
      setTimeout(() => void this.#renew(), RENEWAL_AGAIN_MS).unref();
    }
  }

  /** Not awaited: the Secrets are readable meanwhile, and a failure is retried at the next start. */
  async #encryptEarlier(): Promise<void> {
    try {
      const count = await encryptEarlierSecrets(this.#directory, this.#client!, new Date());
      if (count !== undefined) this.#log.info({ count }, 'all Secrets in etcd are now encrypted with the current key');
    } catch (error) {
      this.#log.error(
        { error: String(error) },
        'Secrets cannot be encrypted with the new key; next try when the garden starts again',
      );
    }
  }

  /** Applies the garden's manifests, and starts the operator once its kinds are served. */
  async #applyManifests(foreign: string | undefined): Promise<void> {
    this.#say('garden', 'applying CRDs, profiles and the seed');
    const { seed, ranges, rootless, inventory = false } = this.#state;
    const mirror = await mirrorOf({ directory: this.#directory, state: this.#state });
    let objects = seed === 'local' ? [localSeed(ranges, mirror, rootless)] : [];
    if (foreign) {
      const client = KubeClient.fromAdministratorsKubeconfig(foreign, 'the kubeconfig of --seed-kubeconfig');
      try {
        objects = foreignSeed(foreign, await networksOf(client));
      } catch (error) {
        throw new Error(`the seed of --seed-kubeconfig does not answer: ${(error as Error).message}`);
      } finally {
        await client.close();
      }
    }
    const inventoried = await inventoryManifests(this.#client!, inventory);
    const all = [...objects, ...inventoried];
    await applyKinds(this.#client!, all, this.#stopping.signal);
    // Its process takes a second to load, while the objects it will read are applied.
    const most = seed === 'local' ? mostMachines(thisComputer()) : undefined;
    await Promise.all([applyObjects(this.#client!, all, this.#stopping.signal, most), this.#startOperator()]);
    if (!inventory) {
      this.#state = { ...this.#state, inventory: true };
      await this.#directory.write(this.#state);
    }
    this.#say('garden', 'CRDs, profiles and the seed are applied', { fraction: 1 });
  }

  async #startOperator(): Promise<void> {
    if (!existsSync(OPERATOR)) {
      this.#say('operator', `${OPERATOR} is missing: the garden runs without an operator`, { fraction: 1 });
      return;
    }
    await this.#supervisor.start({
      name: 'operator',
      command: [process.execPath, YOUNG_GENERATION, OPERATOR],
      env: {
        ...childEnvironment(),
        COPPICE_HOME: this.#directory.home,
        COPPICE_GARDEN_KUBECONFIG: this.#directory.kubeconfigFile('operator'),
        // A laptop has no cloud accounts: cloud profiles use the simulated provider, which marks itself as such.
        COPPICE_SIMULATE_CLOUDS: 'true',
        // The machine belongs to the one person who runs the garden.
        COPPICE_LOCAL_MACHINES: 'allowed',
        // Other clusters on this machine and in surrounding networks.
        COPPICE_ATTACHED_NETWORKS: '127.0.0.0/8,10.0.0.0/8,172.16.0.0/12,192.168.0.0/16,::1/128,fc00::/7',
        // The supervisor ensures a single operator, which need not wait for its own old lease after a crash.
        COPPICE_IDENTITY: `garden-${this.#state.id}`,
      },
      inputs: [this.#directory.kubeconfigFile('operator')],
      graceMs: 10_000,
    });
    this.#say('operator', 'running', { fraction: 1 });
  }

  /** Ends without the processes it found or started: the next daemon takes them over. */
  async #leave(): Promise<void> {
    await this.#seed?.close();
    await this.#client?.close().catch(() => {});
    await endCommands();
  }

  async #shutDown(): Promise<void> {
    await this.#seed?.close();
    for (const [i, names] of STOP_ORDER.entries()) {
      await Promise.all(names.map((name) => this.#supervisor.stop(name)));
      if (i === 1) await this.#seed?.endPods();
    }
    await this.#client?.close().catch(() => {});
    await endLeftOvers(this.#directory);
    await endCommands();
  }
}

/** Begins work that is awaited later, without an unhandled rejection until then. */
function early<T>(begun: Promise<T>): Promise<T> {
  begun.catch(() => {});
  return begun;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await runDaemon();
