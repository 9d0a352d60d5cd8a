import type { HubSpec } from '../../api/hub.ts';
import { DEPLOYMENTS, RBAC_ROLES, ROLEBINDINGS, SECRETS } from '../../kube/resources.ts';
import { hubAmountsOf } from '../amounts.ts';
import {
  type CustomKind,
  type Demand,
  type ForeignEntry,
  type HubType,
  isForeign,
  type Member,
  type PlacedSource,
  type PlacedWork,
  type Reader,
  takenOver,
  type WantedObject,
} from '../contract.ts';
import {
  acceptsMember,
  type BindingObject,
  type BindingPlacement,
  type Bindings,
  bindingText,
  bindingWaitsFor,
  customKindOf,
  demandOf,
  looksAtRoom,
  namesClasses,
  withoutRoom,
} from './bindings.ts';
import {
  CLUSTER_NAMESPACE,
  CLUSTERS,
  clusterObject,
  countedBy,
  countsNodes,
  type Draining,
  freeOn,
  type KarmadaCluster,
  LEAVES,
  whyNotReady,
} from './cluster.ts';
import { customKindsOf } from './kinds.ts';
import { pull } from './pull.ts';
import { push } from './push.ts';
import {
  bindingsOf,
  CLUSTERRESOURCEBINDINGS,
  isOurKarmadaCluster,
  type KarmadaSeen,
  lookAtKarmada,
  priorityClassesOf,
  RESOURCEBINDINGS,
  worksNamespace,
} from './seen.ts';
import type { SyncMode } from './sync-mode.ts';

/**
 * Workloads with replicas on a cluster, and why Karmada would not move each to a cluster with room: it also evicts
 * duplicated and statically weighted ones, and then places them nowhere, or without considering free capacity. Pure.
 * @param kinds custom kinds
 */
function movableOn(
  bindings: Bindings,
  cluster: string,
  kinds: ReadonlyMap<string, CustomKind> = new Map(),
): PlacedWork[] {
  // One function object per equal placement, so that bin packing recognizes equal demands.
  const known = new Map<string, NonNullable<Demand['accepts']>>();
  const acceptedBy = (placement: BindingPlacement = {}) => {
    const key = JSON.stringify(placement);
    const accepts = known.get(key) ?? acceptsMember(placement);
    known.set(key, accepts);
    return accepts;
  };
  return bindings.flatMap(({ resource, binding }): PlacedWork[] => {
    const { spec = {}, metadata } = binding;
    const here = spec.clusters?.find(({ name }) => name === cluster);
    const { kind = '', namespace = metadata.namespace ?? '', name = '' } = spec.resource ?? {};
    const count = here?.replicas ?? (here ? (spec.replicas ?? 0) : 0);
    if (count === 0 && !spec.components?.length) return [];
    const stays = whyStays(binding);
    const customKind = kinds.get(customKindOf(binding) ?? '');
    const isWhole = spec.placement?.spreadConstraints?.some(({ maxGroups }) => maxGroups === 1);
    return [
      {
        source: bindingText(resource, binding),
        count,
        each: hubAmountsOf(spec.replicaRequirements?.resourceRequest),
        workload: { kind, namespace, name },
        accepts: acceptedBy(spec.placement),
        ...(customKind && { customKind }),
        ...(isWhole && { inOneCluster: true as const }),
        ...(stays && { stays }),
      },
    ];
  });
}

/** Workloads with replicas, and the clusters that Karmada chose for them. Pure. */
const workPlacedIn = (bindings: Bindings): PlacedSource[] =>
  bindings.flatMap(({ resource, binding }): PlacedSource[] => {
    const { clusters = [], replicas = 0, components = [], placement, resource: of = {} } = binding.spec ?? {};
    const members = clusters.filter((one) => (one.replicas ?? replicas) > 0 || components.length > 0);
    if (members.length === 0) return [];
    const { namespace = binding.metadata.namespace ?? '', name = '' } = of;
    // Fixed weights give each cluster a share, like duplicates.
    const isDivided = looksAtRoom(placement);
    return [
      {
        source: bindingText(resource, binding),
        members: members.map((one) => one.name),
        workload: { namespace, name },
        ...(isDivided && { isDivided }),
      },
    ];
  });

function whyStays({ spec = {} }: BindingObject): string | undefined {
  const { placement = {}, components = [], gracefulEvictionTasks = [], suspension } = spec;
  const { spreadConstraints = [], clusterTolerations = [], replicaScheduling } = placement;
  if (suspension?.scheduling) return 'is not scheduled, as its policy is suspended';
  if (gracefulEvictionTasks.length > 0) return 'is being moved already';
  if (components.length > 0) return 'has several parts, of which Karmada does not say how many are where';
  if (replicaScheduling?.replicaSchedulingType !== 'Divided')
    return 'is copied to its clusters, not moved between them';
  if (!looksAtRoom(placement)) return 'is divided by fixed weights, whatever is free';
  if (spreadConstraints.some(({ minGroups = 1 }) => minGroups > 1)) return 'is to be spread over several clusters';
  const tolerates = clusterTolerations.some(
    ({ key, effect }) => (!key || key === LEAVES.key) && (!effect || effect === LEAVES.effect),
  );
  return tolerates ? `tolerates taint ${LEAVES.key}, by which work is moved` : undefined;
}

