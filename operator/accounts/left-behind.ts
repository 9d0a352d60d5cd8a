import type { CloudContext, ManagedClusters, Owner } from '../../providers/cloud.ts';
import { type Orphan, orphans } from './orphans.ts';

const SHOWN = 10;
/** As providers/tags.ts has it. */
const OWNER_TAG = 'coppice-uid';

/** What bears the tags of one owner who is no more; undefined: the provider cannot tell. */
export async function orphansOf(
  { garden, uid }: { garden: string; uid: string },
  clouds: Pick<ManagedClusters, 'tagged'>,
  ctx: Omit<CloudContext, 'owner'>,
): Promise<Orphan[] | undefined> {
  const found = await clouds.tagged?.(ctx);
  return found && orphans(found, [], garden, ctx.now(), ctx.profile).filter(({ owner }) => owner.uid === uid);
}

/** What people read of what a deletion by force left. @param left what is left; a clause: why that cannot be told. Pure. */
export const leftBehind = (
  what: string,
  account: string,
  { uid }: Pick<Owner, 'uid'>,
  left: readonly Orphan[] | string,
): string =>
  typeof left === 'string'
    ? `${what}: what is left in account ${account} has tag ${OWNER_TAG}=${uid}, but cannot be shown here: ${left}`
    : // What to do comes first: an Event has room for a few ids only.
      `${what}: ${left.length} resources are left in account ${account}; "coppice sweep" lists them, "coppice sweep --yes" removes them: ${named(left)}`;

const named = (left: readonly Orphan[]): string =>
  left
    .slice(0, SHOWN)
    .map(({ type, id }) => `${type} ${id}`)
    .join(', ') + (left.length > SHOWN ? ` and ${left.length - SHOWN} more` : '');
