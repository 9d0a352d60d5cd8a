import type { Demand } from '../../hubs/contract.ts';

/** What a hub has not told of for so long another one may tell of. */
const FORGOTTEN_MS = 60_000;

/**
 * Which hub told of a workload first. Several hubs of one API server may have the same Deployment or Job without a place: it is bought for
 * once. What is read there is written by tenants: one of another namespace, or of another API server, is never taken for the same.
 */
export class ToldByHubs {
  readonly #first = new Map<string, { readonly hub: string; seen: number }>();

  /** @param server UID of the hub's API server. @returns demands without those of workloads that another hub has told of */
  once(hub: string, server: string, demands: readonly Demand[], now: number): readonly Demand[] {
    for (const [key, { seen }] of this.#first) if (now - seen > FORGOTTEN_MS) this.#first.delete(key);
    return demands.filter(({ uid, namespace = '' }) => {
      if (!uid) return true;
      const key = `${server}/${namespace}/${uid}`;
      const first = this.#first.get(key) ?? { hub, seen: now };
      this.#first.set(key, first);
      if (first.hub !== hub) return false;
      first.seen = now;
      return true;
    });
  }
}
