import { mkdir } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { KubeClient } from '../kube/client.ts';
import type { Log } from '../kube/log.ts';
import { NODES, type Node } from '../kube/resources.ts';
import { type Relay, relayIntoNamespace } from './apiserver-relay.ts';
import { NODE_NAME } from './certificates.ts';
import { Cgroups, cgroupName, readLayout } from './cgroups.ts';
import { childEnvironment, registryEnvironment } from './child-environment.ts';
import { takeDownSeed } from './cleanup.ts';
import { Egress } from './egress/egress.ts';
import type { EgressStatus } from './egress/policy.ts';
import { raiseHostLimits } from './host-limits.ts';
import { imagesDirectory } from './images/build.ts';
import { IMAGES, toolImage } from './images/catalog.ts';
import { mirrorHosts } from './images/mirror.ts';
import { FIXED_FOLDERS, makeFolders, SEED_PATHS, setUpMounts } from './mounts.ts';
import { loadModules, namespaceFile, networkExists, networkNames, setUpNetwork } from './network.ts';
import { containerd, enterSeed, kubelet, kubeProxy, NODE_TOOLS, type NodeContext, writeNodeConfig } from './node.ts';
import { EXPECTED_IMAGES, fillImages, IMAGES_ON_DEMAND, ImageImporter } from './seed-images.ts';
import type { GardenState, StateDirectory } from './state.ts';
import type { GardenProgress } from './status.ts';
import type { ProcessSpec, Supervisor } from './supervisor.ts';
import { Toolchain } from './toolchain/toolchain.ts';
import { VersionsOnDemand } from './versions-on-demand.ts';
import { LocalVolumes } from './volumes.ts';

const MIRROR = fileURLToPath(new URL('./images/mirror-main.ts', import.meta.url));
const MIRROR_PORT = 5000;
/** What the mirror reads and sends shall not pile up uncollected: 70 MiB less after 600 MB of images. */
const MIRROR_YOUNG_GENERATION = '--max-semi-space-size=1';
const NODE_PATIENCE_MS = 60_000;

/** Of an embedded garden, what its seed is made with. */
export interface GardenOfSeed {
  readonly directory: StateDirectory;
  readonly state: GardenState;
  readonly supervisor: Supervisor;
  readonly toolchain: Toolchain;
  readonly log: Log & { error(text: string): void };
  /** Aborted when the garden stops. */
  readonly signal: AbortSignal;
  readonly say: (stage: string, message: string, more?: Partial<GardenProgress>) => void;
  /** Is told what pods reach. */
  readonly onEgress: (status: EgressStatus) => void;
}

/** Where the seed's containerd asks for images that are not imported yet. */
export const mirrorURL = ({ nodeAddress }: GardenState['ranges']): string => `http://${nodeAddress}:${MIRROR_PORT}`;

/** The seed of an embedded garden: one node of this machine, in a network of its own. */
export class LocalSeed {
  readonly #garden: GardenOfSeed;
  #relay: Relay | undefined;
  #egress: Egress | undefined;
  #volumes: LocalVolumes | undefined;
  #versions: VersionsOnDemand | undefined;
  #cgroups: Cgroups | undefined;

  constructor(garden: GardenOfSeed) {
    this.#garden = garden;
  }

