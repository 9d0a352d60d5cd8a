import { describe, expect, it } from 'vitest';
import { answersTo, type PolicySaid } from '../../../operator/burst/clusters/answers.ts';
import type { Supply, WaitingWork } from '../../../operator/burst/clusters/model.ts';
import type { WorkState } from '../../../operator/burst/clusters/plan-model.ts';
import type { FitPod, NodeTemplate } from '../../../operator/burst/fit/model.ts';
import { fitPod } from '../../../operator/burst/fit/pod.ts';
import { buildPod } from '../../kit/builders/objects.ts';

const AT = '2026-11-23T12:00:00Z';
const podOf = (cpu: string): FitPod =>
  fitPod(
    buildPod({
      metadata: { name: 'replica', namespace: 'shop' },
      spec: { containers: [{ name: 'work', resources: { requests: { cpu } } }] },
    }),
  );
const job = (source: string, count: number, more: Partial<WaitingWork> = {}): WaitingWork => ({
  source,
  count,
  pod: podOf('1'),
  each: '1 CPU',
  since: Date.parse(AT),
  inOneCluster: true,
  ...more,
});
const template: NodeTemplate = {
  id: 'a',
  labels: {},
  taints: [],
  allocatable: { cpu: 4000, memory: 2 ** 33, storage: 0, others: new Map(), pods: 110 },
  attachLimits: new Map(),
};
/** A cluster with one node of 4 CPUs, so many of which are in use. */
const cluster = (name: string, used: number, more: Partial<Supply> = {}): Supply => ({
  cluster: `shop/${name}`,
  member: { name, labels: {}, zones: [] },
  nodes: [
    {
      node: { ...template, name: 'node', unschedulable: false },
      pods: Array.from({ length: used }, () => podOf('1')),
    },
  ],
  planned: [],
  ...more,
});
const says = (state: WorkState, message = 'because', more: Partial<PolicySaid> = {}): PolicySaid => ({
  policy: 'shop/peak',
  isDryRun: false,
  verdicts: [{ source: 'train', state, message }],
  ordered: [],
  ...more,
});
const told = (work: WaitingWork[], supply: Supply[], said: PolicySaid[] | undefined = [says('Refused')]) =>
  [...answersTo(work, supply, said, 0)].map(([source, { state }]) => `${source} ${state}`);
const answer = (...said: PolicySaid[]) => answersTo([job('train', 3)], [cluster('full', 4)], said, 0).get('train');

