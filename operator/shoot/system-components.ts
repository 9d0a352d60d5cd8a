import { ANNOTATIONS } from '../api/group.ts';
import type { KubeObject } from '../api/meta.ts';
import { asNobody, UNPRIVILEGED } from '../kube/pod-security.ts';
import { BOOTSTRAPPERS_GROUP } from './bootstrap-token.ts';
import { ADMIN_GROUP, KUBELET_CLIENT_USER, VIEWER_GROUP } from './pki.ts';
import { apart, filesChecksum, httpProbe, SYSTEM_POD } from './pod.ts';
import { API_SERVER_PORT, CLUSTER_DOMAIN, type ControlPlane, dnsServiceAddress } from './values.ts';
import { COREDNS_IMAGE } from './versions.ts';

/** Name of cluster DNS' Deployment in kube-system. */
export const CLUSTER_DNS = 'coredns';
const DNS_PORT = 1053;
const ADMIN_ROLE = 'cluster-admin';

/** Rights of the admin's kubeconfig, required before the cluster is reported Ready. */
export const adminAccess = (): KubeObject[] => [clusterRoleBinding('coppice:admins', ADMIN_ROLE, ADMIN_GROUP)];

/**
 * The role that adminAccess binds, as every API server creates it: a new one only after a second, and it keeps an
 * existing one.
 */
export const adminRole = (): KubeObject => ({
  apiVersion: 'rbac.authorization.k8s.io/v1',
  kind: 'ClusterRole',
  metadata: {
    name: ADMIN_ROLE,
    labels: { 'kubernetes.io/bootstrapping': 'rbac-defaults' },
    annotations: { 'rbac.authorization.kubernetes.io/autoupdate': 'true' },
  },
  rules: [
    { apiGroups: ['*'], resources: ['*'], verbs: ['*'] },
    { nonResourceURLs: ['*'], verbs: ['*'] },
  ],
});

/**
 * Rights of a viewer's kubeconfig: those of Kubernetes' role `view` in all namespaces, which excludes Secrets, and read
 * access to cluster-scoped objects.
 */
export const viewerAccess = (): KubeObject[] => [
  {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRole',
    metadata: { name: 'coppice:viewers' },
    rules: [
      read('', 'namespaces', 'nodes', 'persistentvolumes'),
      read('apiextensions.k8s.io', 'customresourcedefinitions'),
      read('apiregistration.k8s.io', 'apiservices'),
      read('scheduling.k8s.io', 'priorityclasses'),
      read('storage.k8s.io', 'csinodes', 'storageclasses', 'volumeattachments'),
      read('metrics.k8s.io', 'nodes', 'pods'),
    ],
  },
  clusterRoleBinding('coppice:viewers', 'coppice:viewers', VIEWER_GROUP),
  clusterRoleBinding('coppice:viewers-in-namespaces', 'view', VIEWER_GROUP),
];

const read = (apiGroup: string, ...resources: string[]) => ({
  apiGroups: [apiGroup],
  resources,
  verbs: ['get', 'list', 'watch'],
});

/** Rights of machines to join by a bootstrap token and to renew their certificates. */
export function machineAccess(): KubeObject[] {
  const certificates = 'system:certificates.k8s.io:certificatesigningrequests';
  return [
    clusterRoleBinding('coppice:node-bootstrapper', 'system:node-bootstrapper', BOOTSTRAPPERS_GROUP),
    clusterRoleBinding('coppice:approve-node-client', `${certificates}:nodeclient`, BOOTSTRAPPERS_GROUP),
    clusterRoleBinding('coppice:renew-node-client', `${certificates}:selfnodeclient`, 'system:nodes'),
  ];
}

/** Right of API servers to call kubelets, for logs and exec; as kubeadm's phase bootstrap-token writes it. */
export const kubeletAccess = (): KubeObject =>
  clusterRoleBinding('kubeadm:apiserver-kubelet-client', 'system:kubelet-api-admin', KUBELET_CLIENT_USER, 'User');

/**
 * Endpoints of the Service `kubernetes`: the API server's address for machines. The controller manager mirrors them
 * into an EndpointSlice.
 */
export function kubernetesEndpoints(
  values: Pick<ControlPlane, 'addresses' | 'endpoint' | 'machinesOutside'>,
): KubeObject {
  const outside = values.machinesOutside ? values.endpoint : undefined;
  const { host, port } = outside ?? { host: values.addresses.apiServer, port: API_SERVER_PORT };
  return {
    apiVersion: 'v1',
    kind: 'Endpoints',
    metadata: { name: 'kubernetes', namespace: 'default' },
    subsets: [
      {
        addresses: [{ ip: host }],
        ports: [{ name: 'https', port, protocol: 'TCP' }],
      },
    ],
  };
}

