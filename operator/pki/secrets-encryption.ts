import { randomBytes } from 'node:crypto';

/** A key of Secrets in etcd. Without `secret` (base64, 32 bytes) it stands for none: Secrets as they are. */
interface EncryptionKey {
  readonly name: string;
  readonly secret?: string;
}

/** A key that nothing is written with any more. */
interface EarlierKey extends EncryptionKey {
  /** RFC 3339: when the last Secret was written anew. Absent: some may need it still. */
  readonly retiredAt?: string;
}

/** The keys of one cluster, kept where its authorities' keys are kept. */
export interface EncryptionState {
  /** What API servers write with. */
  readonly write: EncryptionKey;
  /** What they are to write with next, once all of them can read it. */
  readonly next?: EncryptionKey;
  /** What they read besides, newest first. */
  readonly read: readonly EarlierKey[];
  /** Secrets are to be written anew, since the key to write with is a new one. */
  readonly rewrite?: true;
  /** API servers are to be told that a key has gone. */
  readonly dropped?: true;
  /** How often what API servers are told has changed. Absent: never. */
  readonly revision?: number;
}

/** Stands for Secrets that were written before there was a key. */
const PLAIN: EncryptionKey = { name: 'plain' };
const KEY_BYTES = 32;

/** A key that no other has the name of. @param random bytes, as many as asked for */
export const newEncryptionKey = (now: Date, random: (size: number) => Buffer = randomBytes): EncryptionKey => ({
  name: `key-${Math.floor(+now / 1000)}-${random(3).toString('hex')}`,
  secret: random(KEY_BYTES).toString('base64'),
});

/** Of a cluster that has no Secrets yet. */
export const encryptedFromTheStart = (key: EncryptionKey): EncryptionState => ({ write: key, read: [] });

/** Of a cluster whose Secrets are in etcd as they are: they stay readable. */
export const notYetEncrypted = (key: EncryptionKey): EncryptionState => ({ write: PLAIN, next: key, read: [] });

/** Begins to bring in a new key. While another is on its way in, that one goes on. */
export const withNext = (state: EncryptionState, key: EncryptionKey): EncryptionState =>
  state.next || state.rewrite ? state : { ...state, next: key, revision: revisionAfter(state) };

const revisionAfter = ({ revision = 0 }: EncryptionState): number => revision + 1;

/** Whether not every API server is known to have the keys that are to stay. */
export const isChanging = ({ next, rewrite, dropped }: EncryptionState): boolean =>
  next !== undefined || rewrite === true || dropped === true;

/**
 * What remains to be done: API servers write with `next`; Secrets are written anew; what nothing needs any more is dropped; every API server
 * has forgotten that.
 */
export type EncryptionStep = 'promote' | 'rewrite' | 'drop' | 'end';

/**
 * The next step, pure; undefined: nothing is to be done. Each is to be done once every API server has this configuration:
 * one that writes with a key which another cannot read yet would have that one fail.
 * @param keptMs how long backups are kept that need the keys of their time; 0: there are none
 */
export function nextEncryptionStep(state: EncryptionState, now: Date, keptMs: number): EncryptionStep | undefined {
  if (state.next) return 'promote';
  if (state.rewrite) return 'rewrite';
  if (state.read.some((key) => isOver(key, now, keptMs))) return 'drop';
  return state.dropped ? 'end' : undefined;
}

/** The state once a step is done. Secrets were written anew before 'rewrite' and before 'drop': a backup may have brought old ones back. */
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

/**
 * The EncryptionConfiguration of an API server. secretbox: authenticated, without a limit of writes for each key as AES-GCM has one, and
 * without a process of a key management service that an API server would wait for.
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
 * The state in a text; undefined: there is none.
 * @throws where it cannot be understood: a new key in its place would make Secrets unreadable for ever
 */
export function parseEncryptionState(text: string | undefined, where: string): EncryptionState | undefined {
  if (text === undefined) return undefined;
  try {
    const state = JSON.parse(text) as Partial<EncryptionState> | null;
    if (state?.write?.name && Array.isArray(state.read)) return state as EncryptionState;
  } catch {
    // Said below.
  }
  throw new Error(
    `${where} cannot be understood: bring its text back, or no Secret of the cluster can be read any more`,
  );
}
