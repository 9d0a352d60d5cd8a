import type { MachineVolumes } from '../contract.ts';
import { PAUSE_IMAGE } from './machine-files.ts';

/** Volumes are folders below /var of a machine, which survives container restarts and is deleted with the pod. */
export const machineVolumes: MachineVolumes = {
  folder: '/var/lib/coppice/volumes',
  // Our images have no shell; a machine sees that of the seed node. Every node has the pause image.
  helper: { image: PAUSE_IMAGE, folders: ['/bin', '/lib', '/lib64', '/usr'] },
};
