import { crds } from './crd.ts';
import { ALPHA_VERSION, ANNOTATIONS, GROUP, LABELS, VERSION } from './group.ts';
import type { KubeObject } from './meta.ts';
import { IDENTITY_ACCOUNT_PREFIX } from './names.ts';

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
    { apiGroups: ['kueue.x-k8s.io'], resources: ['workloads', 'localqueues'], verbs: READ },
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
    // Its UID is the garden's own: part of the tags in clouds, and on namespaces in seeds.
    { apiGroups: [''], resources: ['namespaces'], resourceNames: ['kube-system'], verbs: ['get'] },
    // Whether one that led before is gone for good, so that what it has locked can be taken over.
    { apiGroups: [''], resources: ['pods'], verbs: ['get'] },
    { apiGroups: ['', 'events.k8s.io'], resources: ['events'], verbs: ['create', 'patch', 'update'] },
    { apiGroups: ['coordination.k8s.io'], resources: ['leases'], verbs: [...READ, ...WRITE] },
    // Ranges that no cluster of a mesh is given.
    { apiGroups: ['networking.k8s.io'], resources: ['servicecidrs'], verbs: ['list'] },
  ];
}

/** What the operator may do in a seed: everything there is to a hosted control plane and its machines, and no more. */
export function seedRules(): PolicyRule[] {
  return [
    { apiGroups: [''], resources: ['namespaces'], verbs: [...READ, ...WRITE] },
    {
      apiGroups: [''],
      resources: ['secrets', 'configmaps', 'services', 'persistentvolumeclaims', 'serviceaccounts'],
      verbs: [...READ, ...WRITE, 'deletecollection'],
    },
    { apiGroups: [''], resources: ['pods'], verbs: [...READ, ...WRITE, 'deletecollection'] },
    { apiGroups: [''], resources: ['pods/status'], verbs: ['get', 'patch'] },
    { apiGroups: [''], resources: ['pods/eviction'], verbs: ['create'] },
    { apiGroups: [''], resources: ['pods/log'], verbs: ['get'] },
    // The way to etcd in a seed whose Services have no way from here; over WebSockets it is a get, since 1.35 also a create.
    { apiGroups: [''], resources: ['pods/portforward'], verbs: ['get', 'create'] },
    { apiGroups: [''], resources: ['nodes', 'persistentvolumes'], verbs: READ },
    { apiGroups: [''], resources: ['events'], verbs: [...READ, 'create', 'patch', 'update'] },
    {
      apiGroups: ['apps'],
      resources: ['deployments', 'replicasets', 'statefulsets'],
      verbs: [...READ, ...WRITE, 'deletecollection'],
    },
    { apiGroups: ['apps'], resources: ['deployments/scale', 'statefulsets/scale'], verbs: ['get', 'update', 'patch'] },
    { apiGroups: ['apps'], resources: ['controllerrevisions'], verbs: READ },
    { apiGroups: ['policy'], resources: ['poddisruptionbudgets'], verbs: [...READ, ...WRITE] },
    { apiGroups: ['networking.k8s.io'], resources: ['networkpolicies'], verbs: [...READ, ...WRITE] },
    { apiGroups: ['discovery.k8s.io'], resources: ['endpointslices'], verbs: [...READ, ...WRITE] },
    { apiGroups: ['coordination.k8s.io'], resources: ['leases'], verbs: [...READ, ...WRITE] },
  ];
}

/** A ClusterRole. */
export const clusterRole = (name: string, rules: PolicyRule[], labels?: Record<string, string>): KubeObject => ({
  apiVersion: RBAC,
  kind: 'ClusterRole',
  metadata: { name, ...(labels && { labels }) },
  rules,
});

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
    ],
    aggregatedTo('edit', 'admin'),
  ),
];

const bindToUser = (name: string, user: string): KubeObject => ({
  apiVersion: RBAC,
  kind: 'ClusterRoleBinding',
  metadata: { name },
  roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name },
  subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: user }],
});

/**
 * Renewals of the operator's Lease are taken before all that it has asked for itself: a server that is slow under its requests would else
 * have it lose the lease, start anew, and ask for even more.
 */
