import type { CloudProfile } from '../operator/api/cloudprofile.ts';
import { configurationProblem } from '../operator/api/errors.ts';
import { readBytes, readCount, readCpu } from '../operator/api/quantity.ts';

/** Capacity of a machine type. */
export interface Capacity {
  millicores: number;
  bytes: number;
  gpus: number;
  pods: number;
}

/** Pods per node when the machine type does not say: kubelet's default. */
export const DEFAULT_PODS = 110;

/** Capacity of a machine type; throws a configuration problem when the profile lacks it. */
export function capacityOf(profile: CloudProfile, machineType: string): Capacity {
  const type = profile.spec.machineTypes.find((known) => known.name === machineType);
  if (!type) {
    throw configurationProblem(
      `profile ${profile.metadata.name} has no machine type ${machineType}`,
      'Choose one that it has.',
    );
  }
  return {
    millicores: readCpu(type.cpu),
    bytes: readBytes(type.memory),
    gpus: readCount(type.gpu ?? 0),
    pods: type.pods ?? DEFAULT_PODS,
  };
}
