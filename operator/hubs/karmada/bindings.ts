import { LABELS } from '../../api/group.ts';
import type { LabelSelector } from '../../api/label-selector.ts';
import { matchesLabels } from '../../api/label-selector.ts';
import type { KubeObject, Resource } from '../../kube/resources.ts';
import { hubAmountsOf, othersOf } from '../amounts.ts';
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
export interface BindingPlacement {
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

/** The fields of a ResourceBinding or ClusterResourceBinding that are read. */
export type BindingObject = KubeObject & {
  spec?: Replicas & {
    resource?: { apiVersion?: string; uid?: string; kind?: string; namespace?: string; name?: string };
    clusters?: { name: string; replicas?: number }[];
    gracefulEvictionTasks?: { fromCluster: string }[];
    components?: (Replicas & { name: string })[];
    placement?: BindingPlacement;
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
/** Bindings with their kind. */
export type Bindings = readonly { readonly resource: Resource; readonly binding: BindingObject }[];

/** A workload placed on the member. */
export interface PlacedBinding {
  readonly text: PlacedWork;
  /** It is being evicted. */
  readonly isEvicted: boolean;
}

export const bindingText = ({ kind }: Resource, { metadata: { namespace, name } }: KubeObject): string =>
  `${kind} ${namespace ? `${namespace}/` : ''}${name}`;

/** Workloads placed on the cluster, or being evicted from it. Pure. */
export const bindingsPlacedOn = (bindings: Bindings, cluster: string): PlacedBinding[] =>
  bindings.flatMap(({ resource, binding }) => {
    const { clusters = [], gracefulEvictionTasks = [] } = binding.spec ?? {};
    const isEvicted = gracefulEvictionTasks.some(({ fromCluster }) => fromCluster === cluster);
    const isPlaced = isEvicted || clusters.some(({ name }) => name === cluster);
    return isPlaced ? [{ text: bindingText(resource, binding), isEvicted }] : [];
  });

/** The longest waiting are touched; Karmada itself retries the rest within five minutes. */
const MOST_TOUCHED = 100;
/** Reasons that Karmada itself does not retry, other than an exceeded quota. */
const WITHOUT_ROOM = new Set(['Unschedulable', 'NoClusterFit', 'SchedulerError']);

/**
 * Unplaced bindings that this cluster may take and that Karmada's scheduler does not retry when the cluster changes.
 * For a binding with a list of affinities the scheduler compares only the last observed one, without its overflow,
 * except for bindings changed since their last placement, which it retries in any case. Pure.
 */
export function overlookedBindings(bindings: Bindings, cluster: KarmadaCluster): Touch[] {
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

/**
 * The scheduler's refusal; undefined: the binding is placed, or scheduling is suspended. Its observed generation is
 * that of its last success.
 */
function refusalOf({ spec, status }: BindingObject) {
  if (spec?.suspension?.scheduling) return undefined;
  return status?.conditions?.find((one) => one.type === 'Scheduled' && one.status === 'False');
}

const SECOND_MS = 1000;

/**
 * Any change of its spec makes the scheduler retry a binding. The written time lies in the past: a time after the last
 * success would make Karmada redivide running replicas, and the time of a fast clock would do so repeatedly.
 */
function touchOf(resource: Resource, { metadata, spec, status }: BindingObject): Touch[] {
  const { namespace, name, uid = '' } = metadata;
  const now = spec?.rescheduleTriggeredAt;
  const past = Date.parse(status?.lastScheduledTime ?? metadata.creationTimestamp ?? '');
  // A rescheduling that somebody requested is still pending.
  const isAsked = now !== undefined && status?.lastScheduledTime !== undefined && Date.parse(now) > past;
  const at = isAsked ? Date.parse(now) + SECOND_MS : Date.parse(now ?? '') === past ? past - SECOND_MS : past;
  if (Number.isNaN(at)) return [];
  const patch = { spec: { rescheduleTriggeredAt: `${new Date(at).toISOString().slice(0, -5)}Z` } };
  return [{ on: 'hub', resource, name, ...(namespace && { namespace }), uid, patch }];
}

/** Karmada's rule: every given criterion must match, and an empty affinity matches every cluster. */
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

/** With spread constraints, Karmada reports only in a message that capacity or clusters are lacking. */
const FULL = /no enough resource/;
const TOO_FEW = /number of feasible (clusters|region) is less/;

/**
 * Reasons of Karmada that exclude existing clusters but not a bought one: there are none, labels differ, eviction, or a
 * taint set by people. Karmada's own taints mean an unreachable cluster, which is no reason to buy another one.
 */
const SHUT =
  /0\/\d+ clusters are available:|no cluster exists|\d+ cluster\(s\) (did not match the placement cluster affinity constraint|is in the process of eviction|had untolerated taint \{(?!cluster\.karmada\.io\/)[^{}]*\})|[\s,.[\]]/g;
/** For a custom kind, whether another cluster would serve it is checked before a purchase. */
const LACKS_KIND = /\d+ cluster\(s\) did not have the API resource/g;
const areShut = (message: string, isCustom: boolean): boolean =>
  message !== '' && (isCustom ? message.replace(LACKS_KIND, '') : message).replace(SHUT, '') === '';

/** API version and kind of the bound object, where not every cluster serves it. Pure. */
export function customKindOf({ spec }: BindingObject): string | undefined {
  const { apiVersion, kind } = spec?.resource ?? {};
  if (!apiVersion || !kind) return undefined;
  const api = `${apiVersion} ${kind}`;
  return isOfKubernetes(api) ? undefined : api;
}

/** Whether Karmada keeps all its replicas in one cluster. */
const isInOneCluster = ({ spreadConstraints = [] }: BindingPlacement = {}): boolean =>
  spreadConstraints.some(({ spreadByField, maxGroups }) => spreadByField === 'cluster' && maxGroups === 1);

/**
 * Whether Karmada considers free capacity: workloads that are duplicated or divided by static weights wait for the
 * number or kind of clusters alone.
 */
export const looksAtRoom = ({ replicaScheduling }: BindingPlacement = {}): boolean =>
  replicaScheduling?.replicaSchedulingType === 'Divided' &&
  (replicaScheduling.replicaDivisionPreference === 'Aggregated' ||
    replicaScheduling.weightPreference?.dynamicWeight !== undefined);

/**
 * Unplaced workloads for lack of capacity. Karmada divides all or nothing, so all unplaced replicas count. Workloads
 * that are duplicated or divided by static weights are left out: Karmada places them without considering free capacity.
 * Pure.
 * @param classes values of PriorityClasses by name
 * @param kinds custom kinds
 */
export function demandOf(
  bindings: Bindings,
  classes: ReadonlyMap<string, number> = new Map(),
  kinds: ReadonlyMap<string, CustomKind> = new Map(),
): Demand[] {
  // One function object per equal placement, so that bin packing recognizes equal demands.
  const known = new Map<string, NonNullable<Demand['accepts']>>();
  const acceptedBy = ({ spec }: BindingObject): NonNullable<Demand['accepts']> => {
    const there = isInOneCluster(spec?.placement) ? (spec?.clusters ?? []) : [];
    // Another cluster would not get the missing replicas: Karmada does not divide them.
    if (there.length > 0) return ({ name }) => there.some((one) => one.name === name);
    const key = JSON.stringify(spec?.placement ?? {});
    const accepts = known.get(key) ?? acceptsMember(spec?.placement);
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
      source: bindingText(resource, binding),
      ...(uid && { uid }),
      namespace,
      accepts: acceptedBy(binding),
      ...(customKind && { customKind }),
    }));
  });
}

