import { afterEach, describe, expect, it } from 'vitest';
import { API_VERSION } from '../../../operator/api/group.ts';
import type { Condition, KubeObject } from '../../../operator/api/meta.ts';
import { failuresOf } from '../../../operator/controllers/failure.ts';
import { type Controller, runController } from '../../../operator/kube/controller.ts';
import { KubeApiError, KubeUnreachableError } from '../../../operator/kube/errors.ts';
import { WorkQueue } from '../../../operator/kube/workqueue.ts';

const NOW = new Date('2026-11-22T12:00:00Z');
let controller: Controller | undefined;
afterEach(() => controller?.stop());

/** A garden with one object whose reconciles fail as told; each write of its status queues it again, as an informer does. */
function garden(errors: (run: number) => unknown, status?: object) {
  let object: KubeObject = {
    apiVersion: API_VERSION,
    kind: 'WorkerCluster',
    metadata: { name: 'a', namespace: 'shop', uid: 'u-1' },
    ...(status && { status }),
  };
  const queue = new WorkQueue({ baseDelayMs: 1, maxDelayMs: 1 });
  const cache = {
    get: () => object,
    absorb(written: KubeObject) {
      object = written;
    },
  };
  let writes = 0;
  let runs = 0;
  const apply = async (written: KubeObject) => {
    writes++;
    queue.add('shop/a');
    return { ...object, status: written.status };
  };
  const deps = { garden: { apply }, now: () => NOW } as never;
  /** Resolves when so many runs have ended. */
  const afterRuns = (wanted: number) =>
    new Promise<void>((resolve) => {
      controller = runController({
        name: 'test',
        queue,
        async reconcile() {
          if (++runs > wanted) return resolve();
          const error = errors(runs);
          if (error) throw error;
          return undefined;
        },
        failed: failuresOf(deps, cache as never),
      });
      queue.add('shop/a');
    });
  const condition = (type: string): Condition | undefined =>
    object.status?.conditions?.find((one: Condition) => one.type === type);
  return { afterRuns, condition, writes: () => writes };
}

describe('a failed reconciliation', () => {
  it('is reported in the conditions of an object without status, with a code, and retried', async () => {
    const { afterRuns, condition, writes } = garden(() => new TypeError('range.split is not a function'));
    await afterRuns(5);
    for (const type of ['Ready', 'Reconciled']) {
      expect(condition(type)).toMatchObject({
        status: 'False',
        reason: 'ReconcileFailed',
        message:
          'the operator failed to reconcile this WorkerCluster: range.split is not a function. It tries again by itself',
        codes: ['ERR_RETRYABLE_CONFIGURATION_PROBLEM'],
      });
    }
    expect(writes()).toBe(1);
  });

  it("leaves the object's observed status unchanged", async () => {
    const ready = {
      type: 'Ready',
      status: 'True',
      reason: 'Ready',
      message: 'all is well',
      lastTransitionTime: 'then',
    };
    const { afterRuns, condition } = garden(() => new TypeError('nonsense'), { phase: 'Ready', conditions: [ready] });
    await afterRuns(2);
    expect(condition('Ready')).toEqual(ready);
    expect(condition('Reconciled')?.status).toBe('False');
  });

  it('is written once, although its message has another number each time', async () => {
    const { afterRuns, writes } = garden((run) => new Error(`127.0.0.1:${40_000 + run} said no after ${run} ms`));
    await afterRuns(20);
    expect(writes()).toBe(1);
  });

  it('is not reported again where a condition has it already', async () => {
    const said = {
      type: 'Ready',
      status: 'False',
      message: 'the seed does not answer: no route. Check its kubeconfig',
    };
    const { afterRuns, writes } = garden(() => new Error('no route'), { conditions: [said] });
    await afterRuns(3);
    expect(writes()).toBe(0);
  });

  it.each<[string, unknown]>([
    ['a connection that broke once', new KubeUnreachableError('GET /x', new Error('socket hang up'))],
    ['a conflict', new KubeApiError('PUT /x', 409, { reason: 'Conflict' })],
  ])('is not told of %s', async (_, error) => {
    const { afterRuns, writes } = garden((run) => (run === 1 ? error : undefined));
    await afterRuns(1);
    expect(writes()).toBe(0);
  });

  it('of a permanently broken connection is reported', async () => {
    const { afterRuns, condition } = garden(() => new KubeUnreachableError('GET /x', new Error('socket hang up')));
    await afterRuns(4);
    expect(condition('Reconciled')?.codes).toEqual(['ERR_RETRYABLE_INFRA_DEPENDENCIES']);
  });
});
