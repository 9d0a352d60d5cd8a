/** Name of a cluster's context in a person's kubeconfig. */
export const contextName = (namespace: string, name: string): string => `coppice/${namespace}/${name}`;

/** Name of the garden's context in a person's kubeconfig. */
export const GARDEN_CONTEXT = 'coppice/garden';

/** Whether Coppice may have added a context of this name. */
export const isOurName = (name: unknown): name is string => typeof name === 'string' && name.startsWith('coppice/');
