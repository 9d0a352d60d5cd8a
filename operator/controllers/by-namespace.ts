/** Index of namespaced objects by namespace. */
export const BY_NAMESPACE = 'namespace';
export const byNamespace = {
  [BY_NAMESPACE]: ({ metadata }: { metadata: { namespace?: string } }) => [metadata.namespace ?? ''],
};
