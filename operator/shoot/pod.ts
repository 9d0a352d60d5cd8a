import { createHash } from 'node:crypto';
import { ANNOTATIONS } from '../api/group.ts';
import type { KubeObject } from '../api/meta.ts';
import { asNobody, NOBODY, UNPRIVILEGED } from '../kube/pod-security.ts';
import { resourcesOf } from './control-plane-resources.ts';
import { type ControlPlane, controlPlaneLabels } from './values.ts';

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
      // // A seed may lack DNS, and nothing here resolves names.
      dnsPolicy: 'Default',
      terminationGracePeriodSeconds: component.gracePeriodSeconds,
      securityContext: asNobody({ fsGroup: NOBODY, fsGroupChangePolicy: 'OnRootMismatch' }),
      ...(component.spread && { affinity: spread(component.name) }),
      containers: [
        ...(component.first ?? []),
        // // Upstream's images have different entry points, or none, but the executable at the same path.
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
  // // The machine's resolver: independent of cluster DNS.
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
