import { LABELS } from '../../api/group.ts';
import type { LabelSelector } from '../../api/label-selector.ts';
import { matchesLabels } from '../../api/label-selector.ts';
import type { KubeObject, Resource } from '../../kube/resources.ts';
import { amountsOf, othersOf } from '../amounts.ts';
import type { CustomKind, Demand, NodeRules, Placement as PlacedWork, Touch } from '../contract.ts';
import { isOfKubernetes, type KarmadaCluster } from './cluster.ts';

type ResourceRequest = Readonly<Record<string, string>>;
interface Requirement {
  readonly key: string;
  readonly operator: 'In' | 'NotIn' | 'Exists' | 'DoesNotExist';
  readonly values?: string[];
}
interface Affinity {
  readonly labelSelector?: LabelSelector;
  readonly fieldSelector?: { readonly matchExpressions?: readonly Requirement[] };
  readonly clusterNames?: readonly string[];
  readonly exclude?: readonly string[];
}
interface AffinityTerm extends Affinity {
  readonly affinityName: string;
  readonly overflowAffinities?: readonly Affinity[];
}
export interface Placement {
  readonly clusterAffinity?: Affinity;
  readonly clusterAffinities?: readonly AffinityTerm[];
  readonly replicaScheduling?: {
    readonly replicaSchedulingType?: string;
    readonly replicaDivisionPreference?: string;
    readonly weightPreference?: { readonly dynamicWeight?: string };
  };
  readonly spreadConstraints?: readonly {
    readonly spreadByField?: string;
    readonly minGroups?: number;
    readonly maxGroups?: number;
  }[];
  readonly clusterTolerations?: readonly {
    readonly key?: string;
    readonly operator?: string;
    readonly effect?: string;
  }[];
}
interface NodeClaim extends Omit<NodeRules, 'affinity'> {
  readonly hardNodeAffinity?: object;
}
interface Replicas {
  readonly replicas?: number;
  readonly replicaRequirements?: {
    readonly resourceRequest?: ResourceRequest;
    readonly nodeClaim?: NodeClaim;
    readonly priorityClassName?: string;
  };
}

/** A ResourceBinding or ClusterResourceBinding, as far as it is read here. */
export type BindingObject = KubeObject & {
  spec?: Replicas & {
    resource?: { apiVersion?: string; uid?: string; kind?: string; namespace?: string; name?: string };
    clusters?: { name: string; replicas?: number }[];
    gracefulEvictionTasks?: { fromCluster: string }[];
    components?: (Replicas & { name: string })[];
    placement?: Placement;
    schedulePriority?: { priority?: number };
    suspension?: { scheduling?: boolean };
    rescheduleTriggeredAt?: string;
  };
  status?: {
    conditions?: { type: string; status: string; reason?: string; message?: string; lastTransitionTime?: string }[];
    schedulerObservedGeneration?: number;
    schedulerObservingAffinityName?: string;
    lastScheduledTime?: string;
  };
};
/** Bindings with their kinds. */
export type Bindings = readonly { readonly resource: Resource; readonly binding: BindingObject }[];

/** Something that is placed on the member. */
export interface Placed {
  readonly text: PlacedWork;
  /** It is on its way off it. */
  readonly isEvicted: boolean;
}

export const textOf = ({ kind }: Resource, { metadata: { namespace, name } }: KubeObject): string =>
  `${kind} ${namespace ? `${namespace}/` : ''}${name}`;

/** What counts on the cluster, or did and has not left it. Pure. */
export const placedOn = (bindings: Bindings, cluster: string): Placed[] =>
  bindings.flatMap(({ resource, binding }) => {
    const { clusters = [], gracefulEvictionTasks = [] } = binding.spec ?? {};
    const isEvicted = gracefulEvictionTasks.some(({ fromCluster }) => fromCluster === cluster);
    const isPlaced = isEvicted || clusters.some(({ name }) => name === cluster);
    return isPlaced ? [{ text: textOf(resource, binding), isEvicted }] : [];
  });

/** Of work that waits longest first; the rest is looked at by Karmada itself within five minutes. */
const MOST_TOUCHED = 100;
/** Karmada looks again by itself where a quota was exceeded. */
const WITHOUT_ROOM = new Set(['Unschedulable', 'NoClusterFit', 'SchedulerError']);

