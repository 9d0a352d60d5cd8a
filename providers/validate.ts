import { type AddressRange, addressRangesOverlap, ipv4Range } from '../operator/api/address-range.ts';
import type { CloudProfile } from '../operator/api/cloudprofile.ts';
import type { Problem, WantedSpec } from './contract.ts';

const problem = (field: string, message: string): Problem => ({ field, message, code: 'ERR_CONFIGURATION_PROBLEM' });

const listed = (names: readonly string[]): string => {
  if (names.length === 0) return 'it has none';
  return names.length > 12 ? `it has ${names.slice(0, 12).join(', ')}, ...` : `it has ${names.join(', ')}`;
};

/** Problems of the wish that hold for every provider with machines: missing in the profile, or impossible. */
export function profileProblems(wanted: WantedSpec, profile: CloudProfile): Problem[] {
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

/** Zones of a cluster that its region lacks; empty when the profile lists no zones. */
export function zoneProblems({ region, zones }: { region: string; zones: string[] }, profile: CloudProfile): Problem[] {
  const known = profile.spec.regions.find((one) => one.name === region)?.zones?.map((zone) => zone.name);
  if (!known) return [];
  return zones
    .filter((zone) => !known.includes(zone))
    .map((zone) => problem('zones', `region ${region} has no zone ${zone}: ${listed(known)}`));
}

/** Problems of a pool name, which becomes part of names in a cloud. `field`: path of the pool. */
export function poolNameProblems(name: string, longest: number, field: string): Problem[] {
  if (/^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/.test(name) && name.length <= longest) return [];
  return [problem(`${field}.name`, `${name} must be a DNS label of at most ${longest} characters`)];
}

function networkProblems({ networking, pools }: WantedSpec): Problem[] {
  const problems: Problem[] = [];
  const ranges: { field: string; text: string; range: AddressRange }[] = [];
  for (const [key, text] of Object.entries(networking)) {
    if (text === undefined) continue;
    const range = ipv4Range(text);
    if (range) ranges.push({ field: `networking.${key}`, text, range });
    else problems.push(problem(`networking.${key}`, `${text} is no IPv4 range such as 10.0.0.0/16`));
  }
  ranges.forEach((one, index) => {
    for (const other of ranges.slice(index + 1)) {
      if (!addressRangesOverlap(one.range, other.range)) continue;
      problems.push(problem(other.field, `${other.text} overlaps with ${one.field} ${one.text}`));
    }
  });
  const pods = ipv4Range(networking.pods);
  const nodes = pools.reduce((sum, pool) => sum + pool.count, 0);
  // The controller manager assigns each node a /24 of the pod range.
  const most = pods ? Math.floor(Number(pods.size) / 256) : Number.POSITIVE_INFINITY;
  if (nodes > most) {
    problems.push(
      problem('networking.pods', `${networking.pods} has a /24 for ${most} nodes only, ${nodes} are wanted`),
    );
  }
  return problems;
}
