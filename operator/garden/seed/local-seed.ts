import { existsSync } from 'node:fs';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { RUNTIME_FOLDER } from '../../../providers/local/machine-pod.ts';
import type { KubeClient } from '../../kube/client.ts';
import { InTurn } from '../../kube/in-turn.ts';
import { NODES, type Node } from '../../kube/resources.ts';
import { NODE_NAME } from '../control-plane/certificates.ts';
import { Egress } from '../egress/egress.ts';
import { run } from '../host/command.ts';
import { networkNames } from '../host/network.ts';
import { IMAGES, toolImage } from '../images/catalog.ts';
import { ImagesOnDemand } from '../images/images-on-demand.ts';
import { ImageImporter } from '../images/importer.ts';
import { fillImages } from '../images/seed-images.ts';
import { NetworkPolicyEnforcer } from '../network-policies/enforcer.ts';
import type { GardenState } from '../state/state.ts';
import { Toolchain } from '../toolchain/toolchain.ts';
import { type Relay, relayIntoNamespace } from './apiserver-relay.ts';
import type { GardenOfSeed } from './garden-of-seed.ts';
import { IMAGE_MIRROR, imageMirror, mirrorOf } from './image-mirror.ts';
import { containerdProcess, kubeletProcess, kubeProxy, NODE_TOOLS, type NodeContext, writeNodeConfig } from './node.ts';
import { NodePorts } from './node-ports.ts';
import { rootlessNamespaces, SEED_PROXY } from './rootless-namespaces.ts';
import { rootNamespaces, type SeedNamespaces } from './seed-namespaces.ts';
import { LocalVolumes } from './volumes.ts';

const NODE_PATIENCE_MS = 60_000;

/** The seed of an embedded garden: one node on this machine, in a network of its own. */
export class LocalSeed {
  readonly #garden: GardenOfSeed;
  #relay: Relay | undefined;
  #importer: ImageImporter | undefined;
  #egress: Egress | undefined;
  #policies: NetworkPolicyEnforcer | undefined;
  #volumes: LocalVolumes | undefined;
  #nodePorts: NodePorts | undefined;
  #namespaces: SeedNamespaces | undefined;
  #onDemand: ImagesOnDemand | undefined;
  readonly #turns = new InTurn();

  constructor(garden: GardenOfSeed) {
    this.#garden = garden;
  }

