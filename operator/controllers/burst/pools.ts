import { hasAccount } from '../../accounts/has-account.ts';
import type { WorkerCluster } from '../../api/workercluster.ts';
import { EXPECTED_SYSTEM_POD, withRoomFor } from '../../burst/clusters/offer.ts';
import { isComing, type NodesPurchase } from '../../burst/clusters/purchases.ts';
import { withoutDaemons } from '../../burst/fit/daemons.ts';
import { isLate } from '../../burst/nodes/grow.ts';
import type { PoolView } from '../../burst/nodes/model.ts';
import { type Decided, type DecidedSize, desiredSizes, isCoppices } from '../../capacity/desired-sizes.ts';
import { conditionIsTrue, keyOf } from '../../kube/resources.ts';
import { byPool, daemonsOf, isThere } from '../autoscaling/nodes-seen.ts';
import { isOpenToDecisions } from '../autoscaling/observe.ts';
import { offerOf, poolMachinesOf } from '../autoscaling/offers.ts';
import { whereItIs } from '../where-it-is.ts';
import type { BurstSightDependencies } from './dependencies.ts';
import { isManaged } from './managed-mode.ts';
import type { PoolSeen } from './seen.ts';

/** Pools of a cluster that Coppice sizes; undefined: unknown, or not open to decisions. */
export function poolsSeen(
  deps: BurstSightDependencies,
  written: WorkerCluster,
  growths: readonly NodesPurchase[],
  now: number,
): PoolSeen[] | undefined {
  const there = whereItIs(written, deps.profiles);
  const open = deps.openClusters.get(keyOf(written));
  if (!there || !open || !isOpenToDecisions(written)) return undefined;
  const { profile } = there;
  const coming = growths.filter((one) => one.uid === written.metadata.uid && isComing(one, now));
  const cluster = withRoomFor(there.cluster, coming);
  const decided = deps.decided(cluster);
  if (decided === 'unknown') return undefined;
  const nodes = byPool(open.nodes.list());
  const daemons = daemonsOf(open.pods.list());
  const shoot = deps.shoots.get(keyOf(cluster));
  const provider = deps.provider(profile, hasAccount(cluster, shoot));
  const offers = {
    cluster,
    profile,
    ...poolMachinesOf({ provider, isManaged: isManaged(deps, cluster) }),
    capacity: deps.capacity.known(cluster.metadata),
    now: new Date(now),
  };
  return desiredSizes({ cluster, profile, decided: withGrowths(decided, coming) })
    .filter(isCoppices)
    .map((pool): PoolSeen => {
      const there = (nodes.get(pool.name) ?? []).filter(isThere);
      const ready = there.filter((node) => conditionIsTrue(node, 'Ready'));
      const stored = decided === 'none' ? undefined : decided.get(pool.name);
      const { offer, soldOut } = offerOf(offers, pool, ready, new Map(), stored?.memory?.types);
      const ordered = coming.filter((one) => one.pool === pool.name).map(({ at }) => Date.parse(at));
      const noted = stored?.at;
      const decidedAt = Math.max(...ordered, ...(noted === undefined ? [] : [Date.parse(noted)]));
      const at = Number.isFinite(decidedAt) ? decidedAt : undefined;
      const { name, count, minimum, maximum } = pool;
      const view: PoolView = {
        name,
        count,
        minimum,
        maximum,
        present: there.length,
        ...(at !== undefined && { decidedAt: at }),
        ...(offer && { offer }),
      };
      return {
        pool,
        ready: ready.length,
        present: there.length,
        count,
        decidedAt: at,
        template: offer && {
          ...offer.template,
          allocatable: withoutDaemons(
            offer.template,
            offer.template.allocatable,
            // Like a cluster for sale: an empty cluster shows no DaemonSets, and nodes that are too small would be bought.
            daemons.length === 0 && ready.length === 0 ? [EXPECTED_SYSTEM_POD] : daemons,
          ),
        },
        soldOut,
        isLast: offer?.isLast === true,
        removesNodes: provider?.managed?.removeNodes !== undefined,
        isLate: isLate(view, now),
      };
    });
}

/** Stored sizes with recorded growth that is not stored yet. */
function withGrowths(decided: Exclude<Decided, 'unknown'>, growths: readonly NodesPurchase[]): Decided {
  if (growths.length === 0) return decided;
  const sizes = new Map<string, DecidedSize>(decided === 'none' ? [] : decided);
  for (const { pool, to } of growths) {
    const known = sizes.get(pool);
    if ((known?.count ?? 0) < to) sizes.set(pool, { by: '', why: '', ...known, count: to });
  }
  return sizes;
}
