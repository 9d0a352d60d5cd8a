import { findCondition } from '../../api/conditions.ts';
import { type DesiredPool, isSizedByCloud } from '../../api/pools.ts';
import type { WorkerCluster } from '../../api/workercluster.ts';
import { type DecidedSize, type Holds, isCoppices, presentSize } from '../../capacity/desired-sizes.ts';
import { AUTOSCALED } from '../autoscaling/condition.ts';
import { conditionBefore, type Said, say } from '../conditions.ts';
import { lastAsked } from './capacity.ts';
import type { ModeRequest, Resolved, SizedView } from './view.ts';

const TYPE = 'SizeDecided';

/** Pools that Coppice's autoscaler may size. */
const decidablePools = (sizes: readonly DesiredPool[]): DesiredPool[] =>
  sizes.filter((pool) => isCoppices(pool) && pool.maximum > pool.minimum);

/** Whether both the decision and the pools' sizes are unknown: requesting anything could revert a decision. */
export const mayTakeBack = (view: SizedView): boolean =>
  view.decided === 'unknown' && decidablePools(view.sizes).length > 0 && lastAsked(view) === undefined;

/** Condition about sizes: who decides, and what limits them; undefined: people and clouds only. Pure. */
export function sizeCondition(
  view: SizedView,
  resolved: Resolved,
  asked: ModeRequest,
): Said<'WorkerCluster'> | undefined {
  const { decided = 'none', sizes, cluster } = view;
  const isFloor = cluster.spec.dataPlaneNodes !== undefined;
  const pools = sizes.filter((pool) => isCoppices(pool) && (isFloor || pool.sizedBy !== 'minimum'));
  if (decided === 'unknown') {
    const names = decidablePools(sizes).map(({ name }) => name);
    if (names.length === 0) return undefined;
    const message = `the stored sizes of pools ${names.join(', ')} cannot be read: each keeps the nodes that it has. Restore the receipt in the operator's namespace, or delete it`;
    return say(TYPE, 'Unknown', 'ReceiptUnreadable', message);
  }
  const clouds = sizes.filter(({ autoscale }) => autoscale === 'Cloud');
  if (pools.length + clouds.length === 0) return undefined;
  const holds = holdsOf(view, resolved, asked);
  const words = [
    ...pools.map((pool) => sizeOf(pool, decided, holds)),
    ...clouds.map((pool) =>
      isSizedByCloud(pool)
        ? `pool ${pool.name}: the cloud's autoscaler decides, from ${pool.minimum} to ${pool.maximum} nodes; Coppice stays out`
        : `pool ${pool.name}: ${pool.count} nodes; the cloud's autoscaler does not decide while spec.dataPlaneNodes is set`,
    ),
  ];
  const floor = isFloor && pools.length > 0 ? floorOf(cluster) : [];
  const isRaised = pools.some(({ sizedBy }) => sizedBy === 'floor');
  return say(TYPE, true, isRaised ? 'Floor' : 'Decided', [...words, ...floor].join('. '));
}

/** The autoscaler's condition; after a restart the last one until it has run. Pure. */
export const keptAutoscaledCondition = ({
  sizes,
  autoscaled,
  cluster,
}: SizedView): Said<'WorkerCluster'> | undefined =>
  sizes.some(isCoppices)
    ? (autoscaled ?? conditionBefore('WorkerCluster', cluster.status?.conditions, AUTOSCALED))
    : undefined;

function holdsOf(view: SizedView, { divided }: Resolved, { overQuota }: ModeRequest): Holds {
  const last = overQuota ? lastAsked(view) : undefined;
  return {
    asleep: view.asleep,
    refused: overQuota ? (pool) => last?.get(pool) : undefined,
    lacking: (pool) => divided.find((known) => known.pool === pool)?.lacking ?? 0,
    rolling: findCondition(view.shoot?.status?.conditions, 'Rolling')?.status === 'True',
  };
}

function sizeOf(pool: DesiredPool, decided: ReadonlyMap<string, DecidedSize> | 'none', holds: Holds): string {
  const { present, heldBy } = presentSize(pool, holds);
  const known = decided === 'none' ? undefined : decided.get(pool.name);
  const why =
    pool.sizedBy === 'floor'
      ? 'raised to the floor'
      : known
        ? `decided by ${known.by} (${known.why})`
        : 'its minimum, since nothing was decided';
  const held = heldBy.length > 0 ? `; ${present} at present, held by ${heldBy.join(', ')}` : '';
  return `pool ${pool.name}: ${pool.count} nodes, ${why}${held}`;
}

const floorOf = ({ spec, statedBy, metadata }: WorkerCluster): string[] => [
  `spec.dataPlaneNodes: ${spec.dataPlaneNodes} is the floor of all pools together, written by ${statedBy ?? 'somebody'}`,
  `To remove that floor: kubectl patch wc ${metadata.name} -n ${metadata.namespace} --type=merge -p '{"spec":{"dataPlaneNodes":null}}'`,
];
