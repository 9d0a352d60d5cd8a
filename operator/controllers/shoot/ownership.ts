import { configurationProblem, notYetConfigured } from '../../api/errors.ts';
import { GROUP, LABELS } from '../../api/group.ts';
import type { KubeObject } from '../../api/meta.ts';
import type { Shoot } from '../../api/shoot.ts';
import type { SeedAccess } from '../../clusters/seed-access.ts';
import { NAMESPACES } from '../../kube/resources.ts';

/**
 * On the shoot's namespace in the seed: the garden that it belongs to, by the UID of that garden's namespace kube-system. Two
 * gardens may share a seed, and equal names of theirs would otherwise be taken for one cluster: the later garden would give
 * its own keys to the earlier one's etcd, and its deletion would take that away.
 */
export const GARDEN_ANNOTATION = `${GROUP}/garden`;
/** On the same namespace: UID of the Shoot. It tells whose it is though somebody took its labels off. */
export const SHOOT_UID_ANNOTATION = `${GROUP}/shoot-uid`;

/** Whom a namespace belongs to that is not this shoot's. */
interface OtherOwner {
  /** A clause: `belongs to ...`. */
  readonly whose: string;
  /** Whether it is another garden's: that does not change by itself. */
  readonly isGarden: boolean;
}

/**
 * Whom the namespace belongs to, if that is somebody else; undefined: it is this shoot's, or there is none. Pure. That it has the shoot's
 * name says nothing: people make namespaces too, and two long names may have the same hash.
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
    // From before gardens were written on them: then the status says that we were here.
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

/** The shoot's namespace as the cache has it, else as the server has it: the cache has only what is labelled. */
export async function namespaceIn(
  seed: Pick<SeedAccess, 'client' | 'namespaces'>,
  name: string,
  signal: AbortSignal,
): Promise<KubeObject | undefined> {
  return seed.namespaces.get(name) ?? (await seed.client.getOrUndefined(NAMESPACES, name, undefined, { signal }));
}

/** What is said of a namespace that is somebody else's. */
export const notOurs = (seed: string, name: string, { whose, isGarden }: OtherOwner): Error =>
  (isGarden ? configurationProblem : notYetConfigured)(`namespace ${name} of seed ${seed} ${whose}`);
