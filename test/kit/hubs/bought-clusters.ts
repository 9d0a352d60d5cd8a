import { API_VERSION, LABELS } from '../../../operator/api/group.ts';
import type { WorkerCluster } from '../../../operator/api/workercluster.ts';
import { Informer } from '../../../operator/kube/informer.ts';
import { WORKERCLUSTERS } from '../../../operator/kube/resources.ts';
import type { TestApiserver } from '../apiserver.ts';
import type { HubTestbed } from './hub-testbed.ts';
import type { Processes } from './processes.ts';
import { SchedulingMember } from './scheduling-member.ts';

const TEST_FINALIZER = `${API_VERSION.split('/')[0]}/test`;
const PATIENCE_MS = 120_000;
/** What is sold by `sellClusters`. */
const NODE = { cpu: '4', memory: '8Gi' } as const;

/**
 * What the controllers of WorkerClusters do with those that a policy makes: machines, a line, and the end of it when all hubs have let go.
 * Each takes the next of the API servers that are kept for it.
 */
export class BoughtClusters {
  readonly #testbed: HubTestbed;
  readonly #processes: Processes;
  readonly #kept: [string, TestApiserver][];
  readonly #clusters: Informer<WorkerCluster>;
  readonly #members = new Map<string, SchedulingMember>();
  readonly #seen = new Set<string>();
  /** When each was made, and when it was gone, milliseconds since the epoch; by name. */
  readonly madeAt = new Map<string, number>();
  readonly goneAt = new Map<string, number>();
  #failure: unknown;

  /** @param kept members of the testbed, by name */
  constructor(testbed: HubTestbed, processes: Processes, kept: Readonly<Record<string, TestApiserver>>) {
    this.#testbed = testbed;
    this.#processes = processes;
    this.#kept = Object.entries(kept);
    this.#clusters = new Informer<WorkerCluster>(testbed.garden.client, WORKERCLUSTERS, { namespace: 'shop' });
    this.#clusters.onChange(({ type, object }) => {
      const { name, labels } = object.metadata;
      if (labels?.[LABELS.burstPolicy] === undefined) return;
      if (type === 'deleted') this.goneAt.set(name, Date.now());
      else if (!this.#seen.has(name)) {
        this.#seen.add(name);
        this.madeAt.set(name, Date.now());
        this.#life(object).catch((error: unknown) => {
          this.#failure = error;
        });
      }
    });
  }

  async start(): Promise<void> {
    this.#clusters.start();
    await this.#clusters.whenSynced(AbortSignal.timeout(PATIENCE_MS));
  }

  /** Those that are there. */
  get names(): string[] {
    if (this.#failure) throw this.#failure;
    return this.#clusters
      .list()
      .map(({ metadata }) => metadata.name)
      .filter((name) => this.#seen.has(name));
  }

  /** Of one whose machines have come. */
  member(name: string): SchedulingMember | undefined {
    return this.#members.get(name);
  }

  async stop(): Promise<void> {
    await this.#clusters.stop();
    await Promise.all([...this.#members.values()].map((member) => member.stop()));
  }

  async #life({ metadata: { name, namespace }, spec }: WorkerCluster): Promise<void> {
    const { client } = this.#testbed.garden;
    await client.mergePatch(WORKERCLUSTERS, name, namespace, { metadata: { finalizers: [TEST_FINALIZER] } });
    const [as, apiserver] = this.#kept.shift() ?? [];
    if (!as || !apiserver) throw new Error(`no API server is kept for ${name}`);
    const member = await SchedulingMember.start(this.#processes, apiserver, as);
    const pools = (spec.pools ?? []).flatMap((pool) => Array.from({ length: pool.minimum ?? 0 }, () => pool.name));
    for (const [index, pool] of pools.entries()) {
      const node = index === 0 ? 'one' : `node-${index + 1}`;
      await member.addNode(node, NODE.cpu, NODE.memory, { [LABELS.pool]: pool });
      await member.addSystemPod(node);
    }
    this.#members.set(name, member);
    const close = this.#testbed.open(member.pods, as, name);
    const isDeleted = () => this.#clusters.get(`${namespace}/${name}`)?.metadata.deletionTimestamp !== undefined;
    await this.#clusters.waitFor(() => isDeleted() || undefined, { timeoutMs: 10 * 60_000, what: `${name} to go` });
    await this.#testbed.until(`${name} to leave`, () => !this.#testbed.membership('test', name), 4 * 60_000);
    close();
    await client.mergePatch(WORKERCLUSTERS, name, namespace, { metadata: { finalizers: null } });
  }
}