/**
 * Bindings without a place that this cluster may take, and that Karmada's scheduler leaves alone when the cluster changes. Where a binding has a
 * list of affinities it compares only the one that it observed last, without its overflow; but for bindings that have changed since they were
 * last placed, which it looks at again in any case. Pure.
 */
export function overlooked(bindings: Bindings, cluster: KarmadaCluster): Touch[] {
  return bindings
    .flatMap(({ resource, binding }) => {
      const refusal = refusalOf(binding);
      const terms = binding.spec?.placement?.clusterAffinities;
      if (!terms || !refusal || !WITHOUT_ROOM.has(refusal.reason ?? '')) return [];
      if (binding.status?.schedulerObservedGeneration !== binding.metadata.generation) return [];
      const observed = terms.findIndex(
        ({ affinityName }) => affinityName === binding.status?.schedulerObservingAffinityName,
      );
      const [first, ...rest] = terms.slice(Math.max(0, observed));
      if (!first || matches(cluster, first)) return [];
      const unseen = [
        ...(first.overflowAffinities ?? []),
        ...rest.flatMap((one) => [one, ...(one.overflowAffinities ?? [])]),
      ];
      return unseen.some((one) => matches(cluster, one))
        ? [{ resource, binding, since: refusal.lastTransitionTime ?? '' }]
        : [];
    })
    .sort((a, b) => (a.since < b.since ? -1 : a.since > b.since ? 1 : 0))
    .slice(0, MOST_TOUCHED)
    .flatMap(({ resource, binding }) => touchOf(resource, binding));
}

/** Why the scheduler has found no place; undefined: it has, or does not look. Its observed generation is that of its last success. */
function refusalOf({ spec, status }: BindingObject) {
  if (spec?.suspension?.scheduling) return undefined;
  return status?.conditions?.find((one) => one.type === 'Scheduled' && one.status === 'False');
}

const SECOND_MS = 1000;

/**
 * Any change of its spec sends a binding to the scheduler. The time is one of the past: with a later one than that of the last success Karmada
 * would divide anew what runs already, and with one of our clock, were it fast, again and again.
 */
function touchOf(resource: Resource, { metadata, spec, status }: BindingObject): Touch[] {
  const { namespace, name, uid = '' } = metadata;
  const now = spec?.rescheduleTriggeredAt;
  const past = Date.parse(status?.lastScheduledTime ?? metadata.creationTimestamp ?? '');
  // Somebody has asked for a new division, which is still to come.
  const isAsked = now !== undefined && status?.lastScheduledTime !== undefined && Date.parse(now) > past;
  const at = isAsked ? Date.parse(now) + SECOND_MS : Date.parse(now ?? '') === past ? past - SECOND_MS : past;
  if (Number.isNaN(at)) return [];
  const patch = { spec: { rescheduleTriggeredAt: `${new Date(at).toISOString().slice(0, -5)}Z` } };
  return [{ on: 'hub', resource, name, ...(namespace && { namespace }), uid, patch }];
}

/** Karmada's rule: all that is asked, and nothing asked is met by every cluster. */
function matches({ metadata, spec }: Pick<KarmadaCluster, 'metadata' | 'spec'>, affinity: Affinity): boolean {
  const { labelSelector, fieldSelector, clusterNames = [], exclude = [] } = affinity;
  if (exclude.includes(metadata.name)) return false;
  if (clusterNames.length > 0 && !clusterNames.includes(metadata.name)) return false;
  if (labelSelector && !matchesLabels(metadata.labels ?? {}, labelSelector)) return false;
  const fields: Readonly<Record<string, readonly (string | undefined)[]>> = {
    provider: [spec?.provider],
    region: [spec?.region],
    zone: spec?.zones ?? [],
  };
  return (fieldSelector?.matchExpressions ?? []).every((one) =>
    meets(
      (fields[one.key] ?? []).flatMap((value) => value ?? []),
      one,
    ),
  );
}

function meets(have: readonly string[], { operator, values = [] }: Requirement): boolean {
  const isThere = have.some((one) => values.includes(one));
  switch (operator) {
    case 'In':
      return isThere;
    case 'NotIn':
      return !isThere;
    case 'Exists':
      return have.length > 0;
    case 'DoesNotExist':
      return have.length === 0;
    default:
      return false;
  }
}

