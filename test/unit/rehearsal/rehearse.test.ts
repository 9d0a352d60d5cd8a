import { describe, expect, it } from 'vitest';
import { API_VERSION } from '../../../operator/api/group.ts';
import type { KubeObject } from '../../../operator/api/meta.ts';
import { workerClusterSpec } from '../../../operator/api/workercluster.ts';
import { workerClusterDefinition } from '../../../operator/api/workercluster-definition.ts';
import { renderReport, timelineLines } from '../../../operator/cli/render/rehearsal.ts';
import { plain } from '../../../operator/cli/render/text.ts';
import { demandProblem } from '../../../operator/rehearsal/admission.ts';
import { draw } from '../../../providers/simulated/random.ts';
import { partOf } from '../../kit/builders/partial.ts';
import { cluster, HOUR, type Played, play, playLines, profile } from './fixtures.ts';

const SHOP = cluster('shop', {
  dataPlaneNodes: 2,
  pools: [
    { name: 'base', minimum: 2, maximum: 2 },
    { name: 'burst', machineType: 'l', spot: true, maximum: 20 },
  ],
});
const ROUGH = {
  seed: 5,
  machines: { creation: { p50: '1m', p95: '3m' }, failureRate: 0.05 },
  controlPlane: { creation: { p50: '5m' } },
  capacity: { depletionRate: 0.2, window: '10m' },
  throttling: { requestsPerSecond: 1, burst: 2 },
  quota: { nodes: 12 },
  spot: { interruptionsPerHour: 0.3 },
};

function shown({ report, timeline }: Played): string {
  const form = { start: report.start, dated: false };
  const clusters = report.clusters.map(({ namespace, name }) => `${namespace}/${name}`);
  const lines = timelineLines({ ...form, end: report.end, clusters, paint: plain });
  const table = renderReport(report, form, {});
  const text = [lines.header, ...timeline.map((entry) => lines.line(entry)), '', ...table, ''].join('\n');
  return text.replaceAll(/\S+\/demand\.csv/g, 'demand.csv');
}

