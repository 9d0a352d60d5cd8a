import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { killSession, processesOfSession } from '../../../providers/pulumi/processes.ts';
import type { StackRequest } from '../../../providers/pulumi/request.ts';
import type { Failure } from '../../kit/cloud/index.ts';
import { rotates } from '../../kit/rotation.ts';
import type { OperatorOrder } from './operator.ts';
import { applyPatiently, copiesInMemory, PATIENCE_MS, sceneForFile, until } from './stacks.ts';

const testbed = sceneForFile();
const WHOLE = ['blue', 'cluster', 'network', 'role', 'subnet-a', 'subnet-b'];

const lockFolder = (name: string) =>
  join(testbed.stateDirectory, '.pulumi', 'locks', 'organization', 'coppice', `${name}.cluster`);
const locks = (name: string) => {
  try {
    return readdirSync(lockFolder(name)).filter((file) => file.endsWith('.json'));
  } catch {
    return [];
  }
};
const loseState = () => rmSync(join(testbed.stateDirectory, '.pulumi'), { recursive: true, force: true });

/** Destroys and looks for left-overs: nothing was made that the state did not know of. */
async function expectNothingLeft(name: string, request = testbed.request(name)) {
  await testbed.runner().destroy(request);
  expect(testbed.parts(name)).toEqual([]);
  expect(locks(name)).toEqual([]);
}

describe('a stack creates nothing twice after a crash:', { timeout: PATIENCE_MS }, () => {
  const strike = (type: string, how: Failure['how'], when: Failure['when'] = 'after'): Failure => ({
    operation: 'create',
    type,
    how,
    when,
  });

  const DEATHS: [what: string, failure: Failure][] = [
    ['the engine is killed when a cluster was made', strike('aws:eks:Cluster', 'engine')],
    ['the engine is killed when something without a name was made', strike('aws:ec2:Vpc', 'engine')],
    ['the engine is killed before the cloud has heard', strike('aws:eks:Cluster', 'engine', 'before')],
  ];
  for (const [turn, [what, failure]] of DEATHS.entries())
    rotates(it, { of: DEATHS.length, turns: [turn] })(what, async () => {
      const name = `killed-${failure.when}-${failure.type.split(':').at(-1)!.toLowerCase()}`;
      testbed.cloud.faults.set({ failures: [failure] });
      const runner = testbed.runner();
      await expect(runner.apply(testbed.request(name))).rejects.toThrow(/engine was ended by SIGKILL/);
      testbed.cloud.faults.clear();
      expect(locks(name)).toHaveLength(1);
      // A kill between the two files of one write would leave a state that nobody can read.
      const files = readdirSync(testbed.stateDirectory, { recursive: true }) as string[];
      expect(files.filter((file) => file.endsWith('.attrs'))).toEqual([]);
      // What the engine left behind is gone with its worker.
      await until(async () => (await testbed.cloud.processes()).length === 0);
      await runner.close();

      const { changes } = await testbed.runner().apply(testbed.request(name));
      expect(testbed.parts(name)).toEqual(WHOLE);
      expect(locks(name)).toEqual([]);
      const made = failure.when === 'after' ? failure.type.split(':').at(-1)!.toLowerCase() : 'nothing';
      expect(changes.filter(({ operation }) => operation === 'create').map(({ resource }) => resource)).not.toContain(
        made,
      );
      await expectNothingLeft(name);
    });

  const ANSWERS: [what: string, failure: Failure][] = [
    ['the answer to a creation is an error, though it was done', strike('aws:ec2:Vpc', 'error')],
    ['the plugin dies before it can tell', strike('aws:ec2:Vpc', 'lost')],
    ['something was made, but not as asked for', strike('aws:eks:NodeGroup', 'partial')],
  ];
  for (const [turn, [what, failure]] of ANSWERS.entries())
    rotates(it, { of: ANSWERS.length, turns: [turn] })(what, async () => {
      const name = `answer-${failure.how}`;
      testbed.cloud.faults.set({ failures: [failure] });
      const runner = testbed.runner();
      await runner.apply(testbed.request(name)).catch(() => {});
      testbed.cloud.faults.clear();
      await runner.apply(testbed.request(name));
      expect(testbed.parts(name)).toEqual(WHOLE);
      if (failure.how === 'error') await expectNothingLeft(name);
    });

  const KILLED = ['the operator', 'the operator and its workers'];
  for (const [turn, who] of KILLED.entries())
    rotates(it, { of: KILLED.length, turns: [turn] })(`${who} is killed`, async () => {
      const name = who === 'the operator' ? 'orphaned' : 'all-killed';
      testbed.cloud.faults.set({ latencyMs: { 'aws:eks:Cluster': { create: 3_000 } } });
      const { signal: _signal, findExisting: _find, classify: _classify, ...request } = testbed.request(name);
      const operator = fork(fileURLToPath(new URL('./operator.ts', import.meta.url)), { execArgv: [] });
      const home = testbed.homeOf(name);
      const order: OperatorOrder = { engine: testbed.engine, home, plugins: testbed.cloud.pluginFolders.aws, request };
      operator.send(order);
      await until(() => testbed.parts(name).includes('cluster'));
      const worker = await until(() => workerOf(home, name));
      operator.kill('SIGKILL');
      if (who !== 'the operator') killSession(worker);
      await once(operator, 'exit');

      const next = testbed.runner({ home: name });
      // An engine that comes to its end gracefully has the stack until then.
      const result = await applyPatiently(next, testbed.request(name));
      testbed.cloud.faults.clear();
      expect(result.outputs.endpoint).toMatch(/^https:/);
      expect(testbed.parts(name)).toEqual(WHOLE);
      await until(() => processesOfSession(worker).length === 0);
    });
});

