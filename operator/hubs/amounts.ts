import type { HubAmounts } from './contract.ts';

/** Resource name of GPUs in pod requests. */
export const GPU = 'nvidia.com/gpu';

/** Amounts in a Kubernetes resource list that hubs are told of; hubs know no others. */
export const hubAmountsOf = ({ cpu, memory, [GPU]: gpu }: Readonly<Record<string, string>> = {}): HubAmounts => ({
  ...(cpu && { cpu }),
  ...(memory && { memory }),
  ...(gpu && { gpu }),
});

/** The Kubernetes resource list of such amounts. */
export const quantitiesOf = ({ cpu, memory, gpu }: HubAmounts): Record<string, string> => ({
  ...(cpu && { cpu }),
  ...(memory && { memory }),
  ...(gpu && gpu !== '0' && { [GPU]: gpu }),
});

/** The other resources of a list, except the pod count, which is 1. */
export const othersOf = (list: Readonly<Record<string, string>> = {}): Record<string, string> =>
  Object.fromEntries(Object.entries(list).filter(([name]) => !['cpu', 'memory', GPU, 'pods'].includes(name)));
