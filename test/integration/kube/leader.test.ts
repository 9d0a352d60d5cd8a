import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { KubeClient } from '../../../operator/kube/client.ts';
import { EventRecorder } from '../../../operator/kube/events.ts';
import { LeaderElector } from '../../../operator/kube/leader.ts';
import { EVENTS, LEASES, type Lease, NAMESPACES } from '../../../operator/kube/resources.ts';
import { startFlakyProxy } from '../../kit/flaky-proxy.ts';
import { type SharedApiserver, sharedApiserver } from '../../kit/shared-apiserver.ts';

type LeaderElectorOptions = ConstructorParameters<typeof LeaderElector>[0];

let api: SharedApiserver;
beforeAll(async () => {
  api = await sharedApiserver();
});
afterAll(() => api?.leave());

/** Nobody waits for a lease to run out, and an API server may stand still for seconds. */
const PATIENT = { leaseDurationMs: 60_000, renewDeadlineMs: 20_000, retryPeriodMs: 200 };
/** For who waits for that. */
const QUICK = { leaseDurationMs: 2000, renewDeadlineMs: 1200, retryPeriodMs: 200 };

function candidate(name: string, identity: string, more: Partial<LeaderElectorOptions> = {}) {
  const history: string[] = [];
  const stop = new AbortController();
  const elector = new LeaderElector({
    client: api.client,
    namespace: api.namespace,
    name,
    identity,
    ...PATIENT,
    onStarted: async (signal) => {
      history.push('started');
      await new Promise((resolve) => signal.addEventListener('abort', resolve));
      history.push('ended');
    },
    onLost: () => history.push('lost'),
    ...more,
  });
  return { elector, history, stop, run: elector.run(stop.signal) };
}

async function until(condition: () => boolean, timeoutMs = 25_000): Promise<number> {
  const started = performance.now();
  while (!condition()) {
    if (performance.now() - started > timeoutMs) throw new Error('waited in vain');
    await delay(20);
  }
  return performance.now() - started;
}

