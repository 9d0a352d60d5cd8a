import type { LastError } from '../../api/meta.ts';
import { type Said, say } from '../conditions.ts';
import type { ManagedFacts, ManagedWish } from './facts.ts';
import type { ManagedReceipt } from './receipt.ts';
import type { ManagedState } from './state.ts';
import { changesText } from './steps.ts';
import { wasBegun, wishHash } from './wish.ts';

/** Codes about credentials, from any step. */
const OF_CREDENTIALS = ['ERR_INFRA_UNAUTHENTICATED', 'ERR_INFRA_UNAUTHORIZED'];

/** Facts about a cluster: remembered, else recorded. Pure. @param wish as it may be applied now */
export function factsOf(
  state: ManagedState | undefined,
  own: ManagedReceipt | undefined,
  wish: ManagedWish | undefined = state?.wish,
): ManagedFacts | undefined {
  if (!state && !own) return undefined;
  const errors = [...(state?.failures.values() ?? [])].map((failure) => failure.error);
  return {
    seen: state?.seen ?? false,
    exists: !state?.gone && (own !== undefined || (state !== undefined && wasBegun(state.wish.cluster))),
    gone: state?.gone ?? false,
    // An impossible spec does not change what exists.
    settled:
      state !== undefined && own?.applied !== undefined && own.applied === ((wish && wishHash(wish)) ?? own.applied),
    operation: state?.operation,
    errors,
    credentials: state && credentialsCondition(state, errors),
    // Empty for a cluster adopted as it is.
    version: own?.cluster.kubernetesVersion || undefined,
    planned: own?.planned && changesText(own.planned),
    outputs: own?.outputs,
    madeIn: own && {
      profile: own.profile,
      region: own.cluster.region,
      ...(own.place !== undefined && { place: own.place }),
      cidrs: own.cluster.cidrs,
    },
    pools: own?.cluster.pools,
    ...(own?.removing && { removing: own.removing.pool }),
    ...((own?.removing || own?.removed) && {
      doomed: [...(own.removing?.nodes ?? []).map(({ uid }) => uid), ...(own.removed ?? [])],
    }),
    access: state?.access,
    inside: state?.connection?.answers ? { nodes: state.connection.nodes, pods: state.connection.pods } : undefined,
    drift: own?.lookedAt === undefined ? undefined : (own.drift ?? []),
  };
}

function credentialsCondition(state: ManagedState, errors: readonly LastError[]): Said<'WorkerCluster'> | undefined {
  const refused = errors.find(
    (error) => error.taskID === 'check' || error.codes?.some((code) => OF_CREDENTIALS.includes(code)),
  );
  if (refused) {
    // An unreachable cloud says nothing about the credentials.
    const known = refused.codes?.some((code) => !code.startsWith('ERR_RETRYABLE_INFRA'));
    return say(
      'CredentialsValid',
      known ? false : 'Unknown',
      known ? 'Refused' : 'NotChecked',
      refused.description,
      refused.codes,
    );
  }
  if (!state.accepted) return undefined;
  return say('CredentialsValid', true, 'Accepted', `the cloud accepts them, for account ${state.accepted.account}`);
}
