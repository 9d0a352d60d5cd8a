import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { CoppiceError } from '../../../operator/api/errors.ts';
import type { RunnerOptions } from '../../../providers/pulumi/runner.ts';
import { rotates } from '../../kit/rotation.ts';
import type { EngineOfTests } from '../../kit/stacks/runner.ts';
import { InProcessWorkers } from '../../kit/stacks/workers.ts';
import { copiesInMemory, listening, PATIENCE_MS, sceneForFile } from './stacks.ts';

const testbed = sceneForFile();
const WHOLE = ['blue', 'cluster', 'network', 'role', 'subnet-a', 'subnet-b'];

// Whatever is said here of the real engine holds for the one of the other tests, which takes its place in this process.
const ENGINES: [engine: EngineOfTests, options: () => Partial<RunnerOptions>][] = [
  ['real', () => ({})],
  ['in-process', () => ({ workers: new InProcessWorkers(testbed.cloud) })],
];

/** The real engine takes some tests by turns, one after the other of two; the one in this process takes all, every time. */
const inTurn = (engine: EngineOfTests, turn: 0 | 1) => (engine === 'real' ? rotates(it, { of: 2, turns: [turn] }) : it);

describe.each(ENGINES)('a cluster, by the %s engine,', { timeout: PATIENCE_MS }, (engine, by) => {
  it('is created, left unchanged, scaled and destroyed completely', async () => {
    const runner = testbed.runner(by());
    const { told, onProgress } = listening();

    const planned = await runner.preview(testbed.request('life'));
    expect(planned.map(({ operation }) => operation)).toEqual(Array(6).fill('create'));
    expect(testbed.parts('life')).toEqual([]);
    expect(await runner.outputs(testbed.request('life'))).toBeUndefined();

    const made = await runner.apply(testbed.request('life', {}, { onProgress }));
    expect(testbed.parts('life')).toEqual(WHOLE);
    expect(made.changes).toHaveLength(6);
    expect(made.outputs.endpoint).toMatch(/^https:\/\/.*eks\.amazonaws\.com$/);
    expect(told.map(({ description }) => description)).toContain('creating aws:eks/cluster:Cluster cluster');
    expect(told.at(-1)).toMatchObject({ done: 5, total: 6 });

    const before = testbed.cloud.requests().length;
    const again = await runner.apply(testbed.request('life'));
    expect(again).toEqual({ outputs: made.outputs, changes: [] });
    expect(await runner.outputs(testbed.request('life'))).toEqual(made.outputs);
    const asked = testbed.cloud.requests().slice(before);
    expect(asked.filter(({ operation }) => operation !== 'read')).toEqual([]);

    const scaled = { pools: { blue: 3, green: 1 } };
    const changes = [
      { operation: 'update', resource: 'aws:eks/nodeGroup:NodeGroup blue', properties: ['scalingConfig'] },
      { operation: 'create', resource: 'aws:eks/nodeGroup:NodeGroup green' },
    ];
    expect(await runner.preview(testbed.request('life', scaled))).toEqual(expect.arrayContaining(changes));
    const scaling = listening();
    const request = testbed.request('life', scaled, { onProgress: scaling.onProgress });
    expect((await runner.apply(request)).changes).toEqual(expect.arrayContaining(changes));
    expect(
      scaling.told.map(({ description }) => description),
      'of what was shown a moment ago',
    ).not.toContain('looking for what is to be changed');
    expect(testbed.parts('life')).toEqual([...WHOLE, 'green'].sort());

    await runner.destroy(testbed.request('life', scaled));
    expect(testbed.parts('life')).toEqual([]);
    expect(readdirSync(join(testbed.homeOf(), 'stacks'))).not.toContain('life.cluster');
    // Again, of a stack that is not there.
    await runner.destroy(testbed.request('life', scaled));
  });

  inTurn(engine, 0)('is mended only when that is asked for', async () => {
    const runner = testbed.runner(by());
    const { cloud } = testbed;
    await runner.apply(testbed.request('drifting'));
    expect(await runner.drift(testbed.request('drifting'))).toEqual([]);

    await cloud.edit('aws:eks:Cluster', 'drifting', (inputs) => {
      inputs.tags = { ...inputs.tags, by: 'hand' };
    });
    await cloud.remove('aws:eks:NodeGroup', 'blue');
    const drift = [
      expect.objectContaining({ operation: 'update', resource: 'aws:eks/cluster:Cluster cluster' }),
      { operation: 'create', resource: 'aws:eks/nodeGroup:NodeGroup blue' },
    ];
    expect(await runner.drift(testbed.request('drifting'))).toEqual(expect.arrayContaining(drift));
    expect((await runner.apply(testbed.request('drifting'))).changes).toEqual([]);
    expect(testbed.parts('drifting')).not.toContain('blue');

    const { changes } = await runner.apply({ ...testbed.request('drifting'), refresh: true });
    expect(changes).toEqual(expect.arrayContaining(drift));
    expect(cloud.tags(cloud.resource('aws:eks:Cluster', 'drifting'))).not.toHaveProperty('by');
    expect(testbed.parts('drifting')).toEqual(WHOLE);
    await runner.destroy(testbed.request('drifting'));
  });

  inTurn(engine, 1)('is remembered when it is what is wanted by now', async () => {
    const runner = testbed.runner(by());
    const { cloud } = testbed;
    const of = (size: number) => testbed.request('shrunk', { pools: { blue: size } });
    const sizes = () => cloud.resources({ type: 'aws:eks:NodeGroup' }).map(({ inputs }) => inputs.scalingConfig);
    await runner.apply(of(3));
    // As when exactly the machine is ended that was drained: the cloud counts one less.
    await cloud.edit('aws:eks:NodeGroup', 'blue', (inputs) => {
      inputs.scalingConfig = { ...inputs.scalingConfig, desiredSize: 2 };
    });
    expect((await runner.apply({ ...of(2), refresh: true })).changes).toEqual([]);
    expect((await runner.apply(of(3))).changes).toMatchObject([{ operation: 'update' }]);
    expect(sizes()).toMatchObject([{ desiredSize: 3 }]);
    await runner.destroy(of(3));
  });
});

