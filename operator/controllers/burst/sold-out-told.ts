import type { BurstPolicy } from '../../api/burstpolicy.ts';
import { type BurstPolicyStatus, SHOWN_SOLD_OUT } from '../../api/burstpolicy-status.ts';
import { rfc3339 } from '../../api/conditions.ts';
import { countingIn, type DepletedOffer } from '../../capacity/offers.ts';
import { profileNamesOf } from '../../capacity/places.ts';
import { BY_NAMESPACE } from '../by-namespace.ts';
import { trialOf, UNSIZED } from './candidates.ts';
import type { BurstSightDependencies } from './dependencies.ts';

/**
 * Known sold-out and interrupted offers of CloudProfiles that the policy's candidates or its namespace's clusters use.
 * Stored in its status, because previews have no other source.
 */
export function soldOutFor(
  { capacity, clusters }: Pick<BurstSightDependencies, 'capacity' | 'clusters'>,
  policy: BurstPolicy,
  now: number,
): NonNullable<BurstPolicyStatus['soldOut']> {
  const depleted = capacity.known(policy.metadata).depleted.filter(({ until }) => until > now);
  if (depleted.length === 0) return [];
  const trials = policy.spec.candidates.map((candidate) => trialOf(policy, candidate, UNSIZED));
  const named = new Set(
    [...trials, ...clusters.byIndex(BY_NAMESPACE, policy.metadata.namespace ?? '')].flatMap(profileNamesOf),
  );
  return depleted
    .filter(({ profile }) => named.has(profile))
    .slice(0, SHOWN_SOLD_OUT)
    .map(({ profile, region, zone, machineType, spot, until, interrupted }) => ({
      profile,
      region,
      ...(zone && { zone }),
      machineType,
      ...(spot && { spot }),
      until: rfc3339(new Date(until)),
      ...(interrupted && { interrupted }),
    }));
}

/** Known sold-out offers from the statuses of policies. */
export function soldOutToldBy(policies: readonly BurstPolicy[]): Pick<BurstSightDependencies['capacity'], 'known'> {
  const depleted = policies.flatMap(({ metadata: { namespace }, status }) =>
    (status?.soldOut ?? []).map(
      ({ until, zone = '', spot = false, interrupted, ...offer }): DepletedOffer => ({
        ...offer,
        ...(interrupted && { interrupted, namespace }),
        zone,
        spot,
        until: Date.parse(until),
      }),
    ),
  );
  return { known: (decider) => ({ depleted: countingIn(depleted, decider.namespace), tries: [] }) };
}
