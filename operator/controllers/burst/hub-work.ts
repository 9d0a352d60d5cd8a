import type { WaitingWork } from '../../burst/clusters/model.ts';
import { inTurn } from '../../burst/clusters/sources.ts';
import { fitPod } from '../../burst/fit/pod.ts';
import { quantitiesOf } from '../../hubs/amounts.ts';
import type { Demand, HubAmounts } from '../../hubs/contract.ts';
import type { Pod } from '../../kube/resources.ts';
import type { WaitingSince } from './memory.ts';

/** Most demands of a hub per cycle. */
export const MOST_DEMANDS = 5_000;

/** Work of a hub with its sort keys. */
export type HubWork = WaitingWork & {
  readonly namespace: string | undefined;
  readonly asked: HubAmounts;
  /** Since when the hub reports the work unchanged, milliseconds since the epoch. */
  readonly unchangedSince: number;
};

/** A hub's unplaced work for the planner. */
export function hubWorkOf(
  demands: readonly Demand[],
  waits: ReadonlyMap<string, WaitingSince>,
  now: number,
): HubWork[] {
  const known = demands.filter(({ problem }) => problem === undefined);
  return lookedAt(known, waits).flatMap((demand) => {
    const { source, namespace, count, each, others, accepts, customKind, inOneCluster, isHeld, priority } = demand;
    if (!Number.isSafeInteger(count) || count <= 0) return [];
    const { since = now, unchangedSince = now } = waits.get(source) ?? {};
    return [
      {
        source: source.slice(0, 512),
        namespace,
        asked: each,
        count,
        pod: fitPod(podOf(demand)),
        each: wordsOf(each, others),
        since,
        unchangedSince,
        ...(priority !== undefined && { priority }),
        ...(inOneCluster && { inOneCluster }),
        ...(isHeld && { isHeld }),
        ...(accepts && { accepts }),
        ...(customKind && { customKind }),
      },
    ];
  });
}

/** Whole sources, longest waiting first, in turns of namespaces. */
function lookedAt(demands: readonly Demand[], waits: ReadonlyMap<string, WaitingSince>): readonly Demand[] {
  if (demands.length <= MOST_DEMANDS) return demands;
  const since = ([first]: readonly Demand[]) => waits.get(first!.source)?.since ?? Number.MAX_SAFE_INTEGER;
  const sources = [...Map.groupBy(demands, ({ source }) => source).values()].sort((a, b) => since(a) - since(b));
  const found: Demand[] = [];
  for (const parts of inTurn(sources)) if (found.length + parts.length <= MOST_DEMANDS) found.push(...parts);
  return found;
}

const podOf = ({ namespace = 'default', template, ...demand }: Demand): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: template
    ? { name: 'replica', namespace, labels: template.labels }
    : { name: 'replica', namespace: 'default' },
  spec: template?.spec ?? barePod(demand),
});

/** Pod spec for hubs that report only requests and node constraints. */
const barePod = ({ each, others, nodes }: Pick<Demand, 'each' | 'others' | 'nodes'>): Pod['spec'] => ({
  ...nodes,
  containers: [{ name: 'work', resources: { requests: { ...others, ...quantitiesOf(each) } } }],
});

/** Requests of a replica, as text. */
export const wordsOf = ({ cpu, memory, gpu }: HubAmounts, others: Demand['others'] = {}): string =>
  [
    cpu && `${cpu} CPU`,
    memory && `${memory} memory`,
    gpu && gpu !== '0' && `${gpu} GPU`,
    ...Object.entries(others).flatMap(([name, amount]) => (amount === '0' ? [] : [`${amount} ${name}`])),
  ]
    .filter(Boolean)
    .join(', ')
    .slice(0, 256) || 'nothing asked for';
