import { NOT_JUDGED, notJudgedOf } from '../burst/fit/not-judged.ts';
import { amountsByName, effectiveRequests } from '../kube/effective-requests.ts';
import type { KubeObject, Pod } from '../kube/resources.ts';
import { quantitiesOf } from './amounts.ts';
import type { HubAmounts, PodTemplate } from './contract.ts';

/** The fields of a podSet that are read: a number of equal pods of a Workload. */
export interface PodSet {
  readonly name?: string;
  readonly count?: number;
  /** Kueue's API server accepts one without a spec too: call isReadable() first. */
  readonly template: { readonly metadata?: { readonly labels?: Record<string, string> }; readonly spec: Pod['spec'] };
  readonly topologyRequest?: {
    readonly required?: string;
    readonly podSetSliceRequiredTopology?: string;
    readonly podsetSliceRequiredTopologyConstraints?: readonly object[];
  };
}

/**
 * Longest scheduling part of a pod template that is read, as JSON: a tenant writes it, and it is evaluated for each
 * node.
 */
const MOST_CHARACTERS = 16_384;
/** Hard rules about other pods: each is evaluated for all pods of its namespace. */
const MOST_RULES = 16;

/** Whether it names its containers: a writer of Workloads may omit them. */
export const isReadable = ({ template }: PodSet): boolean => Array.isArray(template?.spec?.containers);

/** Scheduling gates that Kueue sets on pods and removes at admission. */
const OWN_GATES = 'kueue.x-k8s.io/';

/**
 * Scheduling fields of a podSet's pods, for the rules of operator/burst/fit; or a sentence why they cannot be read.
 * Throws RangeError for an invalid quantity. Pure.
 * @param each amounts per pod that quota counts
 */
export function templateOf(
  workload: KubeObject,
  { template, topologyRequest = {} }: PodSet,
  each: HubAmounts,
): { template: PodTemplate } | { problem: string } {
  const { spec, metadata = {} } = template;
  const [notJudged] = notJudgedOf(spec);
  if (notJudged) return { problem: NOT_JUDGED[notJudged] };
  const {
    required,
    podSetSliceRequiredTopology,
    podsetSliceRequiredTopologyConstraints: layers = [],
  } = topologyRequest;
  if (required || podSetSliceRequiredTopology || layers.length > 0)
    return { problem: 'it has Kueue find nodes that are near each other (topology-aware scheduling)' };
  const gate = (spec.schedulingGates ?? []).find(({ name }: { name: string }) => !name.startsWith(OWN_GATES));
  if (gate) return { problem: `scheduling gate ${gate.name} blocks its pods` };
  if ((spec.volumes ?? []).some((volume: object) => 'persistentVolumeClaim' in volume || 'ephemeral' in volume))
    return { problem: 'it uses claims, and what volumes clusters have, or would have, is not looked at' };

  const made = { ...placingPartOf(spec), ...overheadOf(spec, each) };
  const rules = rulesAboutPods(made);
  if (rules.length > MOST_RULES)
    return { problem: `it has ${rules.length} rules about other pods, more than the ${MOST_RULES} that are looked at` };
  if (rules.some(({ namespaceSelector }) => namespaceSelector)) return { problem: NOT_JUDGED.NamespacesUnknown };
  const labels = rules.length > 0 ? (metadata.labels ?? {}) : sharedLabels(workload, metadata.labels);
  const kept = { labels, spec: made };
  if (JSON.stringify(kept).length > MOST_CHARACTERS)
    return {
      problem: `what decides where its pods run is longer than ${MOST_CHARACTERS} characters, and not looked at`,
    };
  return { template: kept };
}