describe('confirmed room for held work', () => {
  it('releases work that one cluster takes as a whole, and names the cluster', () => {
    expect(answersTo([job('train', 3)], [cluster('full', 4), cluster('free', 1)], [], 0).get('train')).toEqual({
      state: 'Ready',
      message: 'there is room for its pods on WorkerCluster shop/free',
    });
  });

  it('keeps work held that fits only into two clusters together', () => {
    expect(told([job('train', 3)], [cluster('a', 2), cluster('b', 2)])).toEqual(['train Retry']);
  });

  it('is promised once, to the longest waiting work', () => {
    const young = job('young', 2);
    const old = job('train', 2, { since: Date.parse(AT) - 1000 });
    expect(told([young, old], [cluster('a', 1)]).sort()).toEqual(['train Ready', 'young Retry']);
  });

  it('exists only once the nodes are Ready', () => {
    const planned = [{ template, count: 1 }];
    expect(told([job('train', 3)], [cluster('a', 4, { planned })], [says('RoomOrdered')])).toEqual(['train Pending']);
  });

  it('is counted per cluster: pods and zones of another cluster of the same name do not matter', () => {
    const pod = (app: string, spec: object = {}) =>
      fitPod(
        buildPod({
          metadata: { name: 'replica', namespace: 'shop', labels: { app } },
          spec: { containers: [{ name: 'work', resources: { requests: { cpu: '1' } } }], ...spec },
        }),
      );
    const rule = [{ labelSelector: { matchLabels: { app: 'web' } }, topologyKey: 'zone' }];
    const near = pod('near', { affinity: { podAffinity: { requiredDuringSchedulingIgnoredDuringExecution: rule } } });
    const away = pod('away', {
      affinity: { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: rule } },
    });
    const inZone = (name: string, pods: FitPod[]) =>
      cluster(name, 0, {
        nodes: [{ node: { ...template, name: 'node', unschedulable: false, labels: { zone: 'one' } }, pods }],
      });
    const full = inZone(
      'full',
      Array.from({ length: 4 }, () => pod('web')),
    );
    expect(told([job('near', 1, { pod: near })], [full, inZone('free', [])], [])).toEqual(['near Retry']);
    expect(told([job('near', 1, { pod: near })], [inZone('free', []), inZone('some', [pod('web')])], [])).toEqual([
      'near Ready',
    ]);
    expect(told([job('away', 1, { pod: away })], [full, inZone('free', [])], [])).toEqual(['away Ready']);
  });

  it('excludes nodes that pending pods of the cluster itself wait for', () => {
    expect(told([job('train', 2)], [cluster('a', 1, { pending: [podOf('2')] })])).toEqual(['train Retry']);
  });

  it('is reported although a policy could not decide; nothing else is reported then', () => {
    const work = [job('train', 3), job('large', 9)];
    expect([...answersTo(work, [cluster('a', 0)], undefined, 0).keys()]).toEqual(['train']);
  });
});

describe('the answer for held work without room', () => {
  it.each<[WorkState, 'Pending' | 'Retry']>([
    ['Stabilising', 'Pending'],
    ['CoolingDown', 'Pending'],
    ['Bought', 'Pending'],
    ['Growing', 'Pending'],
    ['Opened', 'Pending'],
    ['Waking', 'Pending'],
    ['RoomOrdered', 'Pending'],
    ['Fits', 'Pending'],
    ['Later', 'Pending'],
    ['Refused', 'Retry'],
    ['Suspended', 'Retry'],
  ])('of which a policy says %s is %s', (state, is) => {
    expect(answer(says(state))).toEqual({ state: is, message: 'BurstPolicy shop/peak: because' });
  });

  it('is Pending while one of several policies acts for it', () => {
    const other = says('RoomOrdered', 'room is on its way', { policy: 'shop/other' });
    expect(answer(says('Refused', 'no money'), other)).toEqual({
      state: 'Pending',
      message: 'BurstPolicy shop/other: room is on its way',
    });
  });

  it('contains the refusals of all policies', () => {
    expect(answer(says('Refused', 'no money'), says('Refused', 'sold out', { policy: 'shop/other' }))?.message).toBe(
      'BurstPolicy shop/peak: no money; BurstPolicy shop/other: sold out',
    );
  });

  it('is not Pending for a purchase that a dry run only announces', () => {
    expect(answer(says('Bought', 'bought for it: cloud', { isDryRun: true }))).toEqual({
      state: 'Retry',
      message: 'BurstPolicy shop/peak, a dry run: bought for it: cloud',
    });
  });

  it('says so when no policy serves the work', () => {
    expect(answer()).toEqual({ state: 'Retry', message: 'no BurstPolicy of its Hub serves its namespace' });
  });

  it('names the ordered cluster, the time of the order and the usual startup time', () => {
    const ordered = [
      { name: 'peak-cloud-1', sources: ['train'], at: AT, startupMs: 41_500 },
      { name: 'peak-cloud-2', sources: ['other'], at: AT, startupMs: undefined },
    ];
    expect(answer(says('RoomOrdered', 'room for it is on its way', { ordered }))?.message).toBe(
      `BurstPolicy shop/peak: WorkerCluster peak-cloud-1 was ordered for it at ${AT}, and such a cluster takes 42 s`,
    );
  });
});
