import { createHash } from 'node:crypto';
import type { BurstCandidate, BurstPolicy } from '../../api/burstpolicy.ts';
import { rfc3339 } from '../../api/conditions.ts';
import type { Hub } from '../../api/hub.ts';
import { burstClusterName } from '../../api/names.ts';
import { isAttached, profileNameOf, type WorkerCluster } from '../../api/workercluster.ts';
import type { CandidateView, ClusterOffer } from '../../burst/clusters/model.ts';
import { clusterOfferOf, sizeWith } from '../../burst/clusters/offer.ts';
import { type BurstReceipt, clustersIn, measuredStartupMs } from '../../burst/clusters/receipt.ts';
import { restingOf } from '../../burst/clusters/rests.ts';
import { offeredNow } from '../../burst/clusters/sold-out.ts';
import { startupMs } from '../../capacity/startup-times.ts';
import { admit, type Claimant, type QuotaRefusal } from '../../cost/admission.ts';
import { keyOf, splitKey } from '../../kube/resources.ts';
import { BY_NAMESPACE } from '../by-namespace.ts';
import { resolveVersion } from '../kubernetes-version.ts';
import { specProblems } from '../spec-problems.ts';
import type { BurstMemory } from './memory.ts';
import { manifestOf, type Sized } from './own-clusters.ts';
import { whereItComes } from './where-it-comes.ts';
import type { BurstSight } from './world.ts';

/** Purchase number of trials, which no purchase has. */
const TRIAL = 0;

/** A candidate before its admission check. */
export type Considered = CandidateView & { readonly candidate: BurstCandidate };

/** Present offers of a policy's candidates. Each template is validated once by a dry run. */
export async function candidatesOf(
  world: BurstSight,
  memory: BurstMemory,
  hub: Hub,
  policy: BurstPolicy,
  receipt: BurstReceipt,
  now: number,
  signal: AbortSignal,
): Promise<Considered[]> {
  const found: Considered[] = [];
  const depleted = world.capacity.known(policy.metadata);
  for (const candidate of policy.spec.candidates) {
    const { name, priority = 0, maximumClusters = policy.spec.maximumClusters } = candidate;
    const has = clustersIn(receipt).filter((one) => one.candidate === name).length;
    const trial = unsizedTrialOf(policy, candidate);
    const offer = offerFor(world, hub, policy, candidate, trial);
    const sold =
      typeof offer === 'string'
        ? undefined
        : offeredNow(offer, trial, (profile) => world.profiles.get(profile), depleted, new Date(now));
    const revision = revisionOf(world, candidate, new Date(now));
    const startsIn = measuredStartupMs(receipt, name) ?? statedStartupMs(world, candidate);
    const rests = restingOf(receipt, name, revision, startsIn, now);
    const refusal =
      typeof offer === 'string'
        ? offer
        : await memory.tried(trialKey(policy, name), JSON.stringify(candidate.template), now, () =>
            candidateRefusalOf(world, policy, candidate, UNSIZED, signal),
          );
    found.push({
      candidate,
      name,
      priority,
      left: maximumClusters - has,
      offer: sold?.offer,
      ...(sold?.steady && { steady: sold.steady }),
      problem: refusal ?? rests.problem ?? sold?.problem,
      unused: rests.unused,
      ...(candidate.warmClusters && { warm: candidate.warmClusters }),
      ...(candidate.sleepingClusters && { asleep: candidate.sleepingClusters }),
      cannotSleep: whyAwake(world, candidate),
      revision,
      startupMs: startsIn,
    });
  }
  return found;
}

/**
 * Revision of a template with its present Kubernetes version: waiting clusters of another revision are replaced.
 * @returns undefined while no version resolves: a missing profile must not replace clusters
 */
function revisionOf({ profiles }: BurstSight, { template }: BurstCandidate, now: Date): string | undefined {
  const profile = profiles.get(profileNameOf(template));
  const version = profile && resolveVersion(template.spec.kubernetes?.version, profile, now);
  if (!version) return undefined;
  const known = revisions.get(template);
  if (known?.version === version) return known.revision;
  const digest = createHash('sha256').update(JSON.stringify([template, version]));
  const revision = digest.digest('hex').slice(0, 12);
  revisions.set(template, { version, revision });
  return revision;
}

/** Cache: each cycle asks for all candidates, and templates never change. */
const revisions = new WeakMap<BurstCandidate['template'], { readonly version: string; readonly revision: string }>();

function statedStartupMs({ profiles }: BurstSight, { template: { spec } }: BurstCandidate): number | undefined {
  const profile = profiles.get(profileNameOf({ spec }));
  return profile && startupMs(profile, spec.mode, 'cluster');
}

