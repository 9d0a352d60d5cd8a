import { afterAll, describe, expect, it } from 'vitest';
import { serveHealth } from '../../../operator/kube/health.ts';
import { processMetrics, Registry } from '../../../operator/kube/metrics.ts';

describe('Registry', () => {
  it('renders the text format', () => {
    const registry = new Registry();
    const counter = registry.counter('runs_total', 'Runs.');
    counter.inc();
    counter.inc({ result: 'a "quoted"\nback\\slash' }, 2);
    registry.gauge('depth', 'Depth.').set(3, { queue: 'q' });
    const histogram = registry.histogram('took_seconds', 'Time.', [0.1, 1]);
    for (const value of [0.05, 0.1, 0.5, 7]) histogram.observe(value, { kind: 'x' });
    expect(registry.render()).toBe(
      [
        '# HELP runs_total Runs.',
        '# TYPE runs_total counter',
        'runs_total 1',
        'runs_total{result="a \\"quoted\\"\\nback\\\\slash"} 2',
        '# HELP depth Depth.',
        '# TYPE depth gauge',
        'depth{queue="q"} 3',
        '# HELP took_seconds Time.',
        '# TYPE took_seconds histogram',
        'took_seconds_bucket{kind="x",le="0.1"} 2',
        'took_seconds_bucket{kind="x",le="1"} 3',
        'took_seconds_bucket{kind="x",le="+Inf"} 4',
        'took_seconds_sum{kind="x"} 7.65',
        'took_seconds_count{kind="x"} 4',
        '',
      ].join('\n'),
    );
  });

  it('gives the same instrument for the same name, and refuses another type', () => {
    const registry = new Registry();
    registry.counter('x', 'X.').inc();
    expect(registry.counter('x', 'X.').get()).toBe(1);
    expect(() => registry.gauge('x', 'X.')).toThrow('counter already');
  });

  it('asks collectors each time until they are taken away', () => {
    const registry = new Registry();
    const gauge = registry.gauge('n', 'N.');
    const stop = registry.collect(() => gauge.add(1));
    registry.render();
    registry.render();
    stop();
    registry.render();
    expect(gauge.get()).toBe(2);
    gauge.remove();
    expect(registry.render()).not.toMatch(/^n /m);
  });

  it('describes the process', () => {
    const registry = new Registry();
    processMetrics(registry);
    expect(registry.render()).toMatch(/^process_resident_memory_bytes [1-9]\d+/m);
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

  it('says what is not ready and why', async () => {
    ready = 'still starting';
    const { status, text } = await ask('/readyz');
    expect(status).toBe(503);
    expect(text).toBe('[-] state: still starting\n[-] broken: boom\nnot ok\n');
    ready = true;
    expect(await ask('/readyz?verbose')).toEqual({ status: 200, text: '[+] state\n[+] broken\nok\n' });
  });
  it('is alive meanwhile', async () => expect((await ask('/livez')).status).toBe(200));
  it('serves metrics', async () => expect((await ask('/metrics')).text).toContain('c_total 1'));
  it('knows nothing else', async () => {
    expect((await ask('/')).status).toBe(404);
    expect((await ask('/readyz', 'POST')).status).toBe(405);
  });
  it('rejects when the port is taken', async () => {
    await expect(serveHealth({ port: server.port })).rejects.toThrow('EADDRINUSE');
  });
});
