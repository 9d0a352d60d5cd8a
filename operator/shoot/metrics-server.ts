import { ANNOTATIONS } from '../api/group.ts';
import type { KubeObject } from '../api/meta.ts';
import { asNobody, NOBODY, UNPRIVILEGED } from '../kube/pod-security.ts';
import type { BuiltinCondition } from '../kube/resources.ts';
import { keyPair, type PKIData } from './pki.ts';
import { filesChecksum, httpProbe, SYSTEM_POD } from './pod.ts';
import { METRICS_SERVER_IMAGE } from './versions.ts';

/** Value of the label `k8s-app` of its pods, and name of its objects. */
export const METRICS_SERVER_APP = 'coppice-metrics-server';
/** Cluster-wide APIService of the provider of node and pod metrics. */
export const METRICS_API = 'v1beta1.metrics.k8s.io';

const NAME = METRICS_SERVER_APP;
const ROLE = 'coppice:metrics-server';
const READER_ROLE = 'coppice:metrics-reader';
const RBAC = 'rbac.authorization.k8s.io';
const PORT = 10250;
const FILES = '/etc/metrics-server';
/** The cluster's CA, which signs kubelet serving certificates. */
const CLUSTER_CA = '/var/run/secrets/kubernetes.io/serviceaccount/ca.crt';
const namespace = 'kube-system';
const labels = { 'k8s-app': NAME };

/** The fields of an APIService that are read. */
export interface APIService extends KubeObject {
  spec?: { service?: { name: string; namespace: string } };
  /** `Available`: an API server has received an answer from it. */
  status?: { conditions?: BuiltinCondition[] };
}

/** Foreign provider of the API, as `namespace/name` of a Service; undefined: none, or Coppice. */
export function foreignMetrics(live: APIService | undefined): string | undefined {
  const service = live?.spec?.service;
  if (!live || (service?.namespace === namespace && service.name === NAME)) return undefined;
  return service ? `${service.namespace}/${service.name}` : 'the API server';
}

/**
 * The APIService for metrics-server. Not created before it serves: until then each `kubectl` would report an error, and
 * no namespace could be deleted.
 */
export const metricsAPI = (pki: PKIData): KubeObject => ({
  apiVersion: 'apiregistration.k8s.io/v1',
  kind: 'APIService',
  metadata: { name: METRICS_API, labels },
  spec: {
    group: 'metrics.k8s.io',
    version: 'v1beta1',
    groupPriorityMinimum: 100,
    versionPriority: 100,
    service: { name: NAME, namespace, port: 443 },
    caBundle: base64(keyPair(pki, 'ca').cert),
  },
});

/** metrics-server with all its objects; the ServiceAccount first, since its existence indicates the others. */
export const metricsServer = (pki: PKIData): KubeObject[] => {
  const { cert, key } = keyPair(pki, 'metrics-server');
  return [
    ...access(),
    {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: NAME, namespace, labels },
      type: 'kubernetes.io/tls',
      data: { 'tls.crt': base64(cert), 'tls.key': base64(key) },
    },
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: NAME, namespace, labels },
      spec: { selector: labels, ports: [{ name: 'https', port: 443, targetPort: 'https', protocol: 'TCP' }] },
    },
    deployment(filesChecksum({ cert })),
  ];
};

/**
 * Objects to delete when it is no longer wanted, in this order: the APIService first so that no request fails, the
 * ServiceAccount that indicates the others last.
 */
export const metricsServerParts = (): KubeObject[] => [
  { apiVersion: 'apiregistration.k8s.io/v1', kind: 'APIService', metadata: { name: METRICS_API } },
  { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: NAME, namespace } },
  { apiVersion: 'v1', kind: 'Service', metadata: { name: NAME, namespace } },
  { apiVersion: 'v1', kind: 'Secret', metadata: { name: NAME, namespace } },
  ...access().toReversed(),
];

