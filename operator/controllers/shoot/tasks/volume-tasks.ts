import type { MachineVolumes } from '../../../../providers/contract.ts';
import type { Task } from '../../../flow/graph.ts';
import { STORAGECLASSES } from '../../../kube/resources.ts';
import { machineStorageClass, provisionerAccess, provisionerManifests } from '../../../shoot/machine-volumes.ts';
import type { Operation } from '../operation.ts';
import { applySystem, printOf, shootConnection } from './apply-inside.ts';
import { wantsNodes } from './machine-tasks.ts';

/**
 * A default StorageClass for machines with volumes on their disks. The class is applied while machines boot; its
 * provisioner starts last, because it would delay cluster DNS.
 */
export function volumeTasks(op: Operation): Task[] {
  const { machineVolumes } = op.provider;
  if (!machineVolumes) return [];
  const skip = !wantsNodes(op);
  return [
    {
      id: 'storage-class',
      title: 'Applying the default storage class',
      after: ['machines'],
      skip,
      expectedMs: 100,
      run: (signal) => applyAccess(op, machineVolumes, signal),
    },
    {
      id: 'volume-provisioner',
      title: 'Starting the provisioner of volumes',
      after: ['storage-class', 'system-ready'],
      skip,
      expectedMs: 20,
      run: (signal) => applyProvisioner(op, machineVolumes, signal),
    },
  ];
}

async function applyAccess(op: Operation, volumes: MachineVolumes, signal: AbortSignal): Promise<void> {
  if (op.state.volumesApplied === printOfVolumes(volumes)) return;
  const { items } = await shootConnection(op).client.list(STORAGECLASSES, { signal });
  op.state.volumesRefused = await applySystem(
    op,
    [...provisionerAccess(volumes), ...machineStorageClass(items)],
    signal,
  );
}

async function applyProvisioner(op: Operation, volumes: MachineVolumes, signal: AbortSignal): Promise<void> {
  const { state } = op;
  if (state.volumesApplied === printOfVolumes(volumes)) return;
  state.volumesRefused ??= await applySystem(op, [provisionerManifests(volumes)], signal);
  if (state.volumesRefused === undefined) state.volumesApplied = printOfVolumes(volumes);
}

const printOfVolumes = (volumes: MachineVolumes): string =>
  printOf([...provisionerAccess(volumes), provisionerManifests(volumes)]);