/** A foreign Cluster for the same cluster, with the Secrets it refers to where Coppice's would be. */
async function foreignEntryIn(hub: Reader, { id }: Member, { karmada }: HubSpec): Promise<ForeignEntry | undefined> {
  const clusters = (await hub.list(CLUSTERS)) as KarmadaCluster[];
  const found = clusters.find((one) => one.spec?.id === id && isForeign(one));
  if (!found) return undefined;
  const { name } = found.metadata;
  const { secretRef, impersonatorSecretRef, syncMode } = found.spec ?? {};
  const wanted = [`${CLUSTER_NAMESPACE}/${name}`, `${CLUSTER_NAMESPACE}/${name}-impersonator`];
  const refs = [secretRef, impersonatorSecretRef].flatMap((ref) =>
    ref && wanted.includes(`${ref.namespace}/${ref.name}`) ? [ref.name] : [],
  );
  const secrets = await Promise.all(refs.map((ref) => hub.get(SECRETS, ref, CLUSTER_NAMESPACE)));
  const whyNot = whyNotOurs(name, syncMode, karmada?.syncMode ?? 'Push');
  return {
    name,
    places: [
      takenOver(CLUSTERS, found),
      ...secrets.flatMap((secret) => (secret && isForeign(secret) ? [takenOver(SECRETS, secret)] : [])),
    ],
    ...(whyNot && { whyNot }),
  };
}

/** Two agents would both apply, and so would an agent and Karmada's push controllers. */
function whyNotOurs(name: string, found: string | undefined, wanted: 'Push' | 'Pull'): string | undefined {
  if (found !== 'Push') return `Cluster ${name} of the hub has an agent of somebody else's (syncMode ${found})`;
  return wanted === 'Pull' ? `Cluster ${name} of the hub is of syncMode Push, and the Hub of Pull` : undefined;
}

const NO_EVICTION = 'the Hub does not say that its Karmada moves work away: karmada.evicts';

const modeOf = ({ karmada }: HubSpec): SyncMode => (karmada?.syncMode === 'Pull' ? pull : push);

/** Karmada: a Cluster, and either an agent or push controllers that apply its Works in the member. */
export const karmadaHub: HubType<KarmadaSeen> = {
  type: 'Karmada',
  // The namespace of a cluster's Works, `karmada-es-<name>`, must be a valid label.
  nameLimit: 48,
  watches: [CLUSTERS],
  writes: [
    { on: 'hub', resource: RBAC_ROLES },
    { on: 'hub', resource: ROLEBINDINGS },
    { on: 'member', resource: DEPLOYMENTS },
  ],
  dials: (spec) => modeOf(spec).dials,

  async validate(hub) {
    const missing: string[] = [];
    for (const kind of [CLUSTERS, RESOURCEBINDINGS])
      if (!(await hub.serves(kind))) missing.push(`${kind.plural}.${kind.group}/${kind.version}`);
    if (missing.length === 0) return [];
    return [`the hub serves no ${missing.join(', ')}: the kubeconfig has to be that of Karmada's own API server`];
  },

  identities: (member, spec) => modeOf(spec).identities(member, spec),
  foreignEntry: foreignEntryIn,
  observe: (hub, inside, member, spec) => lookAtKarmada(hub, inside, member, modeOf(spec)),

  join(member, spec, seen) {
    const { cluster, twin } = seen;
    const mode = modeOf(spec);
    const taken = twin && `Cluster ${twin} of the hub is the same cluster (id ${member.id}): let it leave there first`;
    const more = mode.registered(member, spec, seen);
    return [
      { type: 'IdentityReady' },
      { type: 'CredentialsReady', apply: mode.access(member, cluster) },
      {
        type: 'Registered',
        apply: taken ? [] : [clusterWanted(member, spec, cluster), ...more.apply],
        traces: isOurKarmadaCluster(member, cluster) ? [worksNamespace(member)] : [],
        waiting: taken ?? more.waiting ?? whyNotReady(member.name, cluster),
      },
      {
        type: 'CapacityVisible',
        waiting: countsNodes(cluster)
          ? undefined
          : `Karmada counts what nodes offer, and sees none of Cluster ${member.name} yet`,
      },
    ];
  },

  leave: (member, spec, seen) => modeOf(spec).removals(member, seen),

  drains: (spec, { placed }) => (spec.karmada?.evicts || placed.some(({ isEvicted }) => isEvicted) ? 'Moves' : 'None'),
  cordon: (member, spec, { cluster }) => (cluster ? [clusterWanted(member, spec, cluster)] : []),
  drain: (member, spec, { cluster }) => (cluster ? [clusterWanted(member, spec, cluster, 'begin')] : []),
  placements: (_member, { placed }) => placed.map(({ text }) => text),
  requeue: (_member, _spec, { overlooked }) => overlooked,
  release: (_member, _spec, { forsaken }) => forsaken,
  async demand(hub) {
    const bindings = await bindingsOf(hub);
    const waiting = withoutRoom(bindings);
    const classes = namesClasses(waiting) ? await priorityClassesOf(hub) : undefined;
    return demandOf(waiting, classes, await customKindsOf(hub, waiting, bindings));
  },
  async placedWork(hub, spec, member) {
    if (!spec.karmada?.evicts) return NO_EVICTION;
    const bindings = await bindingsOf(hub);
    const here = bindings.filter(({ binding }) => binding.spec?.clusters?.some(({ name }) => name === member));
    return movableOn(bindings, member, await customKindsOf(hub, here, bindings));
  },
  placed: async (hub) => workPlacedIn(await bindingsOf(hub)),
  demandWatch: { resources: [RESOURCEBINDINGS, CLUSTERRESOURCEBINDINGS], says: bindingWaitsFor },
  counts: countedBy,
  capacity: (_member, { cluster }) => freeOn(cluster),
};

const clusterWanted = (
  member: Member,
  spec: HubSpec,
  live: KarmadaCluster | undefined,
  draining?: Draining,
): WantedObject => ({
  on: 'hub',
  resource: CLUSTERS,
  object: clusterObject(member, live, modeOf(spec).reachedBy(member), draining),
  basedOn: live?.metadata.resourceVersion,
});
