import { describe, expect, it } from 'vitest';
import { ANNOTATIONS } from '../../../operator/api/group.ts';
import type { Operation } from '../../../operator/controllers/shoot/operation.ts';
import { rotationProblem, withSecretsKey } from '../../../operator/controllers/shoot/self-hosted/encryption.ts';
import { newShootState } from '../../../operator/controllers/shoot/state.ts';
import { encryptionCondition } from '../../../operator/controllers/shoot/status/encryption-condition.ts';
import { type EncryptingServers, encryptionTask } from '../../../operator/controllers/shoot/tasks/encryption-task.ts';
import type { KubeObject } from '../../../operator/kube/resources.ts';
import type { PKIData } from '../../../operator/shoot/pki.ts';
import { encryptionOf, encryptionParts, planEncryption } from '../../../operator/shoot/secrets-encryption.ts';
import { partOf } from '../../kit/builders/partial.ts';
import { controlPlane, NOW } from '../shoot/values.ts';

const values = controlPlane(3);
const keys = planEncryption({ 'ca.key': 'KEY' }, { isNew: true, rotate: false, now: NOW });

const operation = ({ pki = keys as PKIData, hasBegun = true, asked = false } = {}) => {
  const done: string[] = [];
  const annotations = asked ? { [ANNOTATIONS.operation]: 'rotate-etcd-encryption-key' } : {};
  const stored: PKIData[] = [];
  const op = partOf<Operation>({
    values,
    pki,
    state: {
      ...newShootState(),
      keys: { uid: undefined, data: pki, version: '1' },
      connection: { client: secretsOf(done) },
    },
    notice: () => {},
    shoot: { metadata: { name: 'demo', namespace: 'shop', annotations } },
    strategy: { rotationProblem },
    seed: {
      configMaps: { get: () => (hasBegun ? { data: { pool: 'own' } } : undefined) },
      secrets: { absorb: () => {} },
      applier: {
        apply: async (object: KubeObject) => {
          stored.push(op.pki);
          return { object: { ...object, metadata: { ...object.metadata, resourceVersion: '1' } }, changed: true };
        },
      },
    },
    deps: {
      now: () => NOW,
      recordEvent: (_shoot: unknown, type: string, reason: string) => void done.push(`${type} ${reason}`),
    },
  });
  const plan = () => withSecretsKey(op, op.pki);
  return { op, done, plan, condition: () => encryptionCondition(op, op.shoot) };
};

const secretsOf = (done: string[]) => ({
  listPages: async (_kind: unknown, _options: unknown, take: { begin(): void; each(object: KubeObject): void }) => {
    take.begin();
    take.each({ apiVersion: 'v1', kind: 'Secret', metadata: { name: 'one', namespace: 'default' } });
  },
  mergePatch: async () => void done.push('rewritten'),
});

/** Names of the keys that API servers are told of, the one to write with first. */
const toldOf = (pki: PKIData): string[] =>
  JSON.parse(encryptionParts(pki, '').files['encryption.json']!).resources[0].providers[0].secretbox.keys.map(
    ({ name }: { name: string }) => name,
  );

