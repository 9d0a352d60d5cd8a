import { createHash } from 'node:crypto';
import { ANNOTATIONS } from '../api/group.ts';
import type { KubeObject } from '../api/meta.ts';
import { type ControlPlane, controlPlaneLabels } from './values.ts';

/** A container of a control plane component; it runs as nobody, with a read-only root and no privilege. */
export interface Component {
  name: string;
  image: string;
  /** Name of the executable, where it is not the component's. */
  executable?: string;
  args: string[];
  env?: { name: string; value?: string; valueFrom?: unknown }[];
  ports: { name: string; containerPort: number }[];
  requests: { cpu: string; memory: string };
  probes: { startupProbe?: unknown; readinessProbe?: unknown; livenessProbe?: unknown };
  /** Where the component's own Secret (of the same name) is mounted. */
  mountPath: string;
  /** Further mounts and volumes. */
  mounts?: { name: string; mountPath: string }[];
  volumes?: unknown[];
  /** Content whose change must restart the pods. */
  checksum: string;
  /** Seconds between SIGTERM and SIGKILL. */
  gracePeriodSeconds: number;
  /** Pods of this component should not share a node. */
  spread: boolean;
}

const NOBODY = 65532;

/** Labels by which a component's pods are found within the shoot's namespace. */
export const selectorLabels = (component: string): Record<string, string> => ({ app: component });

/** The pod template of a component. */
export function podTemplate(values: ControlPlane, component: Component): unknown {
  return {
    metadata: {
      labels: { ...controlPlaneLabels(values), ...selectorLabels(component.name) },
      annotations: { [ANNOTATIONS.checksum]: component.checksum },
    },
    spec: {
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      // A seed may have no DNS of its own, and nothing here looks up a name.
      dnsPolicy: 'Default',
      terminationGracePeriodSeconds: component.gracePeriodSeconds,
      securityContext: {
        runAsNonRoot: true,
        runAsUser: NOBODY,
        runAsGroup: NOBODY,
        fsGroup: NOBODY,
        fsGroupChangePolicy: 'OnRootMismatch',
        seccompProfile: { type: 'RuntimeDefault' },
      },
      ...(component.spread && { affinity: spread(component.name) }),
      containers: [
        {
          name: component.name,
          image: component.image,
          imagePullPolicy: 'IfNotPresent',
          // Upstream's images have other entry points, or none: the executable is where they all keep it.
          command: [`/usr/local/bin/${component.executable ?? component.name}`],
          args: component.args,
          ...(component.env && { env: component.env }),
          ports: component.ports,
          resources: { requests: component.requests },
          securityContext: {
            allowPrivilegeEscalation: false,
            readOnlyRootFilesystem: true,
            capabilities: { drop: ['ALL'] },
          },
          ...component.probes,
          volumeMounts: [
            { name: 'config', mountPath: component.mountPath, readOnly: true },
            ...(component.mounts ?? []),
          ],
        },
      ],
      volumes: [
        // 0440 and not 0400: the files belong to root, and are read through fsGroup.
        { name: 'config', secret: { secretName: component.name, defaultMode: 0o440 } },
        ...(component.volumes ?? []),
      ],
    },
  };
}

/** A Deployment of a component. */
export function deployment(
  values: ControlPlane,
  component: Component,
  options: { replicas: number; strategy: unknown },
): KubeObject {
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: component.name, namespace: values.namespace, labels: controlPlaneLabels(values) },
    spec: {
      replicas: values.hibernated ? 0 : options.replicas,
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
export function checksum(files: Record<string, string>): string {
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
