import type { BurstPolicy } from '../../api/burstpolicy.ts';
import { rfc3339 } from '../../api/conditions.ts';
import { errorText } from '../../api/errors.ts';
import { LABELS } from '../../api/group.ts';
import type { WorkerPool } from '../../api/worker-pool.ts';
import type { WorkerCluster } from '../../api/workercluster.ts';
import { type ClusterPurchase, clusterWaitOf, isLeaving } from '../../burst/clusters/purchases.ts';
import { type BurstReceipt, clustersIn, noteDecision, restCandidate } from '../../burst/clusters/receipt.ts';
import { forgetCluster } from '../../burst/clusters/spend.ts';
import { isNotFound, isTransient, KubeApiError } from '../../kube/errors.ts';
import { keyOf } from '../../kube/resources.ts';
import { isOwnedBy, keptClusters, manifestOf } from './own-clusters.ts';
import type { BurstWorld, ClusterPatch } from './world.ts';

/**
 * Creates clusters that are recorded and missing. Never touches somebody else's cluster of the same name: create, not
 * apply.
 * @returns the receipt without impossible ones
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

/** @returns why it can never be created under this name; undefined: it exists. Throws when a retry may succeed. */
async function make(
  world: BurstWorld,
  policy: BurstPolicy,
  cluster: WorkerCluster,
  purchase: ClusterPurchase,
  signal: AbortSignal,
): Promise<string | undefined> {
  // An earlier cycle made it, and the cache shows it.
  const known = world.clusters.get(keyOf(cluster));
  if (known && isOwnedBy(known, policy, purchase)) return undefined;
  try {
    await world.create(cluster, signal);
    return undefined;
  } catch (error) {
    if (!(error instanceof KubeApiError)) throw error;
    if (error.isAlreadyExists) {
      const { name, namespace = '' } = cluster.metadata;
      const live = await world.live(name, namespace, signal);
      if (live && isOwnedBy(live, policy, purchase)) return undefined;
      return `there is a WorkerCluster ${name} that was not made for this policy`;
    }
    if (error.status >= 400 && error.status < 500 && error.status !== 409 && error.status !== 429)
      return `the API server refuses it: ${errorText(error)}`;
    throw error;
  }
}

/** A change of a cluster. */
export interface ClusterChange {
  readonly patch: ClusterPatch;
  /** Beginning of the message on refusal. */
  readonly cannot: string;
}

/**
 * Changes a policy's kept clusters; throws when the next cycle should retry.
 * @param changeOf undefined: no change
 * @returns why the first one cannot be changed, a sentence; undefined: none
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

/** Sets a label of the cluster; null removes it. */
export const labelPatch = (
  { metadata: { uid } }: WorkerCluster,
  label: string,
  value: string | null,
): ClusterPatch => ({
  metadata: { labels: { [label]: value }, ...(uid && { uid }) },
});

/** Sets the cluster's pools, unless somebody changed it since. */
export const poolsPatch = (
  { metadata: { uid, resourceVersion } }: WorkerCluster,
  pools: readonly WorkerPool[],
): ClusterPatch => ({
  metadata: { ...(uid && { uid }), ...(resourceVersion && { resourceVersion }) },
  spec: { pools: [...pools] },
});

/**
 * Removes the warm label, so that hubs open these clusters for work. Idempotent.
 * @returns why one cannot be opened, a sentence; undefined: none
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
      clusterWaitOf(purchase) || !cluster.metadata.labels?.[LABELS.burstWarm]
        ? undefined
        : {
            patch: labelPatch(cluster, LABELS.burstWarm, null),
            cannot: `WorkerCluster ${cluster.metadata.name} cannot be opened for work`,
          },
    signal,
  );

/** Text of a refusal; undefined: the object is gone. Throws when the next cycle should retry. */
function refusalIn(error: unknown, signal: AbortSignal): string | undefined {
  if (isNotFound(error)) return undefined;
  if (signal.aborted || isTransient(error)) throw error;
  return errorText(error);
}

/** Result of giving clusters back. */
interface Ended {
  /** Names that still exist. */
  readonly left: readonly string[];
  /** Names that do not exist and maybe never did. */
  readonly unmade: readonly string[];
  /** Why one cannot be deleted, a sentence; undefined: none. */
  readonly problem: string | undefined;
}

/** Deletes returned clusters; hubs release them first, as with every deletion. */
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
    // The cache may lack a new cluster.
    const cluster = known ?? (await world.live(name, namespace, signal));
    if (!cluster || !isOwnedBy(cluster, policy, purchase)) {
      if (purchase.uid === undefined) unmade.push(name);
      continue;
    }
    left.push(name);
    if (cluster.metadata.deletionTimestamp) continue;
    await world.delete(cluster, signal).catch((error: unknown) => {
      const refusal = refusalIn(error, signal);
      // A protected cluster must not block the others.
      if (refusal !== undefined) problem ??= `WorkerCluster ${name} cannot be given back: ${refusal}`;
    });
  }
  return { left, unmade, problem };
}
