import type { HubSpec } from '../../api/hub.ts';
import type { Asking, Demand, HubType, PlacedSource, Reader } from '../../hubs/contract.ts';
import type { KubeObject } from '../../kube/resources.ts';

/** A hub's report in one cycle. */
export interface HubSays {
  /** Work without a place. undefined: its type does not report that. */
  readonly demands: readonly Demand[] | undefined;
  /** Placements. Absent: not reported. */
  readonly placed?: readonly PlacedSource[] | undefined;
  /** Questions about held work. Absent: none, or not answered. */
  readonly asking?: Asking | undefined;
}

/**
 * Reads a hub's unplaced work and questions from objects that are listed once: a large hub has thousands, and one
 * decision should see one moment. Throws as Reader does.
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
