import type { Draw } from '../draw.ts';
import type { CaseNode, CasePod, FitCase } from './case.ts';

type Requests = Record<string, string>;
type Container = {
  resources?: { requests: Requests; limits?: Requests };
  restartPolicy?: string;
  ports?: object[];
};
/** A case that has no name yet. */
export type Drawn = Omit<FitCase, 'name'>;

const MILLI = [100, 150, 200, 250, 300, 500];
const MEBI = [64, 100, 128, 256, 512];
const cpuOf = (milli: number, choose: Draw) =>
  milli % 1000 === 0 || choose.chance(0.8) ? `${milli}m` : `${milli / 1000}`;

/** NodeResourcesFit: what is asked for in all the ways there are, and a node that has about that. */
export function resources(choose: Draw): Drawn {
  const { integer, chance, pick } = choose;
  if (chance(0.12)) return resized(choose);
  if (chance(0.2)) return otherResources(choose);
  const cpu = new Map<Container, number>();
  const made = (restartPolicy?: string): Container => {
    const milli = chance(0.85) ? pick(MILLI) : 0;
    const one: Container = {
      ...(restartPolicy && { restartPolicy }),
      ...((milli > 0 || chance(0.5)) && {
        resources: {
          requests: {
            ...(milli > 0 && { cpu: cpuOf(milli, choose) }),
            ...(chance(0.5) && { memory: `${pick(MEBI)}Mi` }),
          },
        },
      }),
    };
    cpu.set(one, milli);
    return one;
  };
  const containers = choose.many(integer(1, 3), () => made());
  const initContainers = choose.many(pick([0, 0, 1, 2, 3]), () => made(chance(0.5) ? 'Always' : undefined));
  const sum = (of: Container[]) => of.reduce((total, one) => total + cpu.get(one)!, 0);
  const sidecars = initContainers.filter(({ restartPolicy }) => restartPolicy);
  const whole = chance(0.2) ? pick([300, 700, 1200]) : undefined;
  const overhead = chance(0.2) ? pick([50, 250]) : 0;
  // Boundaries: of the right rule, and of rules that others have taken for it.
  const boundary = pick([
    sum(containers) + sum(sidecars),
    sum(containers),
    sum(initContainers),
    Math.max(sum(containers) + sum(sidecars), ...initContainers.map((one) => cpu.get(one)!)),
    sum(sidecars) + Math.max(0, ...initContainers.map((one) => cpu.get(one)!)),
    ...(whole === undefined ? [] : [whole, whole]),
  ]);
  const used = pick([0, 0, 500]);
  const allocatable = Math.max(0, boundary + overhead + used + pick([-1, 0, 0, 1, -50, 50]));
  const full = chance(0.1);
  return {
    nodes: [{ allocatable: { cpu: `${allocatable}m`, ...(full && { pods: pick(['1', '2']) }) } }],
    pods: [
      ...(used > 0 ? [{ on: 'n0', spec: { containers: [{ resources: { requests: { cpu: `${used}m` } } }] } }] : []),
      ...(full ? [{ on: 'n0' }] : []),
    ],
    pod: {
      spec: {
        containers,
        ...(initContainers.length > 0 && { initContainers }),
        ...(whole !== undefined && {
          resources: { requests: { cpu: `${Math.max(whole, sum(containers) + sum(sidecars))}m` } },
        }),
        ...(overhead > 0 && { overhead: { cpu: `${overhead}m` } }),
      },
    },
  };
}

