import { LABELS } from '../api/group.ts';
import type { Node, Taint } from '../kube/resources.ts';

/** What of a pool is read here. */
interface StartingPool {
  readonly name: string;
  readonly startupTaints?: readonly Taint[];
}

const ofNode = ({ metadata }: Node, pools: readonly StartingPool[]): readonly Taint[] =>
  pools.find(({ name }) => [LABELS.pool, LABELS.alternativeOf].some((key) => name === metadata.labels?.[key]))
    ?.startupTaints ?? [];

const isAmong =
  (taints: readonly Taint[]) =>
  ({ key, effect }: Taint): boolean =>
    taints.some((one) => one.key === key && one.effect === effect);

/** The node as it is once its agents are ready: a pod that waits for that needs no other node. Pure. */
export function withoutStartupTaints(node: Node, pools: readonly StartingPool[]): Node {
  const { taints } = node.spec;
  const starting = isAmong(ofNode(node, pools));
  if (!taints?.some(starting)) return node;
  return { ...node, spec: { ...node.spec, taints: taints.filter((taint) => !starting(taint)) } };
}

/** A clause for people about nodes that wait for an agent; undefined: none does. Pure. */
export function startupTaintsLine(nodes: readonly Node[], pools: readonly StartingPool[]): string | undefined {
  if (!pools.some(({ startupTaints }) => startupTaints?.length)) return undefined;
  const waiting = nodes.flatMap((node) => {
    const taint = node.spec.taints?.find(isAmong(ofNode(node, pools)));
    return taint ? [taint.key] : [];
  });
  if (waiting.length === 0) return undefined;
  const keys = [...new Set(waiting)].sort();
  const who = waiting.length === 1 ? '1 node waits' : `${waiting.length} nodes wait`;
  return `${who} until an agent takes away startup taint ${keys.join(', ')}`;
}