describe.each(ENGINES)('an operation that fails, by the %s engine,', { timeout: PATIENCE_MS }, (engine, by) => {
  it('reports the cause in one line with a code, keeps what was created, and can be continued', async () => {
    const runner = testbed.runner(by());
    const copies = copiesInMemory();
    const request = testbed.request('limited');
    const backend = { ...request.backend, copies };
    testbed.cloud.faults.set({ quotas: { 'aws:eks:Cluster': 0 } });
    const error = await runner.apply({ ...request, backend }).catch((reason: unknown) => reason);
    testbed.cloud.faults.clear();
    expect(error).toBeInstanceOf(CoppiceError);
    expect(error).toMatchObject({ code: 'ERR_INFRA_QUOTA_EXCEEDED' });
    expect((error as Error).message).toMatch(
      /^the update of limited\.cluster failed: creating EKS Cluster \(limited\): [^\n]+$/,
    );
    expect(testbed.parts('limited')).toEqual(['network', 'role', 'subnet-a', 'subnet-b']);
    expect(copies.kept.has('limited.cluster')).toBe(true);

    await runner.apply({ ...request, backend });
    expect(testbed.parts('limited')).toEqual(WHOLE);
    await runner.destroy({ ...request, backend });
    expect(copies.kept.size).toBe(0);
  });

  inTurn(engine, 0)('goes on after throttling', async () => {
    const runner = testbed.runner(by());
    testbed.cloud.faults.set({ throttle: { perSecond: 1 / 60 } });
    await expect(runner.apply(testbed.request('throttled'))).rejects.toMatchObject({
      code: 'ERR_INFRA_RATE_LIMITS_EXCEEDED',
    });
    testbed.cloud.faults.clear();
    await runner.apply(testbed.request('throttled'));
    expect(testbed.parts('throttled')).toEqual(WHOLE);
    await runner.destroy(testbed.request('throttled'));
    expect(testbed.parts('throttled')).toEqual([]);
  });

  inTurn(engine, 1)('keeps what was made in part, and mends it the next time', async () => {
    const runner = testbed.runner(by());
    const { cloud } = testbed;
    const half = { operation: 'create', type: 'aws:eks:NodeGroup', when: 'after', how: 'partial' } as const;
    cloud.faults.set({ failures: [{ ...half, message: 'it is degraded' }] });
    await expect(runner.apply(testbed.request('partly'))).rejects.toThrow(/it is degraded$/);
    expect(testbed.parts('partly')).toEqual(WHOLE);
    expect((await runner.apply(testbed.request('partly'))).changes).toMatchObject([
      { operation: 'update', resource: 'aws:eks/nodeGroup:NodeGroup blue' },
    ]);
    await runner.destroy(testbed.request('partly'));
    expect(testbed.parts('partly')).toEqual([]);
  });

  inTurn(engine, 0)('goes on after the engine was killed, and makes nothing twice', async () => {
    const runner = testbed.runner(by());
    const dying = { operation: 'create', type: 'aws:eks:Cluster', when: 'after', how: 'engine' } as const;
    testbed.cloud.faults.set({ failures: [dying] });
    await expect(runner.apply(testbed.request('cut'))).rejects.toThrow();
    expect(testbed.parts('cut')).toContain('cluster');
    await runner.apply(testbed.request('cut'));
    expect(testbed.parts('cut')).toEqual(WHOLE);
    await runner.destroy(testbed.request('cut'));
    expect(testbed.parts('cut')).toEqual([]);
  });

  inTurn(engine, 1)('replaces what cannot be changed', async () => {
    const runner = testbed.runner(by());
    await runner.apply(testbed.request('grown'));
    const before = testbed.cloud.resource('aws:eks:NodeGroup', 'blue').uid;
    const larger = testbed.request('grown', { diskSize: 100 });
    const replaced = { operation: 'replace', resource: 'aws:eks/nodeGroup:NodeGroup blue', properties: ['diskSize'] };
    expect(await runner.preview(larger)).toEqual([replaced]);
    expect((await runner.apply(larger)).changes).toEqual([replaced]);
    expect(testbed.cloud.resource('aws:eks:NodeGroup', 'blue').uid).not.toBe(before);
    expect((await runner.apply(larger)).changes).toEqual([]);
    await runner.destroy(larger);
    expect(testbed.parts('grown')).toEqual([]);
  });
});

