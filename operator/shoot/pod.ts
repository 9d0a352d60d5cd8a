import { createHash } from 'node:crypto';
import { ANNOTATIONS } from '../api/group.ts';
import type { KubeObject } from '../api/meta.ts';
import { COMPONENTS } from '../api/names.ts';
import { formatBytes, formatCpu } from '../api/quantity.ts';
import { asNobody, NOBODY, UNPRIVILEGED } from '../kube/pod-security.ts';
import { type ControlPlane, controlPlaneLabels } from './values.ts';

/** Resources of a control plane container. */
interface ContainerResources {
  /** CPU request in millicores. */
  readonly cpuMillis: number;
  /** Memory request in MiB. */
  readonly memoryMiB: number;
  /** Memory limit in MiB. */
  readonly limitMiB: number;
}

/**
 * Requests and limits of control planes, one entry per container. Measured (docs/seen/benchmarks.md, "Memory of an idle
 * control plane" and "CPU of an idle garden"; command `npm run bench`), each idle: cores, MiB resident, MiB anonymous;
 * `peak` is the maximum of a running one's cgroup (memory.max_usage_in_bytes), in MiB.
 *
 * Memory requests equal the resident size: a seed that reserves less thrashes. CPU requests are a multiple of idle use
 * and far below the use at startup: ten control planes request one core, so that a seed with two cores takes them, and
 * each may use idle CPU. There is no CPU limit: an API server takes 4 to 5 CPU-seconds to start, and one throttled
 * then, or while it renews leases, would count as dead.
 *
 * Memory limits protect the other clusters on the seed's node from a tenant that fills one. They are many times the
 * measured use, since reaching one means an outage.
 */
const MEASURED: Readonly<Record<string, ContainerResources>> = {
  // 0.008 cores; 43, 21; peak 25 to 47. Its database may grow to 2 GiB (its quota), which is memory-mapped; the rest
  // is index and buffers.
  [COMPONENTS.etcd]: { cpuMillis: 20, memoryMiB: 50, limitMiB: 3072 },
  // 0.020 cores; 233, 152; peak 160 to 287.
  [COMPONENTS.apiServer]: { cpuMillis: 50, memoryMiB: 230, limitMiB: 4096 },
  // 0.012 cores; 106, 36; peak 42 to 55.
  [COMPONENTS.controllerManager]: { cpuMillis: 20, memoryMiB: 70, limitMiB: 1024 },
  // 0.002 cores; 63, 13; peak 14 to 21.
  [COMPONENTS.scheduler]: { cpuMillis: 10, memoryMiB: 50, limitMiB: 1024 },
  // Not measured: by the size of its executable.
  [COMPONENTS.konnectivityServer]: { cpuMillis: 5, memoryMiB: 20, limitMiB: 512 },
};

/** Largest number of nodes for the limits above. */
const NODES_OF_FIRST_LIMIT = 200;
/** Share of the limit from which Go's collector works harder, before the kernel kills the process. */
const SOFT_LIMIT = 0.9;

/**
 * Factor of limits for larger clusters: doubles with each doubling of nodes beyond 200. In steps, because each change
 * rolls the control plane. Not measured: an API server's memory grows with objects, and these with nodes.
 */
const growth = (nodes: number): number => 2 ** Math.max(0, Math.ceil(Math.log2(nodes / NODES_OF_FIRST_LIMIT)));

const MIB = 2 ** 20;

/**
 * Requests and limits of a container in pod form, and Go's memory limit. etcd's limit does not grow: its quota does
 * not.
 * @param nodes maximum nodes of the cluster
 * @throws RangeError for an unknown container
 */
function resourcesOf(container: string, nodes: number): { resources: object; env: { name: string; value: string }[] } {
  const entry = MEASURED[container];
  if (!entry) throw new RangeError(`there are no requests and limits for container ${container}`);
  const { cpuMillis, memoryMiB, limitMiB } = entry;
  const limit = container === COMPONENTS.etcd ? limitMiB : limitMiB * growth(nodes);
  // In the API server's canonical form: other forms would be applied again and again.
  const requests = { cpu: formatCpu(cpuMillis), memory: formatBytes(memoryMiB * MIB) };
  return {
    resources: { requests, limits: { memory: formatBytes(limit * MIB) } },
    env: [{ name: 'GOMEMLIMIT', value: `${Math.floor(limit * SOFT_LIMIT)}MiB` }],
  };
}

/** Fields of every control plane container. */
interface Container {
  name: string;
  image: string;
  args: string[];
  env?: { name: string; value?: string; valueFrom?: unknown }[];
  ports: { name: string; containerPort: number }[];
  probes: { startupProbe?: unknown; readinessProbe?: unknown; livenessProbe?: unknown };
  /** Mount path of the Secret of the container's name. */
  mountPath: string;
  /** Further mounts. */
  mounts?: { name: string; mountPath: string; readOnly?: boolean }[];
}

/** A container beside the component's own, with a Secret of its own; `command`: path of the executable. */
export type Sidecar = Container & { command: string };

/** A control plane container; it runs as nobody, with a read-only root and without privileges. */
interface Component extends Container {
  /** Name of the executable where it differs from the component's. */
  executable?: string;
  /** Further volumes. */
  volumes?: unknown[];
  /** Further containers. */
  sidecars?: Sidecar[];
  /** Init containers, unchanged. */
  first?: object[];
  /** Digest of content whose change must restart the pods. */
  checksum: string;
  /** Seconds between SIGTERM and SIGKILL. */
  gracePeriodSeconds: number;
  /** Whether pods of this component should be on different nodes. */
  spread: boolean;
}

/** Labels that select a component's pods within the shoot's namespace. */
export const selectorLabels = (component: string): Record<string, string> => ({ app: component });

