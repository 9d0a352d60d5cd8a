import type { PlacedSource } from '../../hubs/contract.ts';
import type { Pod } from '../../kube/resources.ts';

/** From a decision of a hub to the first pod: objects are copied to the member and their controllers run, images may be pulled by agents. */
const PODS_WITHIN_MS = 15 * 60_000;
/** A hub that did not answer for longer may have placed it anew meanwhile. */
const LONGEST_SILENCE_MS = 60_000;

/** A member by its name, which some hubs have unique only within a namespace. */
interface MemberName {
  readonly name: string;
  readonly namespace: string;
}

interface Placement {
  /** When it was first seen, milliseconds since the epoch. */
  readonly since: number;
  readonly workload: PlacedSource['workload'];
  haveCome: boolean;
}

/**
 * Work that a hub has placed on a member, and whose pods were not seen there yet. Such a member looks empty. Remembered only as long as this process
 * lives: a hub's own time of it is its clock's, or is not told.
 */
export class Placements {
  readonly #hubs = new Map<
    string,
    { readonly seen: number; readonly byMember: ReadonlyMap<string, Map<string, Placement>> }
  >();

  /**
   * What a hub has placed now. A placement that names every member places nothing on any of them: whoever has it would else keep each cluster that
   * joins. Where there is one member, that one is chosen.
   * @param all names of all members that take work
   * @param watched those that are asked about
   */
  note(
    hub: string,
    placed: readonly PlacedSource[],
    all: readonly string[],
    watched: readonly string[],
    now: number,
  ): void {
    const known = this.#hubs.get(hub);
    const before = known && now - known.seen <= LONGEST_SILENCE_MS ? known.byMember : undefined;
    const names = new Set(watched);
    const byMember = new Map<string, Map<string, Placement>>();
    for (const one of placed) {
      const { source, memberNamespace, workload } = one;
      const members = one.members.filter((name) => names.has(name));
      if (members.length === 0 || namesEveryMember(one, all)) continue;
      for (const name of members) {
        const key = keyOf(name, memberNamespace);
        const its = byMember.get(key) ?? new Map<string, Placement>();
        byMember.set(key, its);
        its.set(source, before?.get(key)?.get(source) ?? { since: now, workload, haveCome: false });
      }
    }
    this.#hubs.set(hub, { seen: now, byMember });
  }

  /** Nobody asks this hub any more. */
  forget(hub: string): void {
    this.#hubs.delete(hub);
  }

  /** Whether pods are still to come to a member. @param work pods of work that are there now; undefined: nobody can tell */
  areAwaited(
    hub: string,
    { name, namespace }: MemberName,
    work: () => readonly Pod[] | undefined,
    now: number,
  ): boolean {
    const { byMember } = this.#hubs.get(hub) ?? {};
    const placements = [keyOf(name), keyOf(name, namespace)].flatMap((key) => [
      ...(byMember?.get(key)?.values() ?? []),
    ]);
    const open = placements.filter(({ haveCome, since }) => !haveCome && since + PODS_WITHIN_MS > now);
    if (open.length === 0) return false;
    const pods = work() ?? [];
    for (const one of open) one.haveCome = pods.some((pod) => isOf(one.workload, pod));
    return open.some(({ haveCome }) => !haveCome);
  }
}

const keyOf = (name: string, namespace = ''): string => `${namespace}/${name}`;

function namesEveryMember({ members, isDivided }: PlacedSource, all: readonly string[]): boolean {
  if (isDivided || all.length < 2 || members.length < all.length) return false;
  const named = new Set(members);
  return all.every((name) => named.has(name));
}

/** Whether a pod is of a workload, or of what that has made: whoever makes objects for another one begins their names with its name. */
function isOf(workload: Placement['workload'], { metadata }: Pod): boolean {
  if (!workload) return true;
  const { namespace, name } = workload;
  const names = [metadata.name, ...(metadata.ownerReferences ?? []).map((owner) => owner.name)];
  return metadata.namespace === namespace && names.some((one) => one === name || one.startsWith(`${name}-`));
}