  /** Creates namespaces, cgroups and limits for the seed's processes. */
  async prepare(): Promise<void> {
    this.#namespaces = await (this.#garden.state.rootless
      ? rootlessNamespaces(this.#garden, () => void this.#turns.run(() => this.#enterAnew()))
      : rootNamespaces(this.#garden));
  }

  /**
   * Reconnects processes in a recreated network; all others ended with the old one and are restarted by the supervisor.
   */
  async #enterAnew(): Promise<void> {
    const { supervisor, log, signal, state } = this.#garden;
    if (signal.aborted) return;
    try {
      await Promise.all([SEED_PROXY, IMAGE_MIRROR].map((name) => supervisor.restart(name)));
      // Before start() has created it, start() will do so.
      if (this.#relay) {
        this.#relay.close();
        this.#relay = await this.#relayTo(state);
      }
      log.info({}, 'the seed has new namespaces');
    } catch (error) {
      log.error(
        { error: String(error) },
        'the seed has new namespaces, and something that it needs in them is missing',
      );
    }
  }

  #relayTo({ ranges, ports }: GardenState): Promise<Relay> {
    return relayIntoNamespace(this.#namespaces!.enterNetwork, ['127.0.0.1', ranges.nodeAddress], ports.apiserver);
  }

  /** Starts the seed's node, from containerd to Ready. Only the kubelet waits for `served`. */
  async start(served: Promise<KubeClient>): Promise<void> {
    const { directory, supervisor, state, toolchain, log } = this.#garden;
    const { ranges } = state;
    const { enter, enterNetwork, cgroup } = this.#namespaces!;
    this.#garden.say('seed', 'getting tools');
    const [files, pause] = await Promise.all([
      toolchain.ensure([...NODE_TOOLS, 'kubelet', 'kube-proxy']),
      toolImage('pause', toolchain),
    ]);
    const context: NodeContext = {
      directory,
      state,
      enter,
      cgroup,
      files,
      pauseImage: IMAGES.pause.ref,
      imageMirror: await mirrorOf(this.#garden),
    };
    await writeNodeConfig(context);
    this.#garden.say('seed', 'starting containerd, kubelet and kube-proxy');
    [this.#relay] = await Promise.all([
      this.#relayTo(state),
      supervisor.start(containerdProcess(context)),
      supervisor.start(imageMirror(this.#garden, enterNetwork)),
      // Used by machines that start from now on.
      run([...enter, 'ln', '-sfn', dirname(files.containerd), RUNTIME_FOLDER]),
    ]);
    // Without root the host's network is not changed: pods reach nothing outside the garden.
    if (!state.rootless)
      this.#egress = new Egress({
        ...this.#garden,
        names: networkNames(directory.id),
        iptables: [...enter, files.iptables],
        onStatus: this.#garden.onEgress,
      });
    const wayOut = this.#egress?.start();
    this.#importer = new ImageImporter({
      enter,
      ctr: files.ctr,
      memory: directory.path('seed', 'images.json'),
    });
    const [, client] = await Promise.all([this.#importer.import(pause), served]);
    // Without root policies are not enforced, which the Seed reports.
    if (!state.rootless) {
      const programs = dirname(files.iptables);
      const hasIPv6 = existsSync('/proc/net/if_inet6');
      this.#policies = new NetworkPolicyEnforcer(client, { ranges, enter, programs, hasIPv6, log });
      this.#policies.start();
    }
    // A node's status may predate a crash: only the status of a running kubelet counts.
    const since = Date.now();
    const [isSame] = await Promise.all([
      supervisor.start(kubeletProcess(context)),
      supervisor.start(kubeProxy(context)),
    ]);
    await Promise.all([this.#whenNodeReady(client, isSame ? 0 : since), wayOut]);
    this.#volumes = new LocalVolumes(client, directory.path('seed', 'volumes'), log);
    this.#volumes.start();
    if (state.rootless) {
      this.#nodePorts = new NodePorts(client, { socketFile: directory.seedSocket, ...ranges }, log);
      this.#nodePorts.start();
    }
    this.#garden.say('seed', `node ${NODE_NAME} is Ready`, { fraction: 1 });
    this.#onDemand = new ImagesOnDemand({
      ...this.#garden,
      asked: directory.path('seed', 'asked'),
      openToolchain: (onProgress) =>
        new Toolchain({ dir: toolchain.dir, log, signal: this.#garden.signal, onProgress }),
      client,
    });
    this.#onDemand.start();
  }

  /** Imports control plane images. It takes seconds of CPU, so it begins last. */
  async fillImages(): Promise<void> {
    if (this.#importer) await fillImages(this.#importer, this.#garden);
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
          `the seed's node is not Ready: ${status?.lastExit ?? ready?.message ?? 'it has not registered yet'}`,
        );
      }
      await sleep(60, undefined, { signal }).catch(() => {});
    }
  }

  /** Ends pods and their shims; the garden's own processes stop in their order. */
  async endPods(): Promise<void> {
    const own = this.#garden.supervisor.status().flatMap(({ pid }) => (pid ? [pid] : []));
    await this.#namespaces?.endPods(own);
  }

  /** Closes the relays that pods use. */
  async close(): Promise<void> {
    this.#relay?.close();
    await this.#nodePorts?.stop().catch(() => {});
    await this.#egress?.close();
    await this.#policies?.stop().catch(() => {});
    await this.#volumes?.stop().catch(() => {});
    await this.#onDemand?.stop().catch(() => {});
  }
}
