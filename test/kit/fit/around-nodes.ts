import type { Draw } from '../draw.ts';
import type { CaseNode, CasePod } from './case.ts';
import { type Drawn, taintsOf, tolerationOf } from './on-one-node.ts';

const ZONE = 'topology.kubernetes.io/zone';
const RACK = 'rack';
const HOSTNAME = 'kubernetes.io/hostname';
const APPS = ['web', 'db'];

/** Nodes in few zones and racks; some lack a key. */
function nodes({ many, integer, pick, chance }: Draw): CaseNode[] {
  return many(integer(2, 5), () => ({
    labels: {
      ...(chance(0.9) && { [ZONE]: pick(['a', 'b', 'c']) }),
      ...(chance(0.6) && { [RACK]: pick(['1', '2']) }),
    },
  }));
}

const labelsOf = ({ pick, chance }: Draw) => ({
  app: pick(['web', 'web', 'db']),
  ...(chance(0.4) && { version: pick(['1', '2']) }),
});

function selector({ pick, chance }: Draw): object | undefined {
  if (chance(0.04)) return undefined;
  if (chance(0.06)) return {};
  if (chance(0.7)) return { matchLabels: { app: pick(['web', 'web', 'db']) } };
  return pick([
    { matchExpressions: [{ key: 'app', operator: 'In', values: APPS }] },
    { matchExpressions: [{ key: 'app', operator: 'NotIn', values: [pick(APPS)] }] },
    { matchExpressions: [{ key: 'version', operator: pick(['Exists', 'DoesNotExist']) }] },
    { matchLabels: { app: pick(APPS), version: '1' } },
  ]);
}

function term(choose: Draw): object {
  const { pick, chance } = choose;
  const labelSelector = selector(choose);
  return {
    topologyKey: pick([ZONE, ZONE, HOSTNAME, RACK]),
    ...(labelSelector && { labelSelector }),
    ...(chance(0.25) && { namespaces: pick([['team-a'], ['team-b'], ['team-a', 'team-b']]) }),
    ...(chance(0.25) && {
      namespaceSelector: pick([
        {},
        { matchLabels: { env: 'prod' } },
        { matchLabels: { team: 'c' } },
        { matchExpressions: [{ key: 'env', operator: 'DoesNotExist' }] },
      ]),
    }),
    ...(labelSelector && chance(0.12) && { [pick(['matchLabelKeys', 'mismatchLabelKeys'])]: ['version'] }),
  };
}

const hard = (terms: object[]) => ({ requiredDuringSchedulingIgnoredDuringExecution: terms });

/** Pods that are there, most of them plain. */
function others(choose: Draw, count: number, kinds: number, spec: () => object | undefined): CasePod[] {
  const { many, integer, pick, chance } = choose;
  return many(integer(1, kinds), () => {
    const own = spec();
    return {
      on: chance(0.2) ? 'n0' : `n${integer(0, count - 1)}`,
      ...(chance(0.25) && { namespace: pick(['team-b', 'team-c']) }),
      labels: labelsOf(choose),
      ...(chance(0.12) && { terminating: true }),
      ...(own && { spec: own }),
    };
  });
}

/** InterPodAffinity: near, away, and unwanted by those that are there. */
export function podAffinity(choose: Draw): Drawn {
  const { pick, chance, many, integer } = choose;
  const all = nodes(choose);
  const kind = pick(['near', 'near', 'away', 'away', 'unwanted', 'unwanted', 'both', 'first']);
  const away = () => ({ affinity: { podAntiAffinity: hard(many(integer(1, 2), () => term(choose))) } });
  const unwanted = kind === 'unwanted' || chance(0.2);
  const labels = labelsOf(choose);
  const toItself = { topologyKey: pick([ZONE, HOSTNAME, RACK]), labelSelector: { matchLabels: { app: labels.app } } };
  return {
    nodes: all,
    pods:
      kind === 'first' && chance(0.5)
        ? []
        : others(choose, all.length, 4, () => (unwanted && chance(0.8) ? away() : undefined)),
    pod: {
      ...(chance(0.15) && { namespace: 'team-b' }),
      labels,
      spec: {
        affinity: {
          ...((kind === 'near' || kind === 'both') && { podAffinity: hard(many(integer(1, 2), () => term(choose))) }),
          ...(kind === 'first' && {
            podAffinity: hard([toItself, ...(chance(0.4) ? [term(choose)] : [])]),
          }),
          ...((kind === 'away' || kind === 'both') && {
            podAntiAffinity: hard(many(integer(1, 2), () => term(choose))),
          }),
          ...(chance(0.1) && { nodeAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [] } }),
        },
      },
    },
  };
}

/** PodTopologySpread. */
export function spread(choose: Draw): Drawn {
  const { pick, chance, many, integer } = choose;
  const all = nodes(choose).map((node) => {
    const taints = chance(0.25) ? taintsOf(choose) : [];
    return { ...node, ...(taints.length > 0 && { taints }) };
  });
  const labels = labelsOf(choose);
  const keys = choose.shuffled([ZONE, HOSTNAME, RACK]);
  const constraint = (index: number) => {
    const labelSelector = selector(choose);
    const isHard = chance(0.92);
    return {
      topologyKey: chance(0.6) && index === 0 ? ZONE : keys[index]!,
      maxSkew: pick([1, 1, 1, 1, 2]),
      whenUnsatisfiable: isHard ? 'DoNotSchedule' : 'ScheduleAnyway',
      ...(labelSelector && { labelSelector }),
      ...(isHard && chance(0.3) && { minDomains: integer(1, 4) }),
      ...(labelSelector && chance(0.15) && { matchLabelKeys: ['version'] }),
      ...(chance(0.25) && { nodeAffinityPolicy: pick(['Honor', 'Ignore']) }),
      ...(chance(0.35) && { nodeTaintsPolicy: pick(['Honor', 'Honor', 'Ignore']) }),
    };
  };
  const constraints = many(pick([1, 1, 2]), constraint);
  const distinct = constraints.filter(
    (one, index) => constraints.findIndex(({ topologyKey }) => topologyKey === one.topologyKey) === index,
  );
  const tolerations = all[0]!.taints?.map((taint) => tolerationOf(choose, taint));
  return {
    nodes: all,
    pods: others(choose, all.length, 9, () => undefined),
    pod: {
      labels,
      spec: {
        topologySpreadConstraints: distinct,
        ...(tolerations && { tolerations }),
        ...(chance(0.3) && { nodeSelector: { [ZONE]: chance(0.85) ? (all[0]!.labels?.[ZONE] ?? 'a') : 'b' } }),
        ...(chance(0.08) && {
          affinity: {
            podAntiAffinity: hard([{ topologyKey: HOSTNAME, labelSelector: { matchLabels: { app: labels.app } } }]),
          },
        }),
      },
    },
  };
}