/** The cluster's DNS server. `replicas` 1 for clusters of one node, otherwise 2. */
export function coreDNS(values: Pick<ControlPlane, 'networks'>, replicas: number): KubeObject[] {
  const metadata = { name: CLUSTER_DNS, namespace: 'kube-system', labels: { 'k8s-app': 'kube-dns' } };
  const selector = { 'k8s-app': 'kube-dns' };
  return [
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: CLUSTER_DNS, namespace: 'kube-system' } },
    {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRole',
      metadata: { name: 'system:coredns' },
      rules: [
        { apiGroups: [''], resources: ['services', 'namespaces', 'pods'], verbs: ['list', 'watch'] },
        { apiGroups: ['discovery.k8s.io'], resources: ['endpointslices'], verbs: ['list', 'watch'] },
      ],
    },
    {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRoleBinding',
      metadata: { name: 'system:coredns' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'system:coredns' },
      subjects: [{ kind: 'ServiceAccount', name: CLUSTER_DNS, namespace: 'kube-system' }],
    },
    { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { Corefile: COREFILE } },
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { ...metadata, name: 'kube-dns' },
      spec: {
        clusterIP: dnsServiceAddress(values.networks.services),
        selector,
        ports: [
          { name: 'dns', port: 53, targetPort: 'dns', protocol: 'UDP' },
          { name: 'dns-tcp', port: 53, targetPort: 'dns-tcp', protocol: 'TCP' },
          { name: 'metrics', port: 9153, targetPort: 9153, protocol: 'TCP' },
        ],
      },
    },
    coreDNSDeployment(metadata, selector, replicas),
  ];
}

const COREFILE = `.:${DNS_PORT} {
  errors
  health :8080
  ready :8181
  kubernetes ${CLUSTER_DOMAIN} in-addr.arpa ip6.arpa {
    pods insecure
    fallthrough in-addr.arpa ip6.arpa
    ttl 30
  }
  prometheus :9153
  forward . /etc/resolv.conf {
    max_concurrent 1000
  }
  cache 30
  loadbalance
}
`;

function coreDNSDeployment(
  metadata: KubeObject['metadata'],
  selector: Record<string, string>,
  replicas: number,
): KubeObject {
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata,
    spec: {
      replicas,
      revisionHistoryLimit: 1,
      strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } },
      selector: { matchLabels: selector },
      template: {
        metadata: {
          labels: selector,
          annotations: { [ANNOTATIONS.checksum]: filesChecksum({ Corefile: COREFILE }) },
        },
        spec: {
          serviceAccountName: CLUSTER_DNS,
          ...SYSTEM_POD,
          securityContext: asNobody(),
          ...(replicas > 1 && { affinity: apart(selector) }),
          containers: [
            {
              name: CLUSTER_DNS,
              image: COREDNS_IMAGE,
              imagePullPolicy: 'IfNotPresent',
              args: ['-conf', '/etc/coredns/Corefile'],
              resources: { requests: { cpu: '20m', memory: '40Mi' }, limits: { memory: '170Mi' } },
              // Above 1024, so that it needs no capability; the Service forwards port 53.
              ports: [
                { name: 'dns', containerPort: DNS_PORT, protocol: 'UDP' },
                { name: 'dns-tcp', containerPort: DNS_PORT, protocol: 'TCP' },
                { name: 'metrics', containerPort: 9153, protocol: 'TCP' },
                { name: 'health', containerPort: 8080, protocol: 'TCP' },
                { name: 'ready', containerPort: 8181, protocol: 'TCP' },
              ],
              readinessProbe: httpProbe('/ready', 'ready', { period: 2, failures: 3 }),
              livenessProbe: httpProbe('/health', 'health', { period: 10, failures: 6 }),
              securityContext: UNPRIVILEGED,
              volumeMounts: [{ name: 'config', mountPath: '/etc/coredns', readOnly: true }],
            },
          ],
          volumes: [{ name: 'config', configMap: { name: CLUSTER_DNS } }],
        },
      },
    },
  };
}

function clusterRoleBinding(name: string, role: string, subject: string, kind: 'Group' | 'User' = 'Group'): KubeObject {
  return {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRoleBinding',
    metadata: { name },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: role },
    subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind, name: subject }],
  };
}
