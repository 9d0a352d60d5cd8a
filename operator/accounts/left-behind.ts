import type { CloudContext, ManagedClusters, Owner } from '../../providers/cloud.ts';
import { listOrphans, type Orphan } from './orphans.ts';

const SHOWN = 10;
/** Same as in providers/tags.ts. */
const OWNER_TAG = 'coppice-uid';

/** Cloud resources tagged with the UID of a deleted owner; undefined: the provider cannot list them. */
export async function orphansOf(
  { garden, uid }: { garden: string; uid: string },
  clouds: Pick<ManagedClusters, 'tagged'>,
  ctx: Omit<CloudContext, 'owner'>,
): Promise<Orphan[] | undefined> {
  const found = await clouds.tagged?.(ctx);
  return found && listOrphans(found, [], garden, ctx.now(), ctx.profile).filter(({ owner }) => owner.uid === uid);
}

/**
 * Message on the cloud resources left by a forced deletion. Pure. @param left the resources; a string: why they cannot
 * be listed
 */
export const leftBehind = (
  what: string,
  account: string,
  { uid }: Pick<Owner, 'uid'>,
  left: readonly Orphan[] | string,
): string =>
  typeof left === 'string'
    ? `${what}: what is left in account ${account} has tag ${OWNER_TAG}=${uid}, but cannot be shown here: ${left}`
    : // : // The advice comes first: an Event has room for a few ids only.
      `${what}: ${left.length} resources are left in account ${account}; "coppice sweep" lists them, "coppice sweep --yes" removes them: ${named(left)}`;

const named = (left: readonly Orphan[]): string =>
  left
    .slice(0, SHOWN)
    .map(({ type, id }) => `${type} ${id}`)
    .join(', ') + (left.length > SHOWN ? ` and ${left.length - SHOWN} more` : '');
