import { describe, expect, it } from 'vitest';
import { judgePod } from '../../../../operator/burst/fit/judge.ts';
import type { NodeTemplate, PendingPod, PricedTemplate } from '../../../../operator/burst/fit/model.ts';
import { allocatableOf, fitNode } from '../../../../operator/burst/fit/node.ts';
import { pack } from '../../../../operator/burst/fit/pack.ts';
import { fitPod } from '../../../../operator/burst/fit/pod.ts';
import { ClusterState } from '../../../../operator/burst/fit/state.ts';
import type { Node } from '../../../../operator/kube/resources.ts';
import { buildNode, buildPod } from '../../../kit/builders/objects.ts';

const pod = (spec: object, labels: Record<string, string> = {}) =>
  buildPod({
    metadata: { name: 'p', namespace: 'n', labels },
    spec: { containers: [], ...spec },
  });
const asking = (cpu: string, spec: object = {}, labels?: Record<string, string>) =>
  fitPod(pod({ containers: [{ name: 'c', resources: { requests: { cpu } } }], ...spec }, labels));
const node = (name: string, cpu = '4', labels: Record<string, string> = {}) =>
  buildNode({
    metadata: { name, labels: { 'kubernetes.io/hostname': name, ...labels } },
    status: { allocatable: { cpu, memory: '8Gi', pods: '110' } },
  });
const cluster = (...nodes: Node[]): ClusterState => {
  const state = new ClusterState({ namespaces: new Map() });
  for (const each of nodes) state.addNode(fitNode(each));
  return state;
};
const template = (id: string, cpu: string, more: Partial<NodeTemplate> = {}): NodeTemplate => ({
  id,
  labels: {},
  taints: [],
  allocatable: allocatableOf({ cpu, memory: '32Gi', pods: '110' }),
  attachLimits: new Map(),
  ...more,
});
const offer = (price: number, of: NodeTemplate): PricedTemplate => ({ template: of, price, countsAgainst: [of.id] });
const pending = (count: number, of: PendingPod['pod'], prefix = 'p'): PendingPod[] =>
  Array.from({ length: count }, (_, index) => ({ key: `${prefix}${index}`, pod: of }));

describe('packing pods', () => {
  it('fills existing nodes before it buys', () => {
    const state = cluster(node('a'));
    const { placed, opened } = pack(pending(3, asking('2')), state, { offers: [offer(1, template('small', '2'))] });
    expect([...placed.values()]).toEqual(['a', 'a']);
    expect(opened.map(({ pods }) => pods.length)).toEqual([1]);
  });

  it('buys the node that is cheapest for the pods it holds', () => {
    const offers = [offer(4, template('large', '5')), offer(1, template('small', '1'))];
    const { opened } = pack(pending(7, asking('1')), cluster(), { offers });
    expect(opened.map(({ offer: { template: of } }) => of.id).sort()).toEqual(['large', 'small', 'small']);
  });

  it('keeps limits, and names the limit that was reached', () => {
    const { opened, unplaced } = pack(pending(3, asking('2')), cluster(), {
      offers: [offer(1, template('pool', '2'))],
      limits: new Map([['pool', 1]]),
    });
    expect(opened).toHaveLength(1);
    expect([...unplaced.values()]).toEqual(Array(2).fill({ misfits: [], atLimit: ['pool'] }));
  });

  it('reports why no new node would fit', () => {
    const { unplaced } = pack(pending(1, asking('8')), cluster(), { offers: [offer(1, template('small', '2'))] });
    expect(unplaced.get('p0')!.misfits.map(({ message }) => message)).toEqual(['Insufficient cpu']);
  });

  it('reserves room on new nodes for DaemonSets that run there, and no others', () => {
    const daemons = [asking('500m'), asking('500m', { nodeSelector: { gpu: 'yes' } })];
    const { opened } = pack(pending(4, asking('500m')), cluster(), {
      offers: [offer(1, template('small', '2'))],
      daemons,
    });
    expect(opened.map(({ pods }) => pods.length)).toEqual([3, 1]);
  });

  it('opens a node in each zone for pods with a topology spread over zones', () => {
    const zone = 'topology.kubernetes.io/zone';
    const spread = { topologyKey: zone, maxSkew: 1, whenUnsatisfiable: 'DoNotSchedule', minDomains: 3 };
    const app = { app: 'a' };
    const of = asking('1', { topologySpreadConstraints: [{ ...spread, labelSelector: { matchLabels: app } }] }, app);
    const offers = ['a', 'b', 'c'].map((name) => offer(1, template(name, '4', { labels: { [zone]: name } })));
    const { opened, unplaced } = pack(pending(6, of), cluster(), { offers });
    expect(unplaced.size).toBe(0);
    expect(opened.map(({ node: made, pods }) => [made.labels[zone], pods.length]).sort()).toEqual([
      ['a', 2],
      ['b', 2],
      ['c', 2],
    ]);
  });

  it('reverts everything after a trial', () => {
    const state = cluster(node('a'));
    const before = state.node('a');
    state.whatIf(() => pack(pending(5, asking('1')), state, { offers: [offer(1, template('small', '1'))] }));
    expect(state.nodes()).toEqual([before]);
    expect(state.node('a')).toMatchObject({ podCount: 0, used: { cpu: 0 } });
    expect(judgePod(asking('4'), 'a', state)).toEqual({ verdict: 'Fits' });
  });
});
