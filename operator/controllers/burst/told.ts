import type { Demand } from '../../hubs/contract.ts';

/** After this time without a report, another hub may report the workload. */
const FORGOTTEN_MS = 60_000;

/**
 * Which hub reported a workload first: several hubs of one API server may report the same Deployment or Job, which is
 * bought for once. Tenants write these objects: equal names in other namespaces or API servers are different workloads.
 */
export class ToldByHubs {
  readonly #first = new Map<string, { readonly hub: string; seen: number }>();

  /** @param server UID of the hub's API server. @returns demands without those reported by another hub */
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
