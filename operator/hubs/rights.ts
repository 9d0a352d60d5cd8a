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
