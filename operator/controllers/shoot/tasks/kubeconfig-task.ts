import { kubeconfigMayBeWritten, kubeconfigOwner, kubeconfigSecret } from '../../../clusters/kubeconfig-secret.ts';
import type { Task } from '../../../flow/graph.ts';
import { adminKubeconfig } from '../../../shoot/kubeconfigs.ts';
import { readyNames } from '../dns/dns-records.ts';
import type { Operation } from '../operation.ts';

export const kubeconfigTask = (op: Operation): Task => ({
  id: 'kubeconfig',
  title: 'Storing the kubeconfig',
  after: ['access'],
  expectedMs: 30,
  run: async (signal) => {
    const names = Object.fromEntries(readyNames(op).map(({ domain, host }) => [domain, host]));
    await storeKubeconfig(op, adminKubeconfig(op.values, op.pki, names), signal);
    op.notice();
  },
});

/** Writes the Secret with the admin's kubeconfig in the project. */
export async function storeKubeconfig(op: Operation, kubeconfig: string, signal: AbortSignal): Promise<void> {
  const { garden, gardenApplier } = op.deps;
  const owner = kubeconfigOwner('Shoot', op.shoot);
  const secret = kubeconfigSecret(owner, kubeconfig);
  await kubeconfigMayBeWritten(garden, owner, gardenApplier.known(secret), signal);
  await gardenApplier.apply(secret, signal);
}
