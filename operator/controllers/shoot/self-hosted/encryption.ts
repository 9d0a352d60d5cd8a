import { isChanging } from '../../../pki/secrets-encryption.ts';
import type { PKIData } from '../../../shoot/pki.ts';
import { encryptionOf, encryptionSeen, planEncryption } from '../../../shoot/secrets-encryption.ts';
import type { Operation } from '../operation.ts';
import { asksFor, ROTATE } from '../operation-request.ts';
import { noteIn } from './self-hosted.ts';

/**
 * The shoot's keys including an encryption key for Secrets: a first key while nothing of the cluster exists, another on
 * request. Without a key, Secrets stay unencrypted: existing machines could not read what new ones write.
 */
export function withSecretsKey(op: Operation, pki: PKIData): PKIData {
  // CA keys from before encryption may already be on a starting machine.
  const isNew = pki['ca.key'] === undefined && noteIn(op) === undefined;
  if (!isNew && !encryptionOf(pki)) return pki;
  return planEncryption(pki, { isNew, rotate: wantsAnotherKey(op), now: op.deps.now() });
}

/** Whether a key rotation is requested and possible. Pure. */
export const wantsAnotherKey = (op: Operation): boolean =>
  asksFor(op.shoot, ROTATE) && rotationProblem(op) === undefined;

/** Why the encryption key cannot be rotated; undefined: it can. Pure. */
export function rotationProblem(op: Operation): string | undefined {
  const mayHaveBegun = noteIn(op) !== undefined || op.pki['ca.key'] !== undefined;
  return mayHaveBegun && !encryptionSeen(op.pki) ? NEVER_ENCRYPTED : undefined;
}

const NEVER_ENCRYPTED =
  'this cluster is from before Secrets of control planes on machines were encrypted, and cannot get a first key';

/** Whether a key rotation is in progress. Pure. */
export function isChangingKeys({ pki }: Pick<Operation, 'pki'>): boolean {
  const encryption = encryptionSeen(pki);
  return encryption !== undefined && isChanging(encryption);
}
