import type { CloudProfile, MachineType } from './cloudprofile.ts';
import { readCount } from './quantity.ts';

/** How many GPUs a machine type has. */
export const gpusOf = (type: Pick<MachineType, 'gpu'> | undefined): number => readCount(type?.gpu ?? 0);

/** GPU request of a pool without a machine type of its own. */
interface GPUWish {
  /** GPUs per node; at least 1. */
  gpu: number;
  region: string | undefined;
  /** Zones of the nodes; empty: any. */
  zones: readonly string[];
  /** Machine type that the pool has now. */
  held?: string | undefined;
}

/**
 * Machine type of a pool that states only its number of GPUs: the cheapest type with enough GPUs in a zone of the pool.
 * Compares the price of the region, else of another region; types without price come last; ties by GPUs, then by name.
 * The present type stays while it has as many GPUs as the cheapest, so that a new price list does not replace running
 * nodes. undefined: no type fits. Pure.
 */
export function gpuMachineType(profile: CloudProfile, wish: GPUWish): string | undefined {
  const fits = profile.spec.machineTypes
    .filter((type) => type.usable !== false && gpusOf(type) >= wish.gpu && isThere(profile, type.name, wish))
    .sort((a, b) => compare(rankOf(a, wish.region), rankOf(b, wish.region)) || (a.name < b.name ? -1 : 1));
  const [cheapest] = fits;
  const held = fits.find(({ name }) => name === wish.held);
  return held && gpusOf(held) === gpusOf(cheapest) ? held.name : cheapest?.name;
}

function isThere({ spec }: CloudProfile, type: string, { region, zones }: GPUWish): boolean {
  const known = spec.regions.find(({ name }) => name === region)?.zones ?? [];
  const used = zones.length > 0 ? known.filter(({ name }) => zones.includes(name)) : known;
  return used.length === 0 || used.some((zone) => !zone.unavailableMachineTypes?.includes(type));
}

/** Sort key of a type, most significant first. */
function rankOf({ price, gpu }: MachineType, region: string | undefined): number[] {
  const there = price?.regions?.find(({ name }) => name === region)?.hourly;
  const isOfRegion = price !== undefined && (price.region === undefined || price.region === region);
  const known = there ?? (isOfRegion ? price.hourly : undefined);
  const [tier, hourly] = known !== undefined ? [0, known] : price ? [1, price.hourly] : [2, '0'];
  return [tier, Number(hourly), readCount(gpu)];
}

const compare = (a: readonly number[], b: readonly number[]): number =>
  a.map((value, index) => value - b[index]!).find((difference) => difference !== 0) ?? 0;
