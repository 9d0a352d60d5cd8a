import { isDeepStrictEqual } from 'node:util';
import { LABELS } from '../../api/group.ts';
import type { NodeModel, PoolMemory } from '../../capacity/pool-memory.ts';
import type { Node } from '../../kube/resources.ts';
import { HOSTNAME } from '../fit/node.ts';
import { INTERRUPTION_TAINTS } from './interruption.ts';

export const INSTANCE_TYPE = 'node.kubernetes.io/instance-type';
export const ZONE = 'topology.kubernetes.io/zone';

/** Prefixes of taint keys that Cluster Autoscaler treats as startup taints. */
export const STARTUP_PREFIXES = ['startup-taint.', 'status-taint.', 'ignore-taint.'].map(
  (one) => `${one}cluster-autoscaler.kubernetes.io/`,
);

/** Taints of Kubernetes, of starting nodes and of interrupted machines: they describe one node at one moment. */
const PASSING = [
  'node.kubernetes.io/',
  'node.cloudprovider.kubernetes.io/',
  ...STARTUP_PREFIXES,
  ...INTERRUPTION_TAINTS,
];

/** Most stored labels of a machine type, by key: people choose the labels of their nodes. */
const MOST_LABELS = 64;

/** Properties that a pool gives to each node. */
interface PoolGives {
  readonly machineTypes: readonly string[];
  readonly labels: Readonly<Record<string, string>>;
  /** Keys of taints, including startup taints. */
  readonly taintKeys: readonly string[];
}

/**
 * Expected properties of the next node by machine type of a pool, beyond what the pool gives: what all nodes had when
 * first Ready. Later labels or taints describe one node, such as a repair. Pure.
 * @param before known so far; absent: nothing
 * @param nodes Ready nodes of the pool
 * @param isNew whether a node is Ready for the first time
 */
export function learnNodes(
  before: PoolMemory['types'],
  pool: PoolGives,
  nodes: readonly Node[],
  isNew: (node: Node) => boolean,
): PoolMemory['types'] {
  const types = Object.fromEntries(
    pool.machineTypes.flatMap((type): [string, NodeModel][] => {
      const ofType = nodes.filter(({ metadata }) => metadata.labels?.[INSTANCE_TYPE] === type);
      const model = learned(before?.[type], pool, ofType, isNew);
      return model ? [[type, model]] : [];
    }),
  );
  if (Object.keys(types).length === 0) return undefined;
  return isDeepStrictEqual(types, before) ? before : types;
}

function learned(
  before: NodeModel | undefined,
  pool: PoolGives,
  nodes: readonly Node[],
  isNew: (node: Node) => boolean,
): NodeModel | undefined {
  let model = before;
  for (const node of nodes.filter(isNew)) {
    const seen = modelOf(node, pool);
    model = model && !model.isGuess ? common(model, seen) : seen;
  }
  // These nodes became Ready unobserved: ignore their taints, which may be repairs, but try their labels once.
  model ??= nodes
    .map((node): NodeModel => ({ ...modelOf(node, pool), taints: [], isGuess: true }))
    .reduce<NodeModel | undefined>((all, one) => (all ? { ...common(all, one), isGuess: true } : one), undefined);
  if (!model) return undefined;
  // An agent removes its taint once it runs on the node.
  const taints = model.taints.filter(({ key }) =>
    nodes.every(({ spec }) => spec.taints?.some((taint) => taint.key === key) === true),
  );
  return taints.length === model.taints.length ? model : { ...model, taints };
}

/** Priority of labels to keep: those that pods usually select. Node feature discovery alone writes more than 64. */
const rankOf = (key: string): number =>
  key === LABELS.pool || /^(node\.|topology\.)?kubernetes\.io\//.test(key) ? 0 : 1;

function modelOf({ metadata, spec }: Node, pool: PoolGives): NodeModel {
  const labels = Object.entries(metadata.labels ?? {})
    .filter(([key]) => key !== HOSTNAME && key !== ZONE && pool.labels[key] === undefined)
    .sort(([a], [b]) => rankOf(a) - rankOf(b) || (a < b ? -1 : 1))
    .slice(0, MOST_LABELS);
  const taints = (spec.taints ?? [])
    .filter(({ key }) => !pool.taintKeys.includes(key) && !PASSING.some((prefix) => key.startsWith(prefix)))
    .map(({ key, value, effect }) => ({ key, ...(value !== undefined && { value }), effect }));
  return { labels: Object.fromEntries(labels), taints };
}

const common = (one: NodeModel, other: NodeModel): NodeModel => ({
  labels: Object.fromEntries(Object.entries(one.labels).filter(([key, value]) => other.labels[key] === value)),
  taints: one.taints.filter(({ key }) => other.taints.some((taint) => taint.key === key)),
});
