import { LABELS } from '../api/group.ts';
import type { KubeTaint, Node } from '../kube/resources.ts';

/** The used fields of a pool. */
interface StartingPool {
  readonly name: string;
  readonly startupTaints?: readonly KubeTaint[];
}

const ofNode = ({ metadata }: Node, pools: readonly StartingPool[]): readonly KubeTaint[] =>
  pools.find(({ name }) => [LABELS.pool, LABELS.alternativeOf].some((key) => name === metadata.labels?.[key]))
    ?.startupTaints ?? [];

const isAmong =
  (taints: readonly KubeTaint[]) =>
  ({ key, effect }: KubeTaint): boolean =>
    taints.some((one) => one.key === key && one.effect === effect);

/** The node without startup taints: a pod that waits for an agent needs no other node. Pure. */
export function withoutStartupTaints(node: Node, pools: readonly StartingPool[]): Node {
  const { taints } = node.spec;
  const starting = isAmong(ofNode(node, pools));
  if (!taints?.some(starting)) return node;
  return { ...node, spec: { ...node.spec, taints: taints.filter((taint) => !starting(taint)) } };
}

/** Clause about nodes that wait for agents; undefined: none. Pure. */
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
