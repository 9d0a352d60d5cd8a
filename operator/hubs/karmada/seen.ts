import { LABELS } from '../../api/group.ts';
import { KubeApiError } from '../../kube/errors.ts';
import { type KubeObject, NAMESPACES, type Resource } from '../../kube/resources.ts';
import type { Member, Reader, Touch, Trace } from '../contract.ts';
import { type BindingObject, type Bindings, overlooked, type Placed, placedOn } from './bindings.ts';
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

/** What one look at Karmada brings. */
export interface Seen {
  readonly cluster: KarmadaCluster | undefined;
  /** Name of another Cluster of the hub that is the same cluster. */
  readonly twin: string | undefined;
  /** Whether the namespace for the Works of the cluster is there, where that is asked. */
  readonly hasWorksNamespace: boolean;
  /** Read only when it leaves or is to sleep. */
  readonly placed: readonly Placed[];
  /** What Karmada wants in the member; read only when it leaves. */
  readonly works: readonly Trace[];
  /** Bindings without room that its scheduler does not look at again by itself; read only when there is more room than before. */
  readonly overlooked: readonly Touch[];
  /** Works that a Cluster which somebody deletes waits for in vain; read only of such a one. */
  readonly forsaken: readonly Touch[];
}

/** What the way in which a member is reached has read. */
export interface Looked {
  /** Whether it needs to know that the namespace for Works is there. */
  readonly usesWorksNamespace: boolean;
  /**
   * Works of a Cluster that somebody deletes, of which nobody lets go although nothing of them is in the member any more. Absent: there are
   * none.
   */
  readonly losesWorks?: (hub: Reader, inside: Reader, member: Member) => Promise<readonly Touch[]>;
}

/** Reads what Karmada has of the member, and no more than is needed now. */
export async function look(
  hub: Reader,
  inside: Reader | undefined,
  member: Member,
  { usesWorksNamespace, losesWorks }: Looked,
): Promise<Seen> {
  const { name, id, closed } = member;
  const cluster = (await hub.get(CLUSTERS, name)) as KarmadaCluster | undefined;
  const namespace = usesWorksNamespace ? await hub.get(NAMESPACES, worksNamespaceName(name)) : undefined;
  const others = cluster ? [] : ((await hub.list(CLUSTERS)) as KarmadaCluster[]);
  const leaves = closed === 'Leaving';
  const isEmptied = leaves || closed === 'Asleep';
  const grows = cluster !== undefined && isOurs(member, cluster) && takesMore(member, cluster);
  const bindings = isEmptied || grows ? await bindingsOf(hub) : [];
  const isDeleted = cluster?.metadata.deletionTimestamp !== undefined && isOurs(member, cluster) && !leaves;
  return {
    cluster,
    twin: others.find(({ spec }) => spec?.id === id)?.metadata.name,
    hasWorksNamespace: namespace !== undefined && namespace.metadata.deletionTimestamp === undefined,
    placed: isEmptied ? placedOn(bindings, name) : [],
    works: leaves ? await worksOf(hub, name) : [],
    overlooked: grows ? overlooked(bindings, cluster) : [],
    forsaken: isDeleted && inside ? ((await losesWorks?.(hub, inside, member)) ?? []) : [],
  };
}

/** Every binding of a hub, with its kind. */
/** Values of PriorityClasses by name; none where the hub does not let them be read, as work then counts as 0, and not as an error. */
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

/** Its namespace would be taken for a trace of ours, where somebody else has a Cluster of this name. */
export const isOurs = (member: Member, cluster: KarmadaCluster | undefined): boolean =>
  cluster?.metadata.labels?.[LABELS.membership] !== undefined && cluster.spec?.id === member.id;

export const worksNamespaceName = (cluster: string): string => `karmada-es-${cluster}`;

/** Where Karmada keeps the Works of a cluster. */
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