describe('an operation that fails', { timeout: PATIENCE_MS }, () => {
  const CAUSES: [cause: string, inputs: object, backend: object, code: object, message: RegExp][] = [
    ['the program', { fail: 'no such type\n    at it (x.ts:1:1)' }, {}, {}, /failed: no such type$/],
    ['the worker', { crash: true }, {}, {}, /the worker was ended by SIG/],
    ['the passphrase', {}, { passphrase: 'another' }, { code: 'ERR_CONFIGURATION_PROBLEM' }, /incorrect passphrase/],
    ['the state backend', {}, { url: 'file:///proc/no/directory' }, {}, /no such file or directory|unable to open/],
  ];
  for (const [turn, [cause, inputs, backend, code, message]] of CAUSES.entries())
    rotates(it, { of: 2, turns: [turn % 2] })(`because of ${cause} affects no other operation`, async () => {
      const runner = testbed.runner();
      await runner.preview(testbed.request('steady'));
      const request = testbed.request('steady', inputs);
      const wrong = { ...request, backend: { ...request.backend, ...backend } };
      const [failed, well] = await Promise.allSettled([
        runner.preview(wrong),
        runner.preview(testbed.request('beside')),
      ]);
      expect(well.status).toBe('fulfilled');
      expect(failed).toMatchObject({ status: 'rejected', reason: code });
      const { reason } = failed as PromiseRejectedResult;
      expect(reason.message).toMatch(message);
      expect(reason.message).not.toMatch(/\n|\bat \w+ \(/);
      expect(await runner.preview(testbed.request('steady'))).toHaveLength(6);
    });

  it('because of a missing plugin says what to do', async () => {
    const runner = testbed.runner({ plugins: {} });
    await expect(runner.preview(testbed.request('no-plugin'))).rejects.toMatchObject({
      code: 'ERR_RETRYABLE_CONFIGURATION_PROBLEM',
      advice: expect.stringMatching(/plugins\/resource-<name>-v<version>/),
    });
  });
});

describe('the secrets of a stack', { timeout: PATIENCE_MS }, () => {
  it('are in its outputs, and nowhere else', async () => {
    const runner = testbed.runner();
    const { told, onProgress } = listening();
    const copies = copiesInMemory();
    const token = 'a-very-secret-token';
    const request = testbed.request('secretive', { token }, { onProgress });
    const backend = { ...request.backend, copies };
    const { outputs } = await runner.apply({ ...request, backend });
    expect(outputs.token).toBe(token);
    expect((await runner.apply({ ...request, backend })).outputs.token).toBe(token);

    const { credentials } = request;
    const wrong = { ...credentials, AWS_SECRET_ACCESS_KEY: 'wrong-but-secret-too' };
    testbed.cloud.faults.set({
      failures: [
        {
          operation: 'update',
          type: 'aws:eks:Cluster',
          when: 'before',
          how: 'error',
          message: `no: ${credentials.AWS_SECRET_ACCESS_KEY}`,
        },
      ],
    });
    const upgrade = testbed.request('secretive', { token, version: '1.36' });
    const failures = await Promise.all([
      runner.apply(upgrade).catch((error: Error) => error.message),
      runner.apply({ ...request, credentials: wrong }).catch((error: Error) => error.message),
    ]);
    expect(failures[0]).toMatch(/no: \[secret\]/);

    const seen = JSON.stringify([
      failures,
      told,
      testbed.lines,
      gunzipSync(copies.kept.get('secretive.cluster')!).toString(),
    ]);
    const home = testbed.homeOf();
    const written = readdirSync(home, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && !entry.parentPath.includes('compile-cache'))
      .map((entry) => readFileSync(join(entry.parentPath, entry.name), 'utf8'))
      .join('\n');
    for (const secret of [
      ...Object.values(credentials),
      wrong.AWS_SECRET_ACCESS_KEY,
      token,
      request.backend.passphrase!,
    ]) {
      expect(seen).not.toContain(secret);
      expect(written).not.toContain(secret);
    }
  });
});
