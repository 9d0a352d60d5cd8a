import { z } from 'zod';
import { ANNOTATIONS } from '../api/group.ts';
import { EVERY_NAMESPACE, type HubSpec } from '../api/hub.ts';
import { labelSelectorSchema, matchesLabels } from '../api/label-selector.ts';
import { POD_PRIORITY } from '../api/schema.ts';
import { type KubeObject, keyOf, type Resource } from '../kube/resources.ts';
import { hubAmountsOf, othersOf } from './amounts.ts';
import type { Demand, PlacedSource } from './contract.ts';

const GROUP = 'multicluster.x-k8s.io';
export const PLACEMENTDECISIONS: Resource = {
  group: GROUP,
  version: 'v1alpha1',
  plural: 'placementdecisions',
  kind: 'PlacementDecision',
  namespaced: true,
};

/** Longest annotation of a scheduler that is read: it is read every few seconds. */
const LONGEST = 8192;
const MOST_WORDS = 300;

const toleration = z.object({
  key: z.string().max(317).optional(),
  operator: z.enum(['Exists', 'Equal']).optional(),
  value: z.string().max(63).optional(),
  effect: z.enum(['NoSchedule', 'PreferNoSchedule', 'NoExecute']).optional(),
});

/** A scheduler's annotation `unplaced` of a PlacementDecision. */
const unplaced = z.object({
  replicas: z.number().int().min(0).max(1_000_000),
  /** Priority of its pods, as in Kubernetes. */
  priority: z.number().int().min(POD_PRIORITY.least).max(POD_PRIORITY.most).optional(),
  requests: z.record(z.string().max(253), z.string().max(64)).default({}),
  clusterSelector: labelSelectorSchema('Labels of ClusterProfiles that it may go to.').optional(),
  /** As in a pod spec. Absent: nodes without taints. */
  nodes: z
    .object({
      nodeSelector: z.record(z.string().max(317), z.string().max(63)).optional(),
      tolerations: z.array(toleration).max(32).optional(),
    })
    .optional(),
});

/** Decisions that name this profile, as `namespace/name`. A decision of another namespace may name it too. Pure. */
export const decisionsFor = (decisions: readonly KubeObject[], namespace: string, name: string): string[] =>
  decisions
    .filter((one) => chosenBy(one).some((chosen) => chosen.name === name && chosen.namespace === namespace))
    .map(keyOf);

/** Profiles that a decision names. */
const chosenBy = ({ metadata, decisions }: KubeObject): { name: string; namespace: string | undefined }[] =>
  ((decisions ?? []) as { clusterProfileRef?: { name?: string; namespace?: string } }[]).flatMap(
    ({ clusterProfileRef: ref }) =>
      ref?.name ? [{ name: ref.name, namespace: ref.namespace || metadata.namespace }] : [],
  );

/**
 * Placements decided by schedulers. A decision with annotation `unplaced`, also of 0 replicas, is of a scheduler that
 * divides replicas. Without it each named profile may have a copy. Pure.
 */
export const placedIn = (decisions: readonly KubeObject[], spec: HubSpec): PlacedSource[] =>
  decisions.flatMap((one): PlacedSource[] => {
    const { namespace = '', annotations, deletionTimestamp } = one.metadata;
    if (deletionTimestamp || !isOfHub(namespace, spec)) return [];
    const profiles = spec.clusterProfile?.namespace;
    const members = chosenBy(one).filter((chosen) => chosen.namespace === (profiles ?? namespace));
    if (members.length === 0) return [];
    return [
      {
        source: `PlacementDecision ${keyOf(one)}`,
        members: members.map(({ name }) => name),
        ...(profiles === undefined && { memberNamespace: namespace }),
        ...(annotations?.[ANNOTATIONS.unplaced] !== undefined && { isDivided: true as const }),
      },
    ];
  });

/**
 * Unplaced workloads reported by schedulers. Only schedulers write PlacementDecisions, so a scheduler that moves
 * workloads reports them; objects of tenants, Deployments or pods, are not read. Only decisions in the namespace of the
 * hub's profiles count. An unreadable one demands nothing and reports why; the others still count. Pure.
 */
export const demandIn = (decisions: readonly KubeObject[], spec: HubSpec): Demand[] =>
  decisions.flatMap(({ metadata }): Demand[] => {
    const { namespace = '', name, uid, annotations, deletionTimestamp, creationTimestamp = '' } = metadata;
    const text = annotations?.[ANNOTATIONS.unplaced];
    if (text === undefined || deletionTimestamp || !isOfHub(namespace, spec)) return [];
    const said = read(text);
    // The decision does not say since when the workload waits.
    const source = `PlacementDecision ${namespace}/${name}`;
    const known = { source, ...(uid && { uid }), namespace, since: creationTimestamp };
    if (typeof said === 'string') {
      const problem = `annotation ${ANNOTATIONS.unplaced} cannot be read: ${said}`;
      return [{ ...known, count: 0, each: hubAmountsOf({}), problem }];
    }
    const { replicas, requests, clusterSelector, nodes, priority } = said;
    if (replicas === 0) return [];
    const others = othersOf(requests);
    return [
      {
        ...known,
        count: replicas,
        each: hubAmountsOf(requests),
        ...(Object.keys(others).length > 0 && { others }),
        ...(nodes && { nodes }),
        ...(priority !== undefined && { priority }),
        ...(clusterSelector && { accepts: ({ labels }) => matchesLabels(labels, clusterSelector) }),
      },
    ];
  });

function isOfHub(namespace: string, { clusterProfile, allowedNamespaces = [] }: HubSpec): boolean {
  if (clusterProfile?.namespace) return namespace === clusterProfile.namespace;
  return allowedNamespaces.includes(namespace) || allowedNamespaces.includes(EVERY_NAMESPACE);
}

/** The parsed annotation; a text: why it cannot be read. */
function read(text: string): z.output<typeof unplaced> | string {
  if (text.length > LONGEST) return `it is longer than ${LONGEST} characters`;
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    return 'it is no JSON';
  }
  const { data, error } = unplaced.safeParse(json);
  if (data) return data;
  const [issue] = error.issues;
  return [issue?.path.map(String).join('.'), issue?.message].filter(Boolean).join(': ').slice(0, MOST_WORDS);
}
