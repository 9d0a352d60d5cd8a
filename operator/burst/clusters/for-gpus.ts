import { nodeMisfit } from '../fit/filters/node.ts';
import { roomFor } from '../fit/filters/resources.ts';
import { asksForGPUs, hasGPUs } from '../fit/gpus.ts';
import type { NodeTemplate } from '../fit/model.ts';
import { nodeOf } from '../fit/node.ts';
import { isPlaceable } from './hub-filters.ts';
import type { ClustersView, HubMember, OfferedPool, WaitingWork } from './model.ts';

/** A pool without GPUs, with its name and template. */
interface Plain {
  readonly where: string;
  readonly member: HubMember;
  readonly node: ReturnType<typeof nodeOf>;
}

/**
 * The view in which GPU nodes are reserved for work with GPUs. Other work may use them only if no pool without GPUs,
 * full or not, that the policy may buy or grow would take it: GPU nodes cost a multiple. Same rule as poolWithoutGPUs
 * for nodes.
 */
export function withPoolsForGPUs(view: ClustersView): ClustersView {
  const { candidates, growth = [] } = view;
  const offers = candidates.flatMap(({ offer, steady }) => [offer, steady?.offer]).flatMap((one) => one ?? []);
  const templates = [...offers, ...growth].flatMap(({ pools }) =>
    (pools as readonly { template: NodeTemplate }[]).map(({ template }) => template),
  );
  if (!templates.some(hasGPUs)) return view;
  const plain = [
    ...candidates.flatMap(({ name, offer, problem }): Plain[] =>
      offer && problem === undefined ? plainOf(offer.pools, offer.member, `candidate ${name}`) : [],
    ),
    ...growth.flatMap(({ pools }) =>
      pools.flatMap((one) =>
        one.problem === undefined ? plainOf([{ ...one, name: one.pool, most: 1 }], one.member, one.cluster) : [],
      ),
    ),
  ];
  const keeperOf = (pool: string) => (work: WaitingWork) => {
    if (asksForGPUs(work.pod)) return undefined;
    const other = plain.find((one) => takes(one, work));
    return other && `pool ${pool} has GPUs, and is for work that asks for these: ${other.where} takes it`;
  };
  const kept = <Pool extends { template: NodeTemplate }>(pools: readonly Pool[], nameOf: (pool: Pool) => string) =>
    pools.map((pool) => (hasGPUs(pool.template) ? { ...pool, keepsFrom: keeperOf(nameOf(pool)) } : pool));
  const offered = <Offer extends { pools: readonly OfferedPool[] }>(offer: Offer | undefined) =>
    offer && { ...offer, pools: kept(offer.pools, ({ name }) => name) };
  return {
    ...view,
    candidates: candidates.map((one) => ({
      ...one,
      offer: offered(one.offer),
      ...(one.steady && { steady: { ...one.steady, offer: offered(one.steady.offer) } }),
    })),
    growth: growth.map((one) => ({ ...one, pools: kept(one.pools, ({ pool }) => pool) })),
  };
}

const plainOf = (
  pools: readonly Pick<OfferedPool, 'name' | 'template' | 'most'>[],
  member: HubMember,
  whose: string,
): Plain[] =>
  pools.flatMap(({ name, template, most }) =>
    most > 0 && !hasGPUs(template)
      ? [{ where: `pool ${name} of ${whose}`, member, node: nodeOf(template, `plain:${template.id}`) }]
      : [],
  );

const takes = ({ member, node }: Plain, work: WaitingWork): boolean =>
  isPlaceable(work, member) && nodeMisfit(work.pod, node) === undefined && roomFor(work.pod, node, []) > 0;

/** Note for GPU nodes that are bought for work without GPUs. Empty: none. */
export const gpusInVain = (work: readonly WaitingWork[], templates: readonly NodeTemplate[]): string =>
  templates.some(hasGPUs) && !work.some(({ pod }) => asksForGPUs(pod))
    ? ', and has GPUs, for which none of them asks: no pool without GPUs takes them'
    : '';