describe('the encryption key of a control plane on machines', () => {
  it('exists from the beginning, and stays without a request', () => {
    const made = operation({ pki: {}, hasBegun: false }).plan();
    expect(encryptionOf(made)).toEqual({ write: { name: expect.any(String), secret: expect.any(String) }, read: [] });
    const { plan, condition } = operation();
    expect(plan()).toBe(keys);
    expect(condition()).toBeUndefined();
  });

  it('is not created for machines that may have begun without one', () => {
    const before = { 'ca.key': 'KEY' };
    for (const asked of [true, false]) {
      expect(operation({ pki: before, hasBegun: false, asked }).plan()).toBe(before);
      const lost = operation({ pki: {}, asked });
      expect(lost.plan()).toBe(lost.op.pki);
    }
  });

  it('is followed by another on request, once', () => {
    const { op, plan } = operation({ asked: true });
    op.pki = plan();
    expect(encryptionOf(op.pki)).toMatchObject({ write: encryptionOf(keys)!.write, next: {}, revision: 1 });
    expect(plan()).toBe(op.pki);
  });

  it('is not added to an unencrypted cluster, and a condition says why while it is requested', () => {
    const what = { pki: { 'ca.key': 'KEY' } };
    const { op, plan, condition } = operation({ ...what, asked: true });
    expect(plan()).toBe(op.pki);
    expect(condition()).toMatchObject({
      type: 'EncryptionKeyRotating',
      status: 'False',
      reason: 'NotPossible',
      message: expect.stringMatching(/cannot get a first key.*Take annotation gardener.cloud\/operation off/),
    });
    expect(operation(what).condition()).toBeUndefined();
  });
});

describe('a rotation of the encryption key', () => {
  /** API servers of three machines, which take what they are told one after the other, and of which any moment can be the last one. */
  class Machines implements EncryptingServers {
    readonly op: Operation;
    readonly has: string[][];
    /** Steps until the operator is killed. */
    life: number;
    readonly timeoutMs = 1000;
    #told: string[];

    constructor(op: Operation, has: string[][], life: number) {
      this.op = op;
      this.has = has;
      this.life = life;
      this.#told = has[0]!;
    }

    keptMs = () => 0;

    async tell(): Promise<void> {
      this.#live();
      this.#told = toldOf(this.op.pki);
      await this.untilAllHave();
    }

    async untilAllHave(): Promise<void> {
      this.#told = toldOf(this.op.pki);
      for (let machine = 0; machine < 3; machine++) {
        this.#live();
        this.has[machine] = this.#told;
        // Whatever one of them writes, all others read.
        for (const one of this.has) for (const other of this.has) expect(other).toContain(one[0]);
      }
    }

    #live(): void {
      if (--this.life < 0) throw new Error('killed');
    }
  }

  const begin = () => {
    const { op, plan, ...more } = operation({ asked: true });
    op.pki = plan();
    return { op, ...more };
  };
  const [earlier] = toldOf(keys);
  const run = (op: Operation, machines: EncryptingServers) =>
    encryptionTask(op, machines).run(new AbortController().signal);

  it('passes all machines at each step, rewrites Secrets once, and ends with the new key alone', async () => {
    const { op, done, condition } = begin();
    const key = encryptionOf(op.pki)!.next!.name;
    const steps: unknown[] = [];
    op.notice = () => void steps.push([condition()?.reason, encryptionOf(op.pki)!.revision]);
    expect(condition()).toMatchObject({ status: 'True', reason: 'AddingKey', message: expect.stringContaining(key) });
    const machines = new Machines(op, Array(3).fill([earlier!]), 100);
    await run(op, machines);
    expect(steps).toEqual([
      ['WritingWithKey', 2],
      ['DroppingKey', 3],
      [undefined, 3],
    ]);
    expect(done).toEqual(['rewritten', 'Normal SecretsEncrypted']);
    expect(machines.has).toEqual(Array(3).fill([key]));
    expect(encryptionOf(op.pki)).toEqual({ write: expect.objectContaining({ name: key }), read: [], revision: 3 });
  });

  it('continues from what is stored, with the operator killed anywhere, and no machine meets unreadable data', async () => {
    let kills = 0;
    for (let life = 0; ; life++) {
      const { op } = begin();
      const key = encryptionOf(op.pki)!.next!.name;
      const has = Array<string[]>(3).fill([earlier!]);
      const wasKilled = await run(op, new Machines(op, has, life)).then(
        () => false,
        () => true,
      );
      if (wasKilled) kills++;
      await run(op, new Machines(op, has, 100));
      expect(has).toEqual(Array(3).fill([key]));
      if (!wasKilled) break;
    }
    expect(kills).toBeGreaterThan(15);
  });
});
