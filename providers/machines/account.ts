import { type CoppiceError, configurationProblem } from '../../operator/api/errors.ts';
import type { CloudContext, ManagedClusters } from '../cloud.ts';
import type { ProviderContext } from '../contract.ts';

/** Account of the tenant. Throws a configuration problem when the cluster names none. */
export async function accountOf(ctx: ProviderContext): Promise<CloudContext> {
  if (ctx.cloud) return ctx.cloud();
  throw configurationProblem(
    `cluster ${ctx.shootName} names no credentials of the account that its machines are to be in`,
    'Name them in spec.credentialsRef of the WorkerCluster, or in spec.credentialsBindingName of the Shoot.',
  );
}

/**
 * Account id of the credentials. Throws a configuration problem when existing resources are in another account: with
 * these credentials they would look deleted.
 */
export async function sameAccount(
  managed: Pick<ManagedClusters, 'checkAccount'>,
  account: CloudContext,
  receipt: { account: string } | undefined,
): Promise<string> {
  const { id } = await managed.checkAccount(account);
  if (receipt && receipt.account !== id) throw otherAccount(receipt.account, id);
  return id;
}

const otherAccount = (made: string, given: string): CoppiceError =>
  configurationProblem(
    `the credentials are of account ${given}, but the machines are in ${made}`,
    'Put credentials of that account there, or make a new cluster.',
  );
