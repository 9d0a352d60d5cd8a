import { configurationProblem, notYetConfigured } from '../../api/errors.ts';
import { GROUP, LABELS } from '../../api/group.ts';
import type { KubeObject } from '../../api/meta.ts';
import type { Shoot } from '../../api/shoot.ts';
import type { SeedAccess } from '../../clusters/seed-access.ts';
import { NAMESPACES } from '../../kube/resources.ts';

/**
 * On the shoot's namespace in the seed: its garden, as UID of the garden's namespace kube-system. Gardens may share a
 * seed, and equal names would otherwise be taken for one cluster: the later garden would give its keys to the earlier
 * one's etcd, and delete it.
 */
export const GARDEN_ANNOTATION = `${GROUP}/garden`;
/** On the same namespace: UID of the Shoot. Identifies the owner even without labels. */
export const SHOOT_UID_ANNOTATION = `${GROUP}/shoot-uid`;

/** Foreign owner of a namespace. */
interface OtherOwner {
  /** A clause: `belongs to ...`. */
  readonly whose: string;
  /** Whether it is another garden: a permanent conflict. */
  readonly isGarden: boolean;
}

/**
 * The foreign owner of the namespace; undefined: it is this shoot's, or missing. Pure. The name proves nothing: people
 * make namespaces, and two long names may share a hash.
 */
export function otherOwnerIn(
  namespace: KubeObject | undefined,
  { metadata: { name, namespace: project, uid }, status }: Pick<Shoot, 'metadata' | 'status'>,
  garden: string,
): OtherOwner | undefined {
  if (!namespace) return undefined;
  const { annotations = {}, labels = {} } = namespace.metadata;
  const { [GARDEN_ANNOTATION]: theirs, [SHOOT_UID_ANNOTATION]: of } = annotations;
  if (theirs !== undefined && theirs !== garden)
    return { whose: `belongs to the garden ${theirs}: take another name here`, isGarden: true };
  const { [LABELS.shoot]: shoot, [LABELS.shootNamespace]: shootProject } = labels;
  if (shoot === name && shootProject === project) {
    // Older namespaces have no garden: then the status proves ownership.
    if (theirs === garden || status?.seedName !== undefined) return undefined;
  } else if (shoot !== undefined || shootProject !== undefined) {
    return { whose: `belongs to Shoot ${shootProject}/${shoot}: take another name`, isGarden: false };
  } else if (theirs === garden && of !== undefined && of === uid) {
    return undefined;
  }
  return {
    whose: 'was not made for this cluster: delete it if nobody needs it, or take another name',
    isGarden: false,
  };
}

/** The shoot's namespace from the cache, else from the server: the cache has labelled ones only. */
export async function namespaceIn(
  seed: Pick<SeedAccess, 'client' | 'namespaces'>,
  name: string,
  signal: AbortSignal,
): Promise<KubeObject | undefined> {
  return seed.namespaces.get(name) ?? (await seed.client.getOrUndefined(NAMESPACES, name, undefined, { signal }));
}

/** Error about a foreign namespace. */
export const notOurs = (seed: string, name: string, { whose, isGarden }: OtherOwner): Error =>
  (isGarden ? configurationProblem : notYetConfigured)(`namespace ${name} of seed ${seed} ${whose}`);
