/** Name of the context of a cluster in a person's kubeconfig. */
export const contextName = (namespace: string, name: string): string => `coppice/${namespace}/${name}`;

/** Name of the context of the garden there. */
export const GARDEN_CONTEXT = 'coppice/garden';

/** Whether a context may be one that Coppice has added. */
export const isOurName = (name: unknown): name is string => typeof name === 'string' && name.startsWith('coppice/');
