/**
 * GPU of a machine type with built-in GPUs. Source: "Run GPUs in GKE Standard node pools"
 * (cloud.google.com/kubernetes-engine/docs/how-to/gpus); a2-megagpu: GoogleCloudPlatform/cluster-toolkit
 * modules/compute/vm-instance/gpu_definition.tf.
 */
const BY_SERIES: readonly (readonly [prefix: string, accelerator: string])[] = [
  ['a2-highgpu-', 'nvidia-tesla-a100'],
  ['a2-megagpu-', 'nvidia-tesla-a100'],
  ['a2-ultragpu-', 'nvidia-a100-80gb'],
  ['a3-highgpu-', 'nvidia-h100-80gb'],
  ['a3-megagpu-', 'nvidia-h100-mega-80gb'],
  ['a3-ultragpu-', 'nvidia-h200-141gb'],
  ['a4-highgpu-', 'nvidia-b200'],
  ['g2-standard-', 'nvidia-l4'],
  ['g4-standard-', 'nvidia-rtx-pro-6000'],
];

/**
 * Google's name of the machine type's GPU; undefined when the type does not determine it (n1: any could be attached).
 */
export const acceleratorOf = (machineType: string): string | undefined =>
  BY_SERIES.find(([prefix]) => machineType.startsWith(prefix))?.[1];
