import type { Member, Reader } from '../../hubs/contract.ts';
import type { KubeClient } from '../../kube/client.ts';
import { KubeApiError } from '../../kube/errors.ts';
import { ENDPOINTSLICES, type KubeObject, keyOf, type Resource } from '../../kube/resources.ts';

const MCS: Resource = {
  group: 'multicluster.x-k8s.io',
  version: 'v1alpha1',
  plural: 'serviceexports',
  kind: 'ServiceExport',
  namespaced: true,
};
export const SERVICEEXPORTS = MCS;
export const SERVICEIMPORTS: Resource = { ...MCS, plural: 'serviceimports', kind: 'ServiceImport' };
/** The about API: a cluster's names for multi-cluster Services. */
const CLUSTERPROPERTIES: Resource = {
  group: 'about.k8s.io',
  version: 'v1alpha1',
  plural: 'clusterproperties',
  kind: 'ClusterProperty',
  namespaced: false,
};
/** Properties with names of the cluster: KEP-2149. */
const CLUSTER_NAMES = ['cluster.clusterset.k8s.io', 'id.k8s.io'];
/** On an EndpointSlice imported from another cluster: MCS API, KEP-1645. */
export const SOURCE_CLUSTER = 'multicluster.kubernetes.io/source-cluster';

/** Both sides of a member that exports Services. */
interface Exporter {
  readonly member: Member;
  readonly hub: Reader;
  readonly inside: Reader;
  readonly client: KubeClient;
}

/**
 * Deletes the ServiceExports of a cluster before its destruction, so that other clusters stop sending traffic.
 * @returns remaining exports and imports, as far as readable
 */
export async function withdrawExports(
  { member, hub, inside, client }: Exporter,
  signal: AbortSignal,
): Promise<string[]> {
  if (!(await inside.serves(SERVICEEXPORTS))) return [];
  const exports = await readableExports(inside.list(SERVICEEXPORTS));
  for (const { metadata } of exports) {
    const { name, namespace, uid, deletionTimestamp } = metadata;
    if (deletionTimestamp) continue;
    await client
      .delete(SERVICEEXPORTS, name, namespace, { signal, preconditions: { ...(uid && { uid }) } })
      .catch((error: unknown) => {
        // What may not be deleted is reported as remaining.
        if (!isForbidden(error)) throw error;
      });
  }
  const properties = await readableExports(inside.list(CLUSTERPROPERTIES));
  const names = exportedNamesOf(member, properties);
  const [imports, slices] = await Promise.all([
    readableExports(hub.list(SERVICEIMPORTS)),
    readableExports(hub.list(ENDPOINTSLICES, { labelSelector: SOURCE_CLUSTER })),
  ]);
  const left = await readableExports(inside.list(SERVICEEXPORTS));
  return [...left.map((one) => `ServiceExport ${keyOf(one)}`), ...importedFrom(names, imports, slices)];
}

/** Names by which other clusters may know the cluster. Pure. */
export const exportedNamesOf = (
  { name, id }: Pick<Member, 'name' | 'id'>,
  properties: readonly KubeObject[],
): Set<string> =>
  new Set([
    name,
    id,
    ...properties
      .filter(({ metadata }) => CLUSTER_NAMES.includes(metadata.name))
      .flatMap(({ spec }) => (spec as { value?: string } | undefined)?.value || []),
  ]);

/** Remaining imports from a cluster with these names, as text. Pure. */
export function importedFrom(
  names: ReadonlySet<string>,
  imports: readonly KubeObject[],
  slices: readonly KubeObject[],
): string[] {
  const from = imports.filter(({ status }) =>
    ((status?.clusters ?? []) as { cluster?: string }[]).some(({ cluster }) => names.has(cluster ?? '')),
  );
  const ends = slices.filter(({ metadata }) => names.has(metadata.labels?.[SOURCE_CLUSTER] ?? ''));
  return [
    ...from.map((one) => `ServiceImport ${keyOf(one)} of the hub`),
    ...ends.map((one) => `EndpointSlice ${keyOf(one)} of the hub`),
  ];
}

const isForbidden = (error: unknown): boolean => error instanceof KubeApiError && error.isForbidden;

/** Unreadable kinds count as empty. */
export const readableExports = (list: Promise<KubeObject[]>): Promise<KubeObject[]> =>
  list.catch((error: unknown) => {
    if (isForbidden(error)) return [];
    throw error;
  });
