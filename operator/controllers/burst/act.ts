import type { BurstPolicy } from '../../api/burstpolicy.ts';
import { rfc3339 } from '../../api/conditions.ts';
import { errorText } from '../../api/errors.ts';
import { LABELS } from '../../api/group.ts';
import type { WorkerPool } from '../../api/worker-pool.ts';
import type { WorkerCluster } from '../../api/workercluster.ts';
import { type ClusterPurchase, isLeaving, waitOf } from '../../burst/clusters/purchases.ts';
import { type BurstReceipt, clustersIn, noteDecision, restCandidate } from '../../burst/clusters/receipt.ts';
import { forgetCluster } from '../../burst/clusters/spend.ts';
import { isNotFound, isTransient, KubeApiError } from '../../kube/errors.ts';
import { keyOf } from '../../kube/resources.ts';
import { isOf, keptClusters, manifestOf } from './own-clusters.ts';
import type { BurstWorld, ClusterPatch } from './world.ts';

/**
 * Makes what is stored and was not made yet. Somebody else's cluster of the same name is never touched: it is made, and not applied.
 * @returns the receipt without what cannot be made
 */
export async function makeClusters(
  world: BurstWorld,
  policy: BurstPolicy,
  receipt: BurstReceipt,
  now: number,
  signal: AbortSignal,
): Promise<BurstReceipt> {
  let next = receipt;
  for (const purchase of clustersIn(receipt)) {
    if (purchase.uid !== undefined || isLeaving(purchase)) continue;
    const candidate = policy.spec.candidates.find(({ name }) => name === purchase.candidate);
    const problem = candidate
      ? await make(world, policy, manifestOf(policy, candidate, purchase), purchase, signal)
      : 'the policy no longer has this candidate';
    if (problem === undefined) continue;
    const { name, at, revision } = purchase;
    const rest = { why: problem, at, revision };
    next = noteDecision(restCandidate(forgetCluster(next, name, now), purchase.candidate, rest, now), {
      at: rfc3339(new Date(now)),
      action: 'Fail',
      cluster: name,
      candidate: purchase.candidate,
      why: problem,
    });
  }
  return next;
}

/** @returns why it can never be made under this name; undefined: it is there. Throws where it may be made later. */
async function make(
  world: BurstWorld,
  policy: BurstPolicy,
  cluster: WorkerCluster,
  purchase: ClusterPurchase,
  signal: AbortSignal,
): Promise<string | undefined> {
  // Made by a look before this one, of which the cache has heard.
  const known = world.clusters.get(keyOf(cluster));
  if (known && isOf(known, policy, purchase)) return undefined;
  try {
    await world.create(cluster, signal);
    return undefined;
  } catch (error) {
    if (!(error instanceof KubeApiError)) throw error;
    if (error.isAlreadyExists) {
      const { name, namespace = '' } = cluster.metadata;
      const live = await world.live(name, namespace, signal);
      if (live && isOf(live, policy, purchase)) return undefined;
      return `there is a WorkerCluster ${name} that was not made for this policy`;
    }
    if (error.status >= 400 && error.status < 500 && error.status !== 409 && error.status !== 429)
      return `the API server refuses it: ${errorText(error)}`;
    throw error;
  }
}

/** How a cluster is to be changed. */
export interface ClusterChange {
  readonly patch: ClusterPatch;
  /** The beginning of what is said when it is refused. */
  readonly cannot: string;
}

/**
 * Changes clusters that a policy keeps; throws what the next look tries again.
 * @param changeOf undefined: nothing is to be changed
 * @returns why the first of them cannot be changed, a sentence; undefined: each can be
 */
export async function changeKept(
  world: BurstWorld,
  policy: BurstPolicy,
  receipt: BurstReceipt,
  changeOf: (purchase: ClusterPurchase, cluster: WorkerCluster) => ClusterChange | undefined,
  signal: AbortSignal,
): Promise<string | undefined> {
  let problem: string | undefined;
  for (const { purchase, cluster } of keptClusters(world.clusters, policy, receipt)) {
    const change = changeOf(purchase, cluster);
    if (!change) continue;
    try {
      await world.patch(cluster, change.patch, signal);
    } catch (error) {
      const refusal = refusalIn(error, signal);
      if (refusal !== undefined) problem ??= `${change.cannot}: ${refusal}`;
    }
  }
  return problem;
}

/** A label of the cluster is set; null: it is removed. */
export const labelPatch = (
  { metadata: { uid } }: WorkerCluster,
  label: string,
  value: string | null,
): ClusterPatch => ({
  metadata: { labels: { [label]: value }, ...(uid && { uid }) },
});

/** The pools of the cluster are these, where nobody has changed it since. */
export const poolsPatch = (
  { metadata: { uid, resourceVersion } }: WorkerCluster,
  pools: readonly WorkerPool[],
): ClusterPatch => ({
  metadata: { ...(uid && { uid }), ...(resourceVersion && { resourceVersion }) },
  spec: { pools: [...pools] },
});

/**
 * Has hubs place work on clusters that waited warm: by this label their memberships keep them closed. Does nothing where it was done.
 * @returns why one of them cannot be opened, a sentence; undefined: each can be
 */
export const openClusters = (
  world: BurstWorld,
  policy: BurstPolicy,
  receipt: BurstReceipt,
  signal: AbortSignal,
): Promise<string | undefined> =>
  changeKept(
    world,
    policy,
    receipt,
    (purchase, cluster) =>
      waitOf(purchase) || !cluster.metadata.labels?.[LABELS.burstWarm]
        ? undefined
        : {
            patch: labelPatch(cluster, LABELS.burstWarm, null),
            cannot: `WorkerCluster ${cluster.metadata.name} cannot be opened for work`,
          },
    signal,
  );

/** Why something is refused; undefined: the object is gone. Throws what the next look tries again. */
function refusalIn(error: unknown, signal: AbortSignal): string | undefined {
  if (isNotFound(error)) return undefined;
  if (signal.aborted || isTransient(error)) throw error;
  return errorText(error);
}

/** What giving back has come to. */
interface Ended {
  /** Names of what is stored and still there. */
  readonly left: readonly string[];
  /** Names of what is not there, and of which nobody knows that it ever was. */
  readonly unmade: readonly string[];
  /** Why one of them cannot be deleted, a sentence; undefined: each can be. */
  readonly problem: string | undefined;
}

/** Deletes what is given back; hubs let go of it first, as of every cluster that is deleted. */
export async function endClusters(
  world: BurstWorld,
  policy: BurstPolicy,
  receipt: BurstReceipt,
  signal: AbortSignal,
): Promise<Ended> {
  const left: string[] = [];
  const unmade: string[] = [];
  let problem: string | undefined;
  for (const purchase of clustersIn(receipt)) {
    if (!isLeaving(purchase)) continue;
    const { namespace = '' } = policy.metadata;
    const { name } = purchase;
    const known = world.clusters.get(`${namespace}/${name}`);
    // One of which the cache has not heard may be there all the same.
    const cluster = known ?? (await world.live(name, namespace, signal));
    if (!cluster || !isOf(cluster, policy, purchase)) {
      if (purchase.uid === undefined) unmade.push(name);
      continue;
    }
    left.push(name);
    if (cluster.metadata.deletionTimestamp) continue;
    await world.delete(cluster, signal).catch((error: unknown) => {
      const refusal = refusalIn(error, signal);
      // One that somebody protects keeps no other from being given back.
      if (refusal !== undefined) problem ??= `WorkerCluster ${name} cannot be given back: ${refusal}`;
    });
  }
  return { left, unmade, problem };
}