/** A pod that runs holds more, or less, than its spec says while it is resized. */
function resized({ pick, chance }: Draw): Drawn {
  const [spec, actuated, allocated] = [pick([500, 1000]), pick([500, 1000, 2000]), pick([500, 1000, 1500])];
  const infeasible = chance(0.3);
  const asked = pick([1000, 2000, 2500, 3000, 3500]);
  return {
    nodes: [{}],
    pods: [
      {
        on: 'n0',
        spec: { containers: [{ resources: { requests: { cpu: `${spec}m` } } }] },
        status: {
          phase: 'Running',
          ...(infeasible && {
            conditions: [{ type: 'PodResizePending', status: 'True', reason: 'Infeasible', lastTransitionTime: null }],
          }),
          containerStatuses: [
            {
              name: 'c0',
              image: 'i',
              imageID: '',
              ready: true,
              restartCount: 0,
              ...(chance(0.8) && { resources: { requests: { cpu: `${actuated}m` } } }),
              allocatedResources: { cpu: `${allocated}m` },
            },
          ],
        },
      },
    ],
    pod: { spec: { containers: [{ resources: { requests: { cpu: `${asked}m` } } }] } },
  };
}

/** GPUs, hugepages, disks; what is not asked for is not looked at, however much of it was promised. */
function otherResources({ pick, chance, integer }: Draw): Drawn {
  const name = pick(['example.com/gpu', 'hugepages-2Mi', 'ephemeral-storage', 'memory', 'nothing']);
  const amount = (count: number) =>
    name === 'hugepages-2Mi' ? `${count * 2}Mi` : name.startsWith('example') ? `${count}` : `${count}Gi`;
  const [has, used, wants] = [integer(0, 4), integer(0, 2), integer(0, 4)];
  const asks = (count: number): CasePod['spec'] => {
    const own = name === 'nothing' ? {} : { [name]: amount(count) };
    const isWhole = name.startsWith('example') || name.startsWith('huge');
    const requests = { ...own, ...(name === 'hugepages-2Mi' && { cpu: '1m' }) };
    return { containers: [{ resources: { requests, ...(isWhole && { limits: own }) } }] };
  };
  const crowd = chance(0.5) ? [{ on: 'n0', spec: { containers: [{ resources: { requests: { cpu: '9' } } }] } }] : [];
  return {
    nodes: [{ allocatable: { ...(name !== 'nothing' && chance(0.9) && { [name]: amount(has) }) } }],
    pods: [...(used > 0 ? [{ on: 'n0', spec: asks(used) }] : []), ...crowd],
    pod: { spec: asks(wants) },
  };
}

/** NodePorts: addresses, protocols, and the ports of sidecars. */
export function ports(choose: Draw): Drawn {
  const { pick, chance, many, integer } = choose;
  const port = () => ({
    containerPort: 80,
    hostPort: pick([8080, 8080, 8080, 8081]),
    ...(chance(0.5) && { hostIP: pick(['0.0.0.0', '127.0.0.1', '10.0.0.1', '::']) }),
    ...(chance(0.4) && { protocol: pick(['TCP', 'UDP', 'SCTP']) }),
  });
  const withPorts = (on?: string): CasePod => {
    const where = pick(['containers', 'containers', 'sidecar', 'init', 'host']);
    const own = [{ ports: [port()] }];
    const spec = {
      containers: where === 'containers' || where === 'host' ? own : [{}],
      ...(where === 'sidecar' && { initContainers: [{ restartPolicy: 'Always', ports: [port()] }] }),
      ...(where === 'init' && { initContainers: own }),
    };
    if (where === 'host')
      return {
        ...(on && { on }),
        spec: { hostNetwork: true, containers: [{ ports: [{ containerPort: 8080, hostPort: 8080 }] }] },
      };
    return { ...(on && { on }), ...(chance(0.3) && { namespace: 'team-b' }), spec };
  };
  return { nodes: [{}], pods: many(integer(1, 3), () => withPorts('n0')), pod: withPorts() };
}

const LABELS: Record<string, string[]> = {
  disk: ['ssd', 'hdd'],
  size: ['1', '5', '10', '-3', 'large', '05'],
  'topology.kubernetes.io/zone': ['a', 'b'],
};

const nodeLabels = ({ some, pick }: Draw): Record<string, string> =>
  Object.fromEntries(some(Object.keys(LABELS), 0.75).map((key) => [key, pick(LABELS[key]!)]));