  /** Namespaces, cgroups, limits: all that the seed's processes start in. */
  async prepare(): Promise<void> {
    const { directory, supervisor, state } = this.#garden;
    const { ranges } = state;
    const names = networkNames(directory.id);
    const layout = await readLayout();
    this.#cgroups = new Cgroups(layout!, cgroupName(directory.id));
    // Half of a seed cannot be joined to a new network: what is left of it goes.
    if (!(await networkExists(names))) await takeDownSeed(directory, { except: [process.pid] });
    await this.#cgroups.create();
    supervisor.procsFile = this.#cgroups.procsFile;
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

  /** The seed's node, from containerd to Ready. The kubelet waits for `served`, everything before does not. */
  async start(served: Promise<KubeClient>): Promise<void> {
    const { directory, supervisor, state, toolchain, log } = this.#garden;
    const { ranges, ports } = state;
    const names = networkNames(directory.id);
    this.#garden.say('seed', 'getting tools');
    const [files, pause] = await Promise.all([
      toolchain.ensure([...NODE_TOOLS, 'kubelet', 'kube-proxy']),
      toolImage('pause', toolchain),
    ]);
    const context: NodeContext = {
      directory,
      state,
      names,
      cgroup: cgroupName(directory.id),
      files,
      pauseImage: IMAGES.pause.ref,
      registryHosts: mirrorHosts(mirrorURL(state.ranges)),
    };
    await writeNodeConfig(context);
    this.#garden.say('seed', 'starting containerd, kubelet and kube-proxy');
    [this.#relay] = await Promise.all([
      relayIntoNamespace(namespaceFile(names), ['127.0.0.1', ranges.nodeAddress], ports.apiserver),
      supervisor.start(containerd(context)),
      supervisor.start(this.#imageMirror(names)),
    ]);
    this.#egress = new Egress({
      ...this.#garden,
      names,
      iptables: [...enterSeed(directory, names), files.iptables],
      onStatus: this.#garden.onEgress,
    });
    const wayOut = this.#egress.start();
    const importer = new ImageImporter({
      enter: enterSeed(directory, names),
      ctr: files.ctr,
      memory: directory.path('seed', 'images.json'),
    });
    const [, client] = await Promise.all([importer.import(pause), served]);
    // A node that was Ready before a crash still says so: only the status of a kubelet that runs counts.
    const since = Date.now();
    const [isSame] = await Promise.all([supervisor.start(kubelet(context)), supervisor.start(kubeProxy(context))]);
    await Promise.all([this.#whenNodeReady(client, isSame ? 0 : since), wayOut]);
    this.#volumes = new LocalVolumes(client, directory.path('seed', 'volumes'), log);
    this.#volumes.start();
    this.#garden.say('seed', `node ${NODE_NAME} is Ready`, { fraction: 1 });
    void fillImages(importer, this.#garden);
    this.#versions = new VersionsOnDemand({
      ...this.#garden,
      asked: directory.path('seed', 'asked'),
      openToolchain: (onProgress) =>
        new Toolchain({ dir: toolchain.dir, log, signal: this.#garden.signal, onProgress }),
      client,
    });
    this.#versions.start();
  }

  /** It listens in the seed's network and asks registries in the host's, by its proxy and its certificates. */
  #imageMirror(names: ReturnType<typeof networkNames>): ProcessSpec {
    const { directory, state, toolchain } = this.#garden;
    const { nodeAddress, pods, nodes, services } = state.ranges;
    const values = {
      listen: `${nodeAddress}:${MIRROR_PORT}`,
      namespace: namespaceFile(names),
      'on-demand': [...IMAGES_ON_DEMAND.keys()].join(','),
      asked: directory.path('seed', 'asked'),
      expect: EXPECTED_IMAGES.map((ref) => ref.replace(/^[^/]+\//, '')).join(','),
      cache: directory.path('seed', 'pulled'),
      settings: directory.registriesFile,
      seed: directory.path('seed'),
      kubeconfig: directory.kubeconfigFile('admin'),
      own: [pods, nodes, services].join(','),
    };
    const dirs = [directory.loadedImages, imagesDirectory(toolchain.dir)];
    return {
      name: 'image-mirror',
      command: [
        process.execPath,
        MIRROR_YOUNG_GENERATION,
        MIRROR,
        ...dirs.flatMap((dir) => ['--dir', dir]),
        ...Object.entries(values).flatMap(([name, value]) => [`--${name}`, value]),
      ],
      env: { ...childEnvironment(), ...registryEnvironment() },
    };
  }

  /** Resolves when the node is Ready by a status not older than `since`. */
  async #whenNodeReady(client: KubeClient, since: number): Promise<void> {
    const deadline = Date.now() + NODE_PATIENCE_MS;
    const { signal } = this.#garden;
    while (!signal.aborted) {
      const node = await client.getOrUndefined<Node>(NODES, NODE_NAME).catch(() => undefined);
      const ready = node?.status?.conditions?.find(({ type }) => type === 'Ready');
      const heartbeat = Date.parse((ready as { lastHeartbeatTime?: string })?.lastHeartbeatTime ?? '');
      if (ready?.status === 'True' && heartbeat + 1_000 > since) return;
      if (Date.now() > deadline) {
        const status = this.#garden.supervisor.status().find(({ name }) => name === 'kubelet');
        throw new Error(
          `the seed's node is not Ready: ${status?.lastExit ?? ready?.message ?? 'it has not registered'}`,
        );
      }
      await sleep(60, undefined, { signal }).catch(() => {});
    }
  }

  /** Pods and their shims; the garden's own processes go in their order. */
  async endPods(): Promise<void> {
    const own = this.#garden.supervisor.status().flatMap(({ pid }) => (pid ? [pid] : []));
    await this.#cgroups?.killAll([process.pid, ...own]).catch((error) => this.#garden.log.error(String(error)));
  }

  /** Ends what serves pods while they run. */
  async close(): Promise<void> {
    this.#relay?.close();
    await this.#egress?.close();
    await this.#volumes?.stop().catch(() => {});
    await this.#versions?.stop().catch(() => {});
  }
}
