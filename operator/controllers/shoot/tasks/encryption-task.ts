import type { Task } from '../../../flow/graph.ts';
import { rewriteSecrets } from '../../../kube/rewrite-secrets.ts';
import { afterEncryptionStep, type EncryptionState, nextEncryptionStep } from '../../../pki/secrets-encryption.ts';
import { encryptionOf, withEncryption } from '../../../shoot/secrets-encryption.ts';
import type { Operation } from '../operation.ts';
import { storeKeys } from '../stored-keys.ts';
import { inside } from './apply-inside.ts';

/** The API servers of a shoot, wherever they run, as far as they encrypt Secrets. */
export interface EncryptingServers {
  /** How long backups are kept that need the keys of their time, milliseconds. */
  keptMs(): number;
  /** How long it may take to bring a new key in and an old one out, milliseconds. */
  readonly timeoutMs: number;
  /** Resolves when each API server that runs has the present keys, those on their way out included, and one is ready. */
  untilAllHave(signal: AbortSignal): Promise<void>;
  /** Has API servers that start from here on take the present keys. */
  tell(signal: AbortSignal): Promise<void>;
}

/** Brings a new key of Secrets in, and an old one out, a step at a time; each is stored before API servers are told. */
export const encryptionTask = (op: Operation, servers: EncryptingServers): Task => ({
  id: 'secrets-encryption',
  title: 'Encrypting Secrets',
  // API servers that roll anyway have done so by then, and nobody else has them roll.
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
      step === 'rewrite' || step === 'drop' ? await rewriteSecrets(inside(op).client, signal) : undefined;
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