/** The scheduling fields of a pod spec: images and environments are long, and differ between otherwise equal pods. */
function placingPartOf(spec: Pod['spec']): Pod['spec'] {
  const { nodeSelector, tolerations, topologySpreadConstraints, overhead, resources } = spec;
  const { nodeAffinity, podAffinity, podAntiAffinity } = spec.affinity ?? {};
  const affinity = Object.fromEntries(
    Object.entries({ nodeAffinity, podAffinity, podAntiAffinity }).flatMap(([kind, written]) => {
      const hard = written?.requiredDuringSchedulingIgnoredDuringExecution;
      return hard ? [[kind, { requiredDuringSchedulingIgnoredDuringExecution: hard }]] : [];
    }),
  );
  const spread = (topologySpreadConstraints ?? []).filter(
    ({ whenUnsatisfiable }: { whenUnsatisfiable?: string }) => whenUnsatisfiable === 'DoNotSchedule',
  );
  const containers = spec.containers.map((one) => containerOf(one, spec.hostNetwork));
  const initContainers = (spec.initContainers ?? []).map((one) => containerOf(one, spec.hostNetwork));
  return {
    containers,
    ...(initContainers.length > 0 && { initContainers }),
    ...(resources && { resources }),
    ...(overhead && { overhead }),
    ...(nodeSelector && { nodeSelector }),
    ...(tolerations && { tolerations }),
    ...(Object.keys(affinity).length > 0 && { affinity }),
    ...(spread.length > 0 && { topologySpreadConstraints: spread }),
  };
}

interface Container {
  readonly restartPolicy?: string;
  readonly resources?: { readonly limits?: object; readonly requests?: object };
  readonly ports?: readonly { containerPort?: number; hostPort?: number; hostIP?: string; protocol?: string }[];
}

/** Without its name: pods equal in all else are evaluated once. */
function containerOf(
  { resources, restartPolicy, ports = [] }: Container,
  onHost = false,
): Container & { name: string } {
  const { limits, requests } = resources ?? {};
  // With hostNetwork each port is a host port; the API server fills this into pods but not into templates.
  const taken = ports
    .map(({ containerPort, hostPort = onHost ? containerPort : undefined, hostIP, protocol }) => ({
      ...(hostPort && { hostPort }),
      ...(hostIP && { hostIP }),
      ...(protocol && { protocol }),
    }))
    .filter(({ hostPort }) => hostPort);
  return {
    name: 'work',
    ...((limits ?? requests) && { resources: { ...(limits && { limits }), ...(requests && { requests }) } }),
    ...(restartPolicy && { restartPolicy }),
    ...(taken.length > 0 && { ports: taken }),
  };
}

/** Amounts that quota counts beyond the template are overhead: defaults of the namespace, or of a RuntimeClass. */
function overheadOf(spec: Pod['spec'], each: HubAmounts): Pick<Pod['spec'], 'overhead'> {
  const asked = effectiveRequests({ spec });
  const own = effectiveRequests({ spec: { containers: [], overhead: spec.overhead ?? {} } });
  const more = [...amountsByName(quantitiesOf(each))].filter(([name, amount]) => amount > (asked.get(name) ?? 0));
  if (more.length === 0) return {};
  const written = more.map(([name, amount]) => {
    const units = (own.get(name) ?? 0) + amount - (asked.get(name) ?? 0);
    return [name, name === 'cpu' ? `${units}m` : String(units)];
  });
  return { overhead: { ...spec.overhead, ...Object.fromEntries(written) } };
}

/** Hard rules about other pods; each is evaluated for each existing pod. */
function rulesAboutPods({ affinity, topologySpreadConstraints = [] }: Pod['spec']): { namespaceSelector?: object }[] {
  const { podAffinity, podAntiAffinity } = affinity ?? {};
  const hard = [podAffinity, podAntiAffinity].flatMap((of) => of?.requiredDuringSchedulingIgnoredDuringExecution ?? []);
  return [...hard, ...topologySpreadConstraints];
}

/**
 * Labels without those that name the job, unless a rule of the pod reads them: otherwise equal jobs are then evaluated
 * once.
 */
function sharedLabels({ metadata }: KubeObject, labels: Record<string, string> = {}): Record<string, string> {
  const names = new Set([metadata, ...(metadata.ownerReferences ?? [])].flatMap(({ name, uid }) => [name, uid]));
  return Object.fromEntries(Object.entries(labels).filter(([, value]) => !names.has(value)));
}
