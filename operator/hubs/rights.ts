import type { Identity, Member } from './contract.ts';

type Rules = Identity['rules'];

/** Name of the account of a hub in its members: a cluster may be in several hubs. */
export const accountName = ({ hubName }: Member): string => `coppice-hub-${hubName}`;

/** Everything, as the documentation of hubs that apply whatever people give them asks for. */
export const MANAGE_RULES: Rules = [
  { apiGroups: ['*'], resources: ['*'], verbs: ['*'] },
  { nonResourceURLs: ['*'], verbs: ['get'] },
];

const ALL = ['create', 'update', 'patch', 'delete', 'deletecollection'];

/** Sees everything, and writes what workloads are made of: no roles, tokens, nodes, namespaces, kinds, webhooks or shells in pods. */
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

/** What a Hub's field `rights` stands for. */
export const rulesOf = (rights: 'Manage' | 'Workloads' | undefined): Rules =>
  rights === 'Workloads' ? WORKLOAD_RULES : MANAGE_RULES;

const RUN = ['create', 'delete', 'get', 'list', 'watch'];
/** Kinds of jobs that Kueue can run in a worker. It watches all that it was set up with, or does not connect at all. */
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
/** What Kueue's documentation asks for: jobs and Workloads, and nothing that leads to other rights but what a pod can do. */
export const KUEUE_RULES: Identity['rules'] = [
  ...JOBS.flatMap(([group, ...resources]) => [
    { apiGroups: [group], resources, verbs: RUN },
    { apiGroups: [group], resources: resources.map((one) => `${one}/status`), verbs: ['get'] },
  ]),
  // They grow and shrink while they run.
  { apiGroups: ['ray.io'], resources: ['rayclusters'], verbs: ['patch', 'update'] },
  { apiGroups: ['kueue.x-k8s.io'], resources: ['workloads'], verbs: [...RUN, 'patch', 'update'] },
  { apiGroups: ['kueue.x-k8s.io'], resources: ['workloads/status'], verbs: ['get', 'patch', 'update'] },
  { apiGroups: ['kueue.x-k8s.io'], resources: ['clusterqueues', 'localqueues'], verbs: ['get', 'list', 'watch'] },
];
