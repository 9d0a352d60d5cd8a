import { ANNOTATIONS } from '../../../api/group.ts';
import { COMPONENTS } from '../../../api/names.ts';
import { waitFor } from '../../../kube/informer.ts';
import { conditionIsTrue, keyOf, type Pod } from '../../../kube/resources.ts';
import { kubeAPIServer } from '../../../shoot/kube-apiserver.ts';
import type { PKIData } from '../../../shoot/pki.ts';
import { planEncryption } from '../../../shoot/secrets-encryption.ts';
import type { Operation } from '../operation.ts';
import { asksFor, ROTATE } from '../operation-request.ts';
import type { EncryptingServers } from '../tasks/encryption-task.ts';

const MINUTE = 60_000;

/**
 * The shoot's keys including its encryption key for Secrets. An older cluster without one gets a key, and its Secrets
 * stay readable.
 */
export function encryptionWanted({ seed, shoot, values, deps }: Operation, pki: PKIData): PKIData {
  // Without CA keys and etcd there cannot be any Secret.
  const isNew =
    pki['ca.key'] === undefined && seed.statefulSets.get(`${values.namespace}/${COMPONENTS.etcd}`) === undefined;
  return planEncryption(pki, { isNew, rotate: asksFor(shoot, ROTATE), now: deps.now() });
}

/** Encryption of API servers in pods of the seed, which a Deployment rolls when their configuration changes. */
export const hostedServers = (op: Operation): EncryptingServers => ({
  keptMs: () => op.deps.backups.keptMs(op.shoot),
  timeoutMs: 15 * MINUTE,
  untilAllHave: (signal) => untilAllHave(op, signal),
  tell: async (signal) => {
    for (const object of kubeAPIServer(op.values, op.pki)) await op.seed.applier.apply(object, signal);
  },
});

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
