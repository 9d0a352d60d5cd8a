import { configurationProblem } from '../../operator/api/errors.ts';
import type { ManagedClusters } from '../../providers/cloud.ts';
import type { Provider } from '../../providers/contract.ts';

/** A provider of a cloud whose managed service can be had, but no machines for hosted control planes: asking for these is a problem of `mode`. */
export function managedOnly(name: string, managed: ManagedClusters): Provider {
  const message = `provider ${name} makes no machines for hosted control planes; use mode Managed`;
  const refuse = async (): Promise<never> => {
    throw configurationProblem(message);
  };
  return {
    name,
    simulated: false,
    needsBootstrapToken: false,
    managed,
    validate: () => [{ field: 'mode', message, code: 'ERR_CONFIGURATION_PROBLEM' }],
    reconcilePool: refuse,
    listMachines: async () => [],
    removeMachines: refuse,
    // Nothing was ever made: a Shoot that was refused must still be able to go.
    deletePool: async () => {},
    deleteAll: async () => {},
  };
}
