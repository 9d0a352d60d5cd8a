import { expect, it } from 'vitest';
import { fitPod } from '../../../operator/burst/fit/pod.ts';
import { type NodesView, planNodesInSteps } from '../../../operator/burst/nodes/plan.ts';
import { planNodes } from '../../kit/burst/plan-at-once.ts';
import { demand, MINUTE, NOW, node, nodesView, pod, poolView, stateOf } from '../../kit/burst.ts';

const NODES = Array.from({ length: 200 }, (_, index) => `n${index}`);
const NEAR = { topologyKey: 'kubernetes.io/hostname', labelSelector: { matchLabels: { app: 'web' } } };
const APART = { affinity: { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [NEAR] } } };

/** Nodes with pods, and pods that all differ and that no node takes: each is held against each node. Half of them look at what is around. */
function view(): NodesView {
  const pods = new Map(NODES.map((name) => [name, [pod('2', name), pod('1', name)]]));
  const state = stateOf(
    NODES.map((name) => node(name)),
    [...pods.values()].flat(),
  );
  const demands = Array.from({ length: 400 }, (_, index) => {
    const spec = { nodeSelector: { disk: `d${index}` }, ...(index % 2 === 0 && APART) };
    return demand(1, '50m', { replica: fitPod(pod('50m', undefined, { spec })) });
  });
  return nodesView({
    state,
    demands,
    pools: [poolView('a', { count: NODES.length, present: NODES.length, maximum: 1000 })],
    nodes: NODES.map((name) => ({ name, pool: 'a', price: 1, pods: pods.get(name)!, isEmptying: false })),
    unneededSince: new Map(NODES.map((name) => [name, NOW - 60 * MINUTE])),
  });
}

it('planNodesInSteps decides the same with pauses, with short stretches between them', () => {
  const work = planNodesInSteps(view());
  const stretches: number[] = [];
  for (;;) {
    // CPU time: the clock goes on while a busy machine does something else.
    const before = process.cpuUsage();
    const next = work.next();
    const { user, system } = process.cpuUsage(before);
    stretches.push(user + system);
    if (!next.done) continue;
    expect(next.value).toEqual(planNodes(view()));
    break;
  }
  const whole = stretches.reduce((sum, us) => sum + us, 0);
  // One of them may be one in which garbage was collected.
  const [, longest = whole] = stretches.toSorted((a, b) => b - a);
  expect(longest).toBeLessThan(whole / 10);
});
