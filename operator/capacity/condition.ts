import { findCondition, rfc3339 } from '../api/conditions.ts';
import type { Condition } from '../api/meta.ts';
import type { Reason, SaidAs } from '../api/reasons.ts';
import type { PoolPart } from './allocation.ts';
import type { Try } from './offers.ts';

/** A pool after its division into parts. */
export interface DividedPool {
  readonly pool: string;
  readonly machineType: string;
  readonly parts: readonly PoolPart[];
  /** Nodes for which no offer is left. */
  readonly lacking: number;
}

const CODES = ['ERR_INFRA_RESOURCES_DEPLETED'];
const TYPE = 'CapacityAvailable';

/** Input of the capacity condition. */
interface CapacityView {
  readonly pools: readonly DividedPool[];
  readonly tries: readonly Try[];
  /** Profile and region of the cluster. */
  readonly place: { readonly profile: string; readonly region: string };
  /** Whether all requested nodes exist. */
  readonly isFull: boolean;
  /** The place that the cluster moves to, for messages. */
  readonly goingTo: string | undefined;
}

/**
 * The condition on depleted offers: which were tried, when they are tried again, and what is requested instead. Pure;
 * undefined: no capacity was ever lacking. `before` is the previous condition, kept where nothing is remembered after a
 * restart of the operator.
 */
export function capacityCondition(
  { pools, tries, place, isFull, goingTo }: CapacityView,
  before: SaidAs<'WorkerCluster', typeof TYPE> | undefined,
): SaidAs<'WorkerCluster', typeof TYPE> | undefined {
  const lacking = pools.filter((pool) => pool.lacking > 0);
  const instead = pools.flatMap(({ pool, parts }) =>
    parts.filter(({ name }) => name !== pool).map((part) => `${part.count} x ${machines(part)} for pool ${pool}`),
  );
  const isOpen = tries.some(({ over }) => !over);
  if (tries.length === 0) {
    const stands = instead.length > 0 || (before?.status === 'False' && !isFull) || before?.reason === 'OtherPlace';
    return stands ? before : undefined;
  }
  const history = tries.map(tried).join('; ');
  const said = (status: 'True' | 'False', reason: Reason<'WorkerCluster', typeof TYPE>, next: string) => ({
    type: TYPE as typeof TYPE,
    status,
    reason,
    message: `sold out: ${history}. ${next}`,
    codes: CODES,
  });
  if (goingTo !== undefined)
    return said('False', 'MovingElsewhere', `No offer is left here: Coppice creates the cluster in ${goingTo} instead`);
  if (lacking.length > 0) {
    const what = lacking
      .map(({ pool, lacking: nodes }) => `pool ${pool} lacks ${nodes} node${nodes === 1 ? '' : 's'}`)
      .join(', ');
    const other = 'Allow more in machineTypes, zones or fallback, or wait';
    return said('False', 'Depleted', `Nothing is left that the cluster may use: ${what}. ${other}`);
  }
  if (instead.length > 0) return said('True', 'Alternative', `Asked for instead: ${instead.join(', ')}`);
  const isHere = ({ profile, region }: Try) => profile === place.profile && region === place.region;
  if (!tries.every(isHere))
    return said('True', 'OtherPlace', `The cluster is in ${place.region} of ${place.profile} instead`);
  // The first choice was delivered after all, or the cluster moved to another place.
  return isOpen ? said('True', 'Retrying', 'Coppice asks for it again') : undefined;
}

/** Whether the cluster requests other machines, here or in another place, in place of a depleted offer. Pure. */
export function asksForOthers(conditions: readonly Condition[] | undefined): boolean {
  const { reason = '' } = findCondition(conditions, TYPE) ?? {};
  return ['Alternative', 'MovingElsewhere', 'OtherPlace'].includes(reason);
}

const machines = ({ machineType, zones }: Pick<PoolPart, 'machineType' | 'zones'>): string =>
  zones.length > 0 ? `${machineType} in ${zones.join(', ')}` : machineType;

/** One attempt, for messages. */
function tried({ machineType, zones, spot, region, profile, at, until }: Try): string {
  const where = zones.length > 0 ? zones.join(', ') : region;
  const again = `tried at ${rfc3339(new Date(at))}, not again before ${rfc3339(new Date(until))}`;
  return `${spot ? 'spot ' : ''}${machineType} in ${where} of ${profile} (${again})`;
}
