import { describe, expect } from 'vitest';
import { judgePod } from '../../../../operator/burst/fit/judge.ts';
import type { NodeTemplate, PendingPod } from '../../../../operator/burst/fit/model.ts';
import { allocatableOf } from '../../../../operator/burst/fit/node.ts';
import { pack } from '../../../../operator/burst/fit/pack.ts';
import { fitPod } from '../../../../operator/burst/fit/pod.ts';
import type { Node, Pod } from '../../../../operator/kube/resources.ts';
import { clusterState } from '../../../kit/burst/plan-at-once.ts';
import type { Draw } from '../../../kit/draw.ts';
import { podAffinity, spread } from '../../../kit/fit/around-nodes.ts';
import { type FitCase, NAMESPACES_OF_CASES, objectsOf } from '../../../kit/fit/case.ts';
import { nodeAffinity, ports, taints } from '../../../kit/fit/on-one-node.ts';
import { holds } from '../../../kit/property.ts';

const ZONE = 'topology.kubernetes.io/zone';

/** A pod as one of the families of cases draws it, of a size of its own. */
function drawnPod(choose: Draw): Pod {
  const drawn = choose.pick([podAffinity, podAffinity, spread, spread, nodeAffinity, ports, taints])(choose);
  const { subject } = objectsOf({ name: '', ...drawn } as FitCase);
  const [first, ...rest] = subject.spec.containers;
  const requests = { cpu: `${choose.pick([100, 500, 1000])}m`, memory: '100Mi' };
  return {
    ...subject,
    spec: {
      ...subject.spec,
      priority: choose.integer(0, 1),
      containers: [{ ...first!, resources: { requests } }, ...rest],
    },
  };
}

function drawnCluster(choose: Draw) {
  const nodes: Node[] = choose.many(choose.integer(0, 4), (index) => ({
    apiVersion: 'v1',
    kind: 'Node',
    metadata: {
      name: `n${index}`,
      labels: { 'kubernetes.io/hostname': `n${index}`, ...(choose.chance(0.8) && { [ZONE]: choose.pick(['a', 'b']) }) },
    },
    spec: {},
    status: { allocatable: { cpu: '2', memory: '4Gi', pods: '10' } },
  }));
  const pods = nodes.flatMap(({ metadata: { name } }) =>
    choose.many(choose.integer(0, 2), () => {
      const pod = drawnPod(choose);
      return { ...pod, spec: { ...pod.spec, nodeName: name } };
    }),
  );
  return clusterState({ nodes, pods, namespaces: new Map(Object.entries(NAMESPACES_OF_CASES)) });
}

const templates = (choose: Draw): NodeTemplate[] =>
  ['a', 'b', 'c'].flatMap((zone) =>
    [2, 8].map((cores) => ({
      id: `${zone}-${cores}`,
      labels: { [ZONE]: zone, ...(choose.chance(0.5) && { disk: 'ssd' }), size: `${cores}` },
      taints: choose.chance(0.2) ? [{ key: 'dedicated', value: 'a', effect: 'NoSchedule' }] : [],
      allocatable: allocatableOf({ cpu: `${cores}`, memory: '8Gi', pods: '20' }),
      attachLimits: new Map(),
    })),
  );

describe('the result of packing', () => {
  holds(
    'fits pod by pod, in the order in which it was packed',
    (choose) => {
      const state = drawnCluster(choose);
      const kinds = choose.many(choose.integer(1, 5), () => fitPod(drawnPod(choose)));
      const pending: PendingPod[] = choose.many(choose.integer(1, 30), (index) => ({
        key: `w${index}`,
        pod: choose.pick(kinds),
      }));
      const offers = templates(choose).map((template) => ({
        template,
        price: choose.integer(1, 9),
        countsAgainst: [template.id],
      }));
      const limits = new Map(offers.map(({ template: { id } }) => [id, choose.integer(0, 3)] as const));
      const daemons = [fitPod(drawnPod(choose))];
      const before = JSON.stringify(state.nodes().map(({ node, podCount, used }) => [node.name, podCount, used]));

      const history: { pod: string; node: string }[] = [];
      const { opened, placed, unplaced, notJudged } = state.whatIf(() =>
        pack(pending, state, { offers, limits, daemons, onPlaced: (pod, node) => history.push({ pod, node }) }),
      );
      expect(JSON.stringify(state.nodes().map(({ node, podCount, used }) => [node.name, podCount, used]))).toBe(before);

      // Each pod has one answer.
      const answered = [
        ...placed.keys(),
        ...opened.flatMap(({ pods }) => pods),
        ...unplaced.keys(),
        ...notJudged.keys(),
      ];
      expect(answered.sort()).toEqual(pending.map(({ key }) => key).sort());
      for (const [id, limit] of limits)
        expect(opened.filter(({ offer }) => offer.template.id === id).length).toBeLessThanOrEqual(limit);
      expect(opened.filter(({ pods }) => pods.length === 0)).toEqual([]);

      // The whole is done again, one pod after the other.
      const pods = new Map(pending.map(({ key, pod }) => [key, pod]));
      state.whatIf(() => {
        for (const { pod, node } of history) {
          const made = opened.find(({ node: { name } }) => name === node);
          if (made && !state.node(node)) {
            state.addNode(made.node);
            for (const daemon of made.daemons) state.place(daemon, node);
          }
          expect(judgePod(pods.get(pod)!, node, state), `${pod} on ${node}`).toEqual({ verdict: 'Fits' });
          state.place(pods.get(pod)!, node);
        }
      });
    },
    { runs: 400 },
  );
});