/** Pod template of a component. */
export function podTemplate(values: ControlPlane, component: Component): unknown {
  const { sidecars = [] } = component;
  const { nodes = 0 } = values;
  return {
    metadata: {
      labels: { ...controlPlaneLabels(values), ...selectorLabels(component.name) },
      annotations: {
        [ANNOTATIONS.checksum]: component.checksum,
        ...(component.first && { 'kubectl.kubernetes.io/default-container': component.name }),
      },
    },
    spec: {
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      ...(values.priorityClassName && { priorityClassName: values.priorityClassName }),
      // A seed may lack DNS, and nothing here resolves names.
      dnsPolicy: 'Default',
      terminationGracePeriodSeconds: component.gracePeriodSeconds,
      securityContext: asNobody({ fsGroup: NOBODY, fsGroupChangePolicy: 'OnRootMismatch' }),
      ...(component.spread && { affinity: spread(component.name) }),
      containers: [
        ...(component.first ?? []),
        // Upstream's images have different entry points, or none, but the executable at the same path.
        containerOf(nodes, component, `/usr/local/bin/${component.executable ?? component.name}`, 'config'),
        ...sidecars.map((sidecar) => containerOf(nodes, sidecar, sidecar.command, sidecar.name)),
      ],
      volumes: [
        secretVolume('config', component.name),
        ...sidecars.map(({ name }) => secretVolume(name, name)),
        ...(component.volumes ?? []),
      ],
    },
  };
}

/** Common pod spec of Coppice's pods on a cluster's own machines: critical priority, and immediate termination. */
export const SYSTEM_POD = {
  priorityClassName: 'system-cluster-critical',
  // The machine's resolver: independent of cluster DNS.
  dnsPolicy: 'Default',
  enableServiceLinks: false,
  terminationGracePeriodSeconds: 5,
  tolerations: [{ key: 'CriticalAddonsOnly', operator: 'Exists' }],
} as const;

/** Anti-affinity that prefers different nodes for pods with these labels. */
export const apart = (matchLabels: Record<string, string>): unknown => ({
  podAntiAffinity: {
    preferredDuringSchedulingIgnoredDuringExecution: [
      { weight: 100, podAffinityTerm: { topologyKey: 'kubernetes.io/hostname', labelSelector: { matchLabels } } },
    ],
  },
});

const containerOf = (nodes: number, container: Container, command: string, config: string): unknown => {
  const { resources, env } = resourcesOf(container.name, nodes);
  return {
    name: container.name,
    image: container.image,
    imagePullPolicy: 'IfNotPresent',
    command: [command],
    args: container.args,
    env: [...(container.env ?? []), ...env],
    ports: container.ports,
    resources,
    securityContext: UNPRIVILEGED,
    ...container.probes,
    volumeMounts: [{ name: config, mountPath: container.mountPath, readOnly: true }, ...(container.mounts ?? [])],
  };
};

/** 0440, not 0400: the files belong to root, and are read through fsGroup. */
const secretVolume = (name: string, secretName: string): unknown => ({
  name,
  secret: { secretName, defaultMode: 0o440 },
});

/** Deployment of a component. */
export function deploymentManifest(
  values: ControlPlane,
  component: Component,
  options: { replicas: number; strategy: unknown },
): KubeObject {
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: component.name, namespace: values.namespace, labels: controlPlaneLabels(values) },
    spec: {
      replicas: options.replicas,
      revisionHistoryLimit: 1,
      strategy: options.strategy,
      selector: { matchLabels: selectorLabels(component.name) },
      template: podTemplate(values, component),
    },
  };
}

/** Secret with all files of a component. */
export function componentSecret(values: ControlPlane, name: string, files: Record<string, string>): KubeObject {
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name, namespace: values.namespace, labels: controlPlaneLabels(values) },
    type: 'Opaque',
    data: Object.fromEntries(Object.entries(files).map(([key, text]) => [key, Buffer.from(text).toString('base64')])),
  };
}

/**
 * Permits the eviction of one member at a time. Only for several members: with one, its node could never be drained.
 */
export function disruptionBudget(values: ControlPlane, component: string): KubeObject {
  return {
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: { name: component, namespace: values.namespace, labels: controlPlaneLabels(values) },
    spec: {
      maxUnavailable: 1,
      selector: { matchLabels: selectorLabels(component) },
      unhealthyPodEvictionPolicy: 'AlwaysAllow',
    },
  };
}

/** Hash of a component's files, independent of their order. */
export function filesChecksum(files: Record<string, string>): string {
  const sorted = Object.entries(files).sort(([a], [b]) => (a < b ? -1 : 1));
  return createHash('sha256').update(JSON.stringify(sorted)).digest('hex').slice(0, 16);
}

/** An HTTP(S) probe on a named port. `period` in seconds. */
export function httpProbe(
  path: string,
  port: string,
  options: { scheme?: 'HTTP' | 'HTTPS'; period: number; failures: number; timeout?: number },
): unknown {
  return {
    httpGet: { path, port, scheme: options.scheme ?? 'HTTP' },
    periodSeconds: options.period,
    timeoutSeconds: options.timeout ?? 5,
    failureThreshold: options.failures,
  };
}

function spread(component: string): unknown {
  const term = (topologyKey: string, weight: number) => ({
    weight,
    podAffinityTerm: { topologyKey, labelSelector: { matchLabels: selectorLabels(component) } },
  });
  return {
    podAntiAffinity: {
      preferredDuringSchedulingIgnoredDuringExecution: [
        term('topology.kubernetes.io/zone', 100),
        term('kubernetes.io/hostname', 50),
      ],
    },
  };
}
