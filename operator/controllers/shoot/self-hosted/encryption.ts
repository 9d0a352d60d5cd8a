import { isChanging } from '../../../pki/secrets-encryption.ts';
import type { PKIData } from '../../../shoot/pki.ts';
import { encryptionOf, encryptionSeen, planEncryption } from '../../../shoot/secrets-encryption.ts';
import type { Operation } from '../operation.ts';
import { asksFor, ROTATE } from '../operation-request.ts';
import { noteIn } from './self-hosted.ts';

/**
 * The shoot's keys with those of its Secrets: one where nothing of the cluster can have begun yet, and another one where somebody asks for it.
 * Without any, Secrets stay as they are: machines that exist would not read what those to come write.
 */
export function withSecretsKey(op: Operation, pki: PKIData): PKIData {
  // Authorities from before Secrets were encrypted may already be on a machine that is about to begin.
  const isNew = pki['ca.key'] === undefined && noteIn(op) === undefined;
  if (!isNew && !encryptionOf(pki)) return pki;
  return planEncryption(pki, { isNew, rotate: wantsAnotherKey(op), now: op.deps.now() });
}

/** Whether somebody asks for another key, and the cluster can have one. Pure. */
export const wantsAnotherKey = (op: Operation): boolean =>
  asksFor(op.shoot, ROTATE) && rotationProblem(op) === undefined;

/** Why the Secrets of the cluster cannot have another key; undefined: they can. Pure. */
export function rotationProblem(op: Operation): string | undefined {
  const mayHaveBegun = noteIn(op) !== undefined || op.pki['ca.key'] !== undefined;
  return mayHaveBegun && !encryptionSeen(op.pki) ? NEVER_ENCRYPTED : undefined;
}

const NEVER_ENCRYPTED =
  'this cluster is from before Secrets of control planes on machines were encrypted, and cannot get a first key';

/** Whether API servers are being given other keys. Pure. */
export function isChangingKeys({ pki }: Pick<Operation, 'pki'>): boolean {
  const encryption = encryptionSeen(pki);
  return encryption !== undefined && isChanging(encryption);
}
