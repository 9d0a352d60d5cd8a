import { expect, it } from 'vitest';
import type { WorkerClusterSpec } from '../../../operator/api/workercluster.ts';
import type { Demand } from '../../../operator/hubs/contract.ts';
import { BurstTestbed, demand, policyNamed, SECOND } from '../../kit/burst/testbed.ts';

type WorkerPool = NonNullable<WorkerClusterSpec['pools']>[number];
const WEB = 'ResourceBinding shop/web';
const NOT_ACCEPTED = /cloud: node\(s\) didn't match Pod's node affinity\/selector/;

const affinity = (operator: string, ...values: string[]): Demand['nodes'] => {
  const nodeSelectorTerms = [{ matchExpressions: [{ key: 'disk', operator, values }] }];
  return { affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } } } };
};
const ssd = { labels: { disk: 'ssd' } };
const team = { taints: [{ key: 'team', value: 'db', effect: 'NoSchedule' as const }] };

/** Work that asks for this, and a policy whose clusters have this pool. */
const testbed = (asked: Partial<Demand>, pool: Partial<WorkerPool>) => {
  const found = new BurstTestbed();
  const [cloud] = policyNamed('peak').spec.candidates;
  const spec = { ...cloud!.template.spec, pools: [{ name: 'a', maximum: 5, ...pool }] };
  found.objects.put(policyNamed('peak', { candidates: [{ ...cloud!, template: { ...cloud!.template, spec } }] }));
  found.demands = [demand(WEB, 2, asked)];
  return found;
};

it.each<[string, Partial<Demand>, Partial<WorkerPool>, RegExp | undefined]>([
  ['any node, onto any', {}, {}, undefined],
  ['a label, onto nodes with it', { nodes: { nodeSelector: { disk: 'ssd' } } }, ssd, undefined],
  ['a label, onto nodes without it', { nodes: { nodeSelector: { disk: 'ssd' } } }, {}, NOT_ACCEPTED],
  ['an architecture', { nodes: { nodeSelector: { 'kubernetes.io/arch': 'amd64' } } }, {}, undefined],
  ['another architecture', { nodes: { nodeSelector: { 'kubernetes.io/arch': 'arm64' } } }, {}, NOT_ACCEPTED],
  ['one of several values, which nodes have', { nodes: affinity('In', 'nvme', 'ssd') }, ssd, undefined],
  ['a value that nodes must not have', { nodes: affinity('NotIn', 'ssd') }, ssd, NOT_ACCEPTED],
  ['any node, where all have a taint', {}, team, /cloud: node\(s\) had untolerated taint/],
  [
    'any node, tolerating their taint',
    { nodes: { tolerations: [{ key: 'team', operator: 'Exists' }] } },
    team,
    undefined,
  ],
  [
    'what nodes do not have',
    { others: { 'example.com/fpga': '1' } },
    {},
    /1 example.com\/fpga each\).*Insufficient example.com\/fpga/,
  ],
])('work that accepts %s: a cluster is bought or not', async (_, asked, pool, refusal) => {
  const one = testbed(asked, pool);
  await one.looks(50 * SECOND);
  expect(one.clusters()).toHaveLength(refusal ? 0 : 1);
  const said = one.policy()?.status?.demand?.[0];
  if (refusal) expect(said).toMatchObject({ state: 'Refused', message: expect.stringMatching(refusal) });
  else expect(said?.state).toBe('RoomOrdered');
});

it('nodes that the work does not accept are not counted as room', async () => {
  const one = testbed({ each: { cpu: '100m', memory: '1Mi' } }, ssd);
  await one.looks(50 * SECOND);
  one.join(one.clusters()[0]!, 0);
  await one.look(SECOND);
  expect(one.says('DemandMet')).toBe('False Fits');
  // Nodes that the testbed has come without labels of the pool.
  const nodes = { nodeSelector: { disk: 'ssd' } };
  one.demands = [demand('ResourceBinding shop/db', 2, { each: { cpu: '100m', memory: '1Mi' }, nodes })];
  await one.look(SECOND);
  expect(one.says('DemandMet')).not.toBe('False Fits');
});
