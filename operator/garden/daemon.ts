import { existsSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { pino } from 'pino';
import { KubeClient } from '../kube/client.ts';
import { unlessAborted } from '../kube/clock.ts';
import { steadyOutput } from '../kube/log-output.ts';
import { NODES, type Node } from '../kube/resources.ts';
import { type Relay, relayIntoNamespace } from './apiserver-relay.ts';
import { noNodesMessage, whyNoNodes } from './capabilities.ts';
import { ensureCertificates, NODE_NAME } from './certificates.ts';
import { Cgroups, cgroupName, readLayout } from './cgroups.ts';
import { endLeftOvers, forgetDaemon, takeDownSeed } from './cleanup.ts';
import { apiserver, controllerManager, etcd, scheduler } from './control-plane.ts';
import { readText } from './files.ts';
import { raiseHostLimits } from './host-limits.ts';
import { imagesDirectory } from './images/build.ts';
import { IMAGES, type ImageName, toolImage } from './images/catalog.ts';
import { mirrorHosts } from './images/mirror.ts';
import { inventoryManifests } from './inventory.ts';
import { boundLogs } from './logs.ts';
import { applyManifests, foreignSeed, localSeed, networksOf } from './manifests.ts';
import { FIXED_FOLDERS, makeFolders, SEED_PATHS, setUpMounts } from './mounts.ts';
import { loadModules, namespaceFile, networkExists, networkNames, occupiedRanges, setUpNetwork } from './network.ts';
import { containerd, enterSeed, kubelet, kubeProxy, NODE_TOOLS, type NodeContext, writeNodeConfig } from './node.ts';
import { ownIdentity } from './process-identity.ts';
import { chooseRanges, conflicts } from './ranges.ts';
import {
  buildControlPlaneMachineImage,
  buildMachineImage,
  CONTROL_PLANE_MACHINE_IMAGE,
  ImageImporter,
  SEED_IMAGES,
} from './seed-images.ts';
import { choosePorts, type GardenState, keptPorts, StateDirectory } from './state.ts';
import { type GardenProgress, StatusFile } from './status.ts';
import { type ProcessSpec, Supervisor } from './supervisor.ts';
import { withLock } from './toolchain/lock.ts';
import type { ProgressEvent } from './toolchain/progress.ts';
import { Toolchain } from './toolchain/toolchain.ts';
import { LocalVolumes } from './volumes.ts';

/** Bounds what V8 leaves uncollected while many clusters are made: 80 MiB less with 1000, for a fifth more CPU (docs/benchmarks.md). */
const YOUNG_GENERATION = '--max-semi-space-size=4';
const OPERATOR = fileURLToPath(new URL('../main.ts', import.meta.url));
const MIRROR = fileURLToPath(new URL('./images/mirror-main.ts', import.meta.url));
const MIRROR_PORT = 5000;
/** Made after the garden is up, so that pods may ask for them before they are there. */
const EXPECTED_IMAGES: string[] = [
  ...([...SEED_IMAGES, 'coredns', 'kwok'] satisfies ImageName[]).map((name) => IMAGES[name].ref),
  CONTROL_PLANE_MACHINE_IMAGE,
];
const HOUSEKEEPING_MS = 15_000;
const RENEWAL_MS = 24 * 3600 * 1000;
/** Certificates that could not be renewed, for want of room perhaps. */
const RENEWAL_AGAIN_MS = 5 * 60_000;
/** Images that are missing, for the first time and at most: to try may be to build for minutes. */
const IMAGES_AGAIN_MS = 30_000;
const IMAGES_LATEST_MS = 15 * 60_000;
const NODE_PATIENCE_MS = 60_000;
/** What must be there before anything of the seed can be made. */
const HOST_TOOLS = ['ip', 'mount', 'umount', 'unshare', 'nsenter'] as const;

/** Order in which processes end: those that need others first. Pods end between the second and the third line. */
const STOP_ORDER = [
  ['operator', 'kubelet', 'kube-proxy'],
  ['kube-controller-manager', 'kube-scheduler', 'image-mirror'],
  ['containerd'],
  ['kube-apiserver'],
  ['etcd'],
];

/**
 * The long-running process of an embedded garden: brings everything up, keeps it up, ends it on SIGTERM. Resolves when it
 * has ended; returns at once when another process does it already. The state directory is that of $COPPICE_HOME.
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
  #relay: Relay | undefined;
  #volumes: LocalVolumes | undefined;
  #cgroups: Cgroups | undefined;

  constructor(directory: StateDirectory) {
    this.#directory = directory;
    this.#supervisor = new Supervisor({ directory, log: this.#log, onChange: () => this.#status?.touch() });
    this.#toolchain = new Toolchain({
      log: this.#log,
      signal: this.#stopping.signal,
      onProgress: (event) => this.#toolProgress(event),
    });
  }

  async run(): Promise<void> {
    this.#status = new StatusFile(this.#directory.statusFile, await ownIdentity(), () => this.#supervisor.status());
    const stop = () => this.#stopping.abort(new Error('asked to stop'));
    process.on('SIGTERM', stop);
    process.on('SIGINT', stop);
    process.on('SIGHUP', () => {});
    const timers = [
      setInterval(() => void boundLogs(this.#directory.path('log')).catch(() => {}), HOUSEKEEPING_MS),
      setInterval(() => void this.#renew(), RENEWAL_MS),
    ];
    let failure: unknown;
    try {
      await unlessAborted(this.#bringUp(), this.#stopping.signal);
      this.#status.set({ phase: 'ready', readyAfterMs: this.#elapsedMs() });
      this.#log.info({ afterMs: this.#elapsedMs() }, 'garden is up');
      await unlessAborted(new Promise(() => {}), this.#stopping.signal);
    } catch (error) {
      if (!this.#stopping.signal.aborted) failure = error;
    }
    if (failure) this.#log.error({ error: String(failure) }, 'garden cannot be brought up');
    for (const timer of timers) clearInterval(timer);
    this.#stopping.abort();
    this.#status.set({ phase: 'stopping' });
    await this.#shutDown();
    const message = failure instanceof Error ? failure.message : String(failure);
    this.#status.set(failure ? { phase: 'failed', error: message } : { phase: 'stopped' });
    await this.#status.flush();
    process.exitCode = failure ? 1 : 0;
    // Whatever a half-done start has left open must not keep a stopped garden's process.
    setTimeout(() => process.exit(), 500).unref();
  }

  #elapsedMs(): number {
    return Math.round(performance.now() - this.#startedAt);
  }

  #say(stage: string, message: string, more: Partial<GardenProgress> = {}): void {
    this.#log.info({ stage, ...more }, message);
    this.#status.progress({ stage, message, ...more });
  }

  #toolProgress({ tool, phase, source, fraction, remainingSeconds, detail }: ProgressEvent): void {
    if (phase === 'ready' && source === 'cache') return;
    const message = detail ?? `${phase} (${source})`;
    this.#status.progress({
      stage: 'tools',
      tool,
      message:
        phase === 'ready' ? `ready, from ${source}` : phase === 'skipped' ? `not from ${source}: ${message}` : message,
      ...(phase === 'ready' ? { fraction: 1 } : fraction !== undefined && { fraction }),
      ...(remainingSeconds !== undefined && { remainingSeconds }),
    });
  }

  async #bringUp(): Promise<void> {
    const tools = this.#toolchain;
    this.#say('garden', 'preparing');
    const first = tools.ensure(['etcd', 'kube-apiserver']);
    const controllers = tools.ensure(['kube-controller-manager', 'kube-scheduler']);
    // Awaited later, where a failure is of interest: until then it is nobody's unhandled rejection.
    for (const early of [first, controllers]) early.catch(() => {});

    const foreign = await readText(this.#directory.seedKubeconfig);
    const why = foreign ? undefined : await this.#whyNoSeed();
    const isLocal = !foreign && why === undefined;
    if (why !== undefined) {
      this.#status.set({ notice: noNodesMessage(why) });
      this.#say('seed', noNodesMessage(why), { fraction: 1 });
    }
    this.#state = await this.#prepareState(isLocal ? 'local' : foreign ? 'kubeconfig' : 'none');
    if (isLocal) await this.#prepareSeed();
    await this.#certify();

    const { ports } = this.#state;
    const files = await first;
    this.#say('control plane', 'starting etcd and the API server');
    await this.#supervisor.start(etcd(this.#directory, this.#state, files.etcd));
    const served = apiserver(this.#directory, this.#state, files['kube-apiserver']).then((spec) =>
      this.#supervisor.start(spec),
    );
    const seed = isLocal ? this.#startSeed(served) : Promise.resolve();
    seed.catch(() => {});
    await served;
    this.#status.set({ apiserverAfterMs: this.#elapsedMs() });
    this.#say('control plane', `serving at https://127.0.0.1:${ports.apiserver}`, { fraction: 1 });

    const admin = (await readText(this.#directory.kubeconfigFile('admin')))!;
    this.#client = KubeClient.fromKubeconfig(admin, undefined, { userAgent: 'coppice-garden' });
    const manifests = this.#applyManifests(foreign);
    const others = controllers.then(({ 'kube-controller-manager': kcm, 'kube-scheduler': kubeScheduler }) =>
      Promise.all([
        this.#supervisor.start(controllerManager(this.#directory, this.#state, kcm)),
        this.#supervisor.start(scheduler(this.#directory, kubeScheduler)),
      ]),
    );
    await Promise.all([manifests.then(() => this.#startOperator()), others, seed]);
  }

  async #whyNoSeed(): Promise<string | undefined> {
    if (process.platform === 'linux' && process.getuid?.() === 0) await this.#toolchain.ensure(HOST_TOOLS);
    return whyNoNodes();
  }

  /** Remembers what was chosen before; a port that somebody else has taken meanwhile is the one thing chosen anew. */
  async #prepareState(seed: GardenState['seed']): Promise<GardenState> {
    const directory = this.#directory;
    const names = networkNames(directory.id);
    const before = await directory.read();
    const occupied = seed === 'local' ? await occupiedRanges(names.link) : [];
    if (before) {
      const clash = seed === 'local' ? conflicts(before.ranges, occupied) : [];
      if (clash.length > 0) {
        this.#say('seed', `the seed's address ranges overlap with ${clash.join(', ')}, which this machine uses now`);
      }
      const ports = await keptPorts(directory, before);
      if (ports !== before.ports)
        this.#say('garden', 'another program has taken a port of the garden: choosing other ports');
      const state = { ...before, seed, ports };
      await directory.write(state);
      return state;
    }
    const ranges = chooseRanges(directory.id, occupied);
    if (!ranges)
      throw new Error('no free address range in 10.160.0.0/11 for the seed: routes of this machine use all of it');
    const state: GardenState = {
      version: 1,
      id: directory.id,
      createdAt: new Date().toISOString(),
      ports: await choosePorts(directory.id),
      ranges,
      seed,
    };
    await directory.write(state);
    return state;
  }

  /** Namespaces, cgroups, limits: all that the seed's processes start in. */
  async #prepareSeed(): Promise<void> {
    const directory = this.#directory;
    const { ranges } = this.#state;
    const names = networkNames(directory.id);
    const layout = await readLayout();
    this.#cgroups = new Cgroups(layout!, cgroupName(directory.id));
    // Half of a seed cannot be joined to a new network: what is left of it goes.
    if (!(await networkExists(names))) await takeDownSeed(directory, { except: [process.pid] });
    await this.#cgroups.create();
    this.#supervisor.procsFile = this.#cgroups.procsFile;
    await loadModules();
    await Promise.all([setUpNetwork(names, ranges), makeFolders(FIXED_FOLDERS), raiseHostLimits()]);
    const sources: Record<string, string> = {
      [SEED_PATHS.containerd]: directory.path('seed', 'containerd'),
      [SEED_PATHS.kubelet]: directory.path('seed', 'kubelet'),
      [SEED_PATHS.config]: directory.path('seed', 'config'),
      '/var/log': directory.path('seed', 'log'),
      '/var/lib/cni': directory.path('seed', 'cni'),
    };
    for (const source of Object.values(sources)) await mkdir(source, { recursive: true, mode: 0o700 });
    await setUpMounts({ folder: directory.path('ns'), binds: sources });
  }

  #certify(): Promise<Set<string>> {
    const { ranges, ports } = this.#state;
    return ensureCertificates(this.#directory, { ranges, apiserverPort: ports.apiserver, now: new Date() });
  }

  async #renew(): Promise<void> {
    try {
      const changed = await this.#certify();
      if (changed.size === 0) return;
      const restarted = await this.#supervisor.refresh();
      this.#log.info({ changed: [...changed], restarted }, 'certificates renewed');
    } catch (error) {
      this.#log.error({ error: String(error) }, 'certificates cannot be renewed, tried again in five minutes');
      setTimeout(() => void this.#renew(), RENEWAL_AGAIN_MS).unref();
    }
  }

  get #mirrorUrl(): string {
    return `http://${this.#state.ranges.nodeAddress}:${MIRROR_PORT}`;
  }

  /** The seed's node, from containerd to Ready. The kubelet waits for `served`, everything before does not. */
  async #startSeed(served: Promise<unknown>): Promise<void> {
    const directory = this.#directory;
    const { ranges, ports } = this.#state;
    const names = networkNames(directory.id);
    this.#say('seed', 'getting tools');
    const [files, pause] = await Promise.all([
      this.#toolchain.ensure([...NODE_TOOLS, 'kubelet', 'kube-proxy']),
      toolImage('pause', this.#toolchain),
    ]);
    const context: NodeContext = {
      directory,
      state: this.#state,
      names,
      cgroup: cgroupName(directory.id),
      files,
      pauseImage: IMAGES.pause.ref,
      registryHosts: mirrorHosts(this.#mirrorUrl),
    };
    await writeNodeConfig(context);
    this.#say('seed', 'starting containerd, kubelet and kube-proxy');
    [this.#relay] = await Promise.all([
      relayIntoNamespace(namespaceFile(names), ['127.0.0.1', ranges.nodeAddress], ports.apiserver),
      this.#supervisor.start(containerd(context)),
      this.#supervisor.start(this.#imageMirror(names)),
    ]);
    const importer = new ImageImporter({
      enter: enterSeed(directory, names),
      ctr: files.ctr,
      memory: directory.path('seed', 'images.json'),
    });
    await Promise.all([importer.import(pause), served]);
    // A node that was Ready before a crash still says so: only the status of a kubelet that runs counts.
    const since = Date.now();
    const [isSame] = await Promise.all([
      this.#supervisor.start(kubelet(context)),
      this.#supervisor.start(kubeProxy(context)),
    ]);
    await this.#whenNodeReady(isSame ? 0 : since);
    this.#volumes = new LocalVolumes(this.#client!, directory.path('seed', 'volumes'), this.#log);
    this.#volumes.start();
    this.#say('seed', `node ${NODE_NAME} is Ready`, { fraction: 1 });
    void this.#fillImages(importer);
  }

  #imageMirror(names: ReturnType<typeof networkNames>): ProcessSpec {
    const { nodeAddress } = this.#state.ranges;
    return {
      name: 'image-mirror',
      command: [
        'nsenter',
        `--net=${namespaceFile(names)}`,
        process.execPath,
        MIRROR,
        '--listen',
        `${nodeAddress}:${MIRROR_PORT}`,
        '--dir',
        imagesDirectory(this.#toolchain.dir),
        '--expect',
        EXPECTED_IMAGES.map((ref) => ref.replace(/^[^/]+\//, '')).join(','),
      ],
      env: childEnvironment(),
    };
  }

  /** Resolves when the node is Ready by a status not older than `since`. */
  async #whenNodeReady(since: number): Promise<void> {
    const deadline = Date.now() + NODE_PATIENCE_MS;
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      const node = await this.#client?.getOrUndefined<Node>(NODES, NODE_NAME).catch(() => undefined);
      const ready = node?.status?.conditions?.find(({ type }) => type === 'Ready');
      const heartbeat = Date.parse((ready as { lastHeartbeatTime?: string })?.lastHeartbeatTime ?? '');
      if (ready?.status === 'True' && heartbeat + 1_000 > since) return;
      if (Date.now() > deadline) {
        const status = this.#supervisor.status().find(({ name }) => name === 'kubelet');
        throw new Error(
          `the seed's node is not Ready: ${status?.lastExit ?? ready?.message ?? 'it has not registered'}`,
        );
      }
      await sleep(60, undefined, { signal }).catch(() => {});
    }
  }

  /**
   * Images that pods will want. Until one is here, containerd gets it from the mirror, if that has it. One that cannot be made or
   * imported, for want of room perhaps, is tried again after all others.
   */
  async #fillImages(importer: ImageImporter): Promise<void> {
    const tool = (name: ImageName) => () => toolImage(name, this.#toolchain);
    const { signal } = this.#stopping;
    let missing = [
      ...SEED_IMAGES.map((name) => ({ make: tool(name), here: true })),
      { make: () => buildMachineImage(this.#toolchain), here: true },
      // Wanted by machines, which ask the mirror for it.
      { make: tool('coredns'), here: false },
      // Late, because only simulated nodes need it and it takes minutes where it must be built.
      { make: tool('kwok'), here: true },
      // Last, and not imported: few gardens see a control plane on machines, whose seed then asks the mirror for it.
      { make: () => buildControlPlaneMachineImage(this.#toolchain), here: false },
    ];
    for (let waitMs = IMAGES_AGAIN_MS; ; waitMs = Math.min(waitMs * 2, IMAGES_LATEST_MS)) {
      const failed: typeof missing = [];
      for (const image of missing) {
        if (signal.aborted) return;
        try {
          const tar = await image.make();
          if (image.here) await importer.import(tar);
        } catch (error) {
          if (signal.aborted) return;
          failed.push(image);
          this.#say('images', `an image is missing, it is tried again: ${(error as Error).message}`);
        }
      }
      missing = failed;
      if (missing.length === 0) break;
      await sleep(waitMs, undefined, { signal }).catch(() => {});
    }
    this.#say('images', 'all images are in the seed', { fraction: 1 });
  }

  async #applyManifests(foreign: string | undefined): Promise<void> {
    this.#say('garden', 'applying CRDs, profiles and the seed');
    const { seed, ranges, inventory = false } = this.#state;
    let objects = seed === 'local' ? [localSeed(ranges, this.#mirrorUrl)] : [];
    if (foreign) {
      const client = KubeClient.fromKubeconfig(foreign);
      try {
        objects = foreignSeed(foreign, await networksOf(client));
      } catch (error) {
        throw new Error(`the seed of --seed-kubeconfig does not answer: ${(error as Error).message}`);
      } finally {
        await client.close();
      }
    }
    const inventoried = await inventoryManifests(this.#client!, inventory);
    await applyManifests(this.#client!, [...objects, ...inventoried], this.#stopping.signal);
    if (!inventory) {
      this.#state = { ...this.#state, inventory: true };
      await this.#directory.write(this.#state);
    }
    this.#say('garden', 'CRDs, profiles and the seed are applied', { fraction: 1 });
  }

  async #startOperator(): Promise<void> {
    if (!existsSync(OPERATOR)) {
      this.#say('operator', `${OPERATOR} is missing: the garden runs without its operator`, { fraction: 1 });
      return;
    }
    await this.#supervisor.start({
      name: 'operator',
      command: [process.execPath, YOUNG_GENERATION, OPERATOR],
      env: {
        ...childEnvironment(),
        COPPICE_HOME: this.#directory.home,
        COPPICE_GARDEN_KUBECONFIG: this.#directory.kubeconfigFile('operator'),
        // A laptop has no cloud accounts: profiles of clouds are bound to the simulated provider, which says so.
        COPPICE_SIMULATE_CLOUDS: 'true',
        // Everything here is of the one person who runs this machine.
        COPPICE_LOCAL_MACHINES: 'allowed',
        // Other clusters of this machine and of the networks around it.
        COPPICE_ATTACHED_NETWORKS: '127.0.0.0/8,10.0.0.0/8,172.16.0.0/12,192.168.0.0/16,::1/128,fc00::/7',
        // The supervisor sees to it that there is only one, so it need not wait for its own old lease after a crash.
        COPPICE_IDENTITY: `garden-${this.#state.id}`,
      },
      inputs: [this.#directory.kubeconfigFile('operator')],
      graceMs: 10_000,
    });
    this.#say('operator', 'running', { fraction: 1 });
  }

  async #shutDown(): Promise<void> {
    this.#relay?.close();
    await this.#volumes?.stop().catch(() => {});
    for (const [i, names] of STOP_ORDER.entries()) {
      await Promise.all(names.map((name) => this.#supervisor.stop(name)));
      if (i === 1) await this.#endPods();
    }
    await this.#client?.close().catch(() => {});
    await endLeftOvers(this.#directory);
  }

  /** Pods and their shims; the garden's own processes go in their order. */
  async #endPods(): Promise<void> {
    const own = this.#supervisor.status().flatMap(({ pid }) => (pid ? [pid] : []));
    await this.#cgroups?.killAll([process.pid, ...own]).catch((error) => this.#log.error(String(error)));
  }
}

/** What our own programs may see of this process's environment. */
function childEnvironment(): Record<string, string> {
  const passed = [
    'PATH',
    'HOME',
    'LANG',
    'TZ',
    'COPPICE_HOME',
    'COPPICE_TOOLS',
    'COPPICE_PULUMI',
    'COPPICE_DATA',
    'COPPICE_LOG_LEVEL',
    'NODE_COMPILE_CACHE',
    'NODE_EXTRA_CA_CERTS',
    'HTTPS_PROXY',
    'HTTP_PROXY',
    'NO_PROXY',
  ];
  return Object.fromEntries(
    passed.flatMap((name) => (process.env[name] === undefined ? [] : [[name, process.env[name]]])),
  );
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await runDaemon();
