import { GROUP } from './group.ts';
import { KUBECONFIG_SIGNERS, KUBECONFIG_SUBRESOURCES } from './kubeconfig-request.ts';
import type { KubeObject } from './meta.ts';
import { CONTROL_PLANE_PRIORITY, OPERATOR_LEASE } from './names.ts';

/** User, and ClusterRole, of the operator of an embedded garden. */
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

/** Rights of the operator in the garden. */
export function gardenRules(): PolicyRule[] {
  return [
    {
      apiGroups: [GROUP],
      resources: ['workerclusters', 'seeds', 'cloudprofiles', 'credentialsbindings', 'workloadidentities'],
      verbs: [...READ, 'update', 'patch'],
    },
    // Creates and deletes clusters of BurstPolicies, and deletes clusters after their ttl.
    { apiGroups: [GROUP], resources: ['workerclusters'], verbs: ['create', 'delete'] },
    // Only people write policies.
    { apiGroups: [GROUP], resources: ['burstpolicies'], verbs: [...READ, 'patch'] },
    // Read only: the operator must not raise the quotas that bind it.
    { apiGroups: [GROUP], resources: ['quotas'], verbs: READ },
    // Only administrators decide which clusters join which hub.
    { apiGroups: [GROUP], resources: ['hubs'], verbs: [...READ, 'patch'] },
    { apiGroups: [GROUP], resources: ['memberships'], verbs: [...READ, ...WRITE] },
    // For a garden that is also a hub.
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
    // Answers Kueue's AdmissionChecks.
    {
      apiGroups: ['kueue.x-k8s.io'],
      resources: ['admissionchecks/status', 'workloads/status'],
      verbs: ['get', 'patch'],
    },
    // Shoots are made for WorkerClusters, and deleted with them.
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
    // ServiceAccounts of WorkloadIdentities, and tokens for clouds. An admission policy limits the accounts.
    { apiGroups: [''], resources: ['serviceaccounts'], verbs: ['get', 'create', 'patch'] },
    { apiGroups: [''], resources: ['serviceaccounts/token'], verbs: ['create'] },
    // Requests for kubeconfigs: the operator signs for two signers of its own, and asks by SubjectAccessReview who may
    // have which.
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
    // The UID of kube-system identifies the garden in cloud tags and on namespaces in seeds.
    { apiGroups: [''], resources: ['namespaces'], resourceNames: ['kube-system'], verbs: ['get'] },
    { apiGroups: ['', 'events.k8s.io'], resources: ['events'], verbs: ['create', 'patch', 'update'] },
    // Service ranges that mesh ranges must not overlap.
    { apiGroups: ['networking.k8s.io'], resources: ['servicecidrs'], verbs: ['list'] },
  ];
}

/**
 * Further rights in the operator's own namespace only, because Leases elsewhere elect other leaders and keep nodes
 * alive.
 */
export function ownNamespaceRules(): PolicyRule[] {
  const leases = { apiGroups: ['coordination.k8s.io'], resources: ['leases'] };
  return [
    { ...leases, resourceNames: [OPERATOR_LEASE], verbs: ['get', 'update'] },
    // RBAC cannot limit `create` by name.
    { ...leases, verbs: ['create'] },
    // To check whether an earlier leader is gone for good, so that its locks can be taken over.
    { apiGroups: [''], resources: ['pods'], verbs: ['get'] },
  ];
}

/** Rights of the operator in a seed: those for hosted control planes and their machines. */
export function seedRules(): PolicyRule[] {
  return [
    { apiGroups: [''], resources: ['namespaces'], verbs: [...READ, ...WRITE] },
    {
      apiGroups: [''],
      resources: ['secrets', 'configmaps', 'services', 'persistentvolumeclaims'],
      verbs: [...READ, ...WRITE, 'deletecollection'],
    },
    { apiGroups: [''], resources: ['pods'], verbs: [...READ, ...WRITE, 'deletecollection'] },
    // Port-forward to etcd in a seed whose Services cannot be reached; a `get` over WebSockets, since 1.35 also a
    // `create`.
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
    // A full seed evicts machines and other pods for control plane pods.
    {
      apiGroups: ['scheduling.k8s.io'],
      resources: ['priorityclasses'],
      resourceNames: [CONTROL_PLANE_PRIORITY],
      verbs: ['get'],
    },
    // RBAC cannot limit `create` by name.
    { apiGroups: ['scheduling.k8s.io'], resources: ['priorityclasses'], verbs: ['create'] },
  ];
}

