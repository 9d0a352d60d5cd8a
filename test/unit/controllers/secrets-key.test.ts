import { describe, expect, it } from 'vitest';
import { ANNOTATIONS } from '../../../operator/api/group.ts';
import type { Operation } from '../../../operator/controllers/shoot/operation.ts';
import { refuseAnotherKey, withSecretsKey } from '../../../operator/controllers/shoot/self-hosted/secrets-key.ts';
import { encryptionOf } from '../../../operator/shoot/secrets-encryption.ts';
import { NOW } from '../shoot/values.ts';

const operation = ({ hasBegun = false, asked = undefined as string | undefined } = {}) => {
  const done: unknown[] = [];
  const annotations = asked === undefined ? {} : { [ANNOTATIONS.operation]: asked };
  const op = {
    values: { namespace: 'shoot--shop--demo' },
    shoot: { metadata: { name: 'demo', namespace: 'shop', annotations } },
    seed: { configMaps: { get: () => (hasBegun ? { data: { pool: 'own' } } : undefined) } },
    deps: {
      now: () => NOW,
      garden: { mergePatch: async (...[, , , patch]: unknown[]) => void done.push(patch) },
      shoots: { absorb: () => {} },
      recordEvent: (_shoot: unknown, type: string, reason: string) => done.push(`${type} ${reason}`),
    },
  } as unknown as Operation;
  return { op, done };
};

describe('Secrets of a control plane on machines', () => {
  it('are encrypted from the beginning, with one key for life', () => {
    const { op } = operation();
    const keys = withSecretsKey(op, {});
    expect(encryptionOf(keys)).toMatchObject({ write: { secret: expect.any(String) }, read: [] });
    expect(withSecretsKey(operation({ hasBegun: true }).op, keys)).toBe(keys);
  });

  it('stay as they are where machines may have begun without a key', () => {
    const before = { 'ca.key': 'KEY' };
    expect(withSecretsKey(operation().op, before)).toBe(before);
    const lost = {};
    expect(withSecretsKey(operation({ hasBegun: true }).op, lost)).toBe(lost);
  });

  it('get no other key, and who asks for one is told so, once', async () => {
    const { signal } = new AbortController();
    const { op, done } = operation({ hasBegun: true, asked: 'rotate-etcd-encryption-key' });
    await refuseAnotherKey(op, signal);
    expect(done).toEqual([{ metadata: { annotations: { [ANNOTATIONS.operation]: null } } }, 'Warning KeyNotRotated']);
    for (const asked of [undefined, 'reconcile']) {
      const other = operation({ hasBegun: true, ...(asked && { asked }) });
      await refuseAnotherKey(other.op, signal);
      expect(other.done).toEqual([]);
    }
  });
});
