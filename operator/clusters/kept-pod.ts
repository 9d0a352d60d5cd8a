import { INLINE_DISKS } from '../kube/pods.ts';
import type { Pod } from '../kube/resources.ts';

/** Equal values are stored once, and collected when nothing refers to them. */
const known = new Map<string, WeakRef<object>>();
const gone = new FinalizationRegistry((key: string) => {
  if (!known.get(key)?.deref()) known.delete(key);
});

/** The equal value given before, frozen; else this one. Values are equal only with the same order of fields. */
function shared<T extends object>(value: T): T {
  const key = JSON.stringify(value);
  const before = known.get(key)?.deref();
  if (before) return before as T;
  // Parsed from the text: the value itself would keep alive all it was parsed with.
  const kept = Object.freeze(JSON.parse(key) as T);
  known.set(key, new WeakRef(kept));
  gone.register(kept, key);
  return kept;
}

/** Names of namespaces and nodes: few per cluster, with many copies in pods. */
const texts = new Map<string, string>();
const MOST_TEXTS = 50_000;

/** The equal text given before, else this one. */
function sharedText(text: string): string {
  const before = texts.get(text);
  if (before !== undefined) return before;
  // A tenant may create an unlimited number of names.
  if (texts.size >= MOST_TEXTS) texts.clear();
  texts.set(text, text);
  return text;
}

const MIRROR = 'kubernetes.io/config.mirror';
/** Annotations that decide about a pod's eviction: its creator, and Karpenter's and Cluster Autoscaler's settings. */
const KEPT_ANNOTATIONS = [
  MIRROR,
  'karpenter.sh/do-not-disrupt',
  'cluster-autoscaler.kubernetes.io/safe-to-evict',
  'cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes',
];
/** Conditions that are read: readiness, and why the pod is not scheduled. */
const KEPT_CONDITIONS = ['Ready', 'PodScheduled', 'PodResizePending'];
/** Fields of a pod spec that kube-scheduler or kubelet admission reads. */
const SCHEDULING = [
  'hostNetwork',
  'hostUsers',
  'overhead',
  'resources',
  'nodeSelector',
  'tolerations',
  'topologySpreadConstraints',
  'priority',
  'preemptionPolicy',
  'schedulerName',
  'schedulingGates',
  'schedulingGroup',
  'runtimeClassName',
  'resourceClaims',
] as const;

/**
 * The fields of a pod that scheduling, drains and status read. Pods of one template share values: otherwise a cluster
 * of 300,000 pods would not fit into memory.
 */
export function keptPod(pod: Pod): Pod {
  const { name, namespace, uid, resourceVersion, labels, annotations, ownerReferences, deletionTimestamp } =
    pod.metadata;
  const marks = picked(annotations, KEPT_ANNOTATIONS) as Record<string, string> | undefined;
  // The creation time is read only while the pod is pending.
  const created = pod.spec.nodeName ? undefined : pod.metadata.creationTimestamp;
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name,
      ...(namespace && { namespace: sharedText(namespace) }),
      ...(uid && { uid }),
      ...(resourceVersion && { resourceVersion }),
      ...(labels && { labels: shared(labels) }),
      ...(marks && { annotations: shared(marks) }),
      ...(ownerReferences && { ownerReferences: shared(ownerReferences) }),
      ...(created && { creationTimestamp: created }),
      ...(deletionTimestamp && { deletionTimestamp }),
    },
    spec: keptSpec(pod.spec, ownerReferences),
    status: shared({
      ...(pod.status?.phase && { phase: pod.status.phase }),
      ...(pod.status?.nominatedNodeName && { nominatedNodeName: pod.status.nominatedNodeName }),
      conditions: keptConditions(pod.status),
      ...keptResize(pod),
    }),
  };
}

function keptSpec(spec: Pod['spec'], owners: Pod['metadata']['ownerReferences']): Pod['spec'] {
  const affinity = owners?.some(({ kind }) => kind === 'DaemonSet') ? ofDaemon(spec.affinity) : spec.affinity;
  const volumes = (spec.volumes as Volume[] | undefined)?.map(keptVolume).filter((volume) => volume !== undefined);
  return {
    // Shared part by part: a whole that nothing refers to would be collected, and its sharing with it.
    ...picked(spec, SCHEDULING),
    ...(affinity && { affinity: shared(affinity) }),
    containers: shared(spec.containers.map(keptContainer)),
    ...(spec.initContainers && { initContainers: shared(spec.initContainers.map(keptContainer)) }),
    ...(spec.nodeName && { nodeName: sharedText(spec.nodeName) }),
    ...(volumes && volumes.length > 0 && { volumes }),
  };
}

