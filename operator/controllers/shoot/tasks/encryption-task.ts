import type { Task } from '../../../flow/graph.ts';
import { rewriteSecrets } from '../../../kube/rewrite-secrets.ts';
import { afterEncryptionStep, type EncryptionState, nextEncryptionStep } from '../../../pki/secrets-encryption.ts';
import { encryptionOf, withEncryption } from '../../../shoot/secrets-encryption.ts';
import type { Operation } from '../operation.ts';
import { storeKeys } from '../stored-keys.ts';
import { shootConnection } from './apply-inside.ts';

/** A shoot's API servers for encryption of Secrets, in any place. */
export interface EncryptingServers {
  /** Retention of backups that need old keys, milliseconds. */
  keptMs(): number;
  /** Timeout of a rotation, milliseconds. */
  readonly timeoutMs: number;
  /** Resolves when every running API server, including terminating ones, has the present keys, and one is ready. */
  untilAllHave(signal: AbortSignal): Promise<void>;
  /** Configures new API servers with the present keys. */
  tell(signal: AbortSignal): Promise<void>;
}

/** Rotates the encryption key of Secrets step by step; each key is stored before API servers get it. */
export const encryptionTask = (op: Operation, servers: EncryptingServers): Task => ({
  id: 'secrets-encryption',
  title: 'Encrypting Secrets',
  // Other rolls of API servers are finished by then.
  after: ['control-plane-ready'],
  expectedMs: 1,
  timeoutMs: servers.timeoutMs,
  run: (signal) => encryptSecrets(op, servers, signal),
});

async function encryptSecrets(op: Operation, servers: EncryptingServers, signal: AbortSignal): Promise<void> {
  const { shoot, deps } = op;
  const keptMs = servers.keptMs();
  for (;;) {
    const encryption = encryptionOf(op.pki);
    const step = encryption && nextEncryptionStep(encryption, deps.now(), keptMs);
    if (!step) return;
    await servers.untilAllHave(signal);
    const rewritten =
      step === 'rewrite' || step === 'drop' ? await rewriteSecrets(shootConnection(op).client, signal) : undefined;
    const done = afterEncryptionStep(encryption, step, deps.now(), keptMs);
    await store(op, done, signal);
    op.notice();
    if (step === 'rewrite')
      deps.recordEvent(
        shoot,
        'Normal',
        'SecretsEncrypted',
        `${rewritten} Secrets in etcd are now encrypted with ${done.write.name}`,
      );
    await servers.tell(signal);
  }
}

const store = (op: Operation, encryption: EncryptionState, signal: AbortSignal): Promise<void> =>
  op.state.secretWrites.run(() => storeKeys(op, withEncryption(op.pki, encryption), signal));
