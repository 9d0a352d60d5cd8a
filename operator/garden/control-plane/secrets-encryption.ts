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

/** The keys, beside those of the authorities: who loses them loses all Secrets of the garden. */
const STATE_FILE = 'secrets-encryption.json';
/** What the API server is told, in the same folder. */
export const ENCRYPTION_CONFIGURATION = 'encryption-configuration.json';
/** A garden has another key after this long. */
const ROTATION_MS = 90 * 24 * 3600_000;

/** Nobody has backups of a garden's etcd by us. */
const KEPT_MS = 0;

const readState = async (directory: StateDirectory): Promise<EncryptionState | undefined> =>
  parseEncryptionState(await readText(directory.pki(STATE_FILE)), directory.pki(STATE_FILE));

/** Keys first to safety: nothing may be written with a key that is nowhere else. */
const keep = (directory: StateDirectory, state: EncryptionState): Promise<boolean> =>
  writeIfChanged(directory.pki(STATE_FILE), JSON.stringify(state));

const tell = (directory: StateDirectory, state: EncryptionState): Promise<boolean> =>
  writeIfChanged(directory.pki(ENCRYPTION_CONFIGURATION), encryptionConfiguration(state));

/**
 * Has the API server, which must not run or must be started again then, write Secrets with the garden's key: makes one, or another one when it is
 * old. A garden from before there were keys keeps its Secrets readable. Resolves to whether the API server is told something new.
 */
export async function ensureSecretsEncryption(directory: StateDirectory, now: Date): Promise<boolean> {
  const before = await readState(directory);
  if (!before) await refuseLostKeys(directory);
  const planned = planGardenEncryption(before, { isNew: !existsSync(directory.path('etcd', 'member')), now });
  await keep(directory, planned);
  return tell(directory, planned);
}

/** What stands before each value that an API server has encrypted with a key of ours. */
const ENCRYPTED = 'k8s:enc:secretbox:v1:';

/** @throws CoppiceError where etcd has Secrets that were encrypted: with another key, nobody could read one of them any more */
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

/** The keys of a garden as they should be, pure but for new keys. There is one API server, so a new key needs not be known before it is used. */
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
 * Writes all Secrets anew where the key is a new one, and lets the earlier one go: the API server hears of that when it is started next.
 * Resolves to how many there were; undefined: nothing was to be done.
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