describe('a rehearsal', () => {
  it('reports creations, times, refusals and cost, as recorded', async () => {
    const batch = cluster('batch', { dataPlaneNodes: 4 });
    const rows = '30m,shop,,10\n1h,batch,create\n1h30m,shop,,13\n2h,shop,,40\n3h,shop,,4\n4h,batch,delete\n5h,shop,,2';
    const played = await play(rows, [SHOP, batch], ROUGH);
    await expect(shown(played)).toMatchFileSnapshot('golden/rough-cloud.txt');
  });

  it('is equal for equal seeds, and differs for others', async () => {
    const run = (seed: number) => play('10m,shop,,9\n3h,shop,,2', [SHOP], { ...ROUGH, seed });
    const [first, again, other] = [await run(1), await run(1), await run(2)];
    expect(again).toEqual(first);
    expect(other.said).not.toEqual(first.said);
  });

  it('uses the next machine type where one is sold out, keeps it, and grows by the first again', async () => {
    const choosy = cluster('choosy', { machineTypes: ['m', 'l'] });
    const soldOut = { capacity: { depleted: [{ machineType: 'm' }] } };
    const { said, report } = await play('1h,choosy,,3', [choosy], soldOut);
    expect(said).toEqual([
      '0:00 north, Kubernetes 1.36.3, control plane of 1, wants 2 nodes',
      '0:00 the control plane serves',
      expect.stringMatching(/^0:00 pool default lacks 2 of 2 machines: no m left in north-a, north-b/),
      expect.stringMatching(/^0:00 pool default-\w{4}: 2 x l \(0 -> 2\)$/),
      '0:00 all 2 nodes are Ready',
      expect.stringMatching(/^1:00 pool default lacks 1 of 1 machines: no m left/),
      expect.stringMatching(/^1:00 pool default-\w{4}: 1 x l \(2 -> 3\)$/),
      '1:00 all 3 nodes are Ready',
    ]);
    expect(report.clusters[0]?.refused.map(({ code }) => code)).toEqual(['ERR_INFRA_RESOURCES_DEPLETED']);
  });

  it('has nodes at once without a configured cloud behaviour', async () => {
    const { report, said } = await play('1h,shop,,5\n2h,shop,,5', [SHOP]);
    expect(said).toEqual([
      '0:00 north, Kubernetes 1.36.3, control plane of 1, wants 2 nodes',
      '0:00 the control plane serves',
      '0:00 pool base: 2 x m (0 -> 2)',
      '0:00 all 2 nodes are Ready',
      '1:00 pool burst: 3 x spot l (0 -> 3)',
      '1:00 all 5 nodes are Ready',
    ]);
    expect(report.total).toMatchObject({ machineMs: 7 * HOUR, peak: 5 });
    expect(report.total.demand).toEqual({ served: 5, cancelled: 0, waiting: 0, waitP50: 0, waitMax: 0 });
  });

  it('counts node hours as the exact integral of its timeline', async () => {
    for (let run = 0; run < 12; run++) {
      const number = (most: number, ...key: number[]) => Math.floor(most * draw(run, ...key));
      let at = 0;
      const clusters = [SHOP, cluster('one'), cluster('two', { dataPlaneNodes: 3 })];
      const lines = Array.from({ length: 60 }, (_, index) => {
        at += number(1200, index, 0);
        const name = ['shop', 'one', 'two'][number(3, index, 1)]!;
        return { where: `t:${index}`, at: at * 1000, dated: false, cluster: name, event: 'demand' as const, pools: [] };
      }).map((line, index) => ({ ...line, dataPlaneNodes: 2 + number(14, index, 2) }));
      async function* trace() {
        yield* lines;
      }
      const { report, timeline } = await playLines(trace, clusters, { ...ROUGH, seed: run });
      let total = 0;
      for (const { namespace, name, machineMs, peak, demand } of report.clusters) {
        const steps = timeline.filter((entry) => entry.cluster === `${namespace}/${name}`);
        const area = steps.reduce((sum, { at: from, machines }, index) => {
          return sum + machines * ((steps[index + 1]?.at ?? report.end) - from);
        }, 0);
        expect(machineMs).toBe(area);
        expect(peak).toBe(Math.max(0, ...steps.map(({ machines }) => machines)));
        expect(demand.waitMax ?? 0).toBeGreaterThanOrEqual(demand.waitP50 ?? 0);
        total += area;
      }
      expect(report.total.machineMs).toBe(total);
      expect(report.total.peak).toBeLessThanOrEqual(ROUGH.quota.nodes);
    }
  });

  it("multiplies node hours by the profile's prices, and reports missing prices", async () => {
    const { report } = await play('1h,shop,,4\n3h,shop,,4', [SHOP]);
    // 2 x m for 3 h at 0.1, 3 h of the cloud's fee at 0.5.
    expect(report.clusters[0]!.cost).toEqual({ currency: 'USD', amount: 2_100_000n });
    expect(report.clusters[0]!.unpriced).toEqual([
      { what: expect.stringContaining('no spot price of machine type l in region north'), ms: 4 * HOUR },
    ]);
    expect(report.total.costs).toEqual([{ currency: 'USD', amount: 2_100_000n }]);
  });

  it('waits for the control plane, then for machines', async () => {
    const slow = { controlPlane: { creation: { p50: '10m' } }, machines: { creation: { p50: '2m' } } };
    const { report } = await play('0,one,,3\n1h,one,,3', [cluster('one', { dataPlaneNodes: 1 })], slow);
    expect(report.total.demand).toMatchObject({ served: 3, waitP50: 12 * 60_000, waitMax: 12 * 60_000 });
  });

  it('retries sold-out machines until they exist, and removes nothing meanwhile', async () => {
    const soldOut = { seed: 3, capacity: { depletionRate: 0.8, window: '10m' } };
    const two = cluster('two', {
      pools: [
        { name: 'a', minimum: 3 },
        { name: 'b', minimum: 3 },
      ],
      dataPlaneNodes: undefined,
    });
    const { timeline, report } = await play('5h,two,,,b,0\n6h,two,,,b,0', [two], soldOut);
    const [first] = timeline.filter(({ kind }) => kind === 'refused');
    expect(first!.message).toBe(
      'pool a lacks 3 of 3 machines: no m left in north-a, north-b (ERR_INFRA_RESOURCES_DEPLETED)',
    );
    expect(timeline.filter(({ kind }) => kind === 'refused')).toHaveLength(1);
    const ready = timeline.find(({ kind }) => kind === 'ready')!;
    // Asked again at least every minute, once a zone has machines again.
    expect(ready.at % 600_000).toBeLessThanOrEqual(60_000);
    const { times } = report.clusters[0]!.refused[0]!;
    expect(times).toBeGreaterThan(ready.at / 60_000);
    expect(times).toBeLessThan(ready.at / 30_000 + 12);
    expect(timeline.at(-1)).toMatchObject({ kind: 'scaled-in', at: 5 * HOUR, machines: 3 });
  });

  it('replaces reclaimed spot machines', async () => {
    const { timeline, report } = await play('0,shop,,6\n20h,shop,,6', [SHOP], { spot: { interruptionsPerHour: 0.5 } });
    const lost = timeline.filter(({ kind }) => kind === 'interrupted');
    expect(lost.length).toBeGreaterThan(20);
    for (const { message } of lost) expect(message).toContain('pool burst');
    expect(report.total.demand).toMatchObject({ served: 6 + lost.length, waiting: 0 });
    expect(timeline.at(-1)!.machines).toBe(6);
  });

  it('deletes and creates clusters by the trace, also at the same moment', async () => {
    const { said, report } = await play('1h,one,create\n2h,one,delete\n2h,one,create,1\n3h,one,delete', [
      cluster('one'),
    ]);
    expect(said.filter((line) => /gone|wants/.test(line))).toEqual([
      '1:00 north, Kubernetes 1.36.3, control plane of 1, wants 2 nodes',
      '2:00 the cluster is gone',
      '2:00 north, Kubernetes 1.36.3, control plane of 1, wants 1 nodes',
      '3:00 the cluster is gone',
    ]);
    expect(report.total.machineMs).toBe(3 * HOUR);
  });

  it('reports rejections by the API server, and continues', async () => {
    const { report, said } = await play('1h,shop,,23\n1h,shop,,,burst,9,5\n2h,shop,,3', [SHOP]);
    expect(said.filter((line) => line.includes('refuses'))).toEqual([
      expect.stringContaining('demand.csv:2: dataPlaneNodes is more than the maximums of the pools together'),
      expect.stringContaining('demand.csv:3: pool burst: minimum is larger than maximum'),
    ]);
    expect(report.clusters[0]!.refused).toMatchObject([{ code: 'ERR_CONFIGURATION_PROBLEM', times: 2 }]);
    expect(said.at(-1)).toBe('2:00 all 3 nodes are Ready');
  });

  it('reports refusals by the operator', async () => {
    const lost = cluster('lost', { region: 'south' });
    const { said, report } = await play('1h,lost,,9', [lost]);
    expect(said).toEqual([expect.stringContaining('spec.region: CloudProfile "cloud" has no region "south"')]);
    expect(report.total.machineMs).toBe(0);
  });

  it("holds clusters to their project's quotas, and lets them grow when there is room", async () => {
    const quota = {
      apiVersion: API_VERSION,
      kind: 'Quota',
      metadata: { name: 'project', namespace: 'shop' },
      spec: { metrics: { nodes: 6 } },
    };
    const { said } = await play('1h,one,,5\n2h,two,,1\n3h,one,,5', [quota, cluster('one'), cluster('two')]);
    const of = said.filter((line) => /quota|-> 5|-> 1\)/.test(line));
    expect(of[0]).toContain(
      '1:00 spec.dataPlaneNodes: quota "project" allows nodes 6: 4 used, 3 more requested, 2 left',
    );
    expect(of.slice(1)).toEqual([
      '2:00 pool default: 1 machines taken away (2 -> 1)',
      '2:00 pool default: 3 x m (2 -> 5)',
    ]);
  });

  it('continues after the trace, or ends before it, as requested', async () => {
    const longer = await play('0,one,,4', [cluster('one')], {}, { until: 2 * HOUR });
    expect(longer.report.total.machineMs).toBe(8 * HOUR);
    const shorter = await play('0,one,,4\n9h,one,,9', [cluster('one')], {}, { until: HOUR });
    expect(shorter.report).toMatchObject({ end: HOUR, total: { machineMs: 4 * HOUR, peak: 4 } });
  });

  it.each([
    ['0,three,,1', 'demand.csv:2: the manifests have no cluster "three" (they have: shop/one, other/one, shop/two)'],
    ['0,one,,1', 'demand.csv:2: "one" is ambiguous: shop/one, other/one'],
    ['0,two,,1\n1,two,create', 'demand.csv:3: cluster shop/two exists already'],
    ['0,two,delete\n1,two,,3', 'demand.csv:3: cluster shop/two was deleted before'],
    ['0,two,,,spot,3', 'demand.csv:2: cluster shop/two has no pool "spot" (it has: none)'],
  ])('refuses a trace that does not fit the manifests: %s', async (rows, message) => {
    const objects = [cluster('one'), cluster('one', {}, 'other'), cluster('two')];
    await expect(play(rows, objects)).rejects.toThrow(message);
  });

  it("bills a machine for its cloud's minimum, and a hosted control plane's share once", async () => {
    const billing = { ...profile.spec, billing: { machines: { step: '1s', minimum: '1h' } } };
    const hourly = partOf<KubeObject>({ ...profile, spec: billing });
    const { report } = await play('1h,shop,,5\n1h10m,shop,,2\n2h,shop,,2', [cluster('shop'), hourly]);
    // Two machines for two hours, and three for the hour that ten minutes of them cost.
    expect(report.total.machineMs).toBe(7 * HOUR);
    const share = { ...profile.spec, hostedControlPlaneFee: { hourly: '0.25', currency: 'USD' } };
    const hosted = partOf<KubeObject>({ ...profile, spec: share });
    const played = await play('2h,shop,,2', [cluster('shop', { mode: 'Hosted' }), hosted]);
    expect(played.report.total.costs).toEqual([{ currency: 'USD', amount: 400_000n + 500_000n }]);
  });

  it.each([
    [cluster('one', { nodes: 3 }), 'clusters.yaml: WorkerCluster one: spec.nodes is no field'],
    [cluster('one', { pools: [{ name: 'a', size: 3 }] }), 'WorkerCluster one: spec.pools[0].size is no field'],
    [cluster('one', { dataPlaneNodes: -1 }), 'WorkerCluster one: spec.dataPlaneNodes: Too small'],
    [cluster('one', { dataPlaneNodes: undefined }), 'WorkerCluster one: say how many nodes'],
    [{ ...cluster('one'), kind: 'Shoot' }, 'the manifests have no WorkerCluster'],
  ])('refuses a manifest that the API server would refuse: %#', async (object, message) => {
    await expect(play('0,one,,1', [object])).rejects.toThrow(message);
  });

  it('rejects unknown cloud settings before it starts', async () => {
    await expect(play('0,one,,1', [cluster('one')], { latency: '3s' })).rejects.toThrow(
      'CloudProfile cloud: spec.providerConfig.simulation has no field latency',
    );
  });
});

it("rejects demand with the API server's message", () => {
  const rules = workerClusterSpec.meta()!['x-kubernetes-validations'] as { message: string }[];
  const words = [...rules, ...(workerClusterDefinition.rules ?? [])].map(({ message }) => message);
  const pool = (minimum?: number, maximum?: number) => ({ name: 'a', minimum, maximum });
  const specs = [
    {},
    { dataPlaneNodes: 1, pools: [pool(2)] },
    { dataPlaneNodes: 9, pools: [pool(0, 3)] },
    { pools: [pool(3000), { ...pool(3000), name: 'b' }] },
  ];
  for (const spec of specs) expect(words).toContain(demandProblem(spec as never));
  expect(demandProblem({ dataPlaneNodes: 9, pools: [pool(0)] } as never)).toBeUndefined();
});
