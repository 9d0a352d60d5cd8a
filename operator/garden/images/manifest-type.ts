const INDEXES: readonly string[] = [
  'application/vnd.oci.image.index.v1+json',
  'application/vnd.docker.distribution.manifest.list.v2+json',
];
const MANIFESTS: readonly string[] = [
  'application/vnd.oci.image.manifest.v1+json',
  'application/vnd.docker.distribution.manifest.v2+json',
];

/** Media types of manifests that nodes may receive. */
export const MANIFEST_TYPES: readonly string[] = [...INDEXES, ...MANIFESTS];

/**
 * Media type of a manifest by its content, one of MANIFEST_TYPES; undefined for other content, or content that is valid
 * both as index and image (CVE-2021-41190). `mediaType` is optional in OCI and required in Docker.
 */
export function manifestType(body: Buffer): string | undefined {
  let content: unknown;
  try {
    content = JSON.parse(body.toString());
  } catch {
    return undefined;
  }
  if (typeof content !== 'object' || content === null) return undefined;
  const { mediaType, manifests, config, layers, fsLayers } = content as Record<string, unknown>;
  const isIndex = manifests !== undefined;
  const isImage = config !== undefined || layers !== undefined || fsLayers !== undefined;
  const isWhole = isIndex ? Array.isArray(manifests) : Array.isArray(layers) && typeof config === 'object';
  if (isIndex === isImage || !isWhole) return undefined;
  const [oci, docker] = isIndex ? INDEXES : MANIFESTS;
  if (mediaType === undefined || mediaType === oci) return oci;
  return mediaType === docker ? docker : undefined;
}
