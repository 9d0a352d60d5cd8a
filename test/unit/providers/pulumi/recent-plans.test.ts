import { describe, expect, it } from 'vitest';
import { RecentPlans } from '../../../../providers/pulumi/recent-plans.ts';
import type { StackRequest } from '../../../../providers/pulumi/request.ts';
import { newReport } from '../../../../providers/pulumi/run-events.ts';
import type { StackState } from '../../../../providers/pulumi/stack-state.ts';

const request = (more: Partial<StackRequest> = {}): StackRequest => ({
  stack: { technicalID: 'shop', layer: 'cluster' },
  tenant: 'shop',
  account: '1',
  region: 'eu-central-1',
  program: { provider: 'aws', layer: 'cluster' },
  inputs: { nodes: 1 },
  backend: { url: 'file:///state', passphrase: 'a phrase for tests', env: {} },
  credentials: {},
  signal: new AbortController().signal,
  findExisting: async () => undefined,
  ...more,
});
const stateOf = (...names: string[]): StackState => ({
  version: 3,
  deployment: {
    manifest: { time: String(names.length) },
    resources: names.map((name) => ({
      urn: `urn:pulumi:shop::coppice::aws:ec2/vpc:Vpc::${name}`,
      type: 'x',
      custom: true,
    })),
  },
});
const PENDING: StackState = {
  version: 3,
  deployment: { pending_operations: [{ type: 'creating', resource: { urn: 'u', type: 'x', custom: true } }] },
};
const EMPTY: StackState = { version: 3, deployment: null };

describe('a plan that was shown', () => {
  const kept = (state = stateOf('a')) => {
    let now = 0;
    const plans = new RecentPlans(() => now);
    const record = newReport();
    plans.keep(request(), state, record);
    return { plans, record, wait: (ms: number) => (now += ms) };
  };

  it('is used once for the same request on the same state', () => {
    const { plans, record, wait } = kept();
    wait(60_000);
    expect(plans.take(request(), stateOf('a'))).toBe(record);
    expect(plans.take(request(), stateOf('a'))).toBeUndefined();
  });

  it('of a new stack is valid for its empty state as the backend returns it', () => {
    const { plans, record } = kept(EMPTY);
    expect(plans.take(request(), stateOf())).toBe(record);
  });

  it.each<[string, StackRequest, StackState]>([
    ['other inputs', request({ inputs: { nodes: 2 } }), stateOf('a')],
    ['another account', request({ account: '2' }), stateOf('a')],
    ['another region', request({ region: 'us-east-1' }), stateOf('a')],
    ['other settings', request({ settings: { AWS_REGION: 'us-east-1' } }), stateOf('a')],
    ['another program', request({ program: { provider: 'aws', layer: 'machines' } }), stateOf('a')],
    ['another stack', request({ stack: { technicalID: 'other', layer: 'cluster' } }), stateOf('a')],
    ['a state that has changed since', request(), stateOf('a', 'b')],
    ['a state with something half done in it', request(), PENDING],
  ])('is not used for %s', (_, asked, state) => {
    expect(kept().plans.take(asked, state)).toBeUndefined();
  });

  it('expires', () => {
    const { plans, wait } = kept();
    wait(2 * 60_000 + 1);
    expect(plans.take(request(), stateOf('a'))).toBeUndefined();
  });
});