function access(): KubeObject[] {
  const subjects = [{ kind: 'ServiceAccount', name: NAME, namespace }];
  const binding = (kind: 'ClusterRoleBinding' | 'RoleBinding', name: string, roleRef: object): KubeObject => ({
    apiVersion: `${RBAC}/v1`,
    kind,
    metadata: { name, ...(kind === 'RoleBinding' && { namespace }) },
    roleRef: { apiGroup: RBAC, ...roleRef },
    subjects,
  });
  return [
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: NAME, namespace } },
    {
      apiVersion: `${RBAC}/v1`,
      kind: 'ClusterRole',
      metadata: { name: ROLE },
      rules: [
        { apiGroups: [''], resources: ['nodes/metrics'], verbs: ['get'] },
        { apiGroups: [''], resources: ['nodes', 'pods'], verbs: ['get', 'list', 'watch'] },
      ],
    },
    {
      // Viewers of a namespace may see the resource usage of its pods.
      apiVersion: `${RBAC}/v1`,
      kind: 'ClusterRole',
      metadata: {
        name: READER_ROLE,
        labels: Object.fromEntries(['view', 'edit', 'admin'].map((role) => [`${RBAC}/aggregate-to-${role}`, 'true'])),
      },
      rules: [{ apiGroups: ['metrics.k8s.io'], resources: ['pods', 'nodes'], verbs: ['get', 'list', 'watch'] }],
    },
    binding('ClusterRoleBinding', ROLE, { kind: 'ClusterRole', name: ROLE }),
    // The API server authenticates and authorizes its callers.
    binding('ClusterRoleBinding', `${ROLE}:delegator`, { kind: 'ClusterRole', name: 'system:auth-delegator' }),
    // It trusts API servers' statements on the caller, by the CA in that ConfigMap.
    binding('RoleBinding', ROLE, { kind: 'Role', name: 'extension-apiserver-authentication-reader' }),
  ];
}

/** @param print digest of its certificate, which it reads at startup only */
function deployment(print: string): KubeObject {
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: NAME, namespace, labels },
    spec: {
      replicas: 1,
      revisionHistoryLimit: 1,
      strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } },
      selector: { matchLabels: labels },
      template: {
        metadata: { labels, annotations: { [ANNOTATIONS.checksum]: print } },
        spec: {
          serviceAccountName: NAME,
          ...SYSTEM_POD,
          securityContext: asNobody({ fsGroup: NOBODY }),
          containers: [
            {
              name: 'metrics-server',
              image: METRICS_SERVER_IMAGE,
              imagePullPolicy: 'IfNotPresent',
              command: ['/metrics-server'],
              args: [
                `--secure-port=${PORT}`,
                `--tls-cert-file=${FILES}/tls.crt`,
                `--tls-private-key-file=${FILES}/tls.key`,
                `--kubelet-certificate-authority=${CLUSTER_CA}`,
                '--kubelet-preferred-address-types=InternalIP',
                '--kubelet-use-node-status-port',
                '--metric-resolution=15s',
              ],
              // No memory limit: use grows with nodes and pods.
              resources: { requests: { cpu: '10m', memory: '65Mi' } },
              ports: [{ name: 'https', containerPort: PORT, protocol: 'TCP' }],
              // Ready once it has scraped all kubelets twice, which CPU usage requires.
              readinessProbe: httpProbe('/readyz', 'https', { scheme: 'HTTPS', period: 2, failures: 3 }),
              livenessProbe: httpProbe('/livez', 'https', { scheme: 'HTTPS', period: 10, failures: 6 }),
              securityContext: UNPRIVILEGED,
              volumeMounts: [{ name: 'files', mountPath: FILES, readOnly: true }],
            },
          ],
          volumes: [{ name: 'files', secret: { secretName: NAME, defaultMode: 0o440 } }],
        },
      },
    },
  };
}

const base64 = (text: string): string => Buffer.from(text).toString('base64');
