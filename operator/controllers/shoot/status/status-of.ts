import type { Machine, Pool } from '../../../../providers/contract.ts';
import { KEYS_KEPT } from '../../../api/conditions.ts';
import { keepsHibernation, type ShootStatus, unactedFields } from '../../../api/shoot.ts';
import { type Said, say, withConditions } from '../../conditions.ts';
import type { CommonFacts } from './facts.ts';

/** Common part of every shoot's status. */
export function shootStatusOf(
  facts: CommonFacts,
  seen: {
    controlPlane: NonNullable<ShootStatus['controlPlane']>;
    machines: readonly Machine[];
    readyMachines: readonly Machine[];
    resource?: NonNullable<ShootStatus['resource']>;
  },
  conditions: readonly (Said<'Shoot'> | undefined)[],
  now: Date,
): ShootStatus {
  const { shoot, pools } = facts;
  const { controlPlane, machines, readyMachines, resource } = seen;
  const fields = unactedFields(shoot.spec, facts.madeOf);
  // Kept in the message, so that the next reconcile knows it.
  const isKept = keepsHibernation(shoot) && !fields.includes('hibernation');
  const unacted = [...fields, ...(isKept ? ['hibernation.enabled'] : [])];
  const inPool = (name: string, list: readonly Machine[]) => list.filter(({ pool }) => pool === name).length;
  return {
    conditions: withConditions<'Shoot'>(
      shoot.status?.conditions,
      [
        ...conditions,
        facts.keysLost === undefined ? undefined : say(KEYS_KEPT, false, 'KeysLost', facts.keysLost),
        unacted.length > 0
          ? say(
              'AllFieldsActedOn',
              false,
              'KeptOnly',
              `these fields are stored without effect yet: ${unacted.join(', ')}`,
            )
          : undefined,
      ],
      now,
    ),
    technicalID: facts.technicalID,
    ...(shoot.metadata.uid && { uid: shoot.metadata.uid }),
    ...(facts.seedName && { seedName: facts.seedName }),
    ...(facts.version && { kubernetesVersion: facts.version }),
    ...(facts.networks && {
      networking: { pods: [facts.networks.pods], services: [facts.networks.services] },
    }),
    ...(facts.endpoint && {
      advertisedAddresses: [{ name: 'internal', url: facts.endpoint }, ...(facts.named ?? [])].map((address) => ({
        ...address,
        application: 'kube-apiserver',
      })),
    }),
    controlPlane,
    nodes: { desired: desiredNodes(pools), current: machines.length, ready: readyMachines.length },
    workers: pools.map(({ name, count }) => ({
      name,
      desired: count,
      current: inPool(name, machines),
      ready: inPool(name, readyMachines),
    })),
    ...(resource && { resource }),
    ...(facts.operation && { lastOperation: facts.operation }),
    lastErrors: [...facts.errors],
    ...(facts.observedGeneration !== undefined && { observedGeneration: facts.observedGeneration }),
  };
}

/** Number of desired nodes. */
export const desiredNodes = (pools: readonly Pool[]): number => pools.reduce((sum, pool) => sum + pool.count, 0);
