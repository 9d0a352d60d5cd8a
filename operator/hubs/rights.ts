import type { Identity, Member } from './contract.ts';

type Rules = Identity['rules'];

/** Name of a hub's ServiceAccount in its members: a cluster may be in several hubs. */
export const accountName = ({ hubName }: Member): string => `coppice-hub-${hubName}`;

/** All rights, as the documentation of hubs that apply arbitrary objects requires. */
export const MANAGE_RULES: Rules = [
  { apiGroups: ['*'], resources: ['*'], verbs: ['*'] },
  { nonResourceURLs: ['*'], verbs: ['get'] },
];

const ALL = ['create', 'update', 'patch', 'delete', 'deletecollection'];

/**
 * Reads everything, and writes workload kinds: no roles, tokens, nodes, namespaces, CRDs, webhooks or exec into pods.
 */
export const WORKLOAD_RULES: Rules = [
  { apiGroups: ['*'], resources: ['*'], verbs: ['get', 'list', 'watch'] },
  { nonResourceURLs: ['*'], verbs: ['get'] },
  {
    apiGroups: [''],
    resources: [
      'configmaps',
      'endpoints',
      'limitranges',
      'persistentvolumeclaims',
      'pods',
      'replicationcontrollers',
      'resourcequotas',
      'secrets',
      'serviceaccounts',
      'services',
    ],
    verbs: ALL,
  },
  { apiGroups: ['apps'], resources: ['daemonsets', 'deployments', 'replicasets', 'statefulsets'], verbs: ALL },
  { apiGroups: ['autoscaling'], resources: ['horizontalpodautoscalers'], verbs: ALL },
  { apiGroups: ['batch'], resources: ['cronjobs', 'jobs'], verbs: ALL },
  { apiGroups: ['networking.k8s.io'], resources: ['ingresses', 'networkpolicies'], verbs: ALL },
  { apiGroups: ['policy'], resources: ['poddisruptionbudgets'], verbs: ALL },
];

/** Rules of a Hub's field `rights`. */
export const rulesOf = (rights: 'Manage' | 'Workloads' | undefined): Rules =>
  rights === 'Workloads' ? WORKLOAD_RULES : MANAGE_RULES;

const RUN = ['create', 'delete', 'get', 'list', 'watch'];
/** Job kinds that Kueue can run in a worker. Kueue watches all configured kinds, or fails to connect. */
const JOBS: readonly [group: string, ...resources: string[]][] = [
  ['', 'pods'],
  ['apps', 'statefulsets'],
  ['batch', 'jobs'],
  ['jobset.x-k8s.io', 'jobsets'],
  ['kubeflow.org', 'jaxjobs', 'mpijobs', 'paddlejobs', 'pytorchjobs', 'tfjobs', 'xgboostjobs'],
  ['leaderworkerset.x-k8s.io', 'leaderworkersets'],
  ['ray.io', 'rayclusters', 'rayjobs', 'rayservices'],
  ['trainer.kubeflow.org', 'trainjobs'],
  ['workload.codeflare.dev', 'appwrappers'],
];
/**
 * Rights that Kueue's documentation requires: jobs and Workloads, and nothing that leads to further rights except
 * through pods.
 */
export const KUEUE_RULES: Identity['rules'] = [
  ...JOBS.flatMap(([group, ...resources]) => [
    { apiGroups: [group], resources, verbs: RUN },
    { apiGroups: [group], resources: resources.map((one) => `${one}/status`), verbs: ['get'] },
  ]),
  // They are resized while they run.
  { apiGroups: ['ray.io'], resources: ['rayclusters'], verbs: ['patch', 'update'] },
  { apiGroups: ['kueue.x-k8s.io'], resources: ['workloads'], verbs: [...RUN, 'patch', 'update'] },
  { apiGroups: ['kueue.x-k8s.io'], resources: ['workloads/status'], verbs: ['get', 'patch', 'update'] },
  { apiGroups: ['kueue.x-k8s.io'], resources: ['clusterqueues', 'localqueues'], verbs: ['get', 'list', 'watch'] },
];
