import type { FitPod, NodeTemplate } from './model.ts';

const isGPU = (resource: string): boolean => resource.startsWith('nvidia.com/') || resource.endsWith('/gpu');

/** Whether new nodes of a pool have GPUs. */
export const hasGPUs = ({ allocatable }: NodeTemplate): boolean =>
  [...allocatable.others].some(([name, count]) => isGPU(name) && count > 0);

/** Whether a pod requests GPUs. */
export const asksForGPUs = ({ requests }: FitPod): boolean => [...requests.others.keys()].some(isGPU);
