import { describe, expect, it } from 'vitest';
import { judgePod } from '../../../../operator/burst/fit/judge.ts';
import type { FitPod } from '../../../../operator/burst/fit/model.ts';
import { pack } from '../../../../operator/burst/fit/pack.ts';
import { fitPod } from '../../../../operator/burst/fit/pod.ts';
import type { ClusterState } from '../../../../operator/burst/fit/state.ts';
import { buildNode, buildPod } from '../../../kit/builders/objects.ts';
import { clusterState } from '../../../kit/burst/plan-at-once.ts';
import { draw } from '../../../kit/draw.ts';
import { podAffinity, spread } from '../../../kit/fit/around-nodes.ts';
import { type FitCase, objectsOf } from '../../../kit/fit/case.ts';
import { stateOf } from '../../../kit/fit/compare.ts';
import { holds } from '../../../kit/property.ts';

const node = (name: string) =>
  buildNode({
    metadata: { name, labels: {} },
    status: { allocatable: { cpu: '4', memory: '8Gi', pods: '10' } },
  });
const pod = (name: string, cpu: string, more: object = {}) =>
  buildPod({
    metadata: { name, namespace: 'n' },
    spec: { containers: [{ name: 'c', resources: { requests: { cpu } } }], ...more },
  });

describe('the state of a cluster', () => {
  it('counts starting pods, but no ended pods and none of removed nodes', () => {
    const state = clusterState({
      nodes: [node('a')],
      pods: [
        pod('starting', '1', { nodeName: 'a' }),
        { ...pod('done', '1', { nodeName: 'a' }), status: { phase: 'Succeeded' } },
        { ...pod('failed', '1', { nodeName: 'a' }), status: { phase: 'Failed' } },
        pod('lost', '1', { nodeName: 'gone' }),
        pod('waiting', '1'),
      ],
    });
    expect(state.nodes().map(({ podCount, used }) => [podCount, used.cpu])).toEqual([[1, 1000]]);
  });

  it("tells whether a node's pods have room elsewhere, and is unchanged afterwards", () => {
    const state = clusterState({
      nodes: ['a', 'b', 'c'].map(node),
      pods: [pod('p', '3', { nodeName: 'a' }), pod('q', '3', { nodeName: 'b' }), pod('r', '1', { nodeName: 'c' })],
    });
    const canGo = (name: string) =>
      state.whatIf(() => {
        const pods = [...state.removeNode(name)].flatMap(([of, count]) =>
          Array.from({ length: count }, (_, index) => ({ key: `${name}${index}`, pod: of })),
        );
        return pack(pods, state).unplaced.size === 0;
      });
    expect(['a', 'b', 'c', 'a', 'c'].map(canGo)).toEqual([true, true, true, true, true]);
    state.place(fitPod(pod('s', '1')), 'c');
    expect(['a', 'b', 'c'].map(canGo)).toEqual([false, false, true]);
    expect(state.nodes().map(({ node: { name }, used }) => [name, used.cpu])).toEqual([
      ['a', 3000],
      ['b', 3000],
      ['c', 2000],
    ]);
  });

  holds(
    'says after questions what one says that was never asked',
    (choose) => {
      const of: FitCase = { name: '', ...choose.pick([podAffinity, spread])(choose) };
      const { state, pod: asked } = stateOf(of);
      const all = (where: ClusterState) => where.nodes().map(({ node: { name } }) => judgePod(asked, name, where));
      const others: FitPod[] =
        (of.pods ?? []).length > 0 ? [...state.nodes()].flatMap(({ pods }) => [...pods.keys()]) : [];
      state.whatIf(() => {
        for (const {
          node: { name },
        } of [...state.nodes()])
          if (choose.chance(0.5)) state.removeNode(name);
          else if (others.length > 0) state.place(choose.pick(others), name);
        all(state);
        state.whatIf(() => pack([{ key: 'p', pod: asked }], state));
      });
      expect(all(state)).toEqual(all(stateOf(of).state));
    },
    { runs: 300 },
  );
});

it('is shared by equal pods, and no others', () => {
  const of = (seed: number) => {
    const { subject } = objectsOf({ name: '', ...podAffinity(draw(seed)) });
    return {
      text: JSON.stringify([subject.spec, subject.metadata.labels, subject.metadata.namespace]),
      pod: fitPod(subject),
    };
  };
  const all = Array.from({ length: 100 }, (_, index) => of(index % 50));
  for (const a of all) for (const b of all) expect(a.pod === b.pod).toBe(a.text === b.text);
});
