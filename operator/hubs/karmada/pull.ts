import { type KubeObject, RBAC_ROLES, type Resource, ROLEBINDINGS } from '../../kube/resources.ts';
import type { Identity, Member, Place, Reader, Touch, WantedObject } from '../contract.ts';
import { agentAccess, agentManifests, KUBE_SYSTEM } from './agent.ts';
import { CLUSTER_NAMESPACE, CLUSTERS, isHeardOf } from './cluster.ts';
import { isOurKarmadaCluster, WORKS, worksNamespace, worksNamespaceName } from './seen.ts';
import { clusterNamespace, DAY, type SyncMode } from './sync-mode.ts';

const EXECUTION = 'karmada.io/execution-controller';

interface Identifier {
  readonly group?: string;
  readonly version: string;
  readonly resource: string;
  readonly kind: string;
  readonly namespace?: string;
  readonly name: string;
}
type Work = KubeObject & {
  spec?: { workload?: { manifests?: object[] }; preserveResourcesOnDeletion?: boolean };
  status?: { manifestStatuses?: { identifier: Identifier }[] };
};

/**
 * Works being deleted whose objects are gone from the member but whose finalizer nobody removes: the agent lost its
 * rights with its namespace after it deleted the objects and before it could report. Karmada, and the Cluster, would
 * wait for them for ever. Works with objects that exist or may exist in the member are left out: those objects would
 * remain for good.
 */
async function forsaken(hub: Reader, member: Reader, namespace: string): Promise<Touch[]> {
  const works = (await hub.list(WORKS, { namespace })) as Work[];
  const found = await Promise.all(
    works.map(async (work) => {
      const { name, uid = '', deletionTimestamp, finalizers = [] } = work.metadata;
      if (!deletionTimestamp || !finalizers.includes(EXECUTION) || !(await isEmpty(member, work))) return [];
      // No finalizer can be added to an object that is being deleted.
      const metadata = { finalizers: finalizers.filter((one) => one !== EXECUTION) };
      return [{ on: 'hub' as const, resource: WORKS, namespace, name, uid, patch: { metadata } }];
    }),
  );
  return found.flat();
}

/** Whether none of a Work's objects exist in the member. Karmada's status names the resource of each kind. */
async function isEmpty(member: Reader, { spec, status }: Work): Promise<boolean> {
  const made = (status?.manifestStatuses ?? []).map(({ identifier }) => identifier);
  if (spec?.preserveResourcesOnDeletion || made.length !== (spec?.workload?.manifests ?? []).length) return false;
  for (const { group = '', version, resource: plural, kind, namespace, name } of made) {
    const resource: Resource = { group, version, plural, kind, namespaced: Boolean(namespace) };
    if (await member.get(resource, name, namespace || undefined)) return false;
  }
  return true;
}

/** Identity of a member's agent in the hub. */
const AGENT = 'agent';
const RBAC = 'rbac.authorization.k8s.io';
type Rules = Identity['rules'];

/** An agent in the member pulls its Works from Karmada. The hub gets no access to the member. */
export const pull: SyncMode = {
  dials: 'MemberToHub',
  usesWorksNamespace: true,

  // The rights that `karmadactl register` grants, without those of that command: the agent creates and deletes no
  // Cluster, reports no Secrets and requests no certificates. Rights are restricted by name or namespace wherever
  // Karmada's agent permits it.
  identities: (member) => [
    {
      name: AGENT,
      on: 'hub',
      account: accountOf(member),
      rules: [
        { apiGroups: ['cluster.karmada.io'], resources: ['clusters'], verbs: ['get', 'list', 'watch'] },
        {
          apiGroups: ['cluster.karmada.io'],
          resources: ['clusters/status'],
          resourceNames: [member.name],
          verbs: ['update'],
        },
        {
          apiGroups: ['config.karmada.io'],
          resources: ['resourceinterpreterwebhookconfigurations', 'resourceinterpretercustomizations'],
          verbs: ['get', 'list', 'watch'],
        },
        { apiGroups: [''], resources: ['namespaces'], resourceNames: [KUBE_SYSTEM], verbs: ['get'] },
        { apiGroups: [''], resources: ['services'], verbs: ['list', 'watch'] },
        { apiGroups: [''], resources: ['events'], verbs: ['create', 'patch', 'update'] },
      ],
      life: DAY,
    },
  ],

  reachedBy: ({ endpoint }) => ({ syncMode: 'Pull', apiEndpoint: endpoint.server }),

  access: (member) => [
    ...(member.credentials[AGENT] ? [agentAccess(member, member.credentials[AGENT].token)] : []),
    clusterNamespace(),
    ...roleIn(CLUSTER_NAMESPACE, member, [
      {
        apiGroups: ['coordination.k8s.io'],
        resources: ['leases'],
        resourceNames: [member.name],
        verbs: ['get', 'update'],
      },
      { apiGroups: ['coordination.k8s.io'], resources: ['leases'], verbs: ['create'] },
    ]),
  ],

  async losesWorks(hub, inside, member) {
    const namespace = worksNamespaceName(member.name);
    // While the agent has its rights it removes the finalizers itself.
    const right = await hub.get(ROLEBINDINGS, accountOf(member).name, namespace);
    return right ? [] : forsaken(hub, inside, namespace);
  },

  registered(member, spec, { cluster, hasWorksNamespace }) {
    // An agent without its Cluster, or with a foreign one, must not run.
    if (!isOurKarmadaCluster(member, cluster)) return { apply: [] };
    if (cluster?.metadata.deletionTimestamp)
      return {
        apply: [],
        waiting: `somebody deletes Cluster ${member.name} of the hub: it is created again when it is gone`,
      };
    const namespace = worksNamespaceName(member.name);
    if (!hasWorksNamespace) return { apply: [], waiting: `Karmada has not made Namespace ${namespace} yet` };
    const works = roleIn(namespace, member, [
      {
        apiGroups: ['work.karmada.io'],
        resources: ['works'],
        verbs: ['get', 'create', 'list', 'watch', 'update', 'delete'],
      },
      { apiGroups: ['work.karmada.io'], resources: ['works/status'], verbs: ['patch', 'update'] },
    ]);
    return { apply: [...works, ...agentManifests(member, spec)] };
  },

  removals(member, { cluster, works }) {
    const place: Place = { on: 'hub', resource: CLUSTERS, name: member.name };
    return [
      // The agent's rights to the Works end with their namespace, which is deleted with the Cluster: the Works must
      // go before, while the agent can delete their objects in the member. For a cluster that Karmada considers dead,
      // it removes them itself.
      { places: isHeardOf(cluster) ? works : [] },
      { places: [place], force: [...works, worksNamespace(member)] },
    ];
  },
};

const accountOf = ({ name }: Member) => ({ namespace: KUBE_SYSTEM, name: `coppice-agent-${name}` });

/** The agent's rights in one namespace of the hub. */
function roleIn(namespace: string, member: Member, rules: Rules): WantedObject[] {
  const account = accountOf(member);
  const metadata = { name: account.name, namespace };
  return [
    {
      on: 'hub',
      resource: RBAC_ROLES,
      object: { apiVersion: `${RBAC}/v1`, kind: 'Role', metadata, rules: structuredClone(rules) },
    },
    {
      on: 'hub',
      resource: ROLEBINDINGS,
      object: {
        apiVersion: `${RBAC}/v1`,
        kind: 'RoleBinding',
        metadata,
        roleRef: { apiGroup: RBAC, kind: 'Role', name: account.name },
        subjects: [{ kind: 'ServiceAccount', ...account }],
      },
    },
  ];
}
