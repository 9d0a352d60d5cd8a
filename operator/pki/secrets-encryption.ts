import { randomBytes } from 'node:crypto';

/** A key for Secrets in etcd. Without `secret` (base64, 32 bytes): plain text. */
interface EncryptionKey {
  readonly name: string;
  readonly secret?: string;
}

/** A key that is no longer used for writes. */
interface EarlierKey extends EncryptionKey {
  /** RFC 3339: when the last Secret was rewritten with a newer key. Absent: some may still need this key. */
  readonly retiredAt?: string;
}

/** Encryption keys of one cluster, stored with the private keys of its CAs. */
export interface EncryptionState {
  /** Key with which API servers write. */
  readonly write: EncryptionKey;
  /** Key with which they will write once all of them can read it. */
  readonly next?: EncryptionKey;
  /** Further keys that they read, newest first. */
  readonly read: readonly EarlierKey[];
  /** Secrets must be rewritten with the new write key. */
  readonly rewrite?: true;
  /** API servers must be told of a removed key. */
  readonly dropped?: true;
  /** Number of changes of the API servers' configuration. Absent: 0. */
  readonly revision?: number;
}

/** Key of Secrets written before encryption began. */
const PLAIN: EncryptionKey = { name: 'plain' };
const KEY_BYTES = 32;

/** A key with a unique name. @param random returns this many random bytes */
export const newEncryptionKey = (now: Date, random: (size: number) => Buffer = randomBytes): EncryptionKey => ({
  name: `key-${Math.floor(+now / 1000)}-${random(3).toString('hex')}`,
  secret: random(KEY_BYTES).toString('base64'),
});

/** State of a cluster without Secrets. */
export const encryptedFromTheStart = (key: EncryptionKey): EncryptionState => ({ write: key, read: [] });

/** State of a cluster whose Secrets are in etcd in plain text: they remain readable. */
export const notYetEncrypted = (key: EncryptionKey): EncryptionState => ({ write: PLAIN, next: key, read: [] });

/** Begins the introduction of a key. A rotation that is under way continues unchanged. */
export const withNext = (state: EncryptionState, key: EncryptionKey): EncryptionState =>
  state.next || state.rewrite ? state : { ...state, next: key, revision: revisionAfter(state) };

const revisionAfter = ({ revision = 0 }: EncryptionState): number => revision + 1;

/** Whether some API server may not have the final keys yet. */
export const isChanging = ({ next, rewrite, dropped }: EncryptionState): boolean =>
  next !== undefined || rewrite === true || dropped === true;

/**
 * Remaining steps: API servers write with `next`; Secrets are rewritten; unused keys are dropped; every API server has
 * forgotten them.
 */
type EncryptionStep = 'promote' | 'rewrite' | 'drop' | 'end';

/**
 * The next step; undefined: none. Pure. A step may be taken only once every API server has the present configuration:
 * otherwise one would write with a key that another cannot read.
 * @param keptMs retention of backups, which need the keys of their time; 0: no backups
 */
export function nextEncryptionStep(state: EncryptionState, now: Date, keptMs: number): EncryptionStep | undefined {
  if (state.next) return 'promote';
  if (state.rewrite) return 'rewrite';
  if (state.read.some((key) => isOver(key, now, keptMs))) return 'drop';
  return state.dropped ? 'end' : undefined;
}

/**
 * The state after a step. Secrets must have been rewritten before 'rewrite' and before 'drop', since a restored backup
 * may contain old ones.
 */
export function afterEncryptionStep(
  state: EncryptionState,
  step: EncryptionStep,
  now: Date,
  keptMs: number,
): EncryptionState {
  const { write, next, read, revision } = state;
  const same = { write, read, ...(revision !== undefined && { revision }) };
  switch (step) {
    case 'promote':
      return { write: next ?? write, read: [write, ...read], rewrite: true, revision: revisionAfter(state) };
    case 'rewrite': {
      const retiredAt = now.toISOString();
      return afterEncryptionStep({ ...same, read: read.map((key) => ({ retiredAt, ...key })) }, 'drop', now, keptMs);
    }
    case 'drop': {
      const left = read.filter((key) => !isOver(key, now, keptMs));
      if (left.length === read.length) return same;
      return { write, read: left, dropped: true, revision: revisionAfter(state) };
    }
    case 'end':
      return same;
  }
}

const isOver = ({ retiredAt }: EarlierKey, now: Date, keptMs: number): boolean =>
  retiredAt !== undefined && +now >= Date.parse(retiredAt) + keptMs;

/** Whether `state` lacks a key of `before` with which Secrets may be encrypted. A retired key is no longer needed. Pure. */
export function lacksKeysOf(state: EncryptionState, before: EncryptionState): boolean {
  const has = new Set([state.write, state.next, ...state.read].map((key) => key?.secret));
  const needed = [before.write, before.next, ...before.read.filter(({ retiredAt }) => retiredAt === undefined)];
  return needed.some((key) => key?.secret !== undefined && !has.has(key.secret));
}

/**
 * The EncryptionConfiguration of an API server. secretbox: authenticated, without AES-GCM's limit of writes per key,
 * and without a KMS process that an API server would wait for.
 */
export function encryptionConfiguration({ write, next, read }: EncryptionState): string {
  const all = [write, ...(next ? [next] : []), ...read];
  const keys = all.flatMap(({ name, secret }) => (secret === undefined ? [] : [{ name, secret }]));
  const providers = [{ secretbox: { keys } }, ...(keys.length < all.length ? [{ identity: {} }] : [])];
  return JSON.stringify({
    apiVersion: 'apiserver.config.k8s.io/v1',
    kind: 'EncryptionConfiguration',
    resources: [{ resources: ['secrets'], providers: write.secret === undefined ? providers.reverse() : providers }],
  });
}

/**
 * Parses a stored state; undefined: none is stored.
 * @throws when it cannot be parsed: a new key in its place would make Secrets unreadable for ever
 */
export function parseEncryptionState(text: string | undefined, where: string): EncryptionState | undefined {
  if (text === undefined) return undefined;
  try {
    const state = JSON.parse(text) as Partial<EncryptionState> | null;
    if (state?.write?.name && Array.isArray(state.read)) return state as EncryptionState;
  } catch {
    // Reported below.
  }
  throw new Error(
    `${where} cannot be understood: bring its text back, or no Secret of the cluster can be read any more`,
  );
}
