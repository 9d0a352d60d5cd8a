import type { MachineVolumes } from '../contract.ts';
import { PAUSE_IMAGE } from './machine-files.ts';

/** Volumes are folders below /var of a machine, which outlives restarts of its container and goes with its pod. */
export const machineVolumes: MachineVolumes = {
  folder: '/var/lib/coppice/volumes',
  // No image of ours has a shell; a machine sees that of the seed's node, and each has the image of every pod's sandbox.
  helper: { image: PAUSE_IMAGE, folders: ['/bin', '/lib', '/lib64', '/usr'] },
};