function expression({ pick, some }: Draw): object {
  const key = pick(Object.keys(LABELS));
  const operator = pick(['In', 'In', 'NotIn', 'Exists', 'Exists', 'DoesNotExist', 'Gt', 'Lt']);
  if (operator === 'Gt' || operator === 'Lt') return { key: 'size', operator, values: [pick(['4', '5', '-5', '9'])] };
  if (operator === 'Exists' || operator === 'DoesNotExist') return { key, operator };
  const values = some(LABELS[key]!, 0.6);
  return { key, operator, values: values.length > 0 ? values : [LABELS[key]![0]] };
}

/** What a pod may want of a node itself. */
export function nodeAffinity(choose: Draw): Drawn {
  const { pick, chance, many, integer } = choose;
  const term = () => ({
    ...(chance(0.85) && { matchExpressions: many(integer(1, 2), () => expression(choose)) }),
    ...(chance(0.15) && {
      matchFields: [
        { key: 'metadata.name', operator: pick(['In', 'In', 'NotIn']), values: [pick(['n0', 'n0', 'n1'])] },
      ],
    }),
  });
  const required = { nodeSelectorTerms: many(integer(1, 2), term) };
  const preferred = [{ weight: 1, preference: { matchExpressions: [expression(choose)] } }];
  const all = many(integer(1, 2), () => ({ labels: nodeLabels(choose) }));
  const key = pick(Object.keys(LABELS));
  const wanted = chance(0.6) ? (all[0]!.labels[key] ?? 'none') : pick(LABELS[key]!);
  const bySelector = chance(0.4);
  return {
    nodes: all,
    pod: {
      spec: {
        ...(bySelector && { nodeSelector: { [key]: wanted } }),
        ...((!bySelector || chance(0.5)) && {
          affinity: {
            nodeAffinity: {
              ...(chance(0.9) && { requiredDuringSchedulingIgnoredDuringExecution: required }),
              ...(chance(0.2) && { preferredDuringSchedulingIgnoredDuringExecution: preferred }),
            },
          },
        }),
      },
    },
  };
}

export const taintsOf = ({ many, pick, chance, integer }: Draw): NonNullable<CaseNode['taints']> =>
  many(integer(0, 2), (index) => ({
    key: `${pick(['dedicated', 'gpu', 'node.kubernetes.io/unschedulable'])}${index > 0 ? '-2' : ''}`,
    ...(chance(0.7) && { value: pick(['a', 'b']) }),
    effect: pick(['NoSchedule', 'NoSchedule', 'NoExecute', 'PreferNoSchedule']),
  }));

export function tolerationOf({ pick, chance }: Draw, like?: { key: string; value?: string; effect: string }): object {
  if (like && chance(0.75)) {
    const operator = pick(['Exists', 'Equal', undefined]);
    return {
      key: like.key,
      ...(operator && { operator }),
      ...(operator !== 'Exists' && like.value !== undefined && { value: chance(0.8) ? like.value : 'other' }),
      ...(chance(0.5) && { effect: chance(0.7) ? like.effect : pick(['NoSchedule', 'NoExecute']) }),
    };
  }
  return chance(0.3)
    ? { operator: 'Exists', ...(chance(0.5) && { effect: pick(['NoSchedule', 'NoExecute']) }) }
    : { key: pick(['dedicated', 'gpu']), operator: 'Equal', value: pick(['a', 'b']), effect: 'NoSchedule' };
}

/** TaintToleration and NodeUnschedulable. */
export function taints(choose: Draw): Drawn {
  const { chance } = choose;
  const own = taintsOf(choose);
  const unschedulable = chance(0.3);
  const tolerations = [
    ...own.flatMap((taint) => (chance(0.8) ? [tolerationOf(choose, taint)] : [])),
    ...(chance(0.15) ? [tolerationOf(choose)] : []),
    ...(unschedulable && chance(0.6)
      ? [tolerationOf(choose, { key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule' })]
      : []),
  ];
  return {
    nodes: [{ ...(own.length > 0 && { taints: own }), ...(unschedulable && { unschedulable }) }],
    pod: { ...(tolerations.length > 0 && { spec: { tolerations } }) },
  };
}
