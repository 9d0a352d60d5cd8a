import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { engineIdentityOf } from '../../../providers/pulumi/processes.ts';
import { applyPatiently, PATIENCE_MS, sceneForFile, until } from './stacks.ts';

const testbed = sceneForFile();
const WHOLE = ['blue', 'cluster', 'network', 'role', 'subnet-a', 'subnet-b'];

const slowly = (ms: number) => testbed.cloud.faults.set({ latencyMs: { 'aws:eks:Cluster': { create: ms } } });
const isMaking = (name: string) => until(() => testbed.parts(name).includes('cluster'));

describe('two operations on one stack', { timeout: PATIENCE_MS }, () => {
  it('by one runner wait for each other', async () => {
    const runner = testbed.runner();
    const both = await Promise.all([
      runner.apply(testbed.request('shared')),
      runner.apply(testbed.request('shared', { pools: { blue: 2 } })),
    ]);
    expect(both.map(({ changes }) => changes.length)).toEqual([6, 1]);
    expect(testbed.parts('shared')).toEqual(WHOLE);
  });

  it.each(['home', 'home-of-another'])('by two runners exclude each other: %s', async (home) => {
    const name = `contended-${home}`;
    slowly(500);
    const first = testbed.runner().apply(testbed.request(name));
    await isMaking(name);
    // Held in the middle, for as long as the other takes to be refused.
    const engine = engineOf(name);
    process.kill(engine, 'SIGSTOP');
    await expect(testbed.runner({ home }).apply(testbed.request(name))).rejects.toMatchObject({
      code: 'ERR_RETRYABLE_INFRA_DEPENDENCIES',
      message: expect.stringMatching(/process \d+/),
    });
    process.kill(engine, 'SIGCONT');
    await first;
    const second = testbed.runner({ home });
    expect((await second.apply(testbed.request(name))).changes).toEqual([]);
    expect(testbed.parts(name)).toEqual(WHOLE);
  });
});

describe('the cancellation of a stack operation', { timeout: PATIENCE_MS }, () => {
  it('is graceful: the state contains what was created, and no lock is left', async () => {
    const runner = testbed.runner();
    slowly(60_000);
    const { signal, ...cancelling } = cancellable();
    const running = runner.apply(testbed.request('cancelled', {}, { signal }));
    running.catch(() => {});
    await isMaking('cancelled');
    cancelling.abort();
    await expect(running).rejects.toThrow('not wanted any more');
    testbed.cloud.faults.clear();
    expect(testbed.lines.filter(({ message }) => /dead engine/.test(message))).toEqual([]);
    await runner.destroy(testbed.request('cancelled'));
    expect(testbed.parts('cancelled')).toEqual([]);
  });

  it('kills an engine that does not end, and the next operation repairs the state', async () => {
    const runner = testbed.runner({ graceMs: 300 });
    slowly(15_000);
    const { signal, ...cancelling } = cancellable();
    const running = runner.apply(testbed.request('stuck', {}, { signal }));
    running.catch(() => {});
    await isMaking('stuck');
    const engine = engineOf('stuck');
    process.kill(engine, 'SIGSTOP');
    cancelling.abort();
    await expect(running).rejects.toThrow('not wanted any more');
    await until(async () => (await testbed.cloud.processes()).length === 0);
    await until(() => engineIdentityOf(engine) === undefined);
    testbed.cloud.faults.clear();
    // The cloud still makes the cluster for a while.
    await applyPatiently(runner, testbed.request('stuck'));
    expect(testbed.parts('stuck')).toEqual(WHOLE);
  });

  it('ends a waiting operation at once', async () => {
    const runner = testbed.runner({ maxWorkers: 1 });
    slowly(2_000);
    const first = runner.apply(testbed.request('ahead'));
    await isMaking('ahead');
    const { signal, ...cancelling } = cancellable();
    const second = runner.apply(testbed.request('behind', {}, { signal }));
    cancelling.abort();
    await expect(second).rejects.toThrow('not wanted any more');
    await first;
    expect(testbed.parts('behind')).toEqual([]);
  });

  it('reaches all operations when the runner closes', async () => {
    const runner = testbed.runner();
    slowly(60_000);
    const running = runner.apply(testbed.request('closed'));
    running.catch(() => {});
    await isMaking('closed');
    const workers = runner.workers;
    await runner.close();
    await expect(running).rejects.toThrow(/being closed/);
    expect(runner.workers).toEqual([]);
    expect(workers.map(engineIdentityOf)).toEqual([undefined]);
    expect(await testbed.cloud.processes()).toEqual([]);
  });
});

describe('the workers of a runner', { timeout: PATIENCE_MS }, () => {
  it('stay within the limit, are kept while there is work, and then end', async () => {
    const runner = testbed.runner({ maxWorkers: 2, worker: { idleMs: 500 } });
    const most = { workers: 0 };
    const names = ['one', 'two', 'three', 'four'];
    const counting = setInterval(() => {
      most.workers = Math.max(most.workers, runner.workers.length);
    }, 10);
    await Promise.all(names.map((name) => runner.preview(testbed.request(name))));
    clearInterval(counting);
    expect(most.workers).toBe(2);
    await until(() => runner.workers.length === 0);
  });

  it.each([
    ['so many tasks', { maxTasks: 1 }],
    ['so much memory', { maxRss: 1 }],
  ])('are replaced after %s', async (_, worker) => {
    const runner = testbed.runner({ maxWorkers: 1, worker });
    await runner.preview(testbed.request('worn'));
    const before = new Set(runner.workers);
    await runner.preview(testbed.request('worn'));
    await until(() => runner.workers.every((pid) => !before.has(pid)));
  });
});

const cancellable = () => {
  const controller = new AbortController();
  return { signal: controller.signal, abort: () => controller.abort(new Error('not wanted any more')) };
};

const engineOf = (name: string): number => {
  const file = join(testbed.homeOf(), 'stacks', `${name}.cluster`, 'engines.jsonl');
  return (JSON.parse(readFileSync(file, 'utf8').trim().split('\n').at(-1)!) as { pid: number }).pid;
};
