import { isDeepStrictEqual } from 'node:util';
import type { WorkerCluster } from '../../api/workercluster.ts';
import type { DaemonSet } from '../../burst/fit/daemons.ts';
import { fitPod } from '../../burst/fit/pod.ts';
import { blockedBy, type WhyBlocked } from '../../burst/nodes/pod-budgets.ts';
import type { DepletedOffers } from '../../capacity/depleted-offers.ts';
import { isCoppices } from '../../capacity/desired-sizes.ts';
import type { OpenCluster } from '../../clusters/open-clusters.ts';
import type { KubeClient } from '../../kube/client.ts';
import { KubeApiError } from '../../kube/errors.ts';
import { hasEnded, isMovable } from '../../kube/pods.ts';
import { DAEMONSETS, type KubeObject, type Node, PDBS, type Pod, type Resource } from '../../kube/resources.ts';
import { eachInSteps, type Steps } from '../../kube/steps.ts';
import { stepOwnerOf, tenantSteps } from '../../kube/tenant-steps.ts';
import type { Said } from '../conditions.ts';
import type { DecidedSizes } from '../decided-sizes.ts';
import { noteInterrupted } from '../interrupted-offers.ts';
import { Batches, type BatchTimes } from './batches.ts';
import { FactsReader, podsThatMayMove } from './cluster-facts.ts';
import { autoscaledCondition } from './condition.ts';
import { emptiedSince, endEmptying } from './empty-node.ts';
import { type GardenNodes, gardenNodes } from './garden-world.ts';
import { attemptChange, lookAtNodes } from './look.ts';
import { ClusterMemory } from './memory.ts';
import { poolOf } from './nodes-seen.ts';

/** Cache time of PodDisruptionBudgets, which change with each Ready pod. Milliseconds. */
const BUDGETS_FRESH_MS = 5_000;
/** Cache time of DaemonSets while pods wait, and while none does. Milliseconds. */
const DAEMONSETS_FRESH_MS = 10_000;
const DAEMONSETS_FRESH_AT_REST_MS = 10 * 60_000;

type Client = Pick<KubeClient, 'list'>;

/** Whether pods may soon be evicted: only then PodDisruptionBudgets matter. Pure. */
function mayEvict(nodes: readonly Node[], pods: readonly Pod[], unneeded: ReadonlyMap<string, number>): boolean {
  const emptying = nodes.filter((node) => !Number.isNaN(emptiedSince(node))).map(({ metadata }) => metadata.name);
  const going = new Set([...emptying, ...unneeded.keys()]);
  return going.size > 0 && pods.some((pod) => going.has(pod.spec.nodeName ?? '') && isMovable(pod));
}

/** Compiles the pods that count; fitPod keeps the results. */
const compilePods = (pods: readonly Pod[]): Steps<void> =>
  eachInSteps(pods, (pod) => {
    if (!hasEnded(pod)) fitPod(pod);
  });

/** Unwatched objects of clusters, read on demand. */
class AskedFor<T> {
  readonly #now: () => number;
  readonly #resource: Resource;
  readonly #of: (objects: readonly KubeObject[]) => T;
  readonly #known = new Map<string, { at: number; client: Client; answer: T }>();

  /**
   * @param now milliseconds
   * @param of transforms the objects
   */
  constructor(now: () => number, resource: Resource, of: (objects: readonly KubeObject[]) => T) {
    this.#now = now;
    this.#resource = resource;
    this.#of = of;
  }