const leaseFirst = (user: string): KubeObject => ({
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

/** A policy with its binding: what it finds fault with is refused, and so is everything while it cannot be asked. */
const refusing = (name: string, rules: Record<string, unknown>): KubeObject[] => [
  {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingAdmissionPolicy',
    metadata: { name },
    spec: { failurePolicy: 'Fail', ...rules },
  },
  {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingAdmissionPolicyBinding',
    metadata: { name },
    spec: { policyName: name, validationActions: ['Deny'] },
  },
];

const POLICY = `deletion-protection.${GROUP}`;

/** Refuses to delete what is protected. No webhook server is needed for that. */
export function deletionProtection(): KubeObject[] {
  const annotation = `'${ANNOTATIONS.deletionProtection}'`;
  return refusing(POLICY, {
    matchConstraints: {
      resourceRules: [
        {
          apiGroups: [GROUP],
          apiVersions: [VERSION, ALPHA_VERSION],
          operations: ['DELETE'],
          resources: ['*'],
          scope: '*',
        },
      ],
    },
    variables: [
      {
        name: 'bySpec',
        expression:
          'has(oldObject.spec) && has(oldObject.spec.deletionProtection) && oldObject.spec.deletionProtection == true',
      },
      {
        name: 'byAnnotation',
        expression: `has(oldObject.metadata.annotations) && ${annotation} in oldObject.metadata.annotations && oldObject.metadata.annotations[${annotation}] == 'true'`,
      },
    ],
    validations: [
      {
        expression: '!variables.bySpec',
        messageExpression:
          "oldObject.kind + ' ' + oldObject.metadata.name + ' is protected from deletion: set spec.deletionProtection to false first'",
        message: 'protected from deletion: set spec.deletionProtection to false first',
        reason: 'Forbidden',
      },
      {
        expression: '!variables.byAnnotation',
        messageExpression: `oldObject.kind + ' ' + oldObject.metadata.name + ' is protected from deletion: remove the annotation ${ANNOTATIONS.deletionProtection} first'`,
        message: `protected from deletion: remove the annotation ${ANNOTATIONS.deletionProtection} first`,
        reason: 'Forbidden',
      },
    ],
  });
}

const BY_THE_OPERATOR = {
  name: 'by-the-operator',
  // In a cluster it is the ServiceAccount coppice-operator of some namespace.
  expression: `request.userInfo.username == '${OPERATOR_USER}' || request.userInfo.username.endsWith(':coppice-operator')`,
};

const EXPIRY = `expiry.${GROUP}`;

/** In CEL: the operator makes the object for a Cluster of Cluster API, which lives on without it. */
const ATTACHED_BY_US = [
  "has(variables.cluster.spec.mode) && variables.cluster.spec.mode == 'Attached'",
  `has(variables.cluster.metadata.labels) && '${LABELS.managedBy}' in variables.cluster.metadata.labels`,
  `variables.cluster.metadata.labels['${LABELS.managedBy}'] == 'coppice'`,
  'has(variables.cluster.metadata.ownerReferences)',
  "variables.cluster.metadata.ownerReferences.exists(r, r.kind == 'Cluster' && r.apiVersion.startsWith('cluster.x-k8s.io/'))",
].join(' && ');

/** In CEL: the operator makes the object for a BurstPolicy. */
const MADE_FOR_BURST = [
  `has(variables.cluster.metadata.labels) && '${LABELS.burstPolicy}' in variables.cluster.metadata.labels`,
  'has(variables.cluster.metadata.ownerReferences)',
  `variables.cluster.metadata.ownerReferences.exists(r, r.kind == 'BurstPolicy' && r.apiVersion.startsWith('${GROUP}/'))`,
].join(' && ');

/**
 * The operator makes WorkerClusters for BurstPolicies and for Clusters of Cluster API, and deletes those, and what its ttl is over of. RBAC
 * knows no "only those", and a policy no clock; this keeps a mistake of the operator's, or a thief of its credentials, from all clusters that
 * people made to stay, and keeps what it applies to a cluster that has just gone from making it anew.
 */
export function clustersByOperator(): KubeObject[] {
  return refusing(EXPIRY, {
    matchConstraints: {
      resourceRules: [
        { apiGroups: [GROUP], apiVersions: [VERSION], operations: ['CREATE', 'DELETE'], resources: ['workerclusters'] },
      ],
    },
    matchConditions: [BY_THE_OPERATOR],
    variables: [
      { name: 'cluster', expression: "request.operation == 'DELETE' ? oldObject : object" },
      { name: 'isOurs', expression: `(${ATTACHED_BY_US}) || (${MADE_FOR_BURST})` },
    ],
    validations: [
      {
        expression: "request.operation == 'CREATE' || has(oldObject.spec.ttl) || variables.isOurs",
        message:
          'the operator deletes only clusters that have a ttl, and those that it attached for Cluster API or made for a BurstPolicy',
        reason: 'Forbidden',
      },
      {
        expression: "request.operation == 'DELETE' || variables.isOurs",
        message: 'the operator makes clusters for Cluster API and BurstPolicies only',
        reason: 'Forbidden',
      },
    ],
  });
}

const HUB_MEMBERS = `hub-members.${GROUP}`;

/** Refuses to delete a Hub that has members: by one slip of the keyboard a whole fleet would leave it. */
export function hubsWithMembers(): KubeObject[] {
  return refusing(HUB_MEMBERS, {
    matchConstraints: {
      resourceRules: [
        { apiGroups: [GROUP], apiVersions: [ALPHA_VERSION], operations: ['DELETE'], resources: ['hubs'] },
      ],
    },
    validations: [
      {
        expression:
          '(has(oldObject.spec.orphan) && oldObject.spec.orphan) || !has(oldObject.status) || !has(oldObject.status.memberships) || oldObject.status.memberships == 0',
        messageExpression:
          "'Hub ' + oldObject.metadata.name + ' has ' + string(oldObject.status.memberships) + ' members: have them leave first by its allowedNamespaces, or set spec.orphan to true to let go of them as they are'",
        message: 'the Hub has members: have them leave first, or set spec.orphan to true',
        reason: 'Forbidden',
      },
    ],
  });
}

const BURST_POLICIES = `burst-policies.${GROUP}`;

/**
 * Refuses a BurstPolicy of somebody who could not create its WorkerClusters: the operator makes them, so without this whoever may write
 * policies would borrow its rights.
 */
export function burstPolicies(): KubeObject[] {
  const may = `authorizer.group('${GROUP}').resource('workerclusters').namespace(object.metadata.namespace)`;
  return refusing(BURST_POLICIES, {
    matchConstraints: {
      resourceRules: [
        {
          apiGroups: [GROUP],
          apiVersions: [ALPHA_VERSION],
          operations: ['CREATE', 'UPDATE'],
          resources: ['burstpolicies'],
        },
      ],
    },
    validations: [
      {
        // Who changes nothing of what it asks for (a finalizer, a label) spends nothing.
        expression: `(oldObject != null && object.spec == oldObject.spec) || (${may}.check('create').allowed() && ${may}.check('delete').allowed())`,
        messageExpression:
          "'a BurstPolicy makes and deletes WorkerClusters: only who may do so in namespace ' + object.metadata.namespace + ' may write one there'",
        message: 'only who may create and delete WorkerClusters in its namespace may write a BurstPolicy',
        reason: 'Forbidden',
      },
    ],
  });
}

const IDENTITIES = `identity-tokens.${GROUP}`;
const TOKEN_SECRETS = `token-secrets.${GROUP}`;

/**
 * The operator has tokens made of ServiceAccounts that belong to WorkloadIdentities. RBAC knows no "only those"; this keeps a thief of
 * the operator's credentials from becoming every other ServiceAccount of the garden, be it by a request or by a Secret that Kubernetes
 * puts a token into.
 */
export function identityTokens(): KubeObject[] {
  const requests = refusing(IDENTITIES, {
    matchConstraints: {
      resourceRules: [
        { apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['serviceaccounts/token'] },
      ],
    },
    matchConditions: [BY_THE_OPERATOR],
    validations: [
      {
        expression: `request.name.startsWith('${IDENTITY_ACCOUNT_PREFIX}')`,
        message: 'the operator has tokens made of the ServiceAccounts of WorkloadIdentities only',
        reason: 'Forbidden',
      },
    ],
  });
  const secrets = refusing(TOKEN_SECRETS, {
    matchConstraints: {
      resourceRules: [
        { apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE', 'UPDATE'], resources: ['secrets'] },
      ],
    },
    matchConditions: [BY_THE_OPERATOR],
    validations: [
      {
        expression: "!has(object.type) || object.type != 'kubernetes.io/service-account-token'",
        message: 'the operator makes no Secrets that Kubernetes puts tokens of ServiceAccounts into',
        reason: 'Forbidden',
      },
    ],
  });
  return [...requests, ...secrets];
}

const TENANTS = `own-credentials.${GROUP}`;

/**
 * Refuses references to credentials of another namespace. The operator follows none either; this says so at once, where
 * the CRD's own rules cannot: they do not see the object's namespace.
 */
export function ownCredentials(): KubeObject[] {
  return refusing(TENANTS, {
    matchConstraints: {
      resourceRules: [
        {
          apiGroups: [GROUP],
          apiVersions: [VERSION],
          operations: ['CREATE', 'UPDATE'],
          resources: ['workerclusters', 'credentialsbindings'],
        },
      ],
    },
    variables: [
      {
        name: 'ref',
        expression: `object.kind == 'WorkerCluster' ? (has(object.spec.credentialsRef) ? object.spec.credentialsRef : null) : object.credentialsRef`,
      },
    ],
    validations: [
      {
        // An object that is on its way out must not be held by a rule that came after it.
        expression:
          'has(object.metadata.deletionTimestamp) || variables.ref == null || !has(variables.ref.namespace) || variables.ref.namespace == object.metadata.namespace',
        messageExpression:
          "'credentialsRef names ' + variables.ref.namespace + '/' + variables.ref.name + ', but credentials are used in their own namespace only: put them into namespace ' + object.metadata.namespace",
        message: 'credentials are used in their own namespace only',
        reason: 'Forbidden',
      },
    ],
  });
}

/**
 * Everything that an API server needs to be an embedded garden, in the order to apply it: CRDs, deletion protection, the
 * rights of the operator (user OPERATOR_USER) in the garden and, because it is its own seed, in the seed, roles of tenants, and the
 * priority of its Lease.
 */
export function installManifests(): KubeObject[] {
  const seedRole = `${OPERATOR_USER}:seed`;
  return [
    ...crds(),
    ...deletionProtection(),
    ...clustersByOperator(),
    ...ownCredentials(),
    ...identityTokens(),
    ...hubsWithMembers(),
    ...burstPolicies(),
    clusterRole(OPERATOR_USER, gardenRules()),
    bindToUser(OPERATOR_USER, OPERATOR_USER),
    clusterRole(seedRole, seedRules()),
    bindToUser(seedRole, OPERATOR_USER),
    ...tenantRoles(),
    leaseFirst(OPERATOR_USER),
  ];
}
