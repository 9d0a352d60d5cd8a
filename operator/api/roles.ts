import { GROUP } from './group.ts';
import { KUBECONFIG_SIGNERS, KUBECONFIG_SUBRESOURCES } from './kubeconfig-request.ts';
import type { KubeObject } from './meta.ts';
import { CONTROL_PLANE_PRIORITY, OPERATOR_LEASE } from './names.ts';

/** The user (and the name of the ClusterRole) that the operator of an embedded garden has. */
export const OPERATOR_USER = 'coppice:operator';

interface PolicyRule {
  apiGroups: string[];
  resources: string[];
  verbs: string[];
  resourceNames?: string[];
}

const READ = ['get', 'list', 'watch'];
const WRITE = ['create', 'update', 'patch', 'delete'];
const RBAC = 'rbac.authorization.k8s.io/v1';

/** What the operator may do in the garden. */
export function gardenRules(): PolicyRule[] {
  return [
    {
      apiGroups: [GROUP],
      resources: ['workerclusters', 'seeds', 'cloudprofiles', 'credentialsbindings', 'workloadidentities'],
      verbs: [...READ, 'update', 'patch'],
    },
    // It makes those that a BurstPolicy asks for, and deletes them, and those whose ttl is over.
    { apiGroups: [GROUP], resources: ['workerclusters'], verbs: ['create', 'delete'] },
    // Who decides what is bought are people.
    { apiGroups: [GROUP], resources: ['burstpolicies'], verbs: [...READ, 'patch'] },
    // It keeps to quotas, so it must not be able to raise them.
    { apiGroups: [GROUP], resources: ['quotas'], verbs: READ },
    // Which clusters join which hub is decided by administrators.
    { apiGroups: [GROUP], resources: ['hubs'], verbs: [...READ, 'patch'] },
    { apiGroups: [GROUP], resources: ['memberships'], verbs: [...READ, ...WRITE] },
    // Where the garden itself is a hub.
    { apiGroups: ['multicluster.x-k8s.io'], resources: ['clusterprofiles'], verbs: [...READ, ...WRITE] },
    { apiGroups: ['multicluster.x-k8s.io'], resources: ['clusterprofiles/status'], verbs: ['get', 'patch'] },
    { apiGroups: ['multicluster.x-k8s.io'], resources: ['placementdecisions'], verbs: READ },
    { apiGroups: ['argoproj.io'], resources: ['applications'], verbs: READ },
    { apiGroups: ['kustomize.toolkit.fluxcd.io'], resources: ['kustomizations'], verbs: READ },
    { apiGroups: ['helm.toolkit.fluxcd.io'], resources: ['helmreleases'], verbs: READ },
    {
      apiGroups: ['kueue.x-k8s.io'],
      resources: ['multikueueclusters', 'multikueueconfigs', 'admissionchecks'],
      verbs: [...READ, ...WRITE],
    },
    { apiGroups: ['kueue.x-k8s.io'], resources: ['workloads', 'localqueues', 'clusterqueues'], verbs: READ },
    // It answers for an AdmissionCheck.
    {
      apiGroups: ['kueue.x-k8s.io'],
      resources: ['admissionchecks/status', 'workloads/status'],
      verbs: ['get', 'patch'],
    },
    // Shoots are made for WorkerClusters, and go with them.
    { apiGroups: [GROUP], resources: ['shoots'], verbs: [...READ, ...WRITE] },
    {
      apiGroups: [GROUP],
      resources: [
        'workerclusters',
        'shoots',
        'seeds',
        'cloudprofiles',
        'credentialsbindings',
        'workloadidentities',
        'quotas',
        'hubs',
        'memberships',
        'burstpolicies',
      ].flatMap((kind) => [`${kind}/status`, `${kind}/finalizers`]),
      verbs: ['get', 'update', 'patch'],
    },
    { apiGroups: [''], resources: ['secrets'], verbs: [...READ, ...WRITE] },
    // The ServiceAccount of a WorkloadIdentity, which goes with it, and tokens for the cloud: of which accounts, a policy says.
    { apiGroups: [''], resources: ['serviceaccounts'], verbs: ['get', 'create', 'patch'] },
    { apiGroups: [''], resources: ['serviceaccounts/token'], verbs: ['create'] },
    // Requests for people's kubeconfigs: it signs for two signers of its own, and asks who may have which.
    {
      apiGroups: ['certificates.k8s.io'],
      resources: ['certificatesigningrequests'],
      verbs: ['get', 'list', 'watch', 'delete'],
    },
    {
      apiGroups: ['certificates.k8s.io'],
      resources: ['certificatesigningrequests/approval', 'certificatesigningrequests/status'],
      verbs: ['update', 'patch'],
    },
    {
      apiGroups: ['certificates.k8s.io'],
      resources: ['signers'],
      resourceNames: Object.values(KUBECONFIG_SIGNERS),
      verbs: ['approve', 'sign'],
    },
    { apiGroups: ['authorization.k8s.io'], resources: ['subjectaccessreviews'], verbs: ['create'] },
    // Its UID is the garden's own: part of the tags in clouds, and on namespaces in seeds.
    { apiGroups: [''], resources: ['namespaces'], resourceNames: ['kube-system'], verbs: ['get'] },
    { apiGroups: ['', 'events.k8s.io'], resources: ['events'], verbs: ['create', 'patch', 'update'] },
    // Ranges that no cluster of a mesh is given.
    { apiGroups: ['networking.k8s.io'], resources: ['servicecidrs'], verbs: ['list'] },
  ];
}

