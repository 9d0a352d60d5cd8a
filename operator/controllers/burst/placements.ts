import type { PlacedSource } from '../../hubs/contract.ts';
import type { Pod } from '../../kube/resources.ts';

/** Longest time from a hub's placement to the first pod: objects are copied, controllers run, images may be pulled. */
const PODS_WITHIN_MS = 15 * 60_000;
/** After a longer silence the hub may have placed the work again. */
const LONGEST_SILENCE_MS = 60_000;

/** A member, which some hubs identify by name and namespace. */
interface MemberName {
  readonly name: string;
  readonly namespace: string;
}

interface Placement {
  /** First observation, milliseconds since the epoch. */
  readonly since: number;
  readonly workload: PlacedSource['workload'];
  haveCome: boolean;
}

/**
 * Placements on members whose pods were not seen yet: such a member looks empty. In memory only, because a hub's own
 * times depend on its clock or are not reported.
 */
export class Placements {
  readonly #hubs = new Map<
    string,
    { readonly seen: number; readonly byMember: ReadonlyMap<string, Map<string, Placement>> }
  >();

  /**
   * Records a hub's present placements. A placement on every one of several members counts for none, because it would
   * keep every cluster that joins.
   * @param all names of all open members
   * @param watched names of interest
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

  /** Forgets a hub without policies. */
  forget(hub: string): void {
    this.#hubs.delete(hub);
  }

  /** Whether a member's pods are yet to come. @param work its present work pods; undefined: unknown */
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

/** Whether a pod belongs to a workload, directly or through objects made for it, whose names begin with its name. */
function isOf(workload: Placement['workload'], { metadata }: Pod): boolean {
  if (!workload) return true;
  const { namespace, name } = workload;
  const names = [metadata.name, ...(metadata.ownerReferences ?? []).map((owner) => owner.name)];
  return metadata.namespace === namespace && names.some((one) => one === name || one.startsWith(`${name}-`));
}
