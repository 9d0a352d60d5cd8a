import { isDeepStrictEqual } from 'node:util';
import { LABELS } from '../../api/group.ts';
import type { NodeModel, PoolMemory } from '../../capacity/pool-memory.ts';
import type { Node } from '../../kube/resources.ts';
import { HOSTNAME } from '../fit/node.ts';
import { INTERRUPTION_TAINTS } from './interruption.ts';

export const INSTANCE_TYPE = 'node.kubernetes.io/instance-type';
export const ZONE = 'topology.kubernetes.io/zone';

/** Beginnings of keys of taints that say themselves that a node loses them once it is up: as Cluster Autoscaler knows them. */
export const STARTUP_PREFIXES = ['startup-taint.', 'status-taint.', 'ignore-taint.'].map(
  (one) => `${one}cluster-autoscaler.kubernetes.io/`,
);

/** Taints of Kubernetes itself, those of nodes that start, and those of machines that a cloud takes away: they tell of one node and a moment. */
const PASSING = [
  'node.kubernetes.io/',
  'node.cloudprovider.kubernetes.io/',
  ...STARTUP_PREFIXES,
  ...INTERRUPTION_TAINTS,
];

/** Labels that are kept of a machine type, by key: people may label their nodes as they like, and this is stored. */
const MOST_LABELS = 64;

/** What a pool gives each of its nodes. */
export interface PoolGives {
  readonly machineTypes: readonly string[];
  readonly labels: Readonly<Record<string, string>>;
  /** Of taints, startup taints too: their keys. */
  readonly taintKeys: readonly string[];
}

/**
 * What is expected of the next node of each machine type of a pool, beside what the pool gives: what all nodes had when they were first
 * Ready. A label or a taint that came later tells of one node: people label a node to find it again, and taint one to repair it. Pure.
 * @param before what is known; absent: nothing
 * @param nodes of the pool that are Ready
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
  // Nobody saw these become Ready: a taint may be somebody's repair, and a label is worth one try.
  model ??= nodes
    .map((node): NodeModel => ({ ...modelOf(node, pool), taints: [], isGuess: true }))
    .reduce<NodeModel | undefined>((all, one) => (all ? { ...common(all, one), isGuess: true } : one), undefined);
  if (!model) return undefined;
  // An agent takes its taint away once it runs there.
  const taints = model.taints.filter(({ key }) =>
    nodes.every(({ spec }) => spec.taints?.some((taint) => taint.key === key) === true),
  );
  return { ...model, taints };
}

/** Where labels are too many those stay that pods mostly ask for: discovery of node features alone writes more than 64. */
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
