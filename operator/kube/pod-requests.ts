import { readBytes, readCount, readCpu, saturatedInteger } from '../api/quantity.ts';
import type { ContainerResources, Pod } from './resources.ts';

/** Amounts of one node or one cluster: millicores, bytes, whole GPUs, pod addresses. */
export interface PodAmounts {
  cpu: number;
  memory: number;
  gpu: number;
  ipPool: number;
}

/** Extended resources that count as GPUs. */
export const GPU_RESOURCES = ['nvidia.com/gpu', 'amd.com/gpu', 'gpu.intel.com/i915'];

export const noAmounts = (): PodAmounts => ({ cpu: 0, memory: 0, gpu: 0, ipPool: 0 });

/**
 * Amounts that the pod takes from its node, by the scheduler's rule (effective requests, restartable init containers,
 * overhead). Saturates. Throws RangeError for an invalid quantity.
 */
export function podRequests({ spec }: Pick<Pod, 'spec'>): PodAmounts {
  const request = noAmounts();
  for (const container of spec.containers) addAmounts(request, amounts(container.resources), 1);
  // A sidecar (restartable init container) keeps running; a plain init container needs its share only together with the
  // sidecars before it.
  const sidecars = noAmounts();
  const initPeak = noAmounts();
  for (const container of spec.initContainers ?? []) {
    const own = amounts(container.resources);
    if (container.restartPolicy === 'Always') {
      addAmounts(request, own, 1);
      addAmounts(sidecars, own, 1);
      raise(initPeak, sidecars);
    } else {
      addAmounts(own, sidecars, 1);
      raise(initPeak, own);
    }
  }
  raise(request, initPeak);
  // Pod-level requests replace the sum of the containers (Kubernetes 1.34).
  const whole = spec.resources?.requests;
  if (whole?.cpu !== undefined) request.cpu = readCpu(whole.cpu);
  if (whole?.memory !== undefined) request.memory = readBytes(whole.memory);
  if (spec.overhead) addAmounts(request, amounts({ requests: spec.overhead }), 1);
  request.ipPool = spec.hostNetwork ? 0 : 1;
  return request;
}

function amounts(resources: ContainerResources | undefined): PodAmounts {
  // The API server copies limits to requests, except for extended resources of pods that it never defaulted.
  const asked = { ...resources?.limits, ...resources?.requests };
  return {
    cpu: readCpu(asked.cpu ?? '0'),
    memory: readBytes(asked.memory ?? '0'),
    gpu: GPU_RESOURCES.reduce((sum, name) => sum + readCount(asked[name] ?? '0'), 0),
    ipPool: 0,
  };
}

export function addAmounts(sum: PodAmounts, more: PodAmounts, sign: 1 | -1): void {
  for (const key of ['cpu', 'memory', 'gpu', 'ipPool'] as const)
    sum[key] = saturatedInteger(sum[key] + sign * more[key]);
}

function raise(peak: PodAmounts, other: PodAmounts): void {
  for (const key of ['cpu', 'memory', 'gpu', 'ipPool'] as const) peak[key] = Math.max(peak[key], other[key]);
}
