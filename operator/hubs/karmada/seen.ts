import { LABELS } from '../../api/group.ts';
import { KubeApiError } from '../../kube/errors.ts';
import { type KubeObject, NAMESPACES, type Resource } from '../../kube/resources.ts';
import type { Member, Reader, Touch, Trace } from '../contract.ts';
import {
  type BindingObject,
  type Bindings,
  bindingsPlacedOn,
  overlookedBindings,
  type PlacedBinding,
} from './bindings.ts';
import { CLUSTERS, type KarmadaCluster, takesMore } from './cluster.ts';

const WORK_GROUP = 'work.karmada.io';
export const RESOURCEBINDINGS: Resource = {
  group: WORK_GROUP,
  version: 'v1alpha2',
  plural: 'resourcebindings',
  kind: 'ResourceBinding',
  namespaced: true,
};
export const CLUSTERRESOURCEBINDINGS: Resource = {
  ...RESOURCEBINDINGS,
  plural: 'clusterresourcebindings',
  kind: 'ClusterResourceBinding',
  namespaced: false,
};
const PRIORITYCLASSES: Resource = {
  group: 'scheduling.k8s.io',
  version: 'v1',
  plural: 'priorityclasses',
  kind: 'PriorityClass',
  namespaced: false,
};
export const WORKS: Resource = { ...RESOURCEBINDINGS, version: 'v1alpha1', plural: 'works', kind: 'Work' };

/** Result of one observation of Karmada. */
export interface KarmadaSeen {
  readonly cluster: KarmadaCluster | undefined;
  /** Name of another Cluster of the hub for the same cluster. */
  readonly twin: string | undefined;
  /** Whether the namespace for the cluster's Works exists, where it is read. */
  readonly hasWorksNamespace: boolean;
  /** Read only when it leaves or is to sleep. */
  readonly placed: readonly PlacedBinding[];
  /** The member's Works; read only when it leaves. */
  readonly works: readonly Trace[];
  /** Unplaced bindings that the scheduler does not retry by itself; read only after capacity grew. */
  readonly overlooked: readonly Touch[];
  /** Works for which the deletion of a Cluster waits in vain; read only while it is being deleted. */
  readonly forsaken: readonly Touch[];
}

/** Result of the sync mode's own observation. */
export interface Looked {
  /** Whether it needs to know that the namespace for Works is there. */
  readonly usesWorksNamespace: boolean;
  /**
   * Works of a Cluster that somebody deletes, of which nobody lets go although nothing of them is in the member any more. Absent: there are
   * none.
   */
  readonly losesWorks?: (hub: Reader, inside: Reader, member: Member) => Promise<readonly Touch[]>;
}

/** Observes a member in Karmada, reading no more than is needed. */
export async function lookAtKarmada(
  hub: Reader,
  inside: Reader | undefined,
  member: Member,
  { usesWorksNamespace, losesWorks }: Looked,
): Promise<KarmadaSeen> {
  const { name, id, closed } = member;
  const cluster = (await hub.get(CLUSTERS, name)) as KarmadaCluster | undefined;
  const namespace = usesWorksNamespace ? await hub.get(NAMESPACES, worksNamespaceName(name)) : undefined;
  const others = cluster ? [] : ((await hub.list(CLUSTERS)) as KarmadaCluster[]);
  const leaves = closed === 'Leaving';
  const isEmptied = leaves || closed === 'Asleep';
  const grows = cluster !== undefined && isOurKarmadaCluster(member, cluster) && takesMore(member, cluster);
  const bindings = isEmptied || grows ? await bindingsOf(hub) : [];
  const isDeleted =
    cluster?.metadata.deletionTimestamp !== undefined && isOurKarmadaCluster(member, cluster) && !leaves;
  return {
    cluster,
    twin: others.find(({ spec }) => spec?.id === id)?.metadata.name,
    hasWorksNamespace: namespace !== undefined && namespace.metadata.deletionTimestamp === undefined,
    placed: isEmptied ? bindingsPlacedOn(bindings, name) : [],
    works: leaves ? await worksOf(hub, name) : [],
    overlooked: grows ? overlookedBindings(bindings, cluster) : [],
    forsaken: isDeleted && inside ? ((await losesWorks?.(hub, inside, member)) ?? []) : [],
  };
}

/** Values of PriorityClasses by name; empty where the hub denies the read: workloads then count as priority 0. */
export async function priorityClassesOf(hub: Reader): Promise<ReadonlyMap<string, number>> {
  try {
    const classes = (await hub.list(PRIORITYCLASSES)) as (KubeObject & { value?: number })[];
    return new Map(classes.map(({ metadata, value = 0 }) => [metadata.name, value]));
  } catch (error) {
    if (error instanceof KubeApiError && error.isForbidden) return new Map();
    throw error;
  }
}

export async function bindingsOf(hub: Reader): Promise<Bindings> {
  const kinds = [RESOURCEBINDINGS, CLUSTERRESOURCEBINDINGS];
  const lists = await Promise.all(kinds.map((resource) => hub.list(resource)));
  return lists.flatMap((items, at) =>
    items.map((binding) => ({ resource: kinds[at]!, binding: binding as BindingObject })),
  );
}

/**
 * Whether the Cluster is Coppice's: the namespace of a foreign Cluster of this name would otherwise be deleted as a
 * trace.
 */
export const isOurKarmadaCluster = (member: Member, cluster: KarmadaCluster | undefined): boolean =>
  cluster?.metadata.labels?.[LABELS.membership] !== undefined && cluster.spec?.id === member.id;

export const worksNamespaceName = (cluster: string): string => `karmada-es-${cluster}`;

/** Namespace of a cluster's Works. */
export const worksNamespace = ({ name }: Member): Trace => ({
  on: 'hub',
  resource: NAMESPACES,
  name: worksNamespaceName(name),
  labels: { 'karmada.io/system': 'true' },
});

const WORK_ID = 'work.karmada.io/permanent-id';

async function worksOf(hub: Reader, cluster: string): Promise<Trace[]> {
  const namespace = worksNamespaceName(cluster);
  const works = await hub.list(WORKS, { namespace });
  return works.map(({ metadata: { name, labels } }) => ({
    on: 'hub',
    resource: WORKS,
    namespace,
    name,
    labels: { [WORK_ID]: labels?.[WORK_ID] ?? '' },
  }));
}