type Volume = { name: string; persistentVolumeClaim?: { claimName: string }; ephemeral?: object } & {
  [disk in (typeof INLINE_DISKS)[number]]?: object;
};

function keptVolume(volume: Volume): Volume | undefined {
  const { name, persistentVolumeClaim: claim } = volume;
  if (claim) return { name, persistentVolumeClaim: { claimName: claim.claimName } };
  // The claim is named after pod and volume; its requests are in the claim.
  if (volume.ephemeral) return { name, ephemeral: {} };
  const disk = INLINE_DISKS.find((source) => volume[source]);
  return disk && { name, [disk]: {} };
}

/** A DaemonSet pod is bound to its node by a unique affinity term, which is dropped: the pod cannot move. */
const ofDaemon = (affinity: Record<string, unknown> | undefined): object | undefined => {
  const { nodeAffinity: _, ...rest } = affinity ?? {};
  return Object.keys(rest).length > 0 ? rest : undefined;
};

type Container = Pod['spec']['containers'][number] & {
  restartPolicy?: string;
  restartPolicyRules?: object[];
  ports?: { hostPort?: number }[];
};

const keptContainer = ({ name, resources, restartPolicy, restartPolicyRules, ports }: Container): Container => {
  const hostPorts = ports?.filter(({ hostPort }) => hostPort);
  return {
    name,
    ...(resources && { resources }),
    ...(restartPolicy && { restartPolicy }),
    ...(restartPolicyRules && { restartPolicyRules }),
    ...(hostPorts && hostPorts.length > 0 && { ports: hostPorts }),
  };
};

interface Resized {
  name: string;
  resources?: { requests?: object };
  allocatedResources?: object;
}

/**
 * Resources held during an in-place resize, which exceed the spec. Dropped for other pods: they hold their requests.
 */
function keptResize({ spec, status }: Pod): object {
  const asked = new Map([...spec.containers, ...(spec.initContainers ?? [])].map((one) => [one.name, one.resources]));
  const differs = (one: Resized) => {
    const requests = JSON.stringify(inOrder(asked.get(one.name)?.requests));
    return [one.resources?.requests, one.allocatedResources].some(
      (held) => held && JSON.stringify(inOrder(held)) !== requests,
    );
  };
  const keep = (all: readonly Resized[] | undefined) =>
    all
      ?.filter((one) => one.resources && differs(one))
      .map(({ name, resources, allocatedResources }) => ({
        name,
        resources: { requests: resources?.requests ?? {} },
        ...(allocatedResources && { allocatedResources }),
      })) ?? [];
  const { containerStatuses, initContainerStatuses, resources, allocatedResources } = status ?? {};
  const [containers, initContainers] = [keep(containerStatuses), keep(initContainerStatuses)];
  return {
    ...(containers.length > 0 && { containerStatuses: containers }),
    ...(initContainers.length > 0 && { initContainerStatuses: initContainers }),
    ...(spec.resources && resources && { resources: { requests: resources.requests ?? {} } }),
    ...(spec.resources && allocatedResources && { allocatedResources }),
  };
}

const inOrder = (quantities: object | undefined): [string, unknown][] =>
  Object.entries(quantities ?? {}).sort(([a], [b]) => (a < b ? -1 : 1));

/** Times are kept of unschedulable pods alone: otherwise pods could not share conditions. */
const keptConditions = (status: Pod['status']): NonNullable<NonNullable<Pod['status']>['conditions']> =>
  (status?.conditions ?? [])
    .filter(({ type }) => KEPT_CONDITIONS.includes(type))
    .filter(({ type, status: is }) => type !== 'PodScheduled' || is !== 'True')
    .map(({ type, status: is, reason, lastTransitionTime }) => ({
      type,
      status: is,
      ...(reason && { reason }),
      ...(type === 'PodScheduled' && lastTransitionTime && { lastTransitionTime }),
    }));

/** The given fields as shared values; undefined: none is set. */
function picked<T extends object>(from: T | undefined, keys: readonly (keyof T & string)[]): Partial<T> | undefined {
  const found = keys.flatMap((key) => {
    const value = from?.[key];
    return value === undefined ? [] : [[key, typeof value === 'object' && value ? shared(value) : value] as const];
  });
  return found.length > 0 ? (Object.fromEntries(found) as Partial<T>) : undefined;
}
