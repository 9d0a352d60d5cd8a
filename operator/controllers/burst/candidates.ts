import { createHash } from 'node:crypto';
import type { BurstCandidate, BurstPolicy } from '../../api/burstpolicy.ts';
import { rfc3339 } from '../../api/conditions.ts';
import { errorText } from '../../api/errors.ts';
import type { Hub } from '../../api/hub.ts';
import { burstClusterName } from '../../api/names.ts';
import { isAttached, profileNameOf, type WorkerCluster } from '../../api/workercluster.ts';
import { type BurstReceipt, isRestOf } from '../../burst/clusters/kept.ts';
import type { CandidateView, ClusterOffer } from '../../burst/clusters/model.ts';
import { offerOf, sizeWith } from '../../burst/clusters/offer.ts';
import { measuredStartupMs } from '../../burst/clusters/receipt.ts';
import { offeredNow } from '../../burst/clusters/sold-out.ts';
import { startupMs } from '../../capacity/startup-times.ts';
import { admit, type Claimant, type Refusal } from '../../cost/admission.ts';
import { KubeApiError } from '../../kube/errors.ts';
import { keyOf, splitKey } from '../../kube/resources.ts';
import { BY_NAMESPACE } from '../by-namespace.ts';
import { resolveVersion } from '../kubernetes-version.ts';
import { claimantsIn } from '../quota/claimants.ts';
import { countsOf } from './counted.ts';
import type { BurstDependencies } from './dependencies.ts';
import type { BurstMemory } from './memory.ts';
import { manifestOf } from './own-clusters.ts';
import { type SiblingDaemons, siblingDaemons } from './sibling-daemons.ts';
import { memberOf, reserveOf } from './supply.ts';
import { whereItComes } from './where-it-comes.ts';

/** No purchase has this number: what is only tried. */
const TRIAL = 0;

/** A candidate before it is asked whether it can be made: what it offers, and why not. */
export type Considered = CandidateView & { readonly candidate: BurstCandidate };

/** What the candidates of a policy offer now. Templates are tried by the API server, each once. */
export async function candidatesOf(
  deps: BurstDependencies,
  memory: BurstMemory,
  hub: Hub,
  policy: BurstPolicy,
  receipt: BurstReceipt,
  now: number,
  signal: AbortSignal,
): Promise<Considered[]> {
  const found: Considered[] = [];
  const daemons = siblingDaemons(deps, hub);
  const depleted = deps.capacity.known(policy.metadata);
  for (const candidate of policy.spec.candidates) {
    const { name, priority = 0, maximumClusters = policy.spec.maximumClusters } = candidate;
    const has = receipt.purchases.filter((one) => one.candidate === name).length;
    const trial = trialOf(policy, candidate, {});
    const offer = offerFor(deps, hub, policy, candidate, trial, daemons);
    const sold =
      typeof offer === 'string'
        ? undefined
        : offeredNow(offer, trial, (profile) => deps.profiles.get(profile), depleted, new Date(now));
    const revision = revisionOf(deps, candidate, new Date(now));
    const rest = receipt.rests[name];
    const rests =
      rest && isRestOf(rest, revision) && Date.parse(rest.until) > now
        ? `it is in back-off until ${rest.until}, because of ${rest.why}`
        : undefined;
    const refusal =
      typeof offer === 'string'
        ? offer
        : await memory.tried(trialKey(policy, name), JSON.stringify(candidate.template), now, () =>
            refusalOf(deps, policy, candidate, {}, signal),
          );
    found.push({
      candidate,
      name,
      priority,
      left: maximumClusters - has,
      offer: sold?.offer,
      ...(sold?.steady && { steady: sold.steady }),
      problem: refusal ?? rests ?? sold?.problem,
      ...(candidate.warmClusters && { warm: candidate.warmClusters }),
      ...(candidate.sleepingClusters && { asleep: candidate.sleepingClusters }),
      cannotSleep: whyAwake(deps, candidate),
      revision,
      startupMs: measuredStartupMs(receipt, name) ?? statedStartupMs(deps, candidate),
    });
  }
  return found;
}

/**
 * Of the template, and of the version of Kubernetes that a cluster of it would get now: what waits is made anew when either is another.
 * @returns undefined while it would get none: nothing is made anew because a profile is away
 */
function revisionOf({ profiles }: BurstDependencies, { template }: BurstCandidate, now: Date): string | undefined {
  const profile = profiles.get(profileNameOf(template));
  const version = profile && resolveVersion(template.spec.kubernetes?.version, profile, now);
  if (!version) return undefined;
  return createHash('sha256')
    .update(JSON.stringify([template, version]))
    .digest('hex')
    .slice(0, 12);
}

