import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { main } from '../../../operator/cli/main.ts';
import { createTerminal } from '../../../operator/cli/terminal.ts';
import { file } from '../rehearsal/fixtures.ts';

async function coppice(args: readonly string[], signal = new AbortController().signal) {
  const [out, err]: [string[], string[]] = [[], []];
  const terminal = createTerminal({
    out: { write: (text: string) => out.push(text) },
    err: { write: (text: string) => err.push(text) },
    env: {},
  });
  const code = await main(['rehearse', ...args], terminal, {}, signal);
  return { out: out.join(''), err: err.join(''), code };
}

const EXAMPLE = [
  ...['-f', 'examples/rehearsal/clusters.yaml', '--trace', 'examples/rehearsal/demand.csv'],
  ...['--simulation', 'examples/rehearsal/simulation.yaml'],
];

const manifest = () =>
  file(
    'one.yaml',
    'apiVersion: multi-cluster.demo.io/v1\nkind: WorkerCluster\nmetadata: {name: one}\nspec: {cloudProvider: local, dataPlaneNodes: 2}\n',
  );
const trace = (rows = '1h,one,3\n') => file('demand.csv', `time,cluster,dataPlaneNodes\n${rows}`);

describe('coppice rehearse', () => {
  it('prints timeline, table, refusals, and that nothing is real', async () => {
    const { out, err, code } = await coppice(EXAMPLE);
    expect(code).toBe(0);
    expect(out).toMatch(/^TIME +CLUSTER +READY +WHAT\n00:00:00 +shop +0\/0 +us-east-1, Kubernetes/);
    expect(out).toMatch(/\nCLUSTER +NODE HOURS +PEAK +SERVED +WAIT P50 +WAIT MAX +UNSERVED +COST\nshop +\d/);
    expect(out).toMatch(/\ntotal +\d+\.\d\d +\d+/);
    expect(out).toContain('ERR_INFRA_QUOTA_EXCEEDED');
    expect(err).toBe('SIMULATED: nothing was created and nothing is billed.\n');
    expect((await coppice(EXAMPLE)).out).toBe(out);
    expect((await coppice([...EXAMPLE, '--seed', '4'])).out).not.toBe(out);
  });

  it('examples/gpu.yaml has a quota in money for two GPU nodes and no third', async () => {
    const rows = 'time,cluster,pool,minimum,maximum\n0,training,gpu,0,4\n1h,training,gpu,2,4\n2h,training,gpu,3,4\n';
    const { out, code } = await coppice(['-f', 'examples/gpu.yaml', '--trace', file('demand.csv', rows)]);
    expect(code).toBe(0);
    expect(out).toMatch(/\n01:00:00 +training +1\/3 +pool gpu: 2 x spot /);
    expect(out).toMatch(
      /\n02:00:00 +training +3\/3 +.*quota "gpu" allows cost\.hourly 1 USD: .*ERR_INFRA_QUOTA_EXCEEDED/,
    );
  });

  it('rehearses a policy against work, compares it with alternatives, and draws a chart', async () => {
    const chart = file('chart.svg', '');
    const burst = 'examples/rehearsal/burst';
    const curve = ['--trace', `${burst}/elb.csv`, '--per', '0.02', '--replica', 'cpu=900m,memory=2Gi'];
    const args = ['-f', `${burst}/web.yaml`, ...curve, '--until', '14h', '--timeline', '3'];
    const { out, err, code } = await coppice([...args, '--chart', chart]);
    expect({ err, code }).toEqual({ err: 'SIMULATED: nothing was created and nothing is billed.\n', code: 0 });
    expect(out).toMatch(/\ngcp \(\d+ bought\) +\d/);
    expect(out).toMatch(/\nWORK +COUNT +WAIT P50 +P95 +P99 +MAX\nall that ran +\d+/);
    expect(out).toMatch(
      /WHAT +COST +CONTROL PLANES +OF LEAST +MACHINES +P95 +P95 WAITED +NEVER RAN +CLUSTERS +NODES +WASTE\n/,
    );
    expect(out).not.toContain('…');
    for (const row of ['the policy', 'nodes alone', 'the peak, standing', 'the least', '  with minimumLife'])
      expect(out).toMatch(new RegExp(`\n${row} +\\d+\\.\\d\\d USD .*\\d+ %`));
    expect(out).toMatch(/\n {2}and control planes +\d+\.\d\d USD +\d+\.\d\d USD +\d+ %/);
    expect(out).toMatch(
      /\nPAID FOR +THE POLICY +NODES ALONE *\ncontrol planes +\d+\.\d\d USD +\d+ % +\d+\.\d\d USD +\d+ %\n/,
    );
    const drawn = readFileSync(chart, 'utf8');
    expect(drawn).toMatch(/^<svg [^>]*aria-label="Rehearsal of elb.csv with BurstPolicy peak">/);
    for (const text of [
      'CPU asked for',
      'CPU of Ready nodes',
      'USD an hour',
      'hours since the start',
      'prefers-color-scheme: dark',
    ])
      expect(drawn).toContain(text);
    expect((await coppice([...args, '--chart', chart])).out).toBe(out);
    expect(readFileSync(chart, 'utf8')).toBe(drawn);
    const { comparedTo, work } = JSON.parse((await coppice([...args, '-o', 'json'])).out);
    expect(work.boughtClusters).toBeGreaterThan(0);
    const paid = Object.values<string>(work.machinesPaidFor).reduce((sum, amount) => sum + Number(amount), 0);
    expect(paid + Number(work.controlPlanes)).toBeCloseTo(Number(work.costs[0].amount), 4);
    expect(Number(comparedTo.least.cost)).toBeLessThan(Number(comparedTo.peakStanding.cost));
  });

  it('shows cost and benefit of waiting clusters, beside other numbers of them', async () => {
    const burst = 'examples/rehearsal/burst';
    const written = readFileSync(`${burst}/web-grow.yaml`, 'utf8');
    const asleep = file('asleep.yaml', written.replace('- name: gcp\n', '- name: gcp\n      sleepingClusters: 1\n'));
    const curve = ['--trace', `${burst}/elb.csv`, '--per', '0.02', '--replica', 'cpu=900m,memory=2Gi'];
    const { out, err } = await coppice(['-f', asleep, ...curve, '--until', '14h', '--timeline', '0']);
    expect(err).not.toContain('Not rehearsed');
    expect(out).toMatch(/\nclusters that wait asleep +\d+\.\d\d USD +\d+ % +0.00 USD/);
    const at = out.indexOf('CLUSTERS WAIT');
    expect(out.slice(at)).toMatch(
      /^CLUSTERS WAIT +COST +OF IT FOR THAT +RAN +NOT AT ONCE +P50 +P95 +MAX +NEVER *\nas the policy says +\d/,
    );
    const costs = ['if all wait warm', 'as the policy says', 'if none waits'].map((row) =>
      Number(new RegExp(`\n${row} +(\\d+\\.\\d\\d) USD`).exec(out)![1]),
    );
    expect(costs).toEqual([...costs].sort((a, b) => b - a));
  });

  it('names the options that a policy needs', async () => {
    const chart = await coppice(['-f', manifest(), '--trace', trace(), '--chart', 'x.svg']);
    expect(chart).toMatchObject({ code: 2, err: expect.stringContaining('--chart needs a trace with workloads') });
    const per = await coppice(['-f', manifest(), '--trace', trace(), '--per', 'few']);
    expect(per).toMatchObject({ code: 2, err: expect.stringContaining('--per needs a number above 0') });
    const size = await coppice(['-f', manifest(), '--trace', trace(), '--replica', 'cpu=1']);
    expect(size).toMatchObject({ code: 2, err: expect.stringContaining('--replica needs cpu and memory') });
  });

  it('fails before the rehearsal when the chart cannot be written', async () => {
    const burst = 'examples/rehearsal/burst';
    const curve = ['--trace', `${burst}/elb.csv`, '--per', '0.02', '--replica', 'cpu=900m,memory=2Gi'];
    const chart = file('chart.svg', '').replace('chart.svg', 'absent/chart.svg');
    const { out, err, code } = await coppice(['-f', `${burst}/web.yaml`, ...curve, '--chart', chart]);
    expect({ out, code }).toEqual({ out: '', code: 1 });
    expect(err).toMatch(/^error: cannot write .*absent\/chart\.svg: ENOENT/);
  });

  it('prints everything as JSON', async () => {
    const { out } = await coppice([
      '-f',
      manifest(),
      '--trace',
      trace('1h,one,3\n3h,one,3\n'),
      '-o',
      'json',
      '--timeline',
      '2',
    ]);
    const document = JSON.parse(out);
    expect(document).toMatchObject({
      seconds: 10_800,
      clusters: [{ namespace: 'default', name: 'one', cloudProfile: 'local', nodeHours: 8, peakNodes: 3, refused: [] }],
      total: { nodeHours: 8, demand: { served: 3, waitP50Seconds: 0 } },
      timelineOmitted: 4,
    });
    expect(document.timeline).toHaveLength(2);
    expect(document.timeline[1]).toMatchObject({ second: 0, cluster: 'default/one', kind: 'serves', machines: 0 });
    const yaml = await coppice(['-f', manifest(), '--trace', trace('1h,one,3\n3h,one,3\n'), '-o', 'yaml']);
    expect(yaml.out).toContain('nodeHours: 8\n');
  });

  it('prints dates of a trace that has them, and ends at --until', async () => {
    const dated = trace('2026-11-10T20:00:00Z,one,3\n');
    const { out } = await coppice(['-f', manifest(), '--trace', dated, '--until', '2026-11-10T22:00:00Z']);
    expect(out).toContain('2026-11-10T20:00:00Z   one');
    expect(out).toMatch(/\none +6\.00 /);
    const { err } = await coppice(['-f', manifest(), '--trace', dated]);
    expect(err).toContain(
      'No time passed, because the trace has only one point in time. Add --until 1h to see what follows.\n',
    );
  });

  it('takes the real time of --speed, and stops when aborted', async () => {
    const began = performance.now();
    expect((await coppice(['-f', manifest(), '--trace', trace('1h,one,3\n'), '--speed', '18000'])).code).toBe(0);
    expect(performance.now() - began).toBeGreaterThanOrEqual(195);
    const interrupt = new AbortController();
    const run = coppice(['-f', manifest(), '--trace', trace('1h,one,3\n'), '--speed', '1'], interrupt.signal);
    interrupt.abort(new DOMException('stopped', 'AbortError'));
    expect((await run).code).toBe(130);
  });

  const args = (rows: string, ...more: string[]) => ['-f', manifest(), '--trace', trace(rows), ...more];
  it.each([
    [() => [], 2, 'rehearse needs -f FILE with WorkerClusters; for example: '],
    [() => ['-f', 'a.yaml'], 2, 'rehearse needs --trace FILE; for example: '],
    [() => ['-f', 'a.yaml', '--trace', '-'], 2, 'the trace is read twice, so it cannot come from standard input'],
    [() => ['-f', manifest(), '--trace', '/no/such/file'], 3, 'there is no file /no/such/file'],
    [() => ['-f', manifest(), '--trace', '/'], 1, 'cannot read /: '],
    [() => args('0,one,3', '--speed', '0'), 2, '--speed needs a number above 0, but got "0"'],
    [() => args('0,one,3', '--until', 'later'), 2, '--until needs a duration or a date, but got "later"'],
    [() => args('0,one,3', '--until', '2026-11-10T20:00:00Z'), 2, 'is a date, and the trace has none'],
    [() => args('0,one,3', '--seed', '-1'), 2, '--seed cannot be negative'],
    [() => args('0,one,3', '--simulation', '/no/such/file'), 3, 'there is no file /no/such/file'],
    [() => args('0,one,3', '--simulation', file('s.yaml', '[]')), 1, 's.yaml does not say how clouds behave'],
    [() => args('0,one,3', '--simulation', file('s.yaml', '{')), 1, 'cannot read '],
    [
      () => args('0,one,3', '--simulation', file('s.yaml', 'mars: {}')),
      1,
      'there is no CloudProfile "mars" to simulate',
    ],
    [
      () => args('0,one,3', '--simulation', file('s.yaml', 'local: {fast: true}')),
      1,
      'CloudProfile local: spec.providerConfig.simulation has no field fast',
    ],
    [() => args('0,two,3'), 1, 'demand.csv:2: the manifests have no cluster "two" (they have: default/one)'],
    [() => args('9,one,3\n8,one,3'), 1, 'demand.csv:3: time goes backwards'],
    [() => args('0,one,-3'), 1, 'demand.csv:2: dataPlaneNodes: Too small'],
  ])('%#: a mistake is one line', async (line, code, message) => {
    const { out, err, code: got } = await coppice(line());
    expect([out, got]).toEqual(['', code]);
    expect(err).toContain(message);
    expect(err.trim().split('\n')).toHaveLength(1);
  });
});