/** Rights of the chart's Job that updates CRDs: limited to Coppice's. */
export const crdJobRules = (names: readonly string[]): PolicyRule[] => [
  {
    apiGroups: ['apiextensions.k8s.io'],
    resources: ['customresourcedefinitions'],
    resourceNames: [...names],
    verbs: ['get', 'update'],
  },
  // RBAC cannot limit `create` by name.
  { apiGroups: ['apiextensions.k8s.io'], resources: ['customresourcedefinitions'], verbs: ['create'] },
];

/** Rights of the chart's Job that checks for remaining clusters before uninstallation. */
export const uninstallJobRules = (): PolicyRule[] => [
  { apiGroups: [GROUP], resources: ['workerclusters', 'shoots'], verbs: ['list'] },
];

export const clusterRole = (name: string, rules: PolicyRule[], labels?: Record<string, string>): KubeObject => ({
  apiVersion: RBAC,
  kind: 'ClusterRole',
  metadata: { name, ...(labels && { labels }) },
  rules,
});

/** ClusterRole of users who may request kubeconfigs. */
export const KUBECONFIG_REQUESTERS = 'coppice:kubeconfig-requesters';
/** ClusterRole of users who may read CloudProfiles, which are cluster-scoped. */
export const PROFILE_READERS = 'coppice:profile-readers';

/** Labels by which Kubernetes aggregates the rules into its own roles. */
const aggregatedTo = (...roles: ('view' | 'edit' | 'admin')[]): Record<string, string> =>
  Object.fromEntries(roles.map((role) => [`rbac.authorization.k8s.io/aggregate-to-${role}`, 'true']));

/**
 * Roles of tenants, aggregated into Kubernetes' roles view, edit and admin. None may write status (which says what was
 * granted), Shoots (which quotas do not refuse on apply), Quotas, Hubs or Memberships.
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
  // A request grants nothing: the operator checks the two subresources above. Nobody can list requests of others.
  clusterRole(KUBECONFIG_REQUESTERS, [
    { apiGroups: ['certificates.k8s.io'], resources: ['certificatesigningrequests'], verbs: ['create', 'get'] },
  ]),
  clusterRole(PROFILE_READERS, [{ apiGroups: [GROUP], resources: ['cloudprofiles'], verbs: READ }]),
];

/** A Role and a RoleBinding of the same name. */
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

/** Binds the ClusterRole of that name to a user. */
export const bindToUser = (name: string, user: string): KubeObject => ({
  apiVersion: RBAC,
  kind: 'ClusterRoleBinding',
  metadata: { name },
  roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name },
  subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: user }],
});

/**
 * Lets all authenticated users request kubeconfigs (which are granted separately) and read CloudProfiles. Configurable
 * in the chart.
 */
export const authenticatedBindings = (): KubeObject[] =>
  [KUBECONFIG_REQUESTERS, PROFILE_READERS].map((name) => ({
    ...bindToUser(name, ''),
    subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'Group', name: 'system:authenticated' }],
  }));

/**
 * Flow schema for the operator's Lease, before its other requests: on a slow server the operator would lose the Lease
 * behind its own requests, restart, and send even more.
 */
export const leaseFirst = (user: string): KubeObject => ({
  apiVersion: 'flowcontrol.apiserver.k8s.io/v1',
  kind: 'FlowSchema',
  metadata: { name: 'coppice-leader-election' },
  spec: {
    priorityLevelConfiguration: { name: 'leader-election' },
    // Like Kubernetes' own schemas for elections, before those for authenticated users.
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