function statedStartupMs({ profiles }: BurstDependencies, { template: { spec } }: BurstCandidate): number | undefined {
  const profile = profiles.get(profileNameOf({ spec }));
  return profile && startupMs(profile, spec.mode, 'cluster');
}

/** Why clusters of this template cannot sleep; undefined: they can. */
function whyAwake({ profiles }: BurstDependencies, { template: { spec } }: BurstCandidate): string | undefined {
  return whyNotSleeping(spec.mode ?? profiles.get(profileNameOf({ spec }))?.spec.defaults?.mode ?? 'Hosted');
}

/** Why clusters of a mode cannot sleep, a sentence; undefined: they can. */
export const whyNotSleeping = (mode: string): string | undefined =>
  mode === 'Hosted' || mode === 'Managed' ? undefined : `clusters of mode ${mode} cannot sleep`;

export const trialKey = (policy: BurstPolicy, candidate: string): string => `${policy.metadata.uid}/${candidate}`;

function offerFor(
  deps: BurstDependencies,
  hub: Hub,
  policy: BurstPolicy,
  candidate: BurstCandidate,
  written: WorkerCluster,
  daemons: SiblingDaemons,
): ClusterOffer | string {
  if (isAttached(written)) return 'its template is of mode Attached: such a cluster is not made';
  if (written.spec.adopt) return 'its template takes over a cluster: such a one is not made';
  const there = whereItComes(deps, written);
  if (!there) return `there is no CloudProfile ${profileNameOf(written)}`;
  const { cluster, profile } = there;
  const offer = offerOf({
    cluster,
    profile,
    member: memberOf(deps, hub, cluster),
    reserve: reserveOf(deps, cluster, profile),
    daemons: daemons(),
    counts: countsOf(hub),
    currency: policy.spec.budget.currency,
    assumedHourly: candidate.assumedHourly,
  });
  const sold = offer.pools.some(({ most }) => most > 0);
  return sold ? offer : 'its pools have no nodes, or no machine type that the CloudProfile has';
}

/** A cluster of this candidate that nobody makes. */
export const trialOf = (
  policy: BurstPolicy,
  candidate: BurstCandidate,
  nodes: Readonly<Record<string, number>>,
): WorkerCluster => {
  const { name, uid = '' } = policy.metadata;
  const named = { number: TRIAL, name: burstClusterName(name, candidate.name, uid, TRIAL), nodes };
  return manifestOf(policy, candidate, named);
};

/**
 * Why a cluster of this candidate with so many nodes would be refused, by the API server or by quotas; undefined: it would not.
 * @param beside what has a share of the quotas though no cache shows it yet
 */
export async function refusalOf(
  deps: BurstDependencies,
  policy: BurstPolicy,
  candidate: BurstCandidate,
  nodes: Readonly<Record<string, number>>,
  signal: AbortSignal,
  beside: readonly Claimant[] = [],
): Promise<string | undefined> {
  const cluster = trialOf(policy, candidate, nodes);
  try {
    await deps.garden.create(cluster, { dryRun: true, signal });
  } catch (error) {
    if (signal.aborted) throw error;
    if (!(error instanceof KubeApiError && error.isAlreadyExists))
      return `the API server refuses its template: ${errorText(error)}`.slice(0, 1000);
  }
  return overQuota(deps, cluster, beside);
}

/** The share of quotas that a cluster will have that is only written down. */
export function shareOf(deps: BurstDependencies, cluster: WorkerCluster): Claimant {
  const there = whereItComes(deps, cluster);
  const held = there && sizeWith(there, {}).asked;
  return { key: keyOf(cluster), createdAt: '', profile: there?.profile, held, asked: undefined };
}

function overQuota(deps: BurstDependencies, cluster: WorkerCluster, beside: readonly Claimant[]): string | undefined {
  const { held: asked, ...share } = shareOf(deps, cluster);
  if (!asked) return undefined;
  const refusals = refusalsOf(deps, { ...share, createdAt: rfc3339(deps.now()), held: undefined, asked }, beside);
  return refusals.length > 0 ? refusals.map(({ message }) => message).join('; ') : undefined;
}

/** Why quotas of its namespace would refuse what a cluster asks for. @param beside see refusalOf: instead of what a cache shows of them */
export function refusalsOf(deps: BurstDependencies, claimant: Claimant, beside: readonly Claimant[]): Refusal[] {
  const { namespace } = splitKey(claimant.key);
  const quotas = deps.quotas.byIndex(BY_NAMESPACE, namespace);
  if (quotas.length === 0) return [];
  const known = new Set([claimant, ...beside].map(({ key }) => key));
  const others = claimantsIn(deps, namespace).filter(({ key }) => !known.has(key));
  return admit(claimant, [...others, ...beside], quotas);
}
