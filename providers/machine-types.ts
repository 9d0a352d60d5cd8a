import type { CloudProfile } from '../operator/api/cloudprofile.ts';
import { configurationProblem } from '../operator/api/errors.ts';
import { readBytes, readCount, readCpu } from '../operator/api/quantity.ts';

/** What a machine of a type offers. */
export interface Capacity {
  millicores: number;
  bytes: number;
  gpus: number;
  pods: number;
}

/** Pods on a node where the machine type does not say: kubelet's own default. */
export const DEFAULT_PODS = 110;

/** What machines of this type offer; throws a configuration problem when the profile has no such type. */
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