/** Where clusters are to be spread, Karmada says by words alone that there is no room, or that there are too few of them. */
const FULL = /no enough resource/;
const TOO_FEW = /number of feasible (clusters|region) is less/;

/**
 * What Karmada says of clusters that another one would not be: there is none, it has other labels, work is moved off it, or it has a taint that
 * somebody put there. Its own taints say that a cluster was not heard of, which is no reason to buy another one.
 */
const SHUT =
  /0\/\d+ clusters are available:|no cluster exists|\d+ cluster\(s\) (did not match the placement cluster affinity constraint|is in the process of eviction|had untolerated taint \{(?!cluster\.karmada\.io\/)[^{}]*\})|[\s,.[\]]/g;
/** Of a custom kind it is looked at before anything is bought whether another cluster would serve it. */
const LACKS_KIND = /\d+ cluster\(s\) did not have the API resource/g;
const areShut = (message: string, isCustom: boolean): boolean =>
  message !== '' && (isCustom ? message.replace(LACKS_KIND, '') : message).replace(SHUT, '') === '';

/** API version and kind of what it binds, where not every cluster serves it. Pure. */
export function customKindOf({ spec }: BindingObject): string | undefined {
  const { apiVersion, kind } = spec?.resource ?? {};
  if (!apiVersion || !kind) return undefined;
  const api = `${apiVersion} ${kind}`;
  return isOfKubernetes(api) ? undefined : api;
}

/** Whether Karmada keeps all its replicas in one cluster. */
const isInOneCluster = ({ spreadConstraints = [] }: Placement = {}): boolean =>
  spreadConstraints.some(({ spreadByField, maxGroups }) => spreadByField === 'cluster' && maxGroups === 1);

/** Whether Karmada looks at what is free: what is duplicated, or divided by static weights, waits for clusters of a number or kind alone. */
export const looksAtRoom = ({ replicaScheduling }: Placement = {}): boolean =>
  replicaScheduling?.replicaSchedulingType === 'Divided' &&
  (replicaScheduling.replicaDivisionPreference === 'Aggregated' ||
    replicaScheduling.weightPreference?.dynamicWeight !== undefined);

/**
 * Work that found no room. A division is all or nothing, so all that is not placed counts. Work that is duplicated, or divided by static
 * weights, is not among it: Karmada places that without looking at what is free. Pure.
 * @param classes values of PriorityClasses by name
 * @param kinds custom ones
 */
export function demandOf(
  bindings: Bindings,
  classes: ReadonlyMap<string, number> = new Map(),
  kinds: ReadonlyMap<string, CustomKind> = new Map(),
): Demand[] {
  // Shared by those that say the same: whoever packs them sees that they are alike.
  const known = new Map<string, NonNullable<Demand['accepts']>>();
  const acceptedBy = ({ spec }: BindingObject): NonNullable<Demand['accepts']> => {
    const there = isInOneCluster(spec?.placement) ? (spec?.clusters ?? []) : [];
    // A cluster that took what is missing would not get it: Karmada does not divide it.
    if (there.length > 0) return ({ name }) => there.some((one) => one.name === name);
    const key = JSON.stringify(spec?.placement ?? {});
    const accepts = known.get(key) ?? accepting(spec?.placement);
    known.set(key, accepts);
    return accepts;
  };
  return bindings.flatMap(({ resource, binding }) => {
    const { uid } = binding.spec?.resource ?? {};
    const { namespace } = binding.metadata;
    const customKind = kinds.get(customKindOf(binding) ?? '');
    return homelessOf(binding).map(({ priorityClassName, ...part }) => ({
      ...part,
      ...priorityOf(binding, priorityClassName, classes),
      source: textOf(resource, binding),
      ...(uid && { uid }),
      namespace,
      accepts: acceptedBy(binding),
      ...(customKind && { customKind }),
    }));
  });
}

/** What Kubernetes itself has every cluster know. */
const SYSTEM_CLASSES: ReadonlyMap<string, number> = new Map([
  ['system-cluster-critical', 2_000_000_000],
  ['system-node-critical', 2_000_001_000],
]);

