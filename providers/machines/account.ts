import { type CoppiceError, configurationProblem } from '../../operator/api/errors.ts';
import type { CloudContext, ManagedClusters } from '../cloud.ts';
import type { ProviderContext } from '../contract.ts';

/** The tenant's account. Throws a configuration problem where the cluster names none. */
export async function accountOf(ctx: ProviderContext): Promise<CloudContext> {
  if (ctx.cloud) return ctx.cloud();
  throw configurationProblem(
    `cluster ${ctx.shootName} names no credentials of the account that its machines are to be in`,
    'Name them in spec.credentialsRef of the WorkerCluster, or in spec.credentialsBindingName of the Shoot.',
  );
}

/**
 * Id of the account that the credentials are of. Throws a configuration problem where what there is was made in another: with these all of it
 * would look gone.
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
