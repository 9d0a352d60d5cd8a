import { LABELS } from '../../api/group.ts';
import type { Hub } from '../../api/hub.ts';
import type { Membership } from '../../api/membership.ts';
import type { WorkerCluster } from '../../api/workercluster.ts';
import type { Place, Side } from '../../hubs/contract.ts';
import { type KubeObject, keyOf, type Resource, splitKey } from '../../kube/resources.ts';
import { type LabelledOwner, labelledOwnerOf } from './ownership.ts';
import type { MembershipReceipt } from './receipt.ts';

/** A labelled object, with the place where it was found. */
export interface LabelledObject {
  readonly on: Side;
  /** `Hub production`, `cluster shop/demo`. */
  readonly where: string;
  /** UID of kube-system there: two Hubs may be one API server. */
  readonly identity: string;
  readonly resource: Resource;
  readonly object: KubeObject;
}

/** The garden's objects, listed after all findings, so that new ones find their owner. */
export interface GardenObjects {
  /** See gardenIdentity. */
  readonly garden: string;
  readonly hubs: readonly Hub[];
  readonly memberships: readonly Membership[];
  readonly clusters: readonly WorkerCluster[];
  /** Receipts with their Secrets, as `namespace/name`. */
  readonly receipts: readonly { readonly key: string; readonly receipt: MembershipReceipt }[];
}

/** Why an object is a leftover, or why that is unknown. */
type Cause = 'ClusterGone' | 'HubGone' | 'Left' | 'GardenUnknown';

/** A leftover of a deleted membership. */
export interface LeftOver {
  /** 'garden': the membership's receipt. */
  readonly on: Side | 'garden';
  readonly where: string;
  readonly identity: string;
  readonly resource: Resource;
  readonly namespace?: string;
  readonly name: string;
  readonly owner: LabelledOwner;
  readonly cause: Cause;
  /** RFC 3339. */
  readonly madeAt: string;
  /** Its finalizers, for example `karmada.io/cluster-controller`; absent: not being deleted. */
  readonly heldBy?: readonly string[];
}

/**
 * Labelled objects whose membership is deleted. Pure. Ignores objects of other gardens. For objects without a garden, a
 * receipt proves that they are ours; without one they are listed as unknown.
 */
export function leftOvers(sightings: readonly LabelledObject[], knows: GardenObjects): LeftOver[] {
  const { garden, memberships, receipts } = knows;
  const live = new Set(memberships.map(({ metadata }) => metadata.uid));
  const inReceipts = new Set(receipts.map(({ receipt }) => receipt.membership.uid));
  const seen = new Set<string>();
  const found = sightings.flatMap(({ on, where, identity, resource, object }): LeftOver[] => {
    const owner = labelledOwnerOf(object);
    const id = [identity, resource.group, resource.plural, keyOf(object)].join('/');
    if (!owner || live.has(owner.membership) || seen.has(id)) return [];
    if (owner.garden !== undefined && owner.garden !== garden) return [];
    seen.add(id);
    const isOurs = owner.garden === garden || inReceipts.has(owner.membership);
    const { namespace, name, creationTimestamp = '', deletionTimestamp, finalizers = [] } = object.metadata;
    const whose = withReceipt(owner, receipts);
    return [
      {
        on,
        where,
        identity,
        resource,
        ...(namespace && { namespace }),
        name,
        owner: whose,
        cause: isOurs ? causeOf(whose, knows) : 'GardenUnknown',
        madeAt: creationTimestamp,
        ...(deletionTimestamp && { heldBy: finalizers }),
      },
    ];
  });
  return [
    ...found,
    ...receipts.filter(({ receipt }) => !live.has(receipt.membership.uid)).map((one) => kept(one, knows)),
  ];
}

/** Receipt of a deleted membership: the only record of what others made because of it. */
function kept({ key, receipt }: GardenObjects['receipts'][number], knows: GardenObjects): LeftOver {
  const { namespace, name } = splitKey(key);
  const owner = ownerOf(receipt);
  const resource: Resource = { group: '', version: 'v1', plural: 'secrets', kind: 'Secret', namespaced: true };
  return {
    on: 'garden',
    where: 'the garden',
    identity: knows.garden,
    resource,
    namespace,
    name,
    owner,
    cause: causeOf(owner, knows),
    madeAt: '',
  };
}

const ownerOf = ({ membership, cluster, hub, member }: MembershipReceipt): LabelledOwner => ({
  membership: membership.uid,
  hub: hub.name,
  cluster: { namespace: membership.namespace, name: cluster, uid: '' },
  identity: member.id,
});

/** Objects of older operators have fewer labels than the receipt has facts. */
function withReceipt(owner: LabelledOwner, receipts: GardenObjects['receipts']): LabelledOwner {
  if (owner.cluster.name !== '') return owner;
  const known = receipts.find(({ receipt }) => receipt.membership.uid === owner.membership);
  return known ? { ...ownerOf(known.receipt), ...(owner.garden && { garden: owner.garden }) } : owner;
}

const causeOf = (owner: LabelledOwner, knows: GardenObjects): Cause => {
  if (!isLive(owner, knows.clusters)) return 'ClusterGone';
  return knows.hubs.some(({ metadata }) => metadata.name === owner.hub) ? 'Left' : 'HubGone';
};

/** Whether the cluster still exists; without a UID by name. Pure. */
export const isLive = ({ cluster }: LabelledOwner, clusters: readonly WorkerCluster[]): boolean =>
  clusters.some(({ metadata }) =>
    cluster.uid === ''
      ? metadata.namespace === cluster.namespace && metadata.name === cluster.name
      : metadata.uid === cluster.uid,
  );

/** Whether it may be deleted. Pure. */
export const isOurs = ({ cause }: LeftOver): boolean => cause !== 'GardenUnknown';

export const placeOfLeftOver = ({ on, resource, namespace, name }: LeftOver & { on: Side }): Place => ({
  on,
  resource,
  name,
  ...(namespace && { namespace }),
});

/** Description: "Secret argocd/shop--demo". Pure. */
export const whatOf = ({ resource, namespace, name }: LeftOver): string =>
  `${resource.kind} ${namespace ? `${namespace}/` : ''}${name}`;

/** Former owner, as text. Pure. */
export function whoseOf({ owner, cause, on }: LeftOver): string {
  const cluster = owner.cluster.name ? `cluster ${owner.cluster.namespace}/${owner.cluster.name}` : 'a cluster';
  const hub = owner.hub ? `Hub ${owner.hub}` : 'a hub';
  if (cause === 'GardenUnknown') return `Membership with UID ${owner.membership}, of which garden it does not say`;
  if (cause === 'ClusterGone') return `${cluster} in ${hub}; the cluster is gone`;
  if (cause === 'HubGone') return `${cluster} in ${hub}; the Hub is gone`;
  return on === 'member' ? `${hub}, which the cluster has left` : `${cluster}, which has left ${hub}`;
}

/** Advice, as text. Pure. */
export function adviceFor({ cause, heldBy, resource, namespace, name }: LeftOver, garden: string): string {
  if (cause === 'GardenUnknown') {
    const kind = resource.group ? `${resource.plural}.${resource.group}` : resource.plural;
    const where = namespace ? ` -n ${namespace}` : '';
    return `if it is of this garden: kubectl label ${kind} ${name}${where} ${LABELS.garden}=${garden}, and audit again`;
  }
  if (heldBy && heldBy.length > 0)
    return `it is being deleted: finalizer ${heldBy.join(', ')} is its hub's to take off; "coppice hubs audit --clean" does so where the cluster is gone`;
  return '"coppice hubs audit --clean" removes it';
}