  /**
   * Result of a cluster, at most `freshMs` old. undefined: the cluster refuses.
   * @throws KubeUnreachableError, AnswerTooLargeError
   */
  async in(key: string, client: Client, freshMs: number, signal: AbortSignal): Promise<T | undefined> {
    const before = this.#known.get(key);
    if (before?.client === client && this.#now() - before.at < freshMs) return before.answer;
    try {
      const { items } = await client.list<KubeObject>(this.#resource, { signal });
      const answer = this.#of(items);
      this.#known.set(key, { at: this.#now(), client, answer });
      return answer;
    } catch (error) {
      if (error instanceof KubeApiError) return undefined;
      throw error;
    }
  }

  forget(key: string): void {
    this.#known.delete(key);
  }
}

/** Dependencies of the autoscaler. */
interface AutoscalingDependencies extends GardenNodes {
  readonly capacity: Pick<DepletedOffers, 'known' | 'interrupted'>;
  readonly sizes: Pick<DecidedSizes, 'decide' | 'forget'>;
  /** Requeues the WorkerCluster of this key after news. */
  tell(key: string): void;
}

export interface AutoscalingTimes extends BatchTimes {
  /** How long a PodDisruptionBudget may block a drain, milliseconds; then the node rests. */
  readonly patienceMs: number;
}

/** Milliseconds. */
const SOONEST_MS = 100;

/** Decides the sizes of pools that Coppice sizes, and drains nodes to remove. */
export class Autoscaler {
  readonly #deps: AutoscalingDependencies;
  readonly #times: AutoscalingTimes;
  readonly #batches: Batches;
  readonly #facts: FactsReader;
  readonly #budgets: AskedFor<WhyBlocked>;
  readonly #daemonSets: AskedFor<readonly DaemonSet[]>;
  readonly #memory = new Map<string, ClusterMemory>();
  readonly #told = new Map<string, Said<'WorkerCluster'>>();

  constructor(deps: AutoscalingDependencies, times: AutoscalingTimes) {
    this.#deps = deps;
    this.#times = times;
    this.#batches = new Batches(times, () => +deps.now());
    this.#facts = new FactsReader(() => +deps.now());
    this.#budgets = new AskedFor(() => +deps.now(), PDBS, blockedBy);
    this.#daemonSets = new AskedFor(
      () => +deps.now(),
      DAEMONSETS,
      (sets) => sets as readonly DaemonSet[],
    );
  }

  /** Records a change in a cluster. @returns delay until the decision if this starts a batch, milliseconds */
  noteChange(key: string): number | undefined {
    return this.#batches.note(key) ? this.#times.idleMs : undefined;
  }

  /** Condition about a cluster's nodes; undefined: none yet, keep the last one. */
  condition(key: string, uid: string): Said<'WorkerCluster'> | undefined {
    return this.#memory.get(key)?.uid === uid ? this.#told.get(key) : undefined;
  }

  /** Forgets a cluster that is deleted or no longer autoscaled. */
  forget(key: string): void {
    this.#facts.forget(key);
    this.#budgets.forget(key);
    this.#daemonSets.forget(key);
    this.#memory.delete(key);
    this.#told.delete(key);
  }

  /** Observes a cluster, decides, and takes the next step, independently of where the last cycle ended. */
  async reconcile(key: string, signal: AbortSignal): Promise<{ requeueAfterMs: number } | undefined> {
    const left = this.#batches.take(key);
    if (left > 0) return { requeueAfterMs: left };
    const { clusters, sizes } = this.#deps;
    const known = clusters.get(key);
    const { uid = '', deletionTimestamp } = known?.metadata ?? {};
    if (!known || uid === '' || deletionTimestamp) {
      this.forget(key);
      return undefined;
    }
    const step = stepOwnerOf(known, 'autoscaling');
    const ownPools = (known.spec.pools ?? []).filter(isCoppices);
    const own = new Set(ownPools.map(({ name }) => name));
    await sizes.forget(key, uid, (pool) => own.has(pool), signal);
    const open = this.#deps.openClusters.get(key);
    // Uncordon draining nodes of pools that are no longer ours: nobody else would.
    for (const node of open?.nodes.list() ?? [])
      if (!own.has(poolOf(node)) && !Number.isNaN(emptiedSince(node)))
        await attemptChange(endEmptying(open!.client, node, signal));
    if (own.size === 0) {
      this.forget(key);
      return undefined;
    }
    const memory = this.#memoryOf(key, uid);
    if (!open) return undefined;
    const pods = open.pods.list();
    // Compiles pods with pauses, and keeps the results: all that follows looks at compiled pods.
    await tenantSteps.run(step, compilePods(pods), signal);
    const moving = podsThatMayMove(ownPools, open.nodes.list(), pods);
    const facts = await this.#facts.of(key, open.client, { pods, moving }, signal);
    const asked = await this.#ask(key, open, memory, signal);
    // Interrupted offers are bought again only as a last resort, in all clusters.
    const cluster = clusters.get(key);
    if (cluster) noteInterrupted(this.#deps, cluster, open.nodes.list());
    const sight = gardenNodes(this.#deps, key, { ...facts, ...asked });
    const world = await tenantSteps.run(step, sight, signal);
    if (!world) return undefined;
    const { seen, plan, waits, problems, next } = await lookAtNodes(world, memory, this.#times.patienceMs, signal);
    this.#tell(key, seen.cluster, autoscaledCondition(seen, plan, waits, problems));
    return next === undefined ? undefined : { requeueAfterMs: Math.max(SOONEST_MS, next - +this.#deps.now()) };
  }

  /** Reads facts that caches lack. */
  async #ask(key: string, { client, nodes, pods }: OpenCluster, memory: ClusterMemory, signal: AbortSignal) {
    const waits = pods.list().some(({ spec, metadata }) => !spec.nodeName && !metadata.deletionTimestamp);
    const freshMs = waits ? DAEMONSETS_FRESH_MS : DAEMONSETS_FRESH_AT_REST_MS;
    const daemonSets = await this.#daemonSets.in(key, client, freshMs, signal);
    const whyBlocked = mayEvict(nodes.list(), pods.list(), memory.unneededSince)
      ? await this.#budgets.in(key, client, BUDGETS_FRESH_MS, signal)
      : undefined;
    return { ...(daemonSets && { daemonSets }), ...(whyBlocked && { whyBlocked }) };
  }

  #memoryOf(key: string, uid: string): ClusterMemory {
    let memory = this.#memory.get(key);
    if (memory?.uid !== uid) {
      memory = new ClusterMemory(uid);
      this.#memory.set(key, memory);
    }
    return memory;
  }

  #tell(key: string, cluster: WorkerCluster, condition: Said<'WorkerCluster'>): void {
    if (isDeepStrictEqual(this.#told.get(key), condition)) return;
    const before = this.#told.get(key);
    this.#told.set(key, condition);
    if (condition.status === 'False' && before?.message !== condition.message)
      this.#deps.recordEvent(cluster, 'Warning', condition.reason ?? '', condition.message ?? '');
    this.#deps.tell(key);
  }
}
