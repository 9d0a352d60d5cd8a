import type { Hub } from '../../api/hub.ts';
import type { Membership } from '../../api/membership.ts';
import type { HoldsOf, SleepHoldsOf } from '../../clusters/deletion-gate.ts';
import { drainTimeoutMs } from './drain-time.ts';

/** Index of memberships by the cluster that they are of, as `namespace/name`. */
export const BY_CLUSTER = 'cluster';
export const clusterOf = ({ metadata, spec }: Membership): string => `${metadata.namespace}/${spec.cluster}`;

/** Holds of memberships: hubs release a cluster before it is destroyed. */
export const membershipHolds =
  (memberships: { byIndex(name: string, value: string): Membership[] }): HoldsOf =>
  (namespace, name) =>
    memberships.byIndex(BY_CLUSTER, `${namespace}/${name}`).map(({ metadata, spec, status }) => ({
      by: `Membership ${metadata.name}`,
      advice: status?.state === 'Leaving' && status.waiting ? status.waiting : `it leaves Hub ${spec.hub} first`,
    }));

/**
 * Wake holds of memberships: hubs first move work away, until their timeout, so that a dead hub keeps nothing awake for
 * ever.
 */
export const membershipsAwake =
  (
    memberships: { byIndex(name: string, value: string): Membership[] },
    hubs: { get(name: string): Hub | undefined },
  ): SleepHoldsOf =>
  (namespace, name, since) =>
    memberships
      .byIndex(BY_CLUSTER, `${namespace}/${name}`)
      .filter(({ status }) => status?.state === 'Joined' || status?.state === 'Leaving')
      .map(({ metadata, spec, status }) => ({
        by: `Membership ${metadata.name}`,
        advice: status?.waiting ?? `Hub ${spec.hub} is told first`,
        until: new Date(+since + drainTimeoutMs(hubs.get(spec.hub)?.spec)),
      }));
