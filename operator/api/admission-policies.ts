import { certificateRequests } from './certificate-request-policy.ts';
import { ALPHA_VERSION, ANNOTATIONS, GROUP, LABELS, VERSION } from './group.ts';
import type { KubeObject } from './meta.ts';
import { IDENTITY_ACCOUNT_PREFIX } from './names.ts';
import { refusingPolicy } from './refusing-policy.ts';
import { OPERATOR_USER } from './roles.ts';

const POLICY = `deletion-protection.${GROUP}`;

/** Admission policy that refuses the deletion of protected objects, without a webhook server. */
function deletionProtection(): KubeObject[] {
  const annotation = `'${ANNOTATIONS.deletionProtection}'`;
  return refusingPolicy(POLICY, {
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
  // In a cluster, the operator's user is ServiceAccount coppice-operator of its namespace.
  expression: `request.userInfo.username == '${OPERATOR_USER}' || request.userInfo.username.endsWith(':coppice-operator')`,
};

const EXPIRY = `expiry.${GROUP}`;

/** CEL: the operator created the object for a Cluster of Cluster API, which outlives the object. */
const ATTACHED_BY_US = [
  "has(variables.cluster.spec.mode) && variables.cluster.spec.mode == 'Attached'",
  `has(variables.cluster.metadata.labels) && '${LABELS.managedBy}' in variables.cluster.metadata.labels`,
  `variables.cluster.metadata.labels['${LABELS.managedBy}'] == 'coppice'`,
  'has(variables.cluster.metadata.ownerReferences)',
  "variables.cluster.metadata.ownerReferences.exists(r, r.kind == 'Cluster' && r.apiVersion.startsWith('cluster.x-k8s.io/'))",
].join(' && ');

/** CEL: the operator created the object for a BurstPolicy. */
const MADE_FOR_BURST = [
  `has(variables.cluster.metadata.labels) && '${LABELS.burstPolicy}' in variables.cluster.metadata.labels`,
  'has(variables.cluster.metadata.ownerReferences)',
  `variables.cluster.metadata.ownerReferences.exists(r, r.kind == 'BurstPolicy' && r.apiVersion.startsWith('${GROUP}/'))`,
].join(' && ');

/**
 * Limits which WorkerClusters the operator may create and delete: those of BurstPolicies and of Cluster API's Clusters,
 * and deletion after ttl. RBAC cannot express that. A fault of the operator, or a thief of its credentials, cannot
 * delete people's clusters, and a late apply cannot create a deleted cluster again.
 */
function clustersByOperator(): KubeObject[] {
  return refusingPolicy(EXPIRY, {
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

/** Refuses to delete a Hub with members: one mistake would make a whole fleet leave it. */
function hubsWithMembers(): KubeObject[] {
  return refusingPolicy(HUB_MEMBERS, {
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
          "'Hub ' + oldObject.metadata.name + ' has ' + string(oldObject.status.memberships) + ' members. Have them leave first by its allowedNamespaces. Or set spec.orphan to true: they then stay as they are'",
        message: 'the Hub has members: have them leave first, or set spec.orphan to true',
        reason: 'Forbidden',
      },
    ],
  });
}

const BURST_POLICIES = `burst-policies.${GROUP}`;

/**
 * Refuses a BurstPolicy whose author may not create its WorkerClusters: the operator creates them, so the author would
 * borrow the operator's rights.
 */
function burstPolicies(): KubeObject[] {
  const may = `authorizer.group('${GROUP}').resource('workerclusters').namespace(object.metadata.namespace)`;
  return refusingPolicy(BURST_POLICIES, {
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
        // A change outside of spec (a finalizer, a label) buys nothing.
        expression: `(oldObject != null && object.spec == oldObject.spec) || (${may}.check('create').allowed() && ${may}.check('delete').allowed())`,
        messageExpression:
          "'a BurstPolicy makes and deletes WorkerClusters: only who may do so in namespace ' + object.metadata.namespace + ' may write one there'",
        message: 'only who may create and delete WorkerClusters in its namespace may write a BurstPolicy',
        reason: 'Forbidden',
      },
    ],
  });
}

const CLUSTERS_SHOOTS = `shoots-of-clusters.${GROUP}`;

/** Kubernetes' own deleters: garbage collection of owned objects and of namespaces. */
const CONTROLLERS = [
  'system:serviceaccount:kube-system:generic-garbage-collector',
  'system:serviceaccount:kube-system:namespace-controller',
  // Both users, for a controller manager without credentials per controller.
  'system:kube-controller-manager',
];

/**
 * Refuses to delete the Shoot of a WorkerCluster: the operator would destroy the cluster with its data and make it
 * again.
 */
function shootsOfClusters(): KubeObject[] {
  return refusingPolicy(CLUSTERS_SHOOTS, {
    matchConstraints: {
      resourceRules: [{ apiGroups: [GROUP], apiVersions: [VERSION], operations: ['DELETE'], resources: ['shoots'] }],
    },
    matchConditions: [
      { name: 'not-by-the-operator', expression: `!(${BY_THE_OPERATOR.expression})` },
      {
        name: 'not-by-kubernetes',
        expression: `!(request.userInfo.username in [${CONTROLLERS.map((name) => `'${name}'`).join(', ')}])`,
      },
    ],
    variables: [
      {
        name: 'owners',
        expression: `has(oldObject.metadata.ownerReferences) ? oldObject.metadata.ownerReferences.filter(r, r.kind == 'WorkerCluster' && r.apiVersion.startsWith('${GROUP}/')) : []`,
      },
    ],
    validations: [
      {
        expression: 'size(variables.owners) == 0',
        messageExpression:
          "'Shoot ' + oldObject.metadata.name + ' belongs to a cluster, which goes with its WorkerCluster: kubectl delete workercluster ' + variables.owners[0].name + ' --namespace ' + oldObject.metadata.namespace",
        message: 'the Shoot belongs to a WorkerCluster: delete that one',
        reason: 'Forbidden',
      },
    ],
  });
}

const IDENTITIES = `identity-tokens.${GROUP}`;
const TOKEN_SECRETS = `token-secrets.${GROUP}`;

/**
 * Limits token requests of the operator to ServiceAccounts of WorkloadIdentities. RBAC cannot express that. A thief of
 * the operator's credentials cannot become other ServiceAccounts of the garden, by a token request or by a token
 * Secret.
 */
function identityTokens(): KubeObject[] {
  const requests = refusingPolicy(IDENTITIES, {
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
  const secrets = refusingPolicy(TOKEN_SECRETS, {
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
 * Refuses references to credentials of another namespace. The operator follows none either; the policy reports that at
 * once. CRD rules cannot, because they do not see the object's namespace.
 */
function ownCredentials(): KubeObject[] {
  return refusingPolicy(TENANTS, {
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
        // A newer rule must not block the deletion of an object.
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
 * Every admission policy with its binding, by file name in the chart. An embedded garden and the chart install the same
 * ones.
 */
export const admissionPolicies = (): ReadonlyMap<string, readonly KubeObject[]> =>
  new Map([
    ['deletion-protection', deletionProtection()],
    ['clusters-by-operator', clustersByOperator()],
    ['own-credentials', ownCredentials()],
    ['identity-tokens', identityTokens()],
    ['hub-members', hubsWithMembers()],
    ['burst-policies', burstPolicies()],
    ['shoots-of-clusters', shootsOfClusters()],
    ['certificate-requests', certificateRequests()],
  ]);
