import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { ManagedClusters } from '../../../providers/cloud.ts';
import type { ProviderContext } from '../../../providers/contract.ts';
import { machineProvider } from '../../../providers/machines/provider.ts';
import { type RollingShoot, roll } from '../../kit/rolling-shoot.ts';
import { context, FakeCluster, pool } from '../providers/fixtures.ts';
import { MemoryCloud, tenantAccount } from '../providers/machines/memory-cloud.ts';

let cloud: MemoryCloud;
let seed: FakeCluster;
let shoot: FakeCluster;

beforeEach(() => {
  vi.useFakeTimers();
  [cloud, seed, shoot] = [new MemoryCloud(), new FakeCluster(), new FakeCluster()];
});
afterEach(() => {
  vi.useRealTimers();
});

/** An operator that knows nothing yet. */
const started = () => {
  const managed = { version: '1', checkAccount: async () => ({ id: cloud.id, missing: [] }) };
  return machineProvider('aws', managed as unknown as ManagedClusters, cloud.cloud, cloud.runner);
};
const ctx = (kubernetesVersion: string): ProviderContext =>
  context({
    seed: seed.client,
    shoot: shoot.client,
    kubernetesVersion,
    // Whoever asks is told of what has become of machines in the meantime.
    cloud: async () =>
      tenantAccount(() => {
        cloud.now += 11_000;
        return new Date(cloud.now);
      }),
  });

/** Machines of an older version, and what is to come of them; `machines` is the task that comes before. */
async function outdated(count: number, changes: Partial<RollingShoot> = {}): Promise<RollingShoot> {
  const testbed = (provider = started()): RollingShoot => ({
    provider,
    context: () => ctx('1.36.4'),
    shoot,
    pools: [pool({ count, maxSurge: 1 })],
    now: () => new Date(cloud.now),
    ...changes,
  });
  await started().reconcilePools!(ctx('1.36.3'), [pool({ count })]);
  const one = testbed();
  await one.provider.reconcilePools!(ctx('1.36.4'), one.pools);
  return one;
}
/** The roll, however long it waits. */
async function played(...asked: Parameters<typeof roll>) {
  let isOver = false;
  const rolled = roll(...asked).finally(() => {
    isOver = true;
  });
  while (!isOver) await vi.advanceTimersByTimeAsync(1000);
  return rolled;
}
const names = () => cloud.machines.map(({ name }) => name);

describe('rollMachines', () => {
  it('replaces machines one by one, new ones first', async () => {
    const testbed = await outdated(3);
    const { failure, acted, events, fewestReady, most } = await played(testbed);
    expect(failure).toBeUndefined();
    expect(names()).toEqual(['i-4', 'i-5', 'i-6']);
    expect({ acted, fewestReady, most }).toEqual({ acted: true, fewestReady: 3, most: 4 });
    expect(events).toEqual(
      ['i-1', 'i-2', 'i-3'].map((name) => `Rolled: pool workers: took away ${name}; 3 machines stay`),
    );
    expect(shoot.names('Node')).toEqual(['i-4', 'i-5', 'i-6']);
  });

  it('does nothing without outdated machines, and reports nothing', async () => {
    const testbed = await outdated(2);
    await played(testbed);
    const [runs, writes] = [cloud.runs.length, seed.writes.length];
    const { acted, events } = await played({ ...testbed, provider: started() });
    const seen = { acted, events, runs: cloud.runs.length, writes: seed.writes.length };
    expect(seen).toEqual({ acted: false, events: [], runs, writes });
  });

  it('continues from any interruption', async () => {
    const testbed = await outdated(3);
    for (let cut = 1; cut <= 12; cut++) {
      const abort = new AbortController();
      let left = cut;
      const joins = () => {
        if (--left <= 0) abort.abort(new Error('the operator ends'));
        return true;
      };
      // Nothing is remembered but what is in the cloud and in the seed.
      await played({ ...testbed, provider: started(), joins }, abort.signal);
    }
    const { failure } = await played({ ...testbed, provider: started() });
    expect(failure).toBeUndefined();
    expect(cloud.machines.map(({ hash }) => hash)).toEqual(Array(3).fill(cloud.inputs!.pools[0]!.hash));
  });

  it('stops where the cloud gives no more machines, and reports it', async () => {
    cloud.most = 3;
    const testbed = await outdated(3);
    cloud.failure = 'InsufficientInstanceCapacity - none left';
    const { failure, events } = await played(testbed);
    expect(failure).toMatchObject({
      code: 'ERR_RETRYABLE_INFRA_DEPENDENCIES',
      message: expect.stringMatching(/machines are new in pool workers: 0 of 3; the others stay .*none left/),
    });
    expect({ events, names: names() }).toEqual({ events: [], names: ['i-1', 'i-2', 'i-3'] });
  });

  it('adds none above the size where one may be missing', async () => {
    cloud.most = 3;
    const testbed = await outdated(3, { worker: { maxUnavailable: 1 } });
    const { failure, fewestReady, most } = await played(testbed);
    expect(failure).toBeUndefined();
    expect({ fewestReady, most, names: names() }).toEqual({ fewestReady: 2, most: 3, names: ['i-4', 'i-5', 'i-6'] });
  });

  it('removes no machine while new ones do not become nodes, and gives up in the end', async () => {
    const testbed = await outdated(2);
    const { failure, events } = await played({ ...testbed, joins: ({ outdated: isOld }) => isOld === true });
    expect(failure).toMatchObject({
      message: expect.stringMatching(/machine i-3 was made at .*, and its node is not Ready/),
    });
    expect(events).toEqual([]);
    expect(names().slice(0, 2)).toEqual(['i-1', 'i-2']);
  });
});
