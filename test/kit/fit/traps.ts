import type { Draw } from '../draw.ts';
import { BOUND } from './case.ts';
import type { Drawn } from './on-one-node.ts';

const ZONE = 'topology.kubernetes.io/zone';
const DRIVER = 'csi.example.com';
const asks = (milli: number) => ({ resources: { requests: { cpu: `${milli}m` } } });
const mounts = (...claims: string[]) => ({
  volumes: claims.map((claimName, index) => ({ name: `v${index}`, persistentVolumeClaim: { claimName } })),
});

/** An init container needs what it asks for and the sidecars before it, not those after. */
function initAmongSidecars({ integer, many, chance, pick }: Draw): Drawn {
  const all = many(integer(2, 4), () => ({ milli: pick([100, 200, 400, 800]), isSidecar: chance(0.5) }));
  let [before, peak] = [0, 0];
  for (const { milli, isSidecar } of all) {
    peak = Math.max(peak, before + milli);
    if (isSidecar) before += milli;
  }
  const most = Math.max(peak, before + 50);
  return {
    nodes: [{ allocatable: { cpu: `${most + pick([-1, 0])}m` } }],
    pod: {
      spec: {
        containers: [asks(50)],
        initContainers: all.map(({ milli, isSidecar }) => ({
          ...asks(milli),
          ...(isSidecar && { restartPolicy: 'Always' }),
        })),
      },
    },
  };
}

/** A pod in resize holds the most of what was asked for, granted and done; of an infeasible wish only the latter two. */
function inResize({ shuffled, chance, pick }: Draw): Drawn {
  const [spec, actuated, allocated] = shuffled([500, 1000, 2000]) as [number, number, number];
  const infeasible = chance(0.5);
  const held = infeasible ? Math.max(actuated, allocated) : 2000;
  return {
    nodes: [{}],
    pods: [
      {
        on: 'n0',
        spec: { containers: [asks(spec)] },
        status: {
          phase: 'Running',
          conditions: [{ type: 'PodResizePending', status: 'True', reason: infeasible ? 'Infeasible' : 'Deferred' }],
          containerStatuses: [
            {
              name: 'c0',
              image: 'i',
              imageID: '',
              ready: true,
              restartCount: 0,
              resources: { requests: { cpu: `${actuated}m` } },
              allocatedResources: { cpu: `${allocated}m` },
            },
          ],
        },
      },
    ],
    pod: { spec: { containers: [asks(4000 - pick([held, held, 500, 1000]) + pick([0, 1]))] } },
  };
}

/** Pods on nodes that a constraint leaves out do not count, in whatever zone they are. */
function leftOut({ pick, chance, many, integer }: Draw): Drawn {
  const byTaint = chance(0.5);
  const nodes = many(4, (index) => ({
    labels: { [ZONE]: 'aabb'[index]!, pool: index % 2 === 0 ? 'in' : 'out' },
    ...(byTaint && index % 2 === 1 && { taints: [{ key: 'out', effect: 'NoSchedule' }] }),
  }));
  const web = { app: 'web' };
  return {
    nodes,
    pods: many(integer(1, 4), () => ({ on: `n${pick([0, 1, 1, 2, 3])}`, labels: web })),
    pod: {
      labels: web,
      spec: {
        ...(!byTaint && { nodeSelector: { pool: 'in' } }),
        topologySpreadConstraints: [
          {
            topologyKey: ZONE,
            maxSkew: 1,
            whenUnsatisfiable: 'DoNotSchedule',
            labelSelector: { matchLabels: web },
            ...(byTaint
              ? { nodeTaintsPolicy: pick(['Honor', 'Ignore']) }
              : { nodeAffinityPolicy: pick(['Honor', 'Ignore']) }),
          },
        ],
      },
    },
  };
}

/** Keys whose values are those of the pod itself. */
function byOwnLabels({ pick, many, integer }: Draw): Drawn {
  const labels = () => ({ app: 'web', version: pick(['1', '2']) });
  const labelSelector = { matchLabels: { app: 'web' } };
  const keys = { [pick(['matchLabelKeys', 'mismatchLabelKeys'])]: ['version'] };
  const terms = { requiredDuringSchedulingIgnoredDuringExecution: [{ topologyKey: ZONE, labelSelector, ...keys }] };
  const constraint = { topologyKey: ZONE, maxSkew: 1, whenUnsatisfiable: 'DoNotSchedule', labelSelector };
  return {
    nodes: ['a', 'b'].map((zone) => ({ labels: { [ZONE]: zone } })),
    pods: many(integer(1, 3), () => ({ on: `n${pick([0, 0, 1])}`, labels: labels() })),
    pod: {
      labels: labels(),
      spec: pick([
        { affinity: { podAffinity: terms } },
        { affinity: { podAntiAffinity: terms } },
        { topologySpreadConstraints: [{ ...constraint, matchLabelKeys: ['version'] }] },
        { topologySpreadConstraints: [{ ...constraint, matchLabelKeys: ['version'] }] },
      ]),
    },
  };
}

/** A claim without a volume: the node that it was promised to, perhaps gone; and whether it counts as one to be attached. */
function toBeMade({ pick, chance, integer, many }: Draw): Drawn {
  const waiting = (more = {}) => ({ spec: { storageClassName: 'late' }, phase: 'Pending', ...more });
  const classes = { late: { volumeBindingMode: 'WaitForFirstConsumer' } };
  if (chance(0.5)) {
    const annotations = { 'volume.kubernetes.io/selected-node': pick(['n0', 'gone']) };
    return { nodes: [{}], claims: { data: waiting({ annotations }) }, classes, pod: { spec: mounts('data') } };
  }
  const isBound = {
    annotations: { [BOUND]: 'yes' },
    spec: { volumeName: 'pv', storageClassName: 'late' },
    phase: 'Bound',
  };
  const names = many(integer(1, 2), (index) => `new${index}`);
  return {
    nodes: [{ limits: { [DRIVER]: integer(1, 3) } }],
    pods: chance(0.7) ? [{ on: 'n0', spec: mounts(pick(['old', 'new0'])) }] : [],
    claims: { old: isBound, ...Object.fromEntries(names.map((name) => [name, waiting()])) },
    volumes: { pv: {} },
    classes,
    pod: { spec: mounts(...names) },
  };
}

/** Single rules, each at its edge. */
export function traps(choose: Draw): Drawn {
  return choose.pick([initAmongSidecars, inResize, leftOut, byOwnLabels, byOwnLabels, toBeMade, toBeMade])(choose);
}
