import { configurationProblem } from '../operator/api/errors.ts';
import { LABELS } from '../operator/api/group.ts';
import type { KubeClient } from '../operator/kube/client.ts';
import { KubeApiError } from '../operator/kube/errors.ts';
import { type KubeTaint, NODES, type Node } from '../operator/kube/resources.ts';
import type { Pool, ProviderContext } from './contract.ts';

export const ZONE_LABEL = 'topology.kubernetes.io/zone';
const REGION_LABEL = 'topology.kubernetes.io/region';
const INSTANCE_TYPE_LABEL = 'node.kubernetes.io/instance-type';

/** Labels of every node of the pool except the zone; the provider's labels take precedence over the pool's. */
export function nodeLabels(ctx: Pick<ProviderContext, 'region'>, pool: Pool): Record<string, string> {
  return {
    ...pool.labels,
    [INSTANCE_TYPE_LABEL]: pool.machineType,
    [REGION_LABEL]: ctx.region,
    [LABELS.pool]: pool.name,
  };
}

/** Labels in Kubernetes' domains that a kubelet may set itself; others must be set from outside. */
const SELF_LABELS = /^((kubelet|node)\.kubernetes\.io\/|topology\.kubernetes\.io\/(zone|region)$)/;
const KUBERNETES_DOMAIN = /^([^/]*\.)?(kubernetes|k8s)\.io\//;

/** Labels that a kubelet may set itself, for its flag --node-labels. */
export function selfLabels(labels: Record<string, string>): string {
  return Object.entries(labels)
    .filter(([key]) => !KUBERNETES_DOMAIN.test(key) || SELF_LABELS.test(key))
    .map(([key, value]) => `${key}=${value}`)
    .sort()
    .join(',');
}

/** An environment file for shells. Throws a configuration problem for a value with a line break. */
export function environmentFile(variables: Record<string, string>): string {
  return Object.entries(variables)
    .map(([name, value]) => {
      if (/[\n\0]/.test(value)) throw configurationProblem(`${name} of a machine has a line break in it`);
      return `${name}='${value.replaceAll("'", "'\\''")}'\n`;
    })
    .join('');
}

/** Taints of a node at registration. */
export const registeredTaints = ({
  taints,
  startupTaints = [],
}: Pick<Pool, 'taints' | 'startupTaints'>): KubeTaint[] => [...taints, ...startupTaints];

/** Nodes of the pool, or of all pools. */
export async function nodesOf(shoot: KubeClient, pool?: string): Promise<Node[]> {
  const labelSelector = pool === undefined ? LABELS.pool : `${LABELS.pool}=${pool}`;
  return (await shoot.list<Node>(NODES, { labelSelector })).items;
}

/** Nodes with a pool label. */
export const ofPools = (nodes: readonly Node[]): Node[] =>
  nodes.filter(({ metadata }) => metadata.labels?.[LABELS.pool] !== undefined);

/** Labels and taints of a pool's nodes. */
export interface Marks {
  labels: Record<string, string>;
  taints: KubeTaint[];
}

const sameTaint = (a: KubeTaint, b: KubeTaint): boolean => a.key === b.key && a.effect === b.effect;
const equalTaint = (a: KubeTaint, b: KubeTaint): boolean => sameTaint(a, b) && (a.value ?? '') === (b.value ?? '');

/**
 * Merge patch that applies a pool's labels and taints to a node; undefined when nothing differs. Removes those of
 * `before` that `wanted` lacks; keeps all others (of kubelet, the node controller, people).
 */
export function marksPatch(node: Node, wanted: Marks, before: Marks): object | undefined {
  const labels: Record<string, string | null> = {};
  for (const [key, value] of Object.entries(wanted.labels)) {
    if (node.metadata.labels?.[key] !== value) labels[key] = value;
  }
  for (const key of Object.keys(before.labels)) {
    if (!(key in wanted.labels) && node.metadata.labels?.[key] !== undefined) labels[key] = null;
  }
  const live = node.spec.taints ?? [];
  const kept = live.filter((taint) => ![...wanted.taints, ...before.taints].some((ours) => sameTaint(ours, taint)));
  const taints = [...kept, ...wanted.taints];
  const same = taints.length === live.length && taints.every((taint) => live.some((other) => equalTaint(taint, other)));
  if (same && Object.keys(labels).length === 0) return undefined;
  // The list of taints is replaced as a whole: the resource version guards against concurrent changes.
  const { resourceVersion } = node.metadata;
  return { metadata: { resourceVersion, labels }, ...(!same && { spec: { taints } }) };
}

/** Applies the pool's labels and taints to these nodes; see marksPatch. */
export async function followPool(
  shoot: Pick<KubeClient, 'mergePatch' | 'getOrUndefined'>,
  nodes: readonly Node[],
  wanted: Marks,
  before: Marks,
): Promise<void> {
  for (const node of nodes) await follow(shoot, node, wanted, before, TRIES);
}

/** A new kubelet updates its Node every few hundred milliseconds. */
const TRIES = 5;

async function follow(
  shoot: Pick<KubeClient, 'mergePatch' | 'getOrUndefined'>,
  node: Node,
  wanted: Marks,
  before: Marks,
  tries: number,
): Promise<void> {
  const patch = marksPatch(node, wanted, before);
  if (!patch) return;
  const { name } = node.metadata;
  try {
    await shoot.mergePatch(NODES, name, undefined, patch);
  } catch (error) {
    if (!(error instanceof KubeApiError && error.isConflict) || tries <= 1) throw error;
    const newer = await shoot.getOrUndefined<Node>(NODES, name);
    if (newer) await follow(shoot, newer, wanted, before, tries - 1);
  }
}
