import { expect, it } from 'vitest';
import type { BurstPolicy } from '../../../operator/api/burstpolicy.ts';
import { planLines } from '../../../operator/cli/render/burst-plan.ts';
import { buildBurstPolicy } from '../../kit/builders/objects.ts';

const policy = (status: BurstPolicy['status']) =>
  buildBurstPolicy({
    metadata: { name: 'peak', namespace: 'shop' },
    spec: { hub: 'fleet', maximumClusters: 3, budget: { hourly: '20', currency: 'USD' }, candidates: [] },
    status,
  });
const AT = '2026-11-23T12:00:00Z';
const said = (status: 'True' | 'False', message: string) => [
  { type: 'Ready', status, reason: 'Any', message, lastTransitionTime: AT },
];

it('planLines shows waiting work, the purchase, its price and the alternatives', () => {
  const lines = planLines(
    policy({
      conditions: said('True', 'it says what it would do'),
      hourly: '0.5',
      demand: [
        {
          source: 'PlacementDecision fleet/web',
          count: 2,
          each: {},
          since: AT,
          state: 'Bought',
          message: 'bought for it: gcp',
        },
      ],
      decisions: [
        { at: AT, action: 'Remove', cluster: 'peak-aws-1', why: 'it has had no work', dryRun: true },
        {
          at: AT,
          action: 'Buy',
          candidate: 'gcp',
          hourly: '0.086336',
          why: '2 replicas have no place',
          alternatives: [{ candidate: 'aws', hourly: '0.115', whyNot: 'gcp was\u001b[31m better' }],
          dryRun: true,
        },
      ],
    }),
  );
  expect(lines).toEqual([
    'BurstPolicy shop/peak, Hub fleet: what it would do now',
    '  PlacementDecision fleet/web waits, 2 replicas: bought for it: gcp',
    '  would buy a cluster of gcp for 0.086336 USD an hour: 2 replicas have no place',
    '      not aws (0.115): gcp was [31m better',
    '  would delete peak-aws-1: it has had no work',
    '  Cost: 0.5 USD an hour now, 0.586336 with what it would buy, of at most 20',
  ]);
});

it('planLines says when there is nothing to do, and why a policy cannot be planned', () => {
  expect(planLines(policy({ conditions: said('True', 'it watches') })).slice(1)).toEqual([
    '  nothing waits',
    '  it would do nothing',
    '  Cost: 0 USD an hour now, 0 with what it would buy, of at most 20',
  ]);
  expect(planLines(policy({ conditions: said('False', 'there is no Hub fleet') }))[1]).toBe(
    '  nothing: there is no Hub fleet',
  );
});

it('planLines shows which cluster would be emptied, where its work goes, the saving, and why another cluster stays', () => {
  const cluster = { candidate: 'aws', phase: 'Joined' as const, since: AT, hourly: '0.5' };
  const lines = planLines(
    policy({
      conditions: said('True', 'it watches'),
      hourly: '1',
      clusters: [
        { ...cluster, name: 'peak-aws-1' },
        { ...cluster, name: 'peak-aws-2', stays: 'pod shop/db-0 keeps data on volumes' },
      ],
      decisions: [
        {
          at: AT,
          action: 'Empty',
          cluster: 'peak-aws-1',
          hourly: '0.5',
          why: 'it has little work: 1 replica of web, for which there is room on shop/private',
          dryRun: true,
        },
      ],
    }),
  );
  expect(lines.slice(2)).toEqual([
    '  would let the hub move all work off peak-aws-1 to save 0.5 USD an hour: it has little work: 1 replica of web, for which there is room on shop/private',
    '  peak-aws-2 stays: pod shop/db-0 keeps data on volumes',
    '  Cost: 1 USD an hour now, 1 with what it would buy, of at most 20',
  ]);
});
