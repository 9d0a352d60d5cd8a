import type { BurstPolicy } from '../../api/burstpolicy.ts';
import type { Membership } from '../../api/membership.ts';
import type { KubeObject } from '../../api/meta.ts';
import { KUBECONFIG_KEY, kubeconfigSecretName, membershipName } from '../../api/names.ts';
import type { WorkerCluster } from '../../api/workercluster.ts';
import { KubeClient } from '../../kube/client.ts';
import { Informer, waitFor } from '../../kube/informer.ts';
import {
  BURSTPOLICIES,
  conditionIsTrue,
  MEMBERSHIPS,
  PODS,
  type Pod,
  type Resource,
  SECRETS,
  type Secret,
  WORKERCLUSTERS,
} from '../../kube/resources.ts';
import {
  CLUSTERS_IN,
  DEMO,
  FIT,
  FLEET,
  PEAK,
  POLICY,
  PRIVATE,
  policy,
  privateCluster,
  REPLICA,
  RISEN,
  type StandInMachine,
  WORK,
} from './burst-objects.ts';
import type { Fleet } from './fleet.ts';

/** Time limit of each step, on a busy machine. */
const STEP_MS = 3 * 60_000;

/** Interval of repeating what the demo waits for: a reader of a log must see that it goes on. */
const TELL_MS = 20_000;

const secondsSince = (time: number): string => ((Date.now() - time) / 1000).toFixed(1);

/** Plays a peak in an embedded garden, and prints what happened. */
export class BurstDemo {
  readonly #garden: KubeClient;
  readonly #fleet: Fleet;
  readonly #sold: readonly StandInMachine[];
  readonly #tell: (line: string) => void;
  readonly #signal: AbortSignal;
  readonly #clients: KubeClient[] = [];
  readonly #informers: Informer<any>[] = [];
  readonly #clusters: Informer<WorkerCluster>;
  readonly #memberships: Informer<Membership>;
  readonly #policies: Informer<BurstPolicy>;

  constructor(
    garden: KubeClient,
    fleet: Fleet,
    sold: readonly StandInMachine[],
    tell: (line: string) => void,
    signal: AbortSignal,
  ) {
    this.#garden = garden;
    this.#fleet = fleet;
    this.#sold = sold;
    this.#tell = tell;
    this.#signal = signal;
    this.#clusters = this.#follow<WorkerCluster>(garden, WORKERCLUSTERS, CLUSTERS_IN);
    this.#memberships = this.#follow<Membership>(garden, MEMBERSHIPS, CLUSTERS_IN);
    this.#policies = this.#follow<BurstPolicy>(garden, BURSTPOLICIES, CLUSTERS_IN);
  }

  /** Plays the demo. Throws a sentence about the step that did not happen in time; the signal's reason when aborted. */
  async play(): Promise<void> {
    await this.#garden.apply(privateCluster, { signal: this.#signal });
    this.#tell(`created the private cluster: WorkerCluster ${CLUSTERS_IN}/${PRIVATE}, one node of 2 CPUs`);
    const own = await this.#joined(PRIVATE);
    this.#tell(`it is Ready and has joined Hub ${DEMO}: ${this.#fleet.nameOf(own)}`);

    await this.#garden.apply(policy(this.#sold), { signal: this.#signal });
    const pods = await this.#podsOf(PRIVATE);
    await this.#fleet.fill(this.#signal);
    await this.#running(pods, PRIVATE, FIT);
    const isFull = () => this.#fleet.isFull(own);
    await this.#until(this.#fleet.caches(), isFull, `${this.#fleet.scheduler} to count ${PRIVATE} as full`);
    this.#tell(`Deployment ${WORK}: ${FIT} replicas of ${REPLICA.cpu} CPU run on it, and it has no room for more`);

    const rising = Date.now();
    await this.#fleet.rise(this.#signal);
    this.#tell(`demand rises: ${await this.#refused(RISEN - FIT)}`);
    const grow = await this.#decision('Grow', `to add a node to ${PRIVATE}`);
    this.#tell(`${PRIVATE} gets a second node: ${grow.why}`);
    await this.#running(pods, PRIVATE, RISEN);
    this.#tell(
      `${RISEN} replicas run on ${PRIVATE}, ${secondsSince(rising)} s after they were requested; its pool is full`,
    );

    const since = Date.now();
    await this.#fleet.peak(this.#signal);
    this.#tell(`the peak: ${await this.#refused(PEAK - RISEN)}`);

