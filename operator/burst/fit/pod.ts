import type { LabelSelector } from '../../api/label-selector.ts';
import type { Pod } from '../../kube/resources.ts';
import type { ClaimUse, FitPod, HostPort, Labels, PodTerm, SpreadConstraint, Toleration } from './model.ts';
import { notJudgedOf } from './not-judged.ts';
import { podRequestsOf } from './requests.ts';
import {
  allOf,
  isEmptySelector,
  labelNeeded,
  labelOf,
  labelSelector,
  type NodeSelectorTerm,
  nodeRequirement,
} from './selectors.ts';

/** More than any node has, yet safe to add and subtract. */
const TOO_MUCH = 2 ** 50;

/** The shared object of equal pods, while it is referenced. */
const known = new Map<string, WeakRef<FitPod>>();
const gone = new FinalizationRegistry((key: string) => {
  if (!known.get(key)?.deref()) known.delete(key);
});
const made = new WeakMap<Pod, FitPod>();

/** Everything that decides where a pod fits. Equal pods get the same object while it is referenced. */
export function fitPod(pod: Pod): FitPod {
  const before = made.get(pod);
  if (before) return before;
  const key = likeness(pod);
  let found = known.get(key)?.deref();
  if (!found) {
    found = compiled(pod);
    known.set(key, new WeakRef(found));
    gone.register(found, key);
  }
  made.set(pod, found);
  return found;
}

const numbers = new WeakMap<object, number>();
let last = 0;

/** Key of a part; frozen objects, which caches share among pods, get a number instead of their JSON. */
function named(part: unknown): string {
  if (part === undefined || part === null) return '';
  if (typeof part !== 'object' || !Object.isFrozen(part)) return JSON.stringify(part);
  let number = numbers.get(part);
  if (number === undefined) {
    number = ++last;
    numbers.set(part, number);
  }
  return `#${number}`;
}

function likeness({ metadata, spec, status }: Pod): string {
  const { containerStatuses = [], initContainerStatuses = [] } = status ?? {};
  const isResized =
    status?.resources !== undefined ||
    [...containerStatuses, ...initContainerStatuses].some((one) => 'resources' in one);
  return [
    metadata.namespace,
    named(metadata.labels),
    metadata.deletionTimestamp ? 'd' : '',
    named(spec.containers),
    named(spec.initContainers),
    named(spec.resources),
    named(spec.overhead),
    named(spec.nodeSelector),
    named(spec.affinity),
    named(spec.tolerations),
    named(spec.topologySpreadConstraints),
    claimsOf(metadata, spec.volumes)
      .map(({ name, owner = '' }) => `${name}/${owner}`)
      .join(),
    named(spec.volumes?.filter((volume: Volume) => !volume.persistentVolumeClaim && !volume.ephemeral)),
    spec.priority ?? '',
    spec.schedulerName ?? '',
    named(spec.resourceClaims),
    named(spec.schedulingGroup),
    `${spec.hostNetwork ?? ''}${spec.hostUsers ?? ''}`,
    isResized ? JSON.stringify(status) : '',
  ].join('\n');
}

function compiled(pod: Pod): FitPod {
  const { metadata, spec } = pod;
  const namespace = metadata.namespace ?? '';
  const labels: Labels = metadata.labels ?? {};
  const notJudged = [...notJudgedOf(spec)];
  let requests: FitPod['requests'];
  try {
    requests = podRequestsOf(pod);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    // On a node with such a pod nothing else fits.
    requests = { cpu: TOO_MUCH, memory: TOO_MUCH, storage: TOO_MUCH, others: new Map() };
    notJudged.push('BadQuantity');
  }
  const { nodeAffinity, podAffinity, podAntiAffinity } = spec.affinity ?? {};
  const terms: NodeSelectorTerm[] | undefined =
    nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms;
  return {
    namespace,
    labels,
    requests,
    ports: portsOf(spec),
    acceptsNode: nodeRequirement(spec.nodeSelector, terms),
    acceptsAnyNode: !spec.nodeSelector && !terms,
    tolerations: (spec.tolerations ?? []) as Toleration[],
    affinity: podTerms(podAffinity, namespace, labels),
    antiAffinity: podTerms(podAntiAffinity, namespace, labels),
    spread: (spec.topologySpreadConstraints ?? [])
      .filter((constraint: { whenUnsatisfiable?: string }) => constraint.whenUnsatisfiable === 'DoNotSchedule')
      .map((constraint: WrittenSpread) => spreadOf(constraint, labels)),
    claims: claimsOf(metadata, spec.volumes),
    priority: spec.priority ?? 0,
    terminating: metadata.deletionTimestamp !== undefined,
    notJudged,
  };
}

