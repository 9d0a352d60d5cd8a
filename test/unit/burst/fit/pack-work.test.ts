import { expect, it } from 'vitest';
import { pack } from '../../../../operator/burst/fit/pack.ts';
import { fitPod } from '../../../../operator/burst/fit/pod.ts';
import { buildNode, buildPod } from '../../../kit/builders/objects.ts';
import { clusterState } from '../../../kit/burst/plan-at-once.ts';

const node = (name: string) =>
  buildNode({
    metadata: { name },
    status: { allocatable: { cpu: '4', memory: '16Gi', pods: '110' } },
  });
/** Pods that all differ, and that no node takes: each is held against each node. */
const pending = (count: number) =>
  Array.from({ length: count }, (_, index) => {
    const requests = { cpu: '1', memory: `${index + 1}Mi` };
    const spec = { nodeSelector: { disk: `d${index}` }, containers: [{ name: 'c', resources: { requests } }] };
    const pod = buildPod({ metadata: { name: `p${index}`, namespace: 'x', uid: `u${index}` }, spec });
    return { key: `u${index}`, pod: fitPod(pod) };
  });
const nodes = Array.from({ length: 100 }, (_, index) => node(`n${index}`));

it('pack stays within the question limit of a decision, and reports the remaining pods', () => {
  const work = { left: 1_000 };
  const state = clusterState({ nodes, pods: [], work });
  const { unplaced } = pack(pending(500), state);
  expect(unplaced.size).toBe(500);
  const messages = [...unplaced.values()].map(({ misfits }) => misfits[0]?.message ?? '');
  expect(messages.filter((message) => message.startsWith('not looked at')).length).toBeGreaterThan(480);
  // One pod may be in the middle of its nodes when the work is used up; what comes after costs a look at each group.
  expect(work.left).toBeGreaterThan(-500 * 100);
});

it('packings of one decision share one limit of checks of a pod against a node', () => {
  const work = { left: 1_000 };
  const state = clusterState({ nodes, pods: [], work });
  state.whatIf(() => pack(pending(500), state));
  const { unplaced } = pack(pending(1), state);
  expect([...unplaced.values()][0]?.misfits[0]?.message).toContain('not looked at');
});

it('pack considers all pods without a limit', () => {
  const { unplaced } = pack(pending(500), clusterState({ nodes, pods: [] }));
  const messages = [...unplaced.values()].flatMap(({ misfits }) => misfits.map(({ message }) => message));
  expect(messages.some((message) => message.startsWith('not looked at'))).toBe(false);
});
