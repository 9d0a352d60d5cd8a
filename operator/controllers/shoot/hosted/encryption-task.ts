import { ANNOTATIONS } from '../../../api/group.ts';
import { COMPONENTS } from '../../../api/names.ts';
import type { Task } from '../../../flow/graph.ts';
import { waitFor } from '../../../kube/informer.ts';
import { conditionIsTrue, keyOf, type Pod } from '../../../kube/resources.ts';
import { rewriteSecrets } from '../../../kube/rewrite-secrets.ts';
import { afterEncryptionStep, type EncryptionState, nextEncryptionStep } from '../../../pki/secrets-encryption.ts';
import { kubeAPIServer } from '../../../shoot/kube-apiserver.ts';
import type { PKIData } from '../../../shoot/pki.ts';
import { pkiSecret } from '../../../shoot/pki-secret.ts';
import { encryptionOf, planEncryption, withEncryption } from '../../../shoot/secrets-encryption.ts';
import { inside } from '../inside-tasks.ts';
import type { Operation } from '../operation.ts';
import { asksFor, ROTATE, takeRequest } from '../operation-request.ts';

const MINUTE = 60_000;

/** The shoot's keys with those of its Secrets. A cluster from before there were any gets one, and its Secrets stay readable. */
export function encryptionWanted({ seed, shoot, values, deps }: Operation, pki: PKIData): PKIData {
  // Keys come first: without those, and without an etcd, there cannot be a Secret.
  const isNew =
    pki['ca.key'] === undefined && seed.statefulSets.get(`${values.namespace}/${COMPONENTS.etcd}`) === undefined;
  return planEncryption(pki, { isNew, rotate: asksFor(shoot, ROTATE), now: deps.now() });
}

/** Takes the wish for another key off the Shoot: the key is stored now. */
export async function startRotation(op: Operation, signal: AbortSignal): Promise<void> {
  if (asksFor(op.shoot, ROTATE)) await takeRequest(op, signal);
}

/** Brings a new key of Secrets in, and an old one out, a step at a time; each is stored before API servers are told. */
export const encryptionTask = (op: Operation): Task => ({
  id: 'secrets-encryption',
  title: 'Encrypting Secrets',
  // API servers that roll anyway have done so by then, and nobody else has them roll.
  after: ['control-plane-ready'],
  expectedMs: 1,
  timeoutMs: 15 * MINUTE,
  run: (signal) => encryptSecrets(op, signal),
});

async function encryptSecrets(op: Operation, signal: AbortSignal): Promise<void> {
  const { shoot, deps } = op;
  const keptMs = deps.backups.keptMs(shoot);
  for (;;) {
    const record = encryptionOf(op.pki);
    const step = record && nextEncryptionStep(record, deps.now(), keptMs);
    if (!step) return;
    await untilAllHave(op, signal);
    const rewritten = step === 'promote' ? undefined : await rewriteSecrets(inside(op).client, signal);
    const done = afterEncryptionStep(record, step, deps.now(), keptMs);
    await store(op, done, signal);
    for (const object of kubeAPIServer(op.values, op.pki)) await op.seed.applier.apply(object, signal);
    if (step === 'rewrite')
      deps.recordEvent(
        shoot,
        'Normal',
        'SecretsEncrypted',
        `${rewritten} Secrets in etcd are now encrypted with ${done.write.name}`,
      );
  }
}

const store = (op: Operation, record: EncryptionState, signal: AbortSignal): Promise<void> =>
  op.state.secretWrites.run(async () => {
    const pki = withEncryption(op.pki, record);
    const { object } = await op.seed.applier.apply(pkiSecret(op.values, pki), signal);
    op.seed.secrets.absorb(object);
    op.pki = pki;
  });

/** Resolves when each API server that runs is of the present configuration, those on their way out included, and one is ready. */
async function untilAllHave(op: Operation, signal: AbortSignal): Promise<void> {
  const { seed, shoot, values } = op;
  const wanted = kubeAPIServer(op.values, op.pki).find(({ kind }) => kind === 'Deployment')!;
  const checksum = wanted.spec.template.metadata.annotations[ANNOTATIONS.checksum];
  const servers = () =>
    seed.podsOf(keyOf(shoot)).filter(({ metadata }) => metadata.labels?.app === COMPONENTS.apiServer);
  const isOther = ({ metadata }: Pod) => metadata.annotations?.[ANNOTATIONS.checksum] !== checksum;
  await waitFor([seed.pods], () => servers().some((pod) => conditionIsTrue(pod, 'Ready')) && !servers().some(isOther), {
    timeoutMs: 10 * MINUTE,
    signal,
    what: () => `API servers of ${values.namespace} to have the keys of Secrets`,
  });
}
