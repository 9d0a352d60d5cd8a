import { ROLEBINDINGS, ROLES } from '../../kube/resources.ts';
import type { Identity, Member, Place, Wanted } from '../contract.ts';
import { agent, agentAccess, KUBE_SYSTEM } from './agent.ts';
import { CLUSTER_NAMESPACE, CLUSTERS, isReady } from './cluster.ts';
import { forsaken } from './forsaken.ts';
import { isOurs, worksNamespace, worksNamespaceName } from './seen.ts';
import { clusterNamespace, DAY, type SyncMode } from './sync-mode.ts';

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