describe('LeaderElector', () => {
  it('keeps the identities of earlier leaders, including those that were killed', async () => {
    const rememberIn = 'coppice.test/leaders';
    const leaders = ['a', 'b', 'a'];
    for (const identity of leaders) {
      const one = candidate('remembering', identity, { rememberIn });
      await until(() => one.elector.leading);
      expect(one.elector.earlierLeaders).toContain(identity);
      one.stop.abort();
      await one.run;
    }
    const lease = await api.client.get<Lease>(LEASES, 'remembering', api.namespace);
    expect(lease.metadata.annotations).toEqual({ [rememberIn]: 'a,b' });
    // Given back, nobody is named as holder any more.
    expect(lease.spec?.holderIdentity).toBe('');
  });

  it('lets one replica lead, and the next one at once when the first stops', async () => {
    const a = candidate('one', 'a');
    await until(() => a.elector.leading);
    const b = candidate('one', 'b');
    await until(() => b.elector.leader === 'a');
    await delay(600);
    expect(b.elector.leading).toBe(false);
    a.stop.abort();
    await a.run;
    expect(a.history).toEqual(['started', 'ended']);
    await until(() => b.elector.leading);
    const { spec } = await api.client.get<Lease>(LEASES, 'one', api.namespace);
    expect(spec).toMatchObject({ holderIdentity: 'b', leaseDurationSeconds: 60 });
    expect(spec?.renewTime).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/);
    b.stop.abort();
    await b.run;
    expect((await api.client.get<Lease>(LEASES, 'one', api.namespace)).spec?.holderIdentity).toBe('');
  });

  it('releases a Lease whose last renewal was aborted but got through', async () => {
    const stop = new AbortController();
    const cutOff: Pick<KubeClient, 'create' | 'getOrUndefined' | 'update'> = {
      create: (...asked) => api.client.create(...asked),
      getOrUndefined: (...asked) => api.client.getOrUndefined(...asked),
      update: async (...asked) => {
        const done = await api.client.update(...asked);
        if (stop.signal.aborted) return done;
        stop.abort();
        throw stop.signal.reason;
      },
    };
    const a = candidate('cut-off', 'a', { client: cutOff as KubeClient });
    stop.signal.addEventListener('abort', () => a.stop.abort());
    await a.run;
    expect((await api.client.get<Lease>(LEASES, 'cut-off', api.namespace)).spec?.holderIdentity).toBe('');
  });

  it("waits for a dead leader's Lease to run out, unless the same identity returns", async () => {
    const proxy = await startFlakyProxy(api.url);
    const a = candidate('dead', 'a', { client: api.connect({ server: proxy.url }), renewDeadlineMs: 1200 });
    await until(() => a.elector.leading);
    await proxy.cut();
    const b = candidate('dead', 'b');
    const again = candidate('dead', 'a');
    await until(() => again.elector.leading);
    expect(b.elector.leading).toBe(false);
    await a.run;
    expect(a.history).toEqual(['started', 'ended', 'lost']);
    for (const { stop, run } of [again, b]) {
      stop.abort();
      await run;
    }
    await proxy.close();
  });

  it('stops leading before another replica may lead when it cannot renew', async () => {
    const proxy = await startFlakyProxy(api.url);
    const a = candidate('cut', 'a', { client: api.connect({ server: proxy.url }), ...QUICK });
    await until(() => a.elector.leading);
    const b = candidate('cut', 'b', QUICK);
    await delay(300);
    // Frozen is worse than refused: requests hang.
    proxy.freeze();
    let both = false;
    const watch = setInterval(() => {
      both ||= a.elector.leading && b.elector.leading;
    }, 5);
    const took = await until(() => b.elector.leading);
    clearInterval(watch);
    expect(both).toBe(false);
    expect(a.history).toEqual(['started', 'ended', 'lost']);
    expect(took).toBeGreaterThan(1000);
    await a.run;
    b.stop.abort();
    await b.run;
    await proxy.close();
  });

  it('survives another client writing to the Lease', async () => {
    const a = candidate('touched', 'a');
    await until(() => a.elector.leading);
    await api.client.mergePatch(LEASES, 'touched', api.namespace, { metadata: { labels: { touched: 'yes' } } });
    await delay(1500);
    expect(a.elector.leading).toBe(true);
    expect(a.history).toEqual(['started']);
    a.stop.abort();
    await a.run;
  });

  it('rejects with the error of the work', async () => {
    const a = candidate('broken', 'a', {
      onStarted: async () => {
        throw new Error('cannot start');
      },
    });
    await expect(a.run).rejects.toThrow('cannot start');
  });

  it('elects one of ten replicas that start at the same moment', async () => {
    const all = Array.from({ length: 10 }, (_, index) => candidate('many', `id-${index}`));
    await until(() => all.some(({ elector }) => elector.leading));
    await delay(1000);
    expect(all.filter(({ elector }) => elector.leading)).toHaveLength(1);
    for (const { stop } of all) stop.abort();
    await Promise.all(all.map(({ run }) => run));
  });
});

it('the API server accepts events of namespaced and cluster-scoped objects', async () => {
  const recorder = new EventRecorder({ client: api.client, component: 'coppice', log: undefined as never });
  const namespace = await api.client.get(NAMESPACES, api.namespace);
  recorder.record(namespace, 'Normal', 'Seen', 'a namespace was seen');
  recorder.record(
    { ...namespace, metadata: { ...namespace.metadata, namespace: api.namespace } },
    'Warning',
    'Odd',
    'odd',
  );
  await recorder.flush();
  const { items } = await api.client.list(EVENTS, {
    fieldSelector: `source=coppice,involvedObject.name=${api.namespace}`,
  });
  const seen = items.map(({ type, reason, count, metadata }) => `${type} ${reason} ${count} ${metadata.namespace}`);
  expect(seen.sort()).toEqual(['Normal Seen 1 default', `Warning Odd 1 ${api.namespace}`]);
});