/** What it may do besides in its own namespace. Leases of others say who leads, and which nodes are alive. */
export function ownNamespaceRules(): PolicyRule[] {
  const leases = { apiGroups: ['coordination.k8s.io'], resources: ['leases'] };
  return [
    { ...leases, resourceNames: [OPERATOR_LEASE], verbs: ['get', 'update'] },
    // A request that creates names no object that rights could be about.
    { ...leases, verbs: ['create'] },
    // Whether one that led before is gone for good, so that what it has locked can be taken over.
    { apiGroups: [''], resources: ['pods'], verbs: ['get'] },
  ];
}

/** What the operator may do in a seed: everything there is to a hosted control plane and its machines, and no more. */
export function seedRules(): PolicyRule[] {
  return [
    { apiGroups: [''], resources: ['namespaces'], verbs: [...READ, ...WRITE] },
    {
      apiGroups: [''],
      resources: ['secrets', 'configmaps', 'services', 'persistentvolumeclaims'],
      verbs: [...READ, ...WRITE, 'deletecollection'],
    },
    { apiGroups: [''], resources: ['pods'], verbs: [...READ, ...WRITE, 'deletecollection'] },
    // The way to etcd in a seed whose Services have no way from here; over WebSockets it is a get, since 1.35 also a create.
    { apiGroups: [''], resources: ['pods/portforward'], verbs: ['get', 'create'] },
    { apiGroups: [''], resources: ['nodes', 'persistentvolumes'], verbs: READ },
    {
      apiGroups: ['apps'],
      resources: ['deployments', 'replicasets', 'statefulsets'],
      verbs: [...READ, ...WRITE, 'deletecollection'],
    },
    { apiGroups: ['policy'], resources: ['poddisruptionbudgets'], verbs: [...READ, ...WRITE] },
    { apiGroups: ['networking.k8s.io'], resources: ['networkpolicies'], verbs: [...READ, ...WRITE] },
    { apiGroups: ['discovery.k8s.io'], resources: ['endpointslices'], verbs: READ },
    // A full seed evicts machines and other pods for the pods of control planes.
    {
      apiGroups: ['scheduling.k8s.io'],
      resources: ['priorityclasses'],
      resourceNames: [CONTROL_PLANE_PRIORITY],
      verbs: ['get'],
    },
    // A request that creates names no object that rights could be about.
    { apiGroups: ['scheduling.k8s.io'], resources: ['priorityclasses'], verbs: ['create'] },
  ];
}

/** What the chart's Job that brings CRDs up to date may do: with ours, and with no others. */
export const crdJobRules = (names: readonly string[]): PolicyRule[] => [
  {
    apiGroups: ['apiextensions.k8s.io'],
    resources: ['customresourcedefinitions'],
    resourceNames: [...names],
    verbs: ['get', 'update'],
  },
  // A request that creates names no object that rights could be about.
  { apiGroups: ['apiextensions.k8s.io'], resources: ['customresourcedefinitions'], verbs: ['create'] },
];

/** What the chart's Job may do that looks whether clusters are left before all is uninstalled. */
export const uninstallJobRules = (): PolicyRule[] => [
  { apiGroups: [GROUP], resources: ['workerclusters', 'shoots'], verbs: ['list'] },
];

/** A ClusterRole. */
export const clusterRole = (name: string, rules: PolicyRule[], labels?: Record<string, string>): KubeObject => ({
  apiVersion: RBAC,
  kind: 'ClusterRole',
  metadata: { name, ...(labels && { labels }) },
  rules,
});