    const name = await this.#bought();
    const member = await this.#joined(name);
    this.#tell(`it is Ready and has joined: ${this.#fleet.nameOf(member)}`);
    const bought = await this.#podsOf(name);
    const there = await this.#runningOn([bought, pods], PEAK);
    this.#tell(
      `${there[0]} replicas run on it, ${secondsSince(since)} s after they were requested; ${there[1]} run on ${PRIVATE}`,
    );

    const ebbed = await this.#fleet.ebb(this.#signal);
    await this.#running(bought, name, 0);
    this.#tell(`the peak is over: ${ebbed}, and no replica runs on ${name} any more`);
    await this.#givenBack(name, member);
    const isOneNode = () => this.#clusters.get(`${CLUSTERS_IN}/${PRIVATE}`)?.status?.nodes?.current === 1;
    await this.#until([this.#clusters], isOneNode, `${PRIVATE} to have one node again`);
    await this.#running(pods, PRIVATE, FIT);
    this.#tell(`${PRIVATE} has one node again, and ${FIT} replicas run on it`);
  }

  async close(): Promise<void> {
    await Promise.all(this.#informers.map((informer) => informer.stop()));
    await Promise.all(this.#clients.map((client) => client.close()));
  }

  /** Sentence about replicas without a place. */
  #refused(replicas: number): Promise<string> {
    const what = `${this.#fleet.scheduler} to say that it has no place for some of ${replicas} replicas`;
    return this.#until(this.#fleet.caches(), () => this.#fleet.refusal(), what);
  }

  async #bought(): Promise<string> {
    const buy = await this.#decision('Buy', 'to buy a cluster');
    const others = (buy.alternatives ?? []).map(
      ({ candidate, hourly, whyNot }) => `not ${candidate}${hourly ? ` for ${hourly}` : ''}: ${whyNot}`,
    );
    this.#tell([`${buy.cluster} is bought: ${buy.why}`, ...others].join('; '));
    return buy.cluster!;
  }

  async #givenBack(name: string, member: string): Promise<void> {
    const remove = await this.#decision('Remove', `to delete ${name}`);
    this.#tell(`${name} is being deleted: ${remove.why}`);
    const all = [this.#clusters, this.#memberships, this.#policies, ...this.#fleet.caches()];
    const left = () => [
      ...(this.#clusters.get(`${CLUSTERS_IN}/${name}`) ? [`WorkerCluster ${name}`] : []),
      ...(this.#memberships.get(this.#membershipOf(name)) ? [`its Membership`] : []),
      ...this.#fleet.leftOf(member),
    ];
    const policyOf = () => this.#policies.get(`${CLUSTERS_IN}/${POLICY}`)?.status;
    const spend = await this.#until(
      all,
      () => left().length === 0 && policyOf()?.clusterCount === 0 && policyOf()?.spend,
      () => `${name} to be deleted; there is still ${left().join(', ') || `the policy's entry of it`}`,
    );
    this.#tell(`it is deleted: no WorkerCluster, ${this.#fleet.kinds} of it is left`);
    this.#tell(
      `it would have cost ${spend.amount} ${spend.currency}, which counts towards the policy's monthly budget (${spend.month})`,
    );
  }

  async #joined(name: string): Promise<string> {
    const seen = () => this.#memberships.get(this.#membershipOf(name))?.status;
    const cluster = () => this.#clusters.get(`${CLUSTERS_IN}/${name}`);
    return this.#until(
      [this.#memberships, this.#clusters],
      () => seen()?.state === 'Joined' && seen()?.memberName,
      () =>
        `WorkerCluster ${name} to join Hub ${DEMO}; ${seen()?.waiting ?? cluster()?.status?.lastOperation?.description ?? 'its state is not known'}`,
    );
  }

  readonly #membershipOf = (name: string): string => `${CLUSTERS_IN}/${membershipName(name, DEMO)}`;

  async #running(pods: Informer<Pod>, cluster: string, count: number): Promise<void> {
    const running = () => pods.list().filter((pod) => conditionIsTrue(pod, 'Ready'));
    await this.#until(
      [pods],
      () => running().length === count && pods.size === count,
      () => `${count} replicas to run on ${cluster}; ${running().length} of ${pods.size} pods do`,
    );
  }

  /** Running replicas by place, once their sum is `count`. */
  #runningOn(places: readonly Informer<Pod>[], count: number): Promise<number[]> {
    const running = () => places.map((pods) => pods.list().filter((pod) => conditionIsTrue(pod, 'Ready')).length);
    return this.#until(
      places,
      () => running().reduce((sum, one) => sum + one, 0) === count && running(),
      () => `${count} replicas to run; ${running().join(' and ')} do`,
    );
  }

  #decision(action: 'Buy' | 'Grow' | 'Remove', what: string) {
    const decided = () =>
      this.#policies
        .get(`${CLUSTERS_IN}/${POLICY}`)
        ?.status?.decisions?.find((one: { action: string }) => one.action === action);
    return this.#until([this.#policies], decided, () => `BurstPolicy ${POLICY} ${what}; it says: ${this.#says()}`);
  }

  #says(): string {
    const { conditions } = this.#policies.get(`${CLUSTERS_IN}/${POLICY}`)?.status ?? {};
    return (conditions ?? []).map(({ message }) => message).join('; ') || 'nothing';
  }

  async #podsOf(cluster: string): Promise<Informer<Pod>> {
    const name = kubeconfigSecretName(cluster);
    const secret = await this.#garden.get<Secret>(SECRETS, name, CLUSTERS_IN, { signal: this.#signal });
    const client = KubeClient.fromKubeconfig(Buffer.from(secret.data?.[KUBECONFIG_KEY] ?? '', 'base64').toString());
    this.#clients.push(client);
    return this.#follow<Pod>(client, PODS, FLEET);
  }

  #follow<T extends KubeObject>(client: KubeClient, resource: Resource, namespace: string): Informer<T> {
    const informer = new Informer<T>(client, resource, { namespace });
    informer.start();
    this.#informers.push(informer);
    return informer;
  }

  async #until<R>(
    informers: readonly Informer<any>[],
    predicate: () => R | undefined | false,
    what: string | (() => string),
  ): Promise<R> {
    const telling = setInterval(() => this.#tell(`waiting for ${typeof what === 'string' ? what : what()}`), TELL_MS);
    try {
      return await waitFor(informers, predicate, { timeoutMs: STEP_MS, signal: this.#signal, what });
    } finally {
      clearInterval(telling);
    }
  }
}
