import { describe, expect, it } from 'vitest';
import type { KubeClient } from '../../../operator/kube/client.ts';
import { KubeApiError } from '../../../operator/kube/errors.ts';
import { EventRecorder } from '../../../operator/kube/events.ts';
import type { KubeObject } from '../../../operator/kube/resources.ts';
import { FakeClock } from './fake-clock.ts';

const cluster = { apiVersion: 'g/v1', kind: 'Thing', metadata: { namespace: 'n', name: 'a', uid: 'u1' } };
const seed = { apiVersion: 'g/v1', kind: 'Seed', metadata: { name: 's', uid: 'u2' } };

function setUp() {
  const clock = new FakeClock();
  const start = clock.now();
  const patches: object[] = [];
  const writes: string[] = [];
  const created: KubeObject[] = [];
  const warnings: string[] = [];
  let fail: Error | undefined;
  const client = {
    create: async (event: KubeObject) => {
      if (fail) throw fail;
      created.push(event);
      writes.push(`create ${event.metadata.namespace} ${event.reason} ${event.count}`);
      return event;
    },
    mergePatch: async (_resource: unknown, _name: string, _namespace: string, patch: { count: number }) => {
      if (fail) throw fail;
      patches.push(patch);
      writes.push(`patch ${patch.count}`);
      return patch;
    },
  };
  const log = { debug() {}, info() {}, error() {}, warn: (_: object, message: string) => void warnings.push(message) };
  const recorder = new EventRecorder({
    client: client as unknown as KubeClient,
    component: 'coppice',
    clock,
    now: () => new Date(Date.UTC(2026, 0, 1) + clock.now() - start),
    log,
  });
  const setFailure = (error: Error | undefined) => {
    fail = error;
  };
  return { clock, patches, writes, created, warnings, recorder, setFailure };
}

describe('EventRecorder', () => {
  it('writes the time of the last repetition, not the time of the write', async () => {
    const { recorder, clock, patches } = setUp();
    recorder.record(cluster, 'Normal', 'Reconciled', 'all is well');
    await recorder.flush();
    clock.advance(5_000);
    recorder.record(cluster, 'Normal', 'Reconciled', 'all is well');
    clock.advance(60_000);
    await recorder.flush();
    expect(patches).toEqual([{ count: 2, lastTimestamp: '2026-01-01T00:00:05Z' }]);
  });

  it('writes the fields that kubectl describe shows', async () => {
    const { recorder, created } = setUp();
    recorder.record(cluster, 'Warning', 'QuotaExceeded', 'no more machines');
    recorder.record(seed, 'Normal', 'Ready', 'seed is ready');
    await recorder.flush();
    expect(created[0]).toMatchObject({
      involvedObject: { kind: 'Thing', name: 'a', namespace: 'n', uid: 'u1' },
      type: 'Warning',
      reason: 'QuotaExceeded',
      message: 'no more machines',
      count: 1,
      firstTimestamp: '2026-01-01T00:00:00Z',
      source: { component: 'coppice' },
    });
    expect(created[1]!.metadata.namespace).toBe('default');
  });

  it('counts a repeated event and writes the count once a minute', async () => {
    const { clock, recorder, writes } = setUp();
    for (let time = 0; time < 10; time++) recorder.record(cluster, 'Warning', 'Failed', 'same');
    await recorder.flush();
    expect(writes).toEqual(['create n Failed 1']);
    clock.advance(60_000);
    await recorder.flush();
    expect(writes).toEqual(['create n Failed 1', 'patch 10']);
    recorder.record(cluster, 'Warning', 'Failed', 'same');
    clock.advance(59_999);
    await recorder.flush();
    expect(writes).toHaveLength(2);
    clock.advance(1);
    await recorder.flush();
    expect(writes).toEqual(['create n Failed 1', 'patch 10', 'patch 11']);
  });

  it('creates the event again when the server has deleted it', async () => {
    const { clock, recorder, writes, setFailure } = setUp();
    recorder.record(cluster, 'Normal', 'Failed', 'same');
    await recorder.flush();
    recorder.record(cluster, 'Normal', 'Failed', 'same');
    setFailure(new KubeApiError('PATCH /x', 404, { reason: 'NotFound' }));
    clock.advance(60_000);
    setFailure(undefined);
    await recorder.flush();
    expect(writes).toEqual(['create n Failed 1', 'create n Failed 2']);
  });

  it('limits different events of one object, but not events of other objects', async () => {
    const { clock, recorder, writes } = setUp();
    for (let time = 0; time < 40; time++) recorder.record(cluster, 'Normal', 'Step', `step ${time}`);
    recorder.record(seed, 'Normal', 'Ready', 'seed is ready');
    await recorder.flush();
    expect(writes).toHaveLength(26);
    clock.advance(120_000);
    for (let time = 40; time < 50; time++) recorder.record(cluster, 'Normal', 'Step', `step ${time}`);
    await recorder.flush();
    expect(writes).toHaveLength(28);
  });

  it('never throws: logs a failed write, but not that of a namespace being deleted', async () => {
    const { recorder, warnings, setFailure } = setUp();
    setFailure(new Error('down'));
    recorder.record(cluster, 'Normal', 'A', 'a');
    await recorder.flush();
    expect(warnings).toEqual(['event could not be written']);
    const causes = [{ reason: 'NamespaceTerminating' }];
    setFailure(new KubeApiError('POST /x', 403, { reason: 'Forbidden', details: { causes } }));
    recorder.record(cluster, 'Normal', 'B', 'b');
    await recorder.flush();
    expect(warnings).toHaveLength(1);
  });

  it('cuts messages that the server would refuse for their length', async () => {
    const { recorder, created } = setUp();
    recorder.record(cluster, 'Normal', 'Long', 'x'.repeat(5000));
    await recorder.flush();
    expect(created[0]!.message).toHaveLength(1024);
  });
});
