import type { Change } from '../../../providers/cloud.ts';
import { credentialsSourceOf } from '../../accounts/credentials.ts';
import { namingIdentity } from '../../accounts/identity.ts';
import { rfc3339 } from '../../api/conditions.ts';
import { CoppiceError, configurationProblem } from '../../api/errors.ts';
import { keyOf } from '../../kube/resources.ts';
import { openAccess } from './access.ts';
import type { StepName } from './decide.ts';
import { cloudsOf, contextOf, type ManagedOperation } from './operation.ts';
import type { ManagedReceipt } from './receipt.ts';
import { afterRemoval, placeByZone } from './removal.ts';
import { adoptionOf, cloudOwnerOf, unknownCluster, wishHash } from './wish.ts';

/** Steps. Each observes first, so that it can be repeated after a crash. */
export const STEPS: Readonly<Record<StepName, (op: ManagedOperation) => Promise<void>>> = {
  check,
  remove,
  apply,
  access: openAccess,
  look,
  destroy,
};

/** Checks the identity of the credentials before anything is made with them. */
async function check(op: ManagedOperation): Promise<void> {
  const { deps, wish, receipt, state, credentials } = op;
  if (credentials instanceof Error) throw credentials;
  const ctx = await contextOf(op);
  const account = await deps.checkAccount(wish, ctx, credentials.version).catch((error: unknown) => {
    throw namingIdentity(error, credentials.use);
  });
  const source = credentialsSourceOf(credentials.use);
  if (account.missing.length > 0) {
    throw new CoppiceError(
      'ERR_INFRA_UNAUTHORIZED',
      `the credentials in ${source} (account ${account.id}) lack ${account.missing.join(', ')}`,
    );
  }
  if (receipt && receipt.account !== account.id) {
    throw configurationProblem(
      `the credentials in ${source} are of account ${account.id}, but the cluster is in ${receipt.account}`,
      'Put credentials of that account there, or make a new cluster.',
    );
  }
  state.accepted = { credentials: credentials.version, account: account.id };
}

/** Removes exactly the drained nodes. */
async function remove(op: ManagedOperation): Promise<void> {
  const { deps, wish, receipt: before, removal, state } = op;
  const { clouds } = cloudsOf(op);
  const { pool, nodes } = removal!;
  const receipt: ManagedReceipt = { ...before!, removing: removal! };
  // After a crash the same nodes must be requested, whatever was decided meanwhile.
  if (!before!.removing) await deps.receipts.save(receipt, before, op.signal);
  const left = await clouds.removeNodes!(await contextOf(op), receipt.outputs!, pool, nodes);
  const there = new Set(state.connection?.nodes.map(({ metadata }) => metadata.uid ?? ''));
  // Not abortable: the result must be recorded.
  await deps.receipts.save(afterRemoval(receipt, left, there), before!.removing ? before : receipt);
  if (left.refused) throw left.refused;
  const names = nodes.map(({ name }) => name).join(', ');
  deps.recordEvent(wish.cluster, 'Normal', 'NodesRemoved', `pool ${pool}: removed ${names}; ${left.size} nodes stay`);
}

async function apply(op: ManagedOperation): Promise<void> {
  const { deps, wish, receipt: before, state, credentials } = op;
  const { clouds, profile } = cloudsOf(op);
  if (credentials instanceof Error) throw credentials;
  const cluster = placeByZone(wish.desired!, before?.cluster);
  const receipt: ManagedReceipt = {
    ...before,
    owner: cloudOwnerOf(wish.cluster, deps.garden),
    profile: profile.metadata.name,
    place: wish.place,
    account: state.accepted!.account,
    credentials: credentials.use,
    cluster,
  };
  // After a crash the receipt shows that something may exist.
  await deps.receipts.save(receipt, before, op.signal);
  deps.changed(op.key);
  const mend = state.forced || wish.cluster.spec.drift?.policy === 'Mend';
  const refresh = before?.applied !== undefined && mend;
  const ctx = { ...(await contextOf({ ...op, receipt })), refresh };
  // The preview is also reported before the first change of an adopted cluster.
  if (before?.applied || cluster.adopt) {
    receipt.planned = await clouds.preview(ctx, cluster);
    deps.recordEvent(wish.cluster, 'Normal', 'Planned', changesText(receipt.planned));
    await deps.receipts.save(receipt, receipt, op.signal);
  }
  const outputs = await clouds.apply(ctx, cluster);
  state.forced = false;
  // Not abortable: what was made must be recorded.
  const { unconfirmed: _, left: _applied, ...known } = receipt;
  const made: ManagedReceipt = {
    ...known,
    applied: wishHash(wish)!,
    outputs,
    // Without a refresh, earlier drift still exists.
    ...(refresh || !before?.lookedAt ? { drift: [], lookedAt: rfc3339(deps.now()) } : {}),
  };
  await deps.receipts.save(made, receipt);
}

/** Checks for drift. */
async function look(op: ManagedOperation): Promise<void> {
  const { deps, wish, receipt } = op;
  const { clouds } = cloudsOf(op);
  const drift = await clouds.drift(await contextOf(op), receipt!.cluster);
  if (drift.length > 0 && JSON.stringify(drift) !== JSON.stringify(receipt!.drift))
    deps.recordEvent(wish.cluster, 'Warning', 'Drifted', `changed by others; to mend it: ${changesText(drift)}`);
  await deps.receipts.save({ ...receipt!, drift, lookedAt: rfc3339(deps.now()) }, receipt);
}

async function destroy(op: ManagedOperation): Promise<void> {
  const { deps, wish, receipt, state } = op;
  const { clouds } = cloudsOf(op);
  const connection = state.connection;
  state.connection = undefined;
  state.access = undefined;
  await connection?.close();
  await deps.kubeconfigs.remove(wish.cluster, op.signal);
  const adopt = adoptionOf(wish.cluster.spec);
  const known = receipt?.cluster ?? unknownCluster(wish);
  // The present deletion policy of an adopted cluster counts, not the last applied one.
  await clouds.destroy(await contextOf(op), adopt ? { ...known, adopt } : known);
  await deps.receipts.remove(keyOf(wish.cluster));
  state.gone = true;
}

const SHOWN = 8;

/** Changes in one line. */
export function changesText(changes: readonly Change[]): string {
  if (changes.length === 0) return 'nothing is to be changed';
  const named = changes.slice(0, SHOWN).map(({ operation, resource }) => `${operation} ${resource}`);
  const more = changes.length > SHOWN ? ` and ${changes.length - SHOWN} more` : '';
  return `${named.join('; ')}${more}`;
}
