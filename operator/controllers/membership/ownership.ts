import { LABELS } from '../../api/group.ts';
import type { Membership } from '../../api/membership.ts';
import type { KubeObject } from '../../kube/resources.ts';
import type { MembershipReceipt } from './receipt.ts';

/** Owner of an object in a hub or a member, stored as labels, so that a finder knows which garden to ask. */
export interface MadeFor {
  /** See gardenIdentity. */
  readonly garden: string;
  /** UID of the Membership. */
  readonly membership: string;
  readonly hub: string;
  /** The WorkerCluster. */
  readonly cluster: { readonly namespace: string; readonly name: string; readonly uid: string };
  /** UID of the cluster's namespace kube-system. */
  readonly identity: string;
}

/** Owner of a membership's objects. */
export const madeFor = (
  garden: string,
  { metadata }: Membership,
  { membership, cluster, hub, member }: MembershipReceipt,
): MadeFor => ({
  garden,
  membership: membership.uid,
  hub: hub.name,
  cluster: {
    namespace: membership.namespace,
    name: cluster,
    uid: metadata.ownerReferences?.find(({ kind }) => kind === 'WorkerCluster')?.uid ?? '',
  },
  identity: member.id,
});

/** Labels of the owner. Pure. */
export const ownerLabels = ({ garden, membership, hub, cluster, identity }: MadeFor): Record<string, string> => ({
  [LABELS.managedBy]: 'coppice',
  [LABELS.membership]: membership,
  [LABELS.garden]: garden,
  [LABELS.hub]: hub,
  [LABELS.memberNamespace]: cluster.namespace,
  [LABELS.member]: cluster.name,
  ...(cluster.uid && { [LABELS.memberUID]: cluster.uid }),
  [LABELS.memberIdentity]: identity,
});

/** Whether the object was made for the membership with this UID; the name alone proves nothing. Pure. */
export const isMadeFor = ({ metadata }: KubeObject, membershipUID: string): boolean =>
  metadata.labels?.[LABELS.membership] === membershipUID;

/**
 * Whether an object was made for an earlier membership of the same cluster (by UID and kube-system) in the Hub of the
 * same name, by the same garden. Only one can exist at a time, so the earlier one is gone: its Hub was deleted with
 * `orphan`. Pure.
 */
export function isMadeForEarlier(object: KubeObject, owner: MadeFor): boolean {
  const its = labelledOwnerOf(object);
  if (!its || its.membership === owner.membership || !its.cluster.uid || !its.identity) return false;
  return (
    its.garden === owner.garden &&
    its.hub === owner.hub &&
    its.cluster.namespace === owner.cluster.namespace &&
    its.cluster.name === owner.cluster.name &&
    its.cluster.uid === owner.cluster.uid &&
    its.identity === owner.identity
  );
}

/** Owner from labels: cluster name '' and no garden for objects of older operators. */
export type LabelledOwner = Omit<MadeFor, 'garden'> & { readonly garden?: string };

/** Owner from an object's labels; undefined: not made for a membership. Pure. */
export function labelledOwnerOf({ metadata }: KubeObject): LabelledOwner | undefined {
  const labels = metadata.labels ?? {};
  const membership = labels[LABELS.membership];
  if (!membership) return undefined;
  const garden = labels[LABELS.garden];
  return {
    membership,
    ...(garden && { garden }),
    hub: labels[LABELS.hub] ?? '',
    cluster: {
      namespace: labels[LABELS.memberNamespace] ?? '',
      name: labels[LABELS.member] ?? '',
      uid: labels[LABELS.memberUID] ?? '',
    },
    identity: labels[LABELS.memberIdentity] ?? '',
  };
}
