import { createRequire } from 'node:module';
import { afterAll, describe, expect, it } from 'vitest';
import { serveHealth } from '../../../operator/kube/health.ts';
import { processMetrics, Registry } from '../../../operator/kube/metrics.ts';

describe('Registry', () => {
  it('renders the text format', async () => {
    const registry = new Registry();
    registry.counter('starts_total', 'Starts, of any\nsort.').inc();
    const counter = registry.counter('runs_total', 'Runs.', ['result']);
    counter.inc({ result: 'plain' });
    counter.inc({ result: 'a "quoted"\nback\\slash' }, 2);
    registry.gauge('depth', 'Depth.', ['queue']).set({ queue: 'q' }, 3);
    const histogram = registry.histogram('took_seconds', 'Time.', ['kind'], [0.1, 1]);
    for (const value of [0.05, 0.1, 0.5, 7]) histogram.observe({ kind: 'x' }, value);
    const text = await registry.render();
    expect(text.endsWith('\n')).toBe(true);
    expect(text.split('\n').filter(Boolean)).toEqual([
      '# HELP starts_total Starts, of any\\nsort.',
      '# TYPE starts_total counter',
      'starts_total 1',
      '# HELP runs_total Runs.',
      '# TYPE runs_total counter',
      'runs_total{result="plain"} 1',
      'runs_total{result="a \\"quoted\\"\\nback\\\\slash"} 2',
      '# HELP depth Depth.',
      '# TYPE depth gauge',
      'depth{queue="q"} 3',
      '# HELP took_seconds Time.',
      '# TYPE took_seconds histogram',
      'took_seconds_bucket{le="0.1",kind="x"} 2',
      'took_seconds_bucket{le="1",kind="x"} 3',
      'took_seconds_bucket{le="+Inf",kind="x"} 4',
      'took_seconds_sum{kind="x"} 7.65',
      'took_seconds_count{kind="x"} 4',
    ]);
  });

  it('returns the same instrument for the same name, and refuses another type', async () => {
    const registry = new Registry();
    registry.counter('x', 'X.').inc();
    registry.counter('x', 'X.').inc();
    expect(await registry.render()).toMatch(/^x 2$/m);
    expect(() => registry.gauge('x', 'X.')).toThrow('metric x is a counter already');
  });

  it('shares no metrics with another registry', async () => {
    const [one, other] = [new Registry(), new Registry()];
    one.counter('x', 'X.').inc();
    other.gauge('x', 'X.').set(7);
    expect(await one.render()).toMatch(/^x 1$/m);
    expect(await other.render()).toMatch(/^x 7$/m);
  });

  it('runs collectors on each rendering until they unsubscribe', async () => {
    const registry = new Registry();
    const gauge = registry.gauge('n', 'N.');
    const stop = registry.collect(() => gauge.inc());
    await registry.render();
    expect(await registry.render()).toMatch(/^n 2$/m);
    stop();
    expect(await registry.render()).toMatch(/^n 2$/m);
  });

  it('has metrics of the process', async () => {
    const registry = new Registry();
    processMetrics(registry);
    const cpu = async () => Number(/^process_cpu_seconds_total (.+)$/m.exec(await registry.render())?.[1]);
    expect(await registry.render()).toMatch(/^process_resident_memory_bytes [1-9]\d+/m);
    const before = await cpu();
    // What the process has used so far, and not the sum of all that was ever read.
    expect(await cpu()).toBeLessThan(before + process.cpuUsage().user / 1e6);
  });

  it('does not load unused parts of prom-client', () => {
    const modules = Object.keys(createRequire(import.meta.url).cache).filter((file) => file.includes('prom-client'));
    expect(modules.some((file) => file.endsWith('lib/counter.js'))).toBe(true);
    expect(modules.filter((file) => /metrics\/|defaultMetrics|pushgateway|index\.js$/.test(file))).toEqual([]);
  });
});

describe('serveHealth', async () => {
  let ready: boolean | string = 'still starting';
  const registry = new Registry();
  registry.counter('c_total', 'C.').inc();
  const server = await serveHealth({
    port: 0,
    registry,
    checks: {
      state: () => ready,
      broken: () => {
        if (ready !== true) throw new Error('boom');
        return true;
      },
    },
  });
  afterAll(() => server.close());
  const ask = async (path: string, method = 'GET') => {
    const response = await fetch(server.url + path, { method });
    return { status: response.status, text: await response.text() };
  };

  it('answers /readyz with the failed checks and their reasons', async () => {
    ready = 'still starting';
    const { status, text } = await ask('/readyz');
    expect(status).toBe(503);
    expect(text).toBe('[-] state: still starting\n[-] broken: boom\nnot ok\n');
    ready = true;
    expect(await ask('/readyz?verbose')).toEqual({ status: 200, text: '[+] state\n[+] broken\nok\n' });
  });
  it('answers /livez with ok while /readyz fails', async () => expect((await ask('/livez')).status).toBe(200));
  it('serves metrics', async () => expect((await ask('/metrics')).text).toContain('c_total 1'));
  it('answers 404 for other paths', async () => {
    expect((await ask('/')).status).toBe(404);
    expect((await ask('/readyz', 'POST')).status).toBe(405);
  });
  it('rejects when the port is taken', async () => {
    await expect(serveHealth({ port: server.port })).rejects.toThrow('EADDRINUSE');
  });
});
