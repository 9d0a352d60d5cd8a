import { type KubeObject, type Resource, ROLEBINDINGS, ROLES } from '../../kube/resources.ts';
import type { Identity, Member, Place, Reader, Touch, Wanted } from '../contract.ts';
import { agent, agentAccess, KUBE_SYSTEM } from './agent.ts';
import { CLUSTER_NAMESPACE, CLUSTERS, isReady } from './cluster.ts';
import { isOurs, WORKS, worksNamespace, worksNamespaceName } from './seen.ts';
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
 * Works on their way out of which nothing is in the member any more, and of which nobody lets go: the agent's right to them went with their
 * namespace before they did, so it took away what they made and could not say so. Karmada waits for them for ever, and the Cluster with it.
 * What still has something in the member, or may have, is not among them: it would stay there for good.
 */
async function forsaken(hub: Reader, member: Reader, namespace: string): Promise<Touch[]> {
  const works = (await hub.list(WORKS, { namespace })) as Work[];
  const found = await Promise.all(
    works.map(async (work) => {
      const { name, uid = '', deletionTimestamp, finalizers = [] } = work.metadata;
      if (!deletionTimestamp || !finalizers.includes(EXECUTION) || !(await isEmpty(member, work))) return [];
      // To what is being deleted nobody adds one in between.
      const metadata = { finalizers: finalizers.filter((one) => one !== EXECUTION) };
      return [{ on: 'hub' as const, resource: WORKS, namespace, name, uid, patch: { metadata } }];
    }),
  );
  return found.flat();
}

/** Whether nothing of what it says is in the member. Karmada tells by which name the API server has each kind. */
async function isEmpty(member: Reader, { spec, status }: Work): Promise<boolean> {
  const made = (status?.manifestStatuses ?? []).map(({ identifier }) => identifier);
  if (spec?.preserveResourcesOnDeletion || made.length !== (spec?.workload?.manifests ?? []).length) return false;
  for (const { group = '', version, resource: plural, kind, namespace, name } of made) {
    const resource: Resource = { group, version, plural, kind, namespaced: Boolean(namespace) };
    if (await member.get(resource, name, namespace || undefined)) return false;
  }
  return true;
}

/** Whom the agent of a member is in the hub. */
const AGENT = 'agent';
const RBAC = 'rbac.authorization.k8s.io';
type Rules = Identity['rules'];

/** An agent in the member takes its Works from Karmada. Nobody of the hub gets a way into the member. */
export const pull: SyncMode = {
  dials: 'MemberToHub',
  usesWorksNamespace: true,

  // What `karmadactl register` gives, less what only that needs: the agent makes and deletes no Cluster, reports no Secrets and asks for no
  // certificates. Whose is what is narrowed by name or namespace wherever Karmada's agent allows it.
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
    // As long as it has its right the agent lets go of them itself.
    const right = await hub.get(ROLEBINDINGS, accountOf(member).name, namespace);
    return right ? [] : forsaken(hub, inside, namespace);
  },

  registered(member, spec, { cluster, hasWorksNamespace }) {
    // An agent that finds no Cluster, or somebody else's, must not be there.
    if (!isOurs(member, cluster)) return { apply: [] };
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
    return { apply: [...works, ...agent(member, spec)] };
  },

  removals(member, { cluster, works }) {
    const place: Place = { on: 'hub', resource: CLUSTERS, name: member.name };
    return [
      // The agent's right to the Works ends with their namespace, which goes with the Cluster: they have to go before, while somebody takes
      // them away in the member. Of a cluster that it holds for dead Karmada drops them itself.
      { places: isReady(cluster) ? works : [] },
      { places: [place], force: [...works, worksNamespace(member)] },
    ];
  },
};

const accountOf = ({ name }: Member) => ({ namespace: KUBE_SYSTEM, name: `coppice-agent-${name}` });

/** Rights of the agent in one namespace of the hub. */
function roleIn(namespace: string, member: Member, rules: Rules): Wanted[] {
  const account = accountOf(member);
  const metadata = { name: account.name, namespace };
  return [
    {
      on: 'hub',
      resource: ROLES,
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