/** PriorityClasses that exist in every cluster. */
const SYSTEM_CLASSES: ReadonlyMap<string, number> = new Map([
  ['system-cluster-critical', 2_000_000_000],
  ['system-node-critical', 2_000_001_000],
]);

/**
 * Priority of the binding's pods where Karmada knows their class; else the binding's scheduling priority; else
 * undefined.
 */
function priorityOf(
  { spec }: BindingObject,
  name: string | undefined,
  classes: ReadonlyMap<string, number>,
): Pick<Demand, 'priority'> {
  const ofClass = name ? (classes.get(name) ?? SYSTEM_CLASSES.get(name)) : undefined;
  const priority = ofClass ?? spec?.schedulePriority?.priority;
  return Number.isInteger(priority) ? { priority } : {};
}

/** Bindings with replicas that lack capacity. Pure. */
export const withoutRoom = (bindings: Bindings): Bindings =>
  bindings.filter(({ binding }) => homelessOf(binding).length > 0);

/** Whether a binding names a PriorityClass. Pure. */
export const namesClasses = (bindings: Bindings): boolean =>
  bindings.some(({ binding }) => homelessOf(binding).some(({ priorityClassName }) => priorityClassName));

/** Digest of the replicas for which a binding lacks capacity; undefined: none. Pure. */
export function bindingWaitsFor(binding: KubeObject): string | undefined {
  const parts = homelessOf(binding as BindingObject);
  return parts.length > 0 ? JSON.stringify(parts) : undefined;
}

type Homeless = Omit<Demand, 'source' | 'uid' | 'namespace' | 'accepts' | 'customKind' | 'priority'> & {
  readonly priorityClassName?: string;
};

/** Replicas of a binding that lack capacity. */
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
  // Karmada never divides a workload of several components. A workload that grew in its one cluster waits for nodes
  // there.
  const isWhole = components.length > 1 || (placed === 0 && isInOneCluster(whole.placement));
  return (components.length > 0 ? components : [whole]).flatMap(({ replicas = 0, replicaRequirements }) => {
    const count = replicas - placed;
    if (count <= 0) return [];
    const { resourceRequest, nodeClaim, priorityClassName } = replicaRequirements ?? {};
    const others = othersOf(resourceRequest);
    return [
      {
        count,
        each: hubAmountsOf(resourceRequest),
        ...(Object.keys(others).length > 0 && { others }),
        ...(nodeClaim && { nodes: rulesOf(nodeClaim) }),
        ...(priorityClassName && { priorityClassName }),
        since,
        ...(isWhole && { inOneCluster: true as const }),
      },
    ];
  });
}

/**
 * Node rules of a workload. Karmada considers them only with an estimator in the member: without one it fills a cluster
 * whose nodes take none of the pods.
 */
const rulesOf = ({ nodeSelector, hardNodeAffinity, tolerations }: NodeClaim): NodeRules => ({
  ...(nodeSelector && { nodeSelector }),
  ...(hardNodeAffinity && {
    affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: hardNodeAffinity } },
  }),
  ...(tolerations && { tolerations }),
});

/** Whether a binding's affinities, any of which suffices, permit a member. */
export function acceptsMember({
  clusterAffinity,
  clusterAffinities = [],
}: BindingPlacement = {}): NonNullable<Demand['accepts']> {
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
