import { GROUP } from './group.ts';
import type { KubeObject } from './meta.ts';

const FLOWCONTROL = 'flowcontrol.apiserver.k8s.io/v1';

/** Subject of a flow schema. */
type FlowSubject =
  | { kind: 'User'; user: { name: string } }
  | { kind: 'Group'; group: { name: string } }
  | { kind: 'ServiceAccount'; serviceAccount: { name: string; namespace: string } };

/** Priority level and flow schema of the operator. */
export const OPERATOR_FLOW = 'coppice-operator';
/** Priority level and flow schema of people who use Coppice's kinds. */
export const TENANTS_FLOW = 'coppice-tenants';
/** Priority level and flow schema of ServiceAccounts. */
export const ACCOUNTS_FLOW = 'coppice-tenant-accounts';

/** A PriorityLevelConfiguration. Shares are relative to Kubernetes' own levels: 40 and 100 for workloads. */
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
 * A priority level of the operator's own in the garden's API server, so that no tenant's request queues before its
 * requests. By default the operator would share a level with ServiceAccounts or with everybody.
 */
export const operatorFlow = (subject: FlowSubject): KubeObject[] => [
  level(OPERATOR_FLOW, 40, 50, { queues: 16, handSize: 4, queueLengthLimit: 100 }),
  {
    apiVersion: FLOWCONTROL,
    kind: 'FlowSchema',
    metadata: { name: OPERATOR_FLOW },
    spec: {
      priorityLevelConfiguration: { name: OPERATOR_FLOW },
      // After Leases (leaseFirst), before ServiceAccounts.
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
 * Flows by user for requests about Coppice's kinds. Not by namespace: one user could name any number of namespaces.
 * Tenants create ServiceAccounts, so these have a level apart from people. `system:masters` is exempt, as everywhere.
 */
export const tenantsFlow = (): KubeObject[] => [
  level(TENANTS_FLOW, 30, 50, { queues: 64, handSize: 6, queueLengthLimit: 50 }),
  level(ACCOUNTS_FLOW, 15, 50, { queues: 64, handSize: 6, queueLengthLimit: 50 }),
  // After nodes and Kubernetes' own controllers, which precede 1000.
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