/** The ClusterRole of those who may ask for kubeconfigs at all. */
export const KUBECONFIG_REQUESTERS = 'coppice:kubeconfig-requesters';
/** The ClusterRole of those who may see what clusters can be made of: profiles are in no namespace, so no role in one gives that. */
export const PROFILE_READERS = 'coppice:profile-readers';

/** Has Kubernetes add the rules to roles of its own. */
const aggregatedTo = (...roles: ('view' | 'edit' | 'admin')[]): Record<string, string> =>
  Object.fromEntries(roles.map((role) => [`rbac.authorization.k8s.io/aggregate-to-${role}`, 'true']));

/**
 * What tenants may do in their namespaces: whoever has Kubernetes' role view, edit or admin there has it. Nobody of them writes status,
 * which says what a cluster was granted; Shoots, which quotas do not refuse on apply; nor Quotas, Hubs and Memberships.
 */
export const tenantRoles = (): KubeObject[] => [
  clusterRole(
    'coppice:view',
    [
      {
        apiGroups: [GROUP],
        resources: [
          'workerclusters',
          'shoots',
          'quotas',
          'credentialsbindings',
          'workloadidentities',
          'memberships',
          'burstpolicies',
        ],
        verbs: READ,
      },
      { apiGroups: [GROUP], resources: ['workerclusters/scale'], verbs: ['get'] },
      { apiGroups: [GROUP], resources: [`workerclusters/${KUBECONFIG_SUBRESOURCES.viewer}`], verbs: ['create'] },
    ],
    aggregatedTo('view', 'edit', 'admin'),
  ),
  clusterRole(
    'coppice:edit',
    [
      {
        apiGroups: [GROUP],
        resources: ['workerclusters', 'credentialsbindings', 'workloadidentities', 'burstpolicies'],
        verbs: [...WRITE, 'deletecollection'],
      },
      { apiGroups: [GROUP], resources: ['workerclusters/scale'], verbs: ['update', 'patch'] },
      { apiGroups: [GROUP], resources: [`workerclusters/${KUBECONFIG_SUBRESOURCES.admin}`], verbs: ['create'] },
    ],
    aggregatedTo('edit', 'admin'),
  ),
  // A request gives nothing by itself: what it asks for is judged by the two subresources above. Nobody sees those of others.
  clusterRole(KUBECONFIG_REQUESTERS, [
    { apiGroups: ['certificates.k8s.io'], resources: ['certificatesigningrequests'], verbs: ['create', 'get'] },
  ]),
  clusterRole(PROFILE_READERS, [{ apiGroups: [GROUP], resources: ['cloudprofiles'], verbs: READ }]),
];

/** A Role, and the binding of its name that gives it to somebody. */
export const roleFor = (name: string, namespace: string, rules: PolicyRule[], subject: object): KubeObject[] => [
  { apiVersion: RBAC, kind: 'Role', metadata: { name, namespace }, rules },
  {
    apiVersion: RBAC,
    kind: 'RoleBinding',
    metadata: { name, namespace },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name },
    subjects: [subject],
  },
];

/** Gives the ClusterRole of that name to a user. */
export const bindToUser = (name: string, user: string): KubeObject => ({
  apiVersion: RBAC,
  kind: 'ClusterRoleBinding',
  metadata: { name },
  roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name },
  subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: user }],
});

/** Lets all who are authenticated ask for kubeconfigs (which they get is another question), and see profiles. The chart has it configured. */
export const authenticatedBindings = (): KubeObject[] =>
  [KUBECONFIG_REQUESTERS, PROFILE_READERS].map((name) => ({
    ...bindToUser(name, ''),
    subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'Group', name: 'system:authenticated' }],
  }));

/**
 * Renewals of the operator's Lease are taken before all that it has asked for itself: a server that is slow under its requests would else
 * have it lose the lease, start anew, and ask for even more.
 */
export const leaseFirst = (user: string): KubeObject => ({
  apiVersion: 'flowcontrol.apiserver.k8s.io/v1',
  kind: 'FlowSchema',
  metadata: { name: 'coppice-leader-election' },
  spec: {
    priorityLevelConfiguration: { name: 'leader-election' },
    // As Kubernetes' own schemas for elections, before those for whoever is authenticated.
    matchingPrecedence: 150,
    distinguisherMethod: { type: 'ByUser' },
    rules: [
      {
        subjects: [{ kind: 'User', user: { name: user } }],
        resourceRules: [
          {
            apiGroups: ['coordination.k8s.io'],
            resources: ['leases'],
            verbs: ['get', 'create', 'update', 'patch'],
            namespaces: ['kube-system'],
          },
        ],
      },
    ],
  },
});
