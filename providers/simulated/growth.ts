import type { CloudProfile } from '../../operator/api/cloudprofile.ts';
import type { Pool } from '../contract.ts';
import { capacityOf } from '../machine-types.ts';
import { type Account, added, type GivenMachine, type MachineRefusal, requestMachine } from './cloud-model.ts';
import { simulationOf } from './settings.ts';

/** Inputs of a pool's growth. */
interface Growth {
  profile: CloudProfile;
  region: string;
  /** `namespace/name` of the cluster. */
  cluster: string;
  pool: Pool;
  /** Number of missing machines. */
  missing: number;
  /** Whether the pool has a machine of this number. */
  isTaken(index: number): boolean;
  /** Number of earlier requests for the cluster. */
  sequence: number;
  account: Account;
}

/** Result of a pool's growth. */
interface Grown {
  /** In the order of requests. */
  machines: (GivenMachine & { index: number })[];
  /** First reason why machines are still missing. */
  refusal?: MachineRefusal;
  /** Number of machines still missing. */
  short: number;
  sequence: number;
  account: Account;
}

/**
 * Requests a pool's missing machines from the simulated cloud, by the lowest free numbers, each preferably in its
 * number's zone. Pure: the simulated provider and rehearsals share it. Throws when the profile lacks the machine type.
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
      // Further requests would get the same answer.
      if (answer.refusal.general) break;
      continue;
    }
    grown.machines.push({ ...answer.machine, index });
    grown.account = { ...grown.account, usage: added(grown.account.usage, capacity) };
    grown.short--;
  }
  return grown;
}
