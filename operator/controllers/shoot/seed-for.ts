import { configurationProblem, notYetConfigured } from '../../api/errors.ts';
import type { Seed } from '../../api/seed.ts';
import { controlPlaneWorker, type Shoot, shootProfileName } from '../../api/shoot.ts';
import { keyOf } from '../../kube/resources.ts';
import { placeShoot } from '../../placement/place.ts';
import type { ShootWorld } from './world.ts';

/** The seed of a shoot: the one it has, or the best one. undefined: deleted before it ever had one. */
export function seedFor(world: ShootWorld, shoot: Shoot): Seed | undefined {
  const deleting = shoot.metadata.deletionTimestamp !== undefined;
  const name = shoot.status?.seedName ?? shoot.spec.seedName;
  if (name) {
    const seed = world.seeds.get(name);
    if (!seed) throw notYetConfigured(`Seed ${name}, which hosts the control plane, does not exist`);
    return seed;
  }
  if (deleting) return undefined;
  const profile = world.profiles.get(shootProfileName(shoot.spec));
  if (!profile) throw configurationProblem(`there is no CloudProfile "${shootProfileName(shoot.spec)}"`);
  const shootsPerSeed = new Map<string, number>();
  for (const other of world.shoots.list()) {
    const seed = other.status?.seedName;
    if (seed) shootsPerSeed.set(seed, (shootsPerSeed.get(seed) ?? 0) + 1);
  }
  // A control plane on machines does not care where its seed can be reached from.
  const outside =
    world.provider(profile, world.namesAccount(shoot))?.inCloud === true && !controlPlaneWorker(shoot.spec);
  const result = placeShoot({ shoot, profile, seeds: world.seeds.list(), shootsPerSeed, outside });
  if (result.seed === undefined)
    throw notYetConfigured(`no seed can host ${keyOf(shoot)}: ${result.reasons.join('; ')}`);
  const chosen = world.seeds.get(result.seed);
  if (!chosen) throw notYetConfigured(`Seed ${result.seed} has just gone`);
  world.record(shoot, 'Normal', 'Scheduled', `placed on seed ${result.seed}: ${result.why}`);
  return chosen;
}