/** Why clusters of this template cannot sleep; undefined: they can. */
function whyAwake({ profiles }: BurstSight, { template: { spec } }: BurstCandidate): string | undefined {
  return whyNotSleeping(spec.mode ?? profiles.get(profileNameOf({ spec }))?.spec.defaults?.mode ?? 'Hosted');
}

/** Why clusters of a mode cannot sleep, a sentence; undefined: they can. */
const whyNotSleeping = (mode: string): string | undefined =>
  mode === 'Hosted' || mode === 'Managed' ? undefined : `clusters of mode ${mode} cannot sleep`;

export const trialKey = (policy: BurstPolicy, candidate: string): string => `${policy.metadata.uid}/${candidate}`;

function offerFor(
  world: BurstSight,
  hub: Hub,
  policy: BurstPolicy,
  candidate: BurstCandidate,
  written: WorkerCluster,
): ClusterOffer | string {
  if (isAttached(written)) return 'its template is of mode Attached: such a cluster is not made';
  if (written.spec.adopt) return 'its template takes over a cluster: such a one is not made';
  const there = whereItComes(world, written);
  if (!there) return `there is no CloudProfile ${profileNameOf(written)}`;
  const { cluster, profile } = there;
  const [problem] = specProblems(cluster, profile, world.now());
  if (problem) return `its template would be refused: spec.${problem.field}: ${problem.message}`.slice(0, 1000);
  const offer = clusterOfferOf({
    cluster,
    profile,
    member: world.member(hub, cluster),
    ...world.keeps(hub, cluster, profile),
    currency: policy.spec.budget.currency,
    assumedHourly: candidate.assumedHourly,
    grantsNodes: true,
  });
  const sold = offer.pools.some(({ most }) => most > 0);
  return sold ? offer : 'its pools have no nodes, or no machine type that the CloudProfile has';
}

/** Sizes of the template. */
export const UNSIZED: Sized = { nodes: {} };

/** A dry-run cluster of this candidate. */
export const trialOf = (policy: BurstPolicy, candidate: BurstCandidate, { nodes, granted }: Sized): WorkerCluster => {
  const { name, uid = '' } = policy.metadata;
  const named = {
    number: TRIAL,
    name: burstClusterName(name, candidate.name, uid, TRIAL),
    nodes,
    ...(granted && { granted }),
  };
  return manifestOf(policy, candidate, named);
};

/** Cache by object: each cycle asks for all candidates. */
const trials = new WeakMap<BurstCandidate, { readonly policy: BurstPolicy; readonly trial: WorkerCluster }>();

function unsizedTrialOf(policy: BurstPolicy, candidate: BurstCandidate): WorkerCluster {
  const known = trials.get(candidate);
  if (known?.policy === policy) return known.trial;
  const trial = trialOf(policy, candidate, UNSIZED);
  trials.set(candidate, { policy, trial });
  return trial;
}

/**
 * Why a cluster of this candidate and size would be refused by the API server or by quotas; undefined: it would not.
 * @param beside further quota shares that no cache shows yet
 */
export async function candidateRefusalOf(
  world: BurstSight,
  policy: BurstPolicy,
  candidate: BurstCandidate,
  size: Sized,
  signal: AbortSignal,
  beside: readonly Claimant[] = [],
): Promise<string | undefined> {
  const cluster = trialOf(policy, candidate, size);
  const refusal = await world.whyRefused(cluster, signal);
  if (refusal !== undefined) return `the API server refuses its template: ${refusal}`.slice(0, 1000);
  return overQuota(world, cluster, beside);
}

/** Quota share of a recorded purchase. */
export function shareOf(world: BurstSight, cluster: WorkerCluster): Claimant {
  const there = whereItComes(world, cluster);
  const held = there && sizeWith(there, {}).asked;
  return { key: keyOf(cluster), createdAt: '', profile: there?.profile, held, asked: undefined };
}

function overQuota(world: BurstSight, cluster: WorkerCluster, beside: readonly Claimant[]): string | undefined {
  const { held: asked, ...share } = shareOf(world, cluster);
  if (!asked) return undefined;
  const refusals = refusalsOf(world, { ...share, createdAt: rfc3339(world.now()), held: undefined, asked }, beside);
  return refusals.length > 0 ? refusals.map(({ message }) => message).join('; ') : undefined;
}

/** Why quotas of its namespace refuse a cluster. @param beside see refusalOf: replaces cached shares */
export function refusalsOf(world: BurstSight, claimant: Claimant, beside: readonly Claimant[]): QuotaRefusal[] {
  const { namespace } = splitKey(claimant.key);
  const quotas = world.quotas.byIndex(BY_NAMESPACE, namespace);
  if (quotas.length === 0) return [];
  const known = new Set([claimant, ...beside].map(({ key }) => key));
  const others = world.claimants(namespace).filter(({ key }) => !known.has(key));
  return admit(claimant, [...others, ...beside], quotas);
}
