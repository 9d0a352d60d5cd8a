import type { HubSpec } from '../../api/hub.ts';
import type { Asking, Demand, HubType, PlacedSource, Reader } from '../../hubs/contract.ts';
import type { KubeObject } from '../../kube/resources.ts';

/** A hub's report in one cycle. */
export interface HubSays {
  /** Work without a place. undefined: its type does not report that. */
  readonly demands: readonly Demand[] | undefined;
  /** Placements. Absent: not reported. */
  readonly placed?: readonly PlacedSource[] | undefined;
  /** What it asks about work that it holds. Absent: nothing there asks, or nobody would answer. */
  readonly asking?: Asking | undefined;
}

/**
 * What a hub has no place for, and what it asks, of objects that are read once for both: a large hub has thousands of them, and what is told of
 * one moment is decided for all of it. Throws as Reader does.
 */
export async function hearHub(
  type: Pick<HubType, 'demand' | 'placed'> & { readonly asks?: HubType['asks'] | undefined },
  hub: Reader,
  spec: HubSpec,
  name: string,
): Promise<HubSays> {
  const reader = listingOnce(hub);
  const demands = await type.demand?.(reader, spec, name);
  const placed = await type.placed?.(reader, spec);
  return { demands, placed, asking: await type.asks?.(reader, spec, name) };
}

/** A reader that lists each kind once. */
function listingOnce(hub: Reader): Reader {
  const lists = new Map<string, Promise<KubeObject[]>>();
  return {
    ...hub,
    list(resource, options = {}) {
      const { group, plural } = resource;
      const key = JSON.stringify([group, plural, options]);
      const known = lists.get(key) ?? hub.list(resource, options);
      lists.set(key, known);
      return known;
    },
  };
}
