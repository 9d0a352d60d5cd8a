import type { Membership } from '../../api/membership.ts';
import type { HoldsOf } from '../../clusters/deletion-gate.ts';

/** Index of memberships by the cluster that they are of, as `namespace/name`. */
export const BY_CLUSTER = 'cluster';
export const clusterOf = ({ metadata, spec }: Membership): string => `${metadata.namespace}/${spec.cluster}`;

/** Memberships hold their cluster: its hubs let go of it before anything of it is taken apart. */
export const membershipHolds =
  (memberships: { byIndex(name: string, value: string): Membership[] }): HoldsOf =>
  (namespace, name) =>
    memberships.byIndex(BY_CLUSTER, `${namespace}/${name}`).map(({ metadata, spec, status }) => ({
      by: `Membership ${metadata.name}`,
      advice: status?.state === 'Leaving' && status.waiting ? status.waiting : `it leaves Hub ${spec.hub} first`,
    }));
