import type { Amounts } from './contract.ts';

/** Name under which pods ask for GPUs. */
export const GPU = 'nvidia.com/gpu';

/** What a hub is told of a list of resources of Kubernetes; it knows no others. */
export const amountsOf = ({ cpu, memory, [GPU]: gpu }: Readonly<Record<string, string>> = {}): Amounts => ({
  ...(cpu && { cpu }),
  ...(memory && { memory }),
  ...(gpu && { gpu }),
});
