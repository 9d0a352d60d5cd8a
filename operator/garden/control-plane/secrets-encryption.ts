import { createReadStream, existsSync } from 'node:fs';
import { configurationProblem } from '../../api/errors.ts';
import type { KubeClient } from '../../kube/client.ts';
import { rewriteSecrets } from '../../kube/rewrite-secrets.ts';
import {
  afterEncryptionStep,
  type EncryptionState,
  encryptedFromTheStart,
  encryptionConfiguration,
  newEncryptionKey,
  nextEncryptionStep,
  notYetEncrypted,
  parseEncryptionState,
  withNext,
} from '../../pki/secrets-encryption.ts';
import { readText, writeIfChanged } from '../host/files.ts';
import type { StateDirectory } from '../state/state.ts';

/** The encryption keys, stored beside the CAs' keys: losing them loses all Secrets of the garden. */
const STATE_FILE = 'secrets-encryption.json';
/** Configuration file of the API server, in the same folder. */
export const ENCRYPTION_CONFIGURATION = 'encryption-configuration.json';
/** Age at which a garden's encryption key is rotated. */
const ROTATION_MS = 90 * 24 * 3600_000;

/** Coppice makes no backups of a garden's etcd. */
const KEPT_MS = 0;

const readState = async (directory: StateDirectory): Promise<EncryptionState | undefined> =>
  parseEncryptionState(await readText(directory.pki(STATE_FILE)), directory.pki(STATE_FILE));

/** Stores keys before use: nothing may be written with a key that is not stored. */
const keep = (directory: StateDirectory, state: EncryptionState): Promise<boolean> =>
  writeIfChanged(directory.pki(STATE_FILE), JSON.stringify(state));

const tell = (directory: StateDirectory, state: EncryptionState): Promise<boolean> =>
  writeIfChanged(directory.pki(ENCRYPTION_CONFIGURATION), encryptionConfiguration(state));

/**
 * Configures the API server, which must be stopped or restarted afterwards, to encrypt Secrets with the garden's key;
 * creates the key, or rotates an old one. Secrets of a garden from before encryption remain readable. Resolves to
 * whether the configuration changed.
 */
export async function ensureSecretsEncryption(directory: StateDirectory, now: Date): Promise<boolean> {
  const before = await readState(directory);
  if (!before) await refuseLostKeys(directory);
  const planned = planGardenEncryption(before, { isNew: !existsSync(directory.path('etcd', 'member')), now });
  await keep(directory, planned);
  return tell(directory, planned);
}

/** Prefix of each value that an API server encrypted with a key of Coppice's. */
const ENCRYPTED = 'k8s:enc:secretbox:v1:';

/** @throws CoppiceError when etcd contains encrypted Secrets: with another key they would be unreadable */
async function refuseLostKeys(directory: StateDirectory): Promise<void> {
  const database = directory.path('etcd', 'member', 'snap', 'db');
  if (!existsSync(database)) return;
  let rest = '';
  for await (const chunk of createReadStream(database, 'latin1')) {
    const text = rest + chunk;
    if (text.includes(ENCRYPTED)) throw keysLost(directory);
    rest = text.slice(1 - ENCRYPTED.length);
  }
}

const keysLost = (directory: StateDirectory): Error =>
  configurationProblem(
    `${directory.pki(STATE_FILE)} is missing, without which no Secret of the garden can be read`,
    `Restore ${directory.pki('')} from a backup. Without one, delete the garden with "coppice down", and make another.`,
  );

/**
 * The garden's desired encryption state. Pure except for new keys. With a single API server, a new key need not be
 * distributed before use.
 */
function planGardenEncryption(
  state: EncryptionState | undefined,
  { isNew, now }: { isNew: boolean; now: Date },
): EncryptionState {
  if (!state && isNew) return encryptedFromTheStart(newEncryptionKey(now));
  let planned = state ?? notYetEncrypted(newEncryptionKey(now));
  if (state && +now - bornAt(state.write.name) > ROTATION_MS) planned = withNext(planned, newEncryptionKey(now));
  if (planned.next) return afterEncryptionStep(planned, 'promote', now, KEPT_MS);
  return planned.dropped ? afterEncryptionStep(planned, 'end', now, KEPT_MS) : planned;
}

const bornAt = (name: string): number => Number(/^key-(\d+)-/.exec(name)?.[1] ?? Number.NaN) * 1000;

/**
 * Rewrites all Secrets after a rotation and drops the earlier key; the API server is configured at its next start.
 * Resolves to their number; undefined: nothing to do.
 */
export async function encryptEarlierSecrets(
  directory: StateDirectory,
  client: KubeClient,
  now: Date,
): Promise<number | undefined> {
  const state = await readState(directory);
  if (!state || nextEncryptionStep(state, now, KEPT_MS) !== 'rewrite') return undefined;
  const count = await rewriteSecrets(client);
  const done = afterEncryptionStep(state, 'rewrite', now, KEPT_MS);
  await keep(directory, done);
  await tell(directory, done);
  return count;
}
