import type { PKIData } from '../../../shoot/pki.ts';
import { encryptionForLife } from '../../../shoot/secrets-encryption.ts';
import type { Operation } from '../operation.ts';
import { asksFor, ROTATE, takeRequest } from '../operation-request.ts';
import { noteIn } from './self-hosted.ts';

/** The shoot's keys with that of its Secrets, where nothing of the cluster can have begun yet. */
export const withSecretsKey = (op: Operation, pki: PKIData): PKIData =>
  // Authorities from before Secrets were encrypted may already be on a machine that is about to begin.
  encryptionForLife(pki, { isNew: pki['ca.key'] === undefined && noteIn(op) === undefined, now: op.deps.now() });

/** Says that there is no other key to be had, and takes the wish for one off the Shoot: left there it would look as if it were to come. */
export async function refuseAnotherKey(op: Operation, signal: AbortSignal): Promise<void> {
  if (!asksFor(op.shoot, ROTATE)) return;
  await takeRequest(op, signal);
  op.deps.recordEvent(op.shoot, 'Warning', 'KeyNotRotated', NOT_ROTATED);
}

const NOT_ROTATED =
  'the key that encrypts the Secrets of this cluster cannot be changed. To get another key, create a cluster and move the workloads there';
