import { describe, expect, it } from 'vitest';
import {
  afterEncryptionStep,
  type EncryptionState,
  encryptedFromTheStart,
  encryptionConfiguration,
  isChanging,
  newEncryptionKey,
  nextEncryptionStep,
  notYetEncrypted,
  parseEncryptionState,
  withNext,
} from '../../../operator/pki/secrets-encryption.ts';

type EncryptionStep = NonNullable<ReturnType<typeof nextEncryptionStep>>;

const now = new Date('2026-01-01T00:00:00Z');
const DAY_MS = 24 * 3600_000;
const key = (name: string) => ({ name, secret: Buffer.alloc(32, name).toString('base64') });

interface Providers {
  secretbox?: { keys: { name: string }[] };
  identity?: object;
}
/** Names of the keys of a configuration, `plain` for none; the first is written with. */
function keysOf(record: EncryptionState): string[] {
  const { resources } = JSON.parse(encryptionConfiguration(record)) as {
    resources: { resources: string[]; providers: Providers[] }[];
  };
  expect(resources.map((one) => one.resources)).toEqual([['secrets']]);
  return resources[0]!.providers.flatMap(({ secretbox }) => secretbox?.keys.map(({ name }) => name) ?? ['plain']);
}

/** All steps from a record on, and what API servers are told before and after each. */
function walk(record: EncryptionState, keptMs: number, at = now): { steps: EncryptionStep[]; told: string[][] } {
  const steps: EncryptionStep[] = [];
  const told = [keysOf(record)];
  for (let step = nextEncryptionStep(record, at, keptMs); step; step = nextEncryptionStep(record, at, keptMs)) {
    steps.push(step);
    record = afterEncryptionStep(record, step, at, keptMs);
    told.push(keysOf(record));
  }
  return { steps, told };
}

describe('the encryption keys of Secrets', () => {
  it('are a single one from the start, without others to read', () =>
    expect(walk(encryptedFromTheStart(key('a')), 0)).toEqual({ steps: [], told: [['a']] }));

  it('are introduced into a cluster without any, through API servers that read both', () =>
    expect(walk(notYetEncrypted(key('a')), 0)).toEqual({
      steps: ['promote', 'rewrite', 'end'],
      told: [['plain', 'a'], ['a', 'plain'], ['a'], ['a']],
    }));

  it('are rotated', () =>
    expect(walk(withNext(encryptedFromTheStart(key('a')), key('b')), 0)).toEqual({
      steps: ['promote', 'rewrite', 'end'],
      told: [['a', 'b'], ['b', 'a'], ['b'], ['b']],
    }));

  it('stay readable while backups of their time exist, and are dropped then', () => {
    let record = withNext(encryptedFromTheStart(key('a')), key('b'));
    for (const step of ['promote', 'rewrite'] as const) record = afterEncryptionStep(record, step, now, DAY_MS);
    expect(keysOf(record)).toEqual(['b', 'a']);
    expect(nextEncryptionStep(record, new Date(+now + DAY_MS - 1), DAY_MS)).toBeUndefined();
    expect(walk(record, DAY_MS, new Date(+now + DAY_MS))).toEqual({
      steps: ['drop', 'end'],
      told: [['b', 'a'], ['b'], ['b']],
    });
    // Nobody takes backups any more.
    expect(walk(record, 0).steps).toEqual(['drop', 'end']);
  });

  it('never make an API server meet data it cannot read during a rollout', () => {
    for (const from of [notYetEncrypted(key('a')), withNext(encryptedFromTheStart(key('a')), key('b'))]) {
      const { told } = walk(from, 0);
      told.slice(1).forEach((after, index) => {
        const before = told[index]!;
        expect(before).toContain(after[0]);
        // All was written anew before the last one went.
        if (index < told.length - 3) expect(after).toContain(before[0]);
      });
    }
  });

  it("change their revision exactly when the API servers' configuration changes", () => {
    for (const keptMs of [0, DAY_MS]) {
      let record = encryptedFromTheStart(key('a'));
      expect([record.revision, isChanging(record)]).toEqual([undefined, false]);
      record = withNext(record, key('b'));
      expect([record.revision, isChanging(record)]).toEqual([1, true]);
      for (let step = nextEncryptionStep(record, now, keptMs); step; step = nextEncryptionStep(record, now, keptMs)) {
        const after = afterEncryptionStep(record, step, now, keptMs);
        expect(isChanging(record)).toBe(true);
        expect(after.revision !== record.revision).toBe(
          encryptionConfiguration(after) !== encryptionConfiguration(record),
        );
        record = after;
      }
      expect([record.revision, isChanging(record)]).toEqual([keptMs === 0 ? 3 : 2, false]);
    }
  });

  it('are not rotated again during a rotation', () => {
    const changing = withNext(encryptedFromTheStart(key('a')), key('b'));
    expect(withNext(changing, key('c'))).toBe(changing);
    const rewriting = afterEncryptionStep(changing, 'promote', now, 0);
    expect(withNext(rewriting, key('c'))).toBe(rewriting);
  });

  it('have 32 bytes, and are unique', () => {
    const [one, other] = [newEncryptionKey(now), newEncryptionKey(now)];
    expect(Buffer.from(one.secret!, 'base64')).toHaveLength(32);
    expect([one.name, one.secret]).not.toEqual([other.name, other.secret]);
    expect(one.name).not.toBe(other.name);
  });

  it('are never regenerated over unreadable ones', () => {
    for (const text of ['', '{', 'null', '{"write":{}}'])
      expect(() => parseEncryptionState(text, 'pki')).toThrow('pki cannot be understood');
    expect(parseEncryptionState(undefined, 'pki')).toBeUndefined();
  });
});
