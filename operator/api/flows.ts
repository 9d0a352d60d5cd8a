import { GROUP } from './group.ts';
import type { KubeObject } from './meta.ts';

const FLOWCONTROL = 'flowcontrol.apiserver.k8s.io/v1';

/** Who asks, as flow schemas write it. */
export type FlowSubject =
  | { kind: 'User'; user: { name: string } }
  | { kind: 'Group'; group: { name: string } }
  | { kind: 'ServiceAccount'; serviceAccount: { name: string; namespace: string } };

/** Name of the priority level, and of the flow schema, of the operator. */
export const OPERATOR_FLOW = 'coppice-operator';
/** The same of all people who work with Coppice's kinds. */
export const TENANTS_FLOW = 'coppice-tenants';
/** The same of ServiceAccounts. */
export const ACCOUNTS_FLOW = 'coppice-tenant-accounts';

/** How an API server shares out what it does at once. Shares are relative to those of Kubernetes' own levels: 40 and 100 for workloads. */
const level = (name: string, shares: number, lendable: number, queuing: object): KubeObject => ({
  apiVersion: FLOWCONTROL,
  kind: 'PriorityLevelConfiguration',
  metadata: { name },
  spec: {
    type: 'Limited',
    limited: { nominalConcurrencyShares: shares, lendablePercent: lendable, limitResponse: { type: 'Queue', queuing } },
  },
});

/**
 * The operator has a part of the garden's API server of its own, in which no tenant's request waits before one of its. Kubernetes would have
 * it share with all ServiceAccounts, or with everybody.
 */
export const operatorFlow = (subject: FlowSubject): KubeObject[] => [
  level(OPERATOR_FLOW, 40, 50, { queues: 16, handSize: 4, queueLengthLimit: 100 }),
  {
    apiVersion: FLOWCONTROL,
    kind: 'FlowSchema',
    metadata: { name: OPERATOR_FLOW },
    spec: {
      priorityLevelConfiguration: { name: OPERATOR_FLOW },
      // After Leases (leaseFirst), before those of ServiceAccounts.
      matchingPrecedence: 1000,
      distinguisherMethod: { type: 'ByUser' },
      rules: [
        {
          subjects: [subject],
          resourceRules: [{ apiGroups: ['*'], resources: ['*'], verbs: ['*'], clusterScope: true, namespaces: ['*'] }],
          nonResourceRules: [{ verbs: ['*'], nonResourceURLs: ['*'] }],
        },
      ],
    },
  },
];

/**
 * Requests about Coppice's kinds are a flow a user: the namespace is what a request names, and one user could name any number of them. Nobody
 * can be made whose requests count as those of a whole namespace, so ServiceAccounts, which tenants make, have a level apart from people.
 * What members of `system:masters` ask is exempt, as everywhere.
 */
export const tenantsFlow = (): KubeObject[] => [
  level(TENANTS_FLOW, 30, 50, { queues: 64, handSize: 6, queueLengthLimit: 50 }),
  level(ACCOUNTS_FLOW, 15, 50, { queues: 64, handSize: 6, queueLengthLimit: 50 }),
  // After nodes' and Kubernetes' own controllers', which come by 1000.
  byUser(ACCOUNTS_FLOW, 'system:serviceaccounts', 1900),
  byUser(TENANTS_FLOW, 'system:authenticated', 2000),
];

const byUser = (name: string, group: string, matchingPrecedence: number): KubeObject => ({
  apiVersion: FLOWCONTROL,
  kind: 'FlowSchema',
  metadata: { name },
  spec: {
    priorityLevelConfiguration: { name },
    matchingPrecedence,
    distinguisherMethod: { type: 'ByUser' },
    rules: [
      {
        subjects: [{ kind: 'Group', group: { name: group } }],
        resourceRules: [{ apiGroups: [GROUP], resources: ['*'], verbs: ['*'], namespaces: ['*'] }],
      },
    ],
  },
});
