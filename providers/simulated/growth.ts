import type { CloudProfile } from '../../operator/api/cloudprofile.ts';
import type { Pool } from '../contract.ts';
import { capacityOf } from '../machine-types.ts';
import { type Account, added, type GivenMachine, type Refusal, requestMachine } from './cloud-model.ts';
import { simulationOf } from './settings.ts';

/** For whom, and from what, a pool grows. */
export interface Growth {
  profile: CloudProfile;
  region: string;
  /** namespace/name of the cluster. */
  cluster: string;
  pool: Pool;
  /** How many machines are missing. */
  missing: number;
  /** Whether the pool has a machine of this number. */
  isTaken(index: number): boolean;
  /** How many machines were asked for on behalf of the cluster before. */
  sequence: number;
  account: Account;
}

/** What came of it. */
export interface Grown {
  /** In the order asked for. */
  machines: (GivenMachine & { index: number })[];
  /** The first reason why machines are missing still. */
  refusal?: Refusal;
  /** How many machines are missing still. */
  short: number;
  sequence: number;
  account: Account;
}

/**
 * Asks the simulated cloud for what a pool lacks, by the lowest free numbers, each preferably in the zone that its number
 * falls to. Pure: the simulated provider and rehearsals make the same of the same. Throws when the profile has no such machine type.
 */
export function growPool(growth: Growth, now: number): Grown {
  const { profile, region, cluster, pool, missing } = growth;
  const simulation = simulationOf(profile);
  const capacity = capacityOf(profile, pool.machineType);
  const grown: Grown = { machines: [], short: missing, sequence: growth.sequence, account: growth.account };
  let asked = 0;
  for (let index = 0; asked < missing; index++) {
    if (growth.isTaken(index)) continue;
    asked++;
    const first = pool.zones.length > 0 ? index % pool.zones.length : 0;
    const zones = [...pool.zones.slice(first), ...pool.zones.slice(0, first)];
    const { name: _, machineType, spot = false } = pool;
    const request = { cluster, sequence: grown.sequence++, region, zones, machineType, capacity, spot };
    const answer = requestMachine(simulation, request, grown.account, now);
    grown.account = { ...grown.account, bucket: answer.bucket };
    if ('refusal' in answer) {
      grown.refusal ??= answer.refusal;
      // Asking on would only fill the cloud's line with requests that it has answered already.
      if (answer.refusal.general) break;
      continue;
    }
    grown.machines.push({ ...answer.machine, index });
    grown.account = { ...grown.account, usage: added(grown.account.usage, capacity) };
    grown.short--;
  }
  return grown;
}
