import { configurationProblem, dependencyNotReady, notYetConfigured } from '../../../api/errors.ts';
import type { Seed } from '../../../api/seed.ts';
import { controlPlaneWorker, type Shoot, shootProfileName } from '../../../api/shoot.ts';
import { keyOf } from '../../../kube/resources.ts';
import { wasAsked } from '../../../placement/filters.ts';
import { placeShoot } from '../../../placement/place.ts';
import type { ShootDependencies } from '../dependencies.ts';

/** Suitable seeds were registered just now and not probed yet. Not a failure. */
export class SeedsNotAsked extends Error {
  override readonly name = 'SeedsNotAsked';
}

/**
 * The seed of a shoot: its present one, or the best one; a named one must fit as well. undefined: deleted before it had
 * one.
 * @param chosen chosen seeds by shoot key that no status shows yet; is extended. Without it, many simultaneous shoots
 * would all choose the same empty seed
 * @throws SeedsNotAsked; CoppiceError when no seed fits
 */
export function seedFor(deps: ShootDependencies, shoot: Shoot, chosen: Map<string, string>): Seed | undefined {
  const deleting = shoot.metadata.deletionTimestamp !== undefined;
  // A deleted shoot without a seed in its status may have left objects in the seed that it names.
  const name = shoot.status?.seedName ?? (deleting ? shoot.spec.seedName : undefined);
  if (name) {
    const seed = deps.seeds.get(name);
    if (!seed) throw notYetConfigured(`Seed ${name}, which hosts the control plane, does not exist`);
    return seed;
  }
  if (deleting) return undefined;
  const key = keyOf(shoot);
  const profile = deps.profiles.get(shootProfileName(shoot.spec));
  if (!profile) throw configurationProblem(`there is no CloudProfile "${shootProfileName(shoot.spec)}"`);
  const shootsPerSeed = new Map<string, number>();
  for (const other of deps.shoots.list()) {
    if (keyOf(other) === key) continue;
    const seed = other.status?.seedName ?? other.spec.seedName ?? chosen.get(keyOf(other));
    if (seed) shootsPerSeed.set(seed, (shootsPerSeed.get(seed) ?? 0) + 1);
  }
  // A self-hosted control plane does not depend on the seed's reachability.
  const outside = deps.provider(profile, deps.namesAccount(shoot))?.inCloud === true && !controlPlaneWorker(shoot.spec);
  const result = placeShoot({ shoot, profile, seeds: deps.seeds.list(), shootsPerSeed, outside });
  if (result.seed === undefined) {
    const [notAsked, ...more] = result.unready.filter((one) => !wasAsked(one)).map(({ metadata }) => metadata.name);
    if (notAsked) {
      const which = more.length > 0 ? `${notAsked} or one of ${more.length} others` : notAsked;
      throw new SeedsNotAsked(`Waiting for the first answer of seed ${which}`);
    }
    const message = `no seed can host ${key}: ${result.reasons.join('; ')}`;
    if (result.unready.length > 0) throw dependencyNotReady(message);
    throw notYetConfigured(message, 'Make a Seed that can, or change what stands against one; the operator retries.');
  }
  const seed = deps.seeds.get(result.seed);
  if (!seed) throw notYetConfigured(`Seed ${result.seed} has just gone`);
  chosen.set(key, result.seed);
  deps.recordEvent(shoot, 'Normal', 'Scheduled', `placed on seed ${result.seed}: ${result.why}`);
  return seed;
}
