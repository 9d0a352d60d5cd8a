import type { Amounts } from './contract.ts';

/** Name under which pods ask for GPUs. */
export const GPU = 'nvidia.com/gpu';

/** What a hub is told of a list of resources of Kubernetes; it knows no others. */
export const amountsOf = ({ cpu, memory, [GPU]: gpu }: Readonly<Record<string, string>> = {}): Amounts => ({
  ...(cpu && { cpu }),
  ...(memory && { memory }),
  ...(gpu && { gpu }),
});

/** Such a list of what a hub is told. */
export const quantitiesOf = ({ cpu, memory, gpu }: Amounts): Record<string, string> => ({
  ...(cpu && { cpu }),
  ...(memory && { memory }),
  ...(gpu && gpu !== '0' && { [GPU]: gpu }),
});

/** What else there is in such a list: neither what a hub is told of, nor the count of pods, which is 1. */
export const othersOf = (list: Readonly<Record<string, string>> = {}): Record<string, string> =>
  Object.fromEntries(Object.entries(list).filter(([name]) => !['cpu', 'memory', GPU, 'pods'].includes(name)));
