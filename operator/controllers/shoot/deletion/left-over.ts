import { leftBehind, orphansOf } from '../../../accounts/left-behind.ts';
import type { Orphan } from '../../../accounts/orphans.ts';
import { errorText } from '../../../api/errors.ts';
import { type Shoot, shootProfileName } from '../../../api/shoot.ts';
import type { SeedAccess } from '../../../clusters/seed-access.ts';
import { keyOf, NAMESPACES, SHOOTS, splitKey } from '../../../kube/resources.ts';
import type { ShootDependencies } from '../dependencies.ts';
import { GARDEN_ANNOTATION } from '../ownership.ts';

/**
 * Deletes the namespace of a shoot that disappeared without our finalizer: a deletion at the same moment as the
 * finalizer's write may win, because the API server has checked finalizers before, and nobody else would clean up.
 *
 * Only for shoots that this process has worked on: a garden restored from an old backup lacks shoots too, whose control
 * planes must stay.
 */
export async function closeLeftOver(
  { garden, gardenID, log }: Pick<ShootDependencies, 'garden' | 'gardenID' | 'log'>,
  seeds: Pick<SeedAccess, 'name' | 'client' | 'namespacesOf'>[],
  key: string,
  signal: AbortSignal,
): Promise<void> {
  const { namespace, name } = splitKey(key);
  for (const seed of seeds) {
    for (const { metadata } of seed.namespacesOf(key)) {
      if (metadata.deletionTimestamp || metadata.annotations?.[GARDEN_ANNOTATION] !== gardenID) continue;
      // The cache may be stale, and a shoot of the same name may exist.
      if (await garden.getOrUndefined(SHOOTS, name, namespace, { signal })) return;
      log.warn({ shoot: key, seed: seed.name, namespace: metadata.name }, 'the shoot is gone: removing what it left');
      const preconditions = { ...(metadata.uid && { uid: metadata.uid }) };
      await seed.client.delete(NAMESPACES, metadata.name, undefined, { preconditions, signal });
    }
  }
}

/**
 * Reports leftovers of a force-deleted shoot in its tenant's account; deletes nothing without permission. Rejects only
 * on abort.
 * @param shoot as last seen
 */
export async function tellLeftBehind(
  deps: Pick<
    ShootDependencies,
    'account' | 'garden' | 'gardenID' | 'log' | 'namesAccount' | 'profiles' | 'provider' | 'recordEvent'
  >,
  shoot: Shoot,
  signal: AbortSignal,
): Promise<void> {
  const { name, namespace, uid = '' } = shoot.metadata;
  const profile = deps.profiles.get(shootProfileName(shoot.spec));
  const provider = profile && deps.provider(profile, deps.namesAccount(shoot));
  if (!profile || !provider?.inCloud || !provider.managed?.tagged) return;
  let account = `of ${namespace}`;
  let left: Orphan[] | string;
  try {
    // A new shoot of the same name takes over the leftovers.
    if (await deps.garden.getOrUndefined(SHOOTS, name, namespace, { signal })) return;
    const ctx = await deps.account(shoot, profile, signal);
    account = ctx.account.id;
    left = (await orphansOf({ garden: deps.gardenID, uid }, provider.managed, ctx)) ?? [];
  } catch (error) {
    signal.throwIfAborted();
    left = errorText(error);
  }
  if (left.length === 0) return;
  const message = leftBehind(`Shoot ${keyOf(shoot)} was deleted by force`, account, { uid }, left);
  deps.log.warn({ shoot: keyOf(shoot) }, message);
  deps.recordEvent(shoot, 'Warning', 'LeftBehind', message);
}
