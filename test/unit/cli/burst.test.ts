import { expect, it } from 'vitest';
import type { BurstPolicy } from '../../../operator/api/burstpolicy.ts';
import { explainPolicy, POLICIES_HEADER, policyRows } from '../../../operator/cli/render/burst.ts';
import { renderTable } from '../../../operator/cli/render/table.ts';
import { buildBurstPolicy } from '../../kit/builders/objects.ts';
import { partOf } from '../../kit/builders/partial.ts';

const NOW = Date.parse('2026-11-23T12:00:00Z');
const at = (minutes: number) => new Date(NOW - minutes * 60_000).toISOString();

const policy = buildBurstPolicy({
  metadata: { name: 'peak', namespace: 'shop' },
  spec: {
    hub: 'karmada',
    minimumClusters: 1,
    maximumClusters: 3,
    maximumNodes: 9,
    budget: { hourly: '20', monthly: '2000', currency: 'USD' },
    candidates: [],
  },
  status: {
    conditions: [
      {
        type: 'Ready',
        status: 'True',
        reason: 'Watching',
        message: 'it watches Hub karmada',
        lastTransitionTime: at(60),
      },
      {
        type: 'DemandMet',
        status: 'False',
        reason: 'Refused',
        message: 'ResourceBinding shop/web: nothing is bought for its 9 replicas',
        lastTransitionTime: at(1),
      },
    ],
    clusterCount: 1,
    nodeCount: 4,
    hourly: '0.6',
    clusters: [
      {
        name: 'peak-aws-1a2b3c',
        candidate: 'aws',
        phase: 'Joined',
        since: at(30),
        hourly: '0.6',
        grantedNodes: 6,
        counted: '0.7',
        idleSince: at(3),
      },
    ],
    demand: [
      {
        source: 'ResourceBinding shop/web',
        count: 9,
        each: { cpu: '2', memory: '4Gi' },
        since: at(1),
        state: 'Refused',
        // What a terminal would take for a command is shown as text.
        message: 'nothing is bought\u001b[31m for its 9 replicas',
      },
    ],
    candidates: [
      { name: 'aws', hourly: '0.1' },
      { name: 'gcp', problem: 'there is no CloudProfile gcp' },
    ],
    spend: {
      month: '2026-11',
      amount: '12.3',
      currency: 'USD',
      asOf: at(60),
      previous: [
        { month: '2026-10', amount: '150.005' },
        { month: '2026-09', amount: '3' },
      ],
    },
    decisions: [
      {
        at: '2026-11-23T11:30:00Z',
        action: 'Buy',
        cluster: 'peak-aws-1a2b3c',
        candidate: 'aws',
        why: '6 replicas have no place',
        hourly: '0.6',
        alternatives: [{ candidate: 'gcp', hourly: '0.9', whyNot: 'aws was better' }],
        outcome: { result: 'InProgress', message: 'it was in the hub 14 s after the decision; it has had no work yet' },
      },
      {
        at: '2026-11-23T10:30:00Z',
        action: 'Remove',
        cluster: 'peak-aws-0f0f0f',
        why: 'it has had no work',
        outcome: {
          result: 'Succeeded',
          message: 'it was gone 60 s after the decision, and has cost 0.31 USD in all',
          endedAt: '2026-11-23T10:31:00Z',
        },
      },
    ],
  },
});

it('burst explain shows clusters, waiting work, decisions and cost of a policy', () => {
  expect(explainPolicy(policy, NOW)).toEqual([
    'BurstPolicy shop/peak, Hub karmada',
    '  Ready: True (Watching): it watches Hub karmada',
    '  DemandMet: False (Refused): ResourceBinding shop/web: nothing is bought for its 9 replicas',
    '      to do: Raise spec.budget, add a candidate, or allow larger machines, as the reasons in `coppice burst explain peak` ask.',
    '  Clusters: 1 of 3 (at least 1), 0.6 of 20 USD an hour',
    '  Nodes: 4 of 9',
    '  Spent: 12.90 USD in 2026-11 of 2000 USD a month',
    '  Before: 150.01 USD in 2026-10, 3.00 USD in 2026-09',
    '',
    'CLUSTER           CANDIDATE   PHASE    HOURLY   AGE   IDLE',
    'peak-aws-1a2b3c   aws         Joined   0.6      30m   3m',
    '  peak-aws-1a2b3c may have 6 nodes (granted); the budget counts 0.7 USD an hour',
    '',
    'SOURCE                     REPLICAS   EACH    WAITS   STATE     WHY',
    'ResourceBinding shop/web   9          2 4Gi   60s     Refused   nothing is bought [31m for its 9 replicas',
    '',
    'CANDIDATE   FROM HOURLY   PROBLEM',
    'aws         0.1',
    'gcp         ?             there is no CloudProfile gcp',
    '',
    'Decisions, the newest first',
    '  2026-11-23T11:30:00Z  Buy peak-aws-1a2b3c for 0.6 USD an hour: 6 replicas have no place',
    '      not gcp (0.9): aws was better',
    '      so far: it was in the hub 14 s after the decision; it has had no work yet',
    '  2026-11-23T10:30:00Z  Remove peak-aws-0f0f0f: it has had no work',
    '      outcome: it was gone 60 s after the decision, and has cost 0.31 USD in all',
  ]);
});

it('burst lists policies, and marks those that no operator has observed', () => {
  const fresh = partOf<BurstPolicy>({
    ...policy,
    metadata: { name: 'new', namespace: 'shop' },
    status: undefined,
  });
  expect(renderTable(POLICIES_HEADER, policyRows([policy, fresh], NOW))).toEqual([
    'NAMESPACE   NAME   HUB       CLUSTERS   HOURLY   SPENT                  DEMAND    WHY',
    'shop        peak   karmada   1/3        0.6/20   12.90 USD in 2026-11   Refused   ResourceBinding shop/web: nothing is bought for its 9 replicas',
    'shop        new    karmada   0/3        0/20     0                      Unknown   the operator has not processed it yet',
  ]);
});
