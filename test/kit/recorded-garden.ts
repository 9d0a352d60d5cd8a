import type { CloudProfile } from '../../operator/api/cloudprofile.ts';
import { API_VERSION } from '../../operator/api/group.ts';
import { installManifests } from '../../operator/api/install.ts';
import { profileManifests } from '../../operator/api/profiles.ts';
import type { Shoot } from '../../operator/api/shoot.ts';
import type { WorkerCluster } from '../../operator/api/workercluster.ts';
import { localSeed } from '../../operator/garden/daemon/manifests.ts';
import { Informer, waitFor } from '../../operator/kube/informer.ts';
import { silent } from '../../operator/kube/log.ts';
import { Registry } from '../../operator/kube/metrics.ts';
import { SECRETS, type Secret, SHOOTS, WORKERCLUSTERS } from '../../operator/kube/resources.ts';
import { type Operator, startOperator } from '../../operator/operator.ts';
import { providerNamed } from '../../providers/index.ts';
import { startApiserver, type TestApiserver } from './apiserver.ts';

const RANGES = { pods: '10.1.0.0/16', nodes: '10.2.0.0/16', services: '10.3.0.0/16' };
const PROFILE = 'simulated-scale';

/** A garden that is its own seed, and clusters that are objects only: all of the controllers, and no control planes. */
export class RecordedGarden {
  readonly server: TestApiserver;
  readonly clusters: Informer<WorkerCluster>;
  readonly shoots: Informer<Shoot>;
  readonly secrets: Informer<Secret>;
  readonly #stop = new AbortController();
  #operator: Operator | undefined;

  private constructor(server: TestApiserver) {
    this.server = server;
    this.clusters = new Informer<WorkerCluster>(server.client, WORKERCLUSTERS);
    this.shoots = new Informer<Shoot>(server.client, SHOOTS);
    this.secrets = new Informer<Secret>(server.client, SECRETS);
  }

  /** With an operator that runs. */
  static async start(): Promise<RecordedGarden> {
    const garden = await RecordedGarden.withoutOperator();
    await garden.startOperator();
    return garden;
  }

  static async withoutOperator(): Promise<RecordedGarden> {
    const garden = new RecordedGarden(await startApiserver());
    const { client } = garden.server;
    for (const manifest of installManifests()) await client.apply(manifest);
    for (const profile of await profileManifests()) if (profile.metadata.name === PROFILE) await client.apply(profile);
    await client.apply(localSeed(RANGES as never, { url: 'http://127.0.0.1:1' }));
    for (const cache of garden.#caches) cache.start();
    await Promise.all(garden.#caches.map((cache) => cache.whenSynced(AbortSignal.timeout(60_000))));
    return garden;
  }

  get #caches(): Informer<any>[] {
    return [this.clusters, this.shoots, this.secrets];
  }

  /** The one before has ended. */
  async startOperator(): Promise<void> {
    const options = {
      garden: await this.server.asOperator(),
      log: silent,
      metrics: new Registry(),
      provider: () => providerNamed('simulated'),
      state: { namespace: 'kube-system', directory: undefined },
    };
    this.#operator = await startOperator(options, this.#stop.signal);
  }

  async stopOperator(): Promise<void> {
    await this.#operator?.stop();
    this.#operator = undefined;
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await Promise.all([this.stopOperator(), ...this.#caches.map((cache) => cache.stop())]);
    await this.server.stop();
  }

  until(what: string, predicate: () => boolean, timeoutMs = 60_000): Promise<unknown> {
    return waitFor(this.#caches, () => predicate() || undefined, { timeoutMs, what });
  }

  cluster(name: string): WorkerCluster | undefined {
    return this.clusters.get(`default/${name}`);
  }

  async ask(name: string, cloudProfile = PROFILE): Promise<void> {
    await this.server.client.apply({
      apiVersion: API_VERSION,
      kind: 'WorkerCluster',
      metadata: { name, namespace: 'default' },
      spec: { cloudProvider: 'simulated', cloudProfile, controlPlaneNodes: 1, dataPlaneNodes: 1 },
    });
  }

  /** Applies a profile like that of the clusters here, whose machines start for that long. */
  async profileWithSlowMachines(name: string, p50: string): Promise<void> {
    const all = await profileManifests();
    const { spec } = all.find(({ metadata }) => metadata.name === PROFILE) as CloudProfile;
    const simulation = { controlPlane: { run: false }, machines: { creation: { p50 } } };
    await this.server.client.apply({
      apiVersion: API_VERSION,
      kind: 'CloudProfile',
      metadata: { name },
      spec: { ...spec, providerConfig: { simulation } },
    });
  }

  async made(name: string): Promise<void> {
    await this.ask(name);
    await this.until(`${name} to be Ready`, () => this.cluster(name)?.status?.phase === 'Ready');
  }
}