/** The priority of its pods where Karmada knows their class; else that by which it schedules the binding; else nobody knows. */
function priorityOf(
  { spec }: BindingObject,
  name: string | undefined,
  classes: ReadonlyMap<string, number>,
): Pick<Demand, 'priority'> {
  const ofClass = name ? (classes.get(name) ?? SYSTEM_CLASSES.get(name)) : undefined;
  const priority = ofClass ?? spec?.schedulePriority?.priority;
  return Number.isInteger(priority) ? { priority } : {};
}

/** Bindings with replicas that found no room. Pure. */
export const withoutRoom = (bindings: Bindings): Bindings =>
  bindings.filter(({ binding }) => homelessOf(binding).length > 0);

/** Whether a binding names a PriorityClass. Pure. */
export const namesClasses = (bindings: Bindings): boolean =>
  bindings.some(({ binding }) => homelessOf(binding).some(({ priorityClassName }) => priorityClassName));

/** What a binding waits for room with, in a few letters; undefined: it does not wait. Pure. */
export function waitsFor(binding: KubeObject): string | undefined {
  const parts = homelessOf(binding as BindingObject);
  return parts.length > 0 ? JSON.stringify(parts) : undefined;
}

type Homeless = Omit<Demand, 'source' | 'uid' | 'namespace' | 'accepts' | 'customKind' | 'priority'> & {
  readonly priorityClassName?: string;
};

/** Its replicas that found no room. */
function homelessOf(binding: BindingObject): Homeless[] {
  const { reason, message = '', lastTransitionTime: since = '' } = refusalOf(binding) ?? {};
  const isDivided = looksAtRoom(binding.spec?.placement);
  const isFull = FULL.test(message) || (TOO_FEW.test(message) && isDivided);
  const isShutOut = isDivided && areShut(message, customKindOf(binding) !== undefined);
  const isWithoutRoom =
    reason === 'Unschedulable' || (reason === 'SchedulerError' && isFull) || (reason === 'NoClusterFit' && isShutOut);
  if (!isWithoutRoom) return [];
  const { clusters = [], components = [], ...whole } = binding.spec ?? {};
  const placed = components.length > 0 ? 0 : clusters.reduce((sum, { replicas = 0 }) => sum + replicas, 0);
  // Work of several parts Karmada never divides. What runs in one cluster and grew waits for more nodes there.
  const isWhole = components.length > 1 || (placed === 0 && isInOneCluster(whole.placement));
  return (components.length > 0 ? components : [whole]).flatMap(({ replicas = 0, replicaRequirements }) => {
    const count = replicas - placed;
    if (count <= 0) return [];
    const { resourceRequest, nodeClaim, priorityClassName } = replicaRequirements ?? {};
    const others = othersOf(resourceRequest);
    return [
      {
        count,
        each: amountsOf(resourceRequest),
        ...(Object.keys(others).length > 0 && { others }),
        ...(nodeClaim && { nodes: rulesOf(nodeClaim) }),
        ...(priorityClassName && { priorityClassName }),
        since,
        ...(isWhole && { inOneCluster: true as const }),
      },
    ];
  });
}

/** Karmada itself looks at them only where an estimator of it runs in the member: without one it fills a cluster whose nodes take none of it. */
const rulesOf = ({ nodeSelector, hardNodeAffinity, tolerations }: NodeClaim): NodeRules => ({
  ...(nodeSelector && { nodeSelector }),
  ...(hardNodeAffinity && {
    affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: hardNodeAffinity } },
  }),
  ...(tolerations && { tolerations }),
});

/** Whether a binding may go to a member by its affinities, of which any will do. */
export function accepting({ clusterAffinity, clusterAffinities = [] }: Placement = {}): NonNullable<Demand['accepts']> {
  const asked = [
    ...(clusterAffinity ? [clusterAffinity] : []),
    ...clusterAffinities.flatMap((one) => [one, ...(one.overflowAffinities ?? [])]),
  ];
  return ({ name, labels, zones }) => {
    const region = labels['topology.kubernetes.io/region'];
    const provider = labels[LABELS.provider];
    const metadata = { name, labels: { ...labels } };
    const cluster = { metadata, spec: { zones: [...zones], ...(provider && { provider }), ...(region && { region }) } };
    return asked.length === 0 || asked.some((one) => matches(cluster, one));
  };
}