/** Number of the worker whose engine works on the stack: the leader of that engine's session. */
function workerOf(home: string, name: string): number | undefined {
  const line = readFileSync(join(home, 'stacks', `${name}.cluster`, 'engines.jsonl'), 'utf8')
    .trim()
    .split('\n')
    .at(-1)!;
  const { pid } = JSON.parse(line) as { pid: number };
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
  return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[3]);
}

describe('a lost state', { timeout: PATIENCE_MS }, () => {
  rotates(it, { of: 2, turns: [0] })('is rebuilt from the cloud', async () => {
    const runner = testbed.runner();
    const { outputs } = await runner.apply(testbed.request('lost'));
    loseState();
    const again = await runner.apply(testbed.request('lost'));
    expect(again).toEqual({ outputs, changes: [] });
    expect(testbed.parts('lost')).toEqual(WHOLE);
    await runner.apply(testbed.request('lost', { pools: { blue: 2 } }));
    loseState();
    await expectNothingLeft('lost', testbed.request('lost', { pools: { blue: 2 } }));
  });

  it('is restored from its copy, and newer resources from the cloud', async () => {
    const runner = testbed.runner();
    const copies = copiesInMemory();
    const request = (pools: Record<string, number>): StackRequest => {
      const plain = testbed.request('copied', { pools, token: 'a secret in the state' });
      return { ...plain, backend: { ...plain.backend, copies } };
    };
    await runner.apply(request({ blue: 1 }));
    const old = new Map(copies.kept);
    await runner.apply(request({ blue: 1, green: 1 }));
    for (const [stack, copy] of old) copies.kept.set(stack, copy);
    loseState();
    // Also the settings that say how secrets are encrypted.
    rmSync(join(testbed.homeOf(), 'stacks'), { recursive: true });

    expect((await runner.outputs(request({})))?.token).toBe('a secret in the state');
    await runner.apply(request({ blue: 1, green: 1 }));
    expect(testbed.parts('copied')).toEqual([...WHOLE, 'green'].sort());
    await expectNothingLeft('copied', request({ blue: 1, green: 1 }));
  });

  rotates(it, { of: 2, turns: [1] })('does not include the working directory, which may be lost', async () => {
    const inputs = { token: 'a secret in the state' };
    const { outputs } = await testbed.runner().apply(testbed.request('homeless', inputs));
    const elsewhere = testbed.runner({ home: 'another-home' });
    expect(await elsewhere.apply(testbed.request('homeless', inputs))).toEqual({ outputs, changes: [] });
    // And secrets can be written with what was not lost.
    const more = { ...inputs, token: 'another secret' };
    expect((await elsewhere.apply(testbed.request('homeless', more))).outputs.token).toBe('another secret');
  });
});

describe('a lock', { timeout: PATIENCE_MS }, () => {
  const lockBy = (name: string, host: string) => {
    mkdirSync(lockFolder(name), { recursive: true });
    const holder = { pid: 1, username: 'ann', hostname: host, timestamp: '2026-01-01T00:00:00Z' };
    writeFileSync(join(lockFolder(name), 'theirs.json'), JSON.stringify(holder));
  };

  it.each([
    ['of another machine', 'laptop-of-ann'],
    ['of this machine, by a process that is not ours', hostname()],
  ])('%s is kept, and the error names its holder', async (_, host) => {
    const name = host === 'laptop-of-ann' ? 'theirs' : 'neighbours';
    lockBy(name, host);
    await expect(testbed.runner().apply(testbed.request(name))).rejects.toMatchObject({
      code: 'ERR_RETRYABLE_INFRA_DEPENDENCIES',
      message: expect.stringContaining(`by process 1 of ann on ${host}`),
    });
    expect(locks(name)).toEqual(['theirs.json']);
    expect(testbed.parts(name)).toEqual([]);
  });

  it('of a pod that no longer exists is removed', async () => {
    const runner = testbed.runner({ isGoneHost: async (host) => host === 'operator-7f9c' });
    // The engine itself breaks no lock of a stack that it does not know yet.
    lockBy('unmade', 'operator-7f9c');
    await runner.preview(testbed.request('left'));
    lockBy('left', 'operator-7f9c');
    for (const name of ['unmade', 'left']) {
      await runner.apply(testbed.request(name));
      expect(testbed.parts(name)).toEqual(WHOLE);
      expect(locks(name)).toEqual([]);
    }
  });
});
