import { ANNOTATIONS } from '../api/group.ts';
import type { KubeObject } from '../api/meta.ts';
import { asNobody, NOBODY, UNPRIVILEGED } from '../kube/pod-security.ts';
import type { BuiltinCondition } from '../kube/resources.ts';
import { keyPair, type PKIData } from './pki.ts';
import { filesChecksum, httpProbe, SYSTEM_POD } from './pod.ts';
import { METRICS_SERVER_IMAGE } from './versions.ts';

/** Value of the label `k8s-app` of its pods, and name of what it consists of. */
export const METRICS_SERVER_APP = 'coppice-metrics-server';
/** The one object of its kind in a cluster: who serves nodes' and pods' use of cpu and memory. */
export const METRICS_API = 'v1beta1.metrics.k8s.io';

const NAME = METRICS_SERVER_APP;
const ROLE = 'coppice:metrics-server';
const READER_ROLE = 'coppice:metrics-reader';
const RBAC = 'rbac.authorization.k8s.io';
const PORT = 10250;
const FILES = '/etc/metrics-server';
/** Of the cluster: kubelets have their serving certificates of it. */
const CLUSTER_CA = '/var/run/secrets/kubernetes.io/serviceaccount/ca.crt';
const namespace = 'kube-system';
const labels = { 'k8s-app': NAME };

/** What is read of one. */
export interface APIService extends KubeObject {
  spec?: { service?: { name: string; namespace: string } };
  /** `Available`: an API server has asked it, and had an answer. */
  status?: { conditions?: BuiltinCondition[] };
}

/** Who serves the API in our place, as `namespace/name` of a Service; undefined: nobody, or we. */
export function foreignMetrics(live: APIService | undefined): string | undefined {
  const service = live?.spec?.service;
  if (!live || (service?.namespace === namespace && service.name === NAME)) return undefined;
  return service ? `${service.namespace}/${service.name}` : 'the API server';
}

/** Has the API server ask it. Not before it serves: until then each `kubectl` would complain, and no namespace could be deleted. */
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

/** metrics-server and all that it needs; its ServiceAccount first, by which it is known that there may be more. */
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

/** What is to be deleted where it is wanted no longer, in this order: nobody asks what has gone, and what tells of the rest goes last. */
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
      // Whoever may look at a namespace may look at what its pods use.
      apiVersion: `${RBAC}/v1`,
      kind: 'ClusterRole',
      metadata: {
        name: READER_ROLE,
        labels: Object.fromEntries(['view', 'edit', 'admin'].map((role) => [`${RBAC}/aggregate-to-${role}`, 'true'])),
      },
      rules: [{ apiGroups: ['metrics.k8s.io'], resources: ['pods', 'nodes'], verbs: ['get', 'list', 'watch'] }],
    },
    binding('ClusterRoleBinding', ROLE, { kind: 'ClusterRole', name: ROLE }),
    // It has the API server judge who asks it: whose token it is, and what that one may do.
    binding('ClusterRoleBinding', `${ROLE}:delegator`, { kind: 'ClusterRole', name: 'system:auth-delegator' }),
    // And believes API servers who asks them, by the authority that stands there.
    binding('RoleBinding', ROLE, { kind: 'Role', name: 'extension-apiserver-authentication-reader' }),
  ];
}

/** @param print of its certificate, which it reads when it starts */
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
              // No limit of memory: it grows with nodes and pods.
              resources: { requests: { cpu: '10m', memory: '65Mi' } },
              ports: [{ name: 'https', containerPort: PORT, protocol: 'TCP' }],
              // Ready once it has asked all kubelets twice, between which a use of cpu is.
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
