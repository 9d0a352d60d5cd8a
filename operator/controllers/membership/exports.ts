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
/** What a cluster is called by who joins Services of several: the about API. */
const CLUSTERPROPERTIES: Resource = {
  group: 'about.k8s.io',
  version: 'v1alpha1',
  plural: 'clusterproperties',
  kind: 'ClusterProperty',
  namespaced: false,
};
/** Names that are this cluster's: KEP-2149. */
const CLUSTER_NAMES = ['cluster.clusterset.k8s.io', 'id.k8s.io'];
/** On an EndpointSlice that was made for the endpoints of another cluster: the MCS API, KEP-1645. */
export const SOURCE_CLUSTER = 'multicluster.kubernetes.io/source-cluster';

/** The two sides of a member whose Services others may use. */
interface Exporter {
  readonly member: Member;
  readonly hub: Reader;
  readonly inside: Reader;
  readonly client: KubeClient;
}

/**
 * Deletes the ServiceExports of a cluster that is about to be destroyed, so that other clusters send it nothing more.
 * @returns what still stands of them: in the cluster, and in the hub as far as it may be read
 */
export async function withdrawExports(
  { member, hub, inside, client }: Exporter,
  signal: AbortSignal,
): Promise<string[]> {
  if (!(await inside.serves(SERVICEEXPORTS))) return [];
  const exports = await readable(inside.list(SERVICEEXPORTS));
  for (const { metadata } of exports) {
    const { name, namespace, uid, deletionTimestamp } = metadata;
    if (deletionTimestamp) continue;
    await client
      .delete(SERVICEEXPORTS, name, namespace, { signal, preconditions: { ...(uid && { uid }) } })
      .catch((error: unknown) => {
        // What we may not take away still stands, and is said.
        if (!isForbidden(error)) throw error;
      });
  }
  const properties = await readable(inside.list(CLUSTERPROPERTIES));
  const names = namesOf(member, properties);
  const [imports, slices] = await Promise.all([
    readable(hub.list(SERVICEIMPORTS)),
    readable(hub.list(ENDPOINTSLICES, { labelSelector: SOURCE_CLUSTER })),
  ]);
  const left = await readable(inside.list(SERVICEEXPORTS));
  return [...left.map((one) => `ServiceExport ${keyOf(one)}`), ...importedFrom(names, imports, slices)];
}

/** By which names others may know the cluster. Pure. */
export const namesOf = ({ name, id }: Pick<Member, 'name' | 'id'>, properties: readonly KubeObject[]): Set<string> =>
  new Set([
    name,
    id,
    ...properties
      .filter(({ metadata }) => CLUSTER_NAMES.includes(metadata.name))
      .flatMap(({ spec }) => (spec as { value?: string } | undefined)?.value || []),
  ]);

/** What of a hub still leads to the cluster that is known by one of these names: in words. Pure. */
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

/** What we may not read nobody asks us to wait for. */
export const readable = (list: Promise<KubeObject[]>): Promise<KubeObject[]> =>
  list.catch((error: unknown) => {
    if (isForbidden(error)) return [];
    throw error;
  });