interface WrittenTerm {
  labelSelector?: LabelSelector;
  namespaces?: string[];
  namespaceSelector?: LabelSelector;
  topologyKey: string;
  matchLabelKeys?: string[];
  mismatchLabelKeys?: string[];
}

interface WrittenAffinity {
  requiredDuringSchedulingIgnoredDuringExecution?: WrittenTerm[];
}

function podTerms(affinity: WrittenAffinity | undefined, namespace: string, own: Labels): PodTerm[] {
  return (affinity?.requiredDuringSchedulingIgnoredDuringExecution ?? []).map((term) => {
    const names = term.namespaces ?? [];
    return {
      topologyKey: term.topologyKey,
      // The API server merges matchLabelKeys into a pod's selector; a template has not passed it.
      matches: term.labelSelector
        ? allOf([
            labelSelector(term.labelSelector),
            ...keyed(term.matchLabelKeys, own, true),
            ...keyed(term.mismatchLabelKeys, own, false),
          ])
        : () => false,
      label: labelNeeded(term.labelSelector),
      namespaces: new Set(names.length === 0 && !term.namespaceSelector ? [namespace] : names),
      namespaceMatches: term.namespaceSelector && labelSelector(term.namespaceSelector),
    };
  });
}

/** Requirements of matchLabelKeys or mismatchLabelKeys, for labels that the pod has. */
const keyed = (keys: readonly string[] = [], own: Labels, alike: boolean) =>
  keys.flatMap((key) => {
    const value = labelOf(own, key);
    return value === undefined ? [] : [(labels: Labels) => (labelOf(labels, key) === value) === alike];
  });

interface WrittenSpread {
  topologyKey: string;
  maxSkew: number;
  minDomains?: number;
  labelSelector?: LabelSelector;
  matchLabelKeys?: string[];
  nodeAffinityPolicy?: string;
  nodeTaintsPolicy?: string;
}

function spreadOf(constraint: WrittenSpread, own: Labels): SpreadConstraint {
  const byKeys = keyed(constraint.matchLabelKeys, own, true);
  const matches = constraint.labelSelector ? allOf([labelSelector(constraint.labelSelector), ...byKeys]) : () => false;
  const isEmpty = isEmptySelector(constraint.labelSelector) && byKeys.length === 0;
  return {
    topologyKey: constraint.topologyKey,
    maxSkew: constraint.maxSkew,
    minDomains: constraint.minDomains ?? 1,
    counts: isEmpty ? () => false : matches,
    label: labelNeeded(constraint.labelSelector),
    countsItself: matches(own),
    honorsAffinity: constraint.nodeAffinityPolicy !== 'Ignore',
    honorsTaints: constraint.nodeTaintsPolicy === 'Honor',
  };
}

interface Volume {
  name: string;
  persistentVolumeClaim?: { claimName: string };
  ephemeral?: object;
}

function claimsOf(
  { name, uid = '' }: { name: string; uid?: string },
  volumes: readonly Volume[] | undefined,
): readonly ClaimUse[] {
  if (!volumes) return [];
  return volumes.flatMap((volume) =>
    volume.persistentVolumeClaim
      ? [{ name: volume.persistentVolumeClaim.claimName }]
      : volume.ephemeral
        ? [{ name: `${name}-${volume.name}`, owner: uid }]
        : [],
  );
}

interface WithPorts {
  ports?: { hostPort?: number; hostIP?: string; protocol?: string }[];
  restartPolicy?: string;
}

/** Host ports of containers that run as long as the pod, including sidecars. */
function portsOf(spec: Pod['spec']): HostPort[] {
  const lasting = ((spec.initContainers ?? []) as WithPorts[]).filter(
    ({ restartPolicy }) => restartPolicy === 'Always',
  );
  return [...lasting, ...(spec.containers as WithPorts[])].flatMap(({ ports = [] }) =>
    ports.flatMap(({ hostPort, hostIP, protocol }) =>
      hostPort ? [{ ip: hostIP || '0.0.0.0', protocol: protocol || 'TCP', port: hostPort }] : [],
    ),
  );
}
