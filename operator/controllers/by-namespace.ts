/** Index of namespaced caches: objects by their namespace. */
export const BY_NAMESPACE = 'namespace';
export const byNamespace = {
  [BY_NAMESPACE]: ({ metadata }: { metadata: { namespace?: string } }) => [metadata.namespace ?? ''],
};
