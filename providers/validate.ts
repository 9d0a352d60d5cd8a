import type { CloudProfile } from '../operator/api/cloudprofile.ts';
import type { Problem, Wanted } from './contract.ts';

const problem = (field: string, message: string): Problem => ({ field, message, code: 'ERR_CONFIGURATION_PROBLEM' });

const listed = (names: readonly string[]): string => {
  if (names.length === 0) return 'it has none';
  return names.length > 12 ? `it has ${names.slice(0, 12).join(', ')}, ...` : `it has ${names.join(', ')}`;
};

/** What of this the profile does not offer, or cannot be for any provider that makes machines. */
export function profileProblems(wanted: Wanted, profile: CloudProfile): Problem[] {
  const { spec } = profile;
  const name = profile.metadata.name;
  const problems: Problem[] = [];
  const region = spec.regions.find((known) => known.name === wanted.region);
  if (!region) {
    const regions = spec.regions.map((known) => known.name);
    problems.push(problem('region', `profile ${name} has no region ${wanted.region}: ${listed(regions)}`));
  }
  const zones = (region?.zones ?? []).map((zone) => zone.name);
  wanted.pools.forEach((pool, index) => {
    const type = spec.machineTypes.find((known) => known.name === pool.machineType);
    if (!type || type.usable === false) {
      const usable = spec.machineTypes.filter((known) => known.usable !== false).map((known) => known.name);
      const what = type ? 'does not let machine type be used:' : 'has no machine type';
      problems.push(
        problem(`pools[${index}].machineType`, `profile ${name} ${what} ${pool.machineType}: ${listed(usable)}`),
      );
    }
    for (const zone of pool.zones) {
      if (!region || zones.includes(zone)) continue;
      problems.push(problem(`pools[${index}].zones`, `region ${wanted.region} has no zone ${zone}: ${listed(zones)}`));
    }
  });
  const names = wanted.pools.map((pool) => pool.name);
  const twice = names.find((poolName, index) => names.indexOf(poolName) !== index);
  if (twice !== undefined) problems.push(problem('pools', `two pools have the name ${twice}`));
  return [...problems, ...networkProblems(wanted)];
}

/** Zones of a cluster that its region does not have; nothing where the profile does not say which it has. */
export function zoneProblems({ region, zones }: { region: string; zones: string[] }, profile: CloudProfile): Problem[] {
  const known = profile.spec.regions.find((one) => one.name === region)?.zones?.map((zone) => zone.name);
  if (!known) return [];
  return zones
    .filter((zone) => !known.includes(zone))
    .map((zone) => problem('zones', `region ${region} has no zone ${zone}: ${listed(known)}`));
}

/** What is wrong with the name of a pool, of which names in a cloud are made. `field` is the pool's. */
export function poolNameProblems(name: string, longest: number, field: string): Problem[] {
  if (/^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/.test(name) && name.length <= longest) return [];
  return [problem(`${field}.name`, `${name} must be a DNS label of at most ${longest} characters`)];
}

function networkProblems({ networking, pools }: Wanted): Problem[] {
  const problems: Problem[] = [];
  const ranges: { field: string; range: Range }[] = [];
  for (const [key, value] of Object.entries(networking)) {
    if (value === undefined) continue;
    const range = parseRange(value);
    if (range) ranges.push({ field: `networking.${key}`, range });
    else problems.push(problem(`networking.${key}`, `${value} is no IPv4 range such as 10.0.0.0/16`));
  }
  ranges.forEach((one, index) => {
    for (const other of ranges.slice(index + 1)) {
      if (one.range.first > other.range.last || other.range.first > one.range.last) continue;
      problems.push(problem(other.field, `${other.range.text} overlaps with ${one.field} ${one.range.text}`));
    }
  });
  const pods = parseRange(networking.pods);
  const nodes = pools.reduce((sum, pool) => sum + pool.count, 0);
  // The controller manager gives each node a /24 of the pod range.
  const most = pods ? Math.floor((pods.last - pods.first + 1) / 256) : Number.POSITIVE_INFINITY;
  if (nodes > most) {
    problems.push(
      problem('networking.pods', `${networking.pods} has a /24 for ${most} nodes only, ${nodes} are wanted`),
    );
  }
  return problems;
}

/** First and last address of a range, as numbers. */
export interface Range {
  text: string;
  first: number;
  last: number;
}

/** An IPv4 range in CIDR notation; undefined when the text is none. */
export function parseRange(text: string): Range | undefined {
  const match = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})\/(\d{1,2})$/.exec(text);
  if (!match) return undefined;
  const [a, b, c, d, bits] = match.slice(1).map(Number) as [number, number, number, number, number];
  if ([a, b, c, d].some((part) => part > 255) || bits > 32) return undefined;
  const size = 2 ** (32 - bits);
  const address = ((a * 256 + b) * 256 + c) * 256 + d;
  const first = Math.floor(address / size) * size;
  return { text, first, last: first + size - 1 };
}
