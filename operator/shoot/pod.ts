import { createHash } from 'node:crypto';
import { ANNOTATIONS } from '../api/group.ts';
import type { KubeObject } from '../api/meta.ts';
import { asNobody, NOBODY, UNPRIVILEGED } from '../kube/pod-security.ts';
import { resourcesOf } from './control-plane-resources.ts';
import { type ControlPlane, controlPlaneLabels } from './values.ts';

/** What every container of the control plane is told. */
interface Container {
  name: string;
  image: string;
  args: string[];
  env?: { name: string; value?: string; valueFrom?: unknown }[];
  ports: { name: string; containerPort: number }[];
  probes: { startupProbe?: unknown; readinessProbe?: unknown; livenessProbe?: unknown };
  /** Where the Secret of its name is mounted. */
  mountPath: string;
  /** Further mounts. */
  mounts?: { name: string; mountPath: string; readOnly?: boolean }[];
}

/** A container beside a component's own, with a Secret of its own; `command`: path of the executable. */
export type Sidecar = Container & { command: string };

/** A container of a control plane component; it runs as nobody, with a read-only root and no privilege. */
interface Component extends Container {
  /** Name of the executable, where it is not the component's. */
  executable?: string;
  /** Further volumes. */
  volumes?: unknown[];
  /** Further containers. */
  sidecars?: Sidecar[];
  /** Containers that start before the component's own, as they are. */
  first?: object[];
  /** Content whose change must restart the pods. */
  checksum: string;
  /** Seconds between SIGTERM and SIGKILL. */
  gracePeriodSeconds: number;
  /** Pods of this component should not share a node. */
  spread: boolean;
}

/** Labels by which a component's pods are found within the shoot's namespace. */
export const selectorLabels = (component: string): Record<string, string> => ({ app: component });

/** The pod template of a component. */
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
      // A seed may have no DNS of its own, and nothing here looks up a name.
      dnsPolicy: 'Default',
      terminationGracePeriodSeconds: component.gracePeriodSeconds,
      securityContext: asNobody({ fsGroup: NOBODY, fsGroupChangePolicy: 'OnRootMismatch' }),
      ...(component.spread && { affinity: spread(component.name) }),
      containers: [
        ...(component.first ?? []),
        // Upstream's images have other entry points, or none: the executable is where they all keep it.
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

/** spec of every pod of ours on a cluster's own machines: the cluster needs it, and it ends at once. */
export const SYSTEM_POD = {
  priorityClassName: 'system-cluster-critical',
  // The machine's resolver: cluster DNS need not work for it.
  dnsPolicy: 'Default',
  enableServiceLinks: false,
  terminationGracePeriodSeconds: 5,
  tolerations: [{ key: 'CriticalAddonsOnly', operator: 'Exists' }],
} as const;

/** affinity of pods with these labels that had better be on different nodes. */
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

/** 0440 and not 0400: the files belong to root, and are read through fsGroup. */
const secretVolume = (name: string, secretName: string): unknown => ({
  name,
  secret: { secretName, defaultMode: 0o440 },
});

/** A Deployment of a component. */
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

/** The Secret with all files of a component. */
export function componentSecret(values: ControlPlane, name: string, files: Record<string, string>): KubeObject {
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name, namespace: values.namespace, labels: controlPlaneLabels(values) },
    type: 'Opaque',
    data: Object.fromEntries(Object.entries(files).map(([key, text]) => [key, Buffer.from(text).toString('base64')])),
  };
}

/** At most one member at a time may be evicted. Only where there are several: with one, no node could ever be drained. */
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

/** Hash of the files of a component, in any order. */
export function filesChecksum(files: Record<string, string>): string {
  const sorted = Object.entries(files).sort(([a], [b]) => (a < b ? -1 : 1));
  return createHash('sha256').update(JSON.stringify(sorted)).digest('hex').slice(0, 16);
}

/** A probe by HTTP(S) on a named port. `period` in seconds. */
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
