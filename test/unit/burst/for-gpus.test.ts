import { describe, expect, it } from 'vitest';
import type {
  ClusterOffer,
  ClustersView,
  GrowingPool,
  OfferedPool,
  WaitingWork,
} from '../../../operator/burst/clusters/model.ts';
import type { NodeTemplate } from '../../../operator/burst/fit/model.ts';
import { fitPod } from '../../../operator/burst/fit/pod.ts';
import { buildPod } from '../../kit/builders/objects.ts';
import { planByKind } from '../../kit/burst/plan-by-kind.ts';

const NOW = Date.parse('2026-11-23T12:00:00Z');
const MEMBER = { name: 'own', labels: {}, zones: [] };

/** Replicas of 3 CPU. */
const work = (count: number, gpus?: string): WaitingWork => {
  const requests = { cpu: '3', memory: '1Gi', ...(gpus && { 'nvidia.com/gpu': gpus }) };
  const spec = { containers: [{ name: 'work', resources: { requests } }] };
  const pod = fitPod(buildPod({ metadata: { name: 'replica', namespace: 'shop' }, spec }));
  return { source: 'web', count, pod, each: '3 CPU', since: NOW - 600_000 };
};

/** Nodes of 4 CPU. */
const template = (id: string, gpus: number): NodeTemplate => ({
  id,
  labels: {},
  taints: [],
  allocatable: {
    cpu: 4000,
    memory: 2 ** 36,
    storage: 0,
    others: new Map(gpus > 0 ? [['nvidia.com/gpu', gpus]] : []),
    pods: 110,
  },
  attachLimits: new Map(),
});

const offered = (name: string, gpus: number, most: number): OfferedPool => ({
  name,
  template: template(name, gpus),
  minimum: 0,
  most,
  price: gpus > 0 ? 10_000_000n : 1_000_000n,
});

/** A candidate of these pools. */
const candidate = (name: string, pools: readonly OfferedPool[]) => ({
  name,
  priority: 0,
  left: 1,
  problem: undefined,
  offer: {
    member: { ...MEMBER, name: 'new' },
    pools,
    price: (nodes: ReadonlyMap<string, number>) => {
      const hourly = pools.reduce((sum, pool) => sum + BigInt(nodes.get(pool.name) ?? 0) * pool.price!, 0n);
      return { hourly, most: hourly };
    },
  } satisfies ClusterOffer,
});

const growing = (pool: string, gpus: number, more: number): GrowingPool => ({
  cluster: 'shop/own',
  member: MEMBER,
  pool,
  template: template(`shop/own/${pool}`, gpus),
  more,
  hourly: gpus > 0 ? 10_000_000n : 1_000_000n,
  problem: undefined,
});

function planned(waiting: WaitingWork, more: Partial<ClustersView>) {
  const plan = planByKind(
    {
      limits: {
        pendingForMs: 30_000,
        maximumClusters: 3,
        hourly: 1_000_000_000n,
        monthly: undefined,
        currency: 'USD',
        idleForMs: 600_000,
        minimumLifeMs: 1_800_000,
        cooldownOutMs: 0,
        cooldownInMs: 0,
        isSuspended: false,
      },
      waiting: [waiting],
      supply: [],
      clusters: [],
      candidates: [],
      spent: 0n,
      lastOut: undefined,
      lastIn: undefined,
      ...more,
    },
    NOW,
  );
  return {
    grown: plan.growths.map(({ pool, nodes }) => `${pool} ${nodes}`),
    bought: plan.purchases.map(({ candidate: name, nodes }) => `${name} ${JSON.stringify(nodes)}`),
    said: [...plan.growths, ...plan.purchases].map(({ why }) => why).join(),
    verdict: plan.verdicts.map(({ message }) => message).join(),
  };
}

const FOR_GPUS = /pool gpu has GPUs, and is for work that asks for these: pool plain of .* takes it/;
const IN_VAIN = 'has GPUs, for which none of them asks: no pool without GPUs takes them';

describe('nodes with GPUs', () => {
  const growth = (more: number) => [{ name: 'own', left: 9, pools: [growing('gpu', 1, 9), growing('plain', 0, more)] }];

  it('are not added for work without GPU requests when the pool without GPUs is full, and the refusal says so', () => {
    expect(planned(work(2), { growth: growth(2) }).grown).toEqual(['plain 2']);
    const full = planned(work(2), { growth: growth(0) });
    expect(full).toMatchObject({ grown: [], bought: [], verdict: expect.stringMatching(FOR_GPUS) });
    expect(planned(work(2, '1'), { growth: growth(0) }).grown).toEqual(['gpu 2']);
  });

  it('are not bought in a new cluster for work without GPU requests when its pool without GPUs is full, and the refusal says so', () => {
    const candidates = (most: number) => [candidate('cloud', [offered('gpu', 1, 9), offered('plain', 0, most)])];
    expect(planned(work(3), { candidates: candidates(3) }).bought).toEqual(['cloud {"gpu":0,"plain":3}']);
    const full = planned(work(3), { candidates: candidates(1) });
    expect(full).toMatchObject({ bought: [], verdict: expect.stringMatching(/takes 1 of 3 replicas/) });
    expect(planned(work(3, '1'), { candidates: candidates(1) }).bought).toEqual(['cloud {"gpu":3,"plain":0}']);
  });

  it('are not bought while a candidate without GPUs is at its maximum, but are when that candidate is unavailable', () => {
    const plain = { ...candidate('plain', [offered('plain', 0, 9)]), left: 0 };
    const both = [candidate('dear', [offered('gpu', 1, 9)]), plain];
    expect(planned(work(1), { candidates: both })).toMatchObject({
      bought: [],
      verdict: expect.stringMatching(FOR_GPUS),
    });
    const refused = [both[0]!, { ...plain, problem: 'the API server refuses its template' }];
    expect(planned(work(1), { candidates: refused })).toMatchObject({ bought: ['dear {"gpu":1}'] });
  });

  it('are bought when no other node takes the work, and the decision says so', () => {
    const pools = [
      growing('gpu', 1, 9),
      {
        ...growing('plain', 0, 9),
        template: { ...template('small', 0), allocatable: { ...template('small', 0).allocatable, cpu: 2000 } },
      },
    ];
    const grown = planned(work(1), { growth: [{ name: 'own', left: 9, pools }] });
    expect(grown).toMatchObject({ grown: ['gpu 1'], said: expect.stringContaining(IN_VAIN) });
    const bought = planned(work(1), { candidates: [candidate('dear', [offered('gpu', 1, 9)])] });
    expect(bought).toMatchObject({ bought: ['dear {"gpu":1}'], said: expect.stringContaining(IN_VAIN) });
    expect(planned(work(1, '1'), { candidates: [candidate('dear', [offered('gpu', 1, 9)])] }).said).not.toContain(
      IN_VAIN,
    );
  });
});
