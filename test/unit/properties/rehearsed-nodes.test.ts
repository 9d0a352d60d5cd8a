import { describe, expect, it } from 'vitest';
import type { CloudProfile } from '../../../operator/api/cloudprofile.ts';
import type { NodesWorld } from '../../../operator/controllers/autoscaling/world.ts';
import { rehearse } from '../../../operator/rehearsal/rehearse.ts';
import { scenarioOf } from '../../../operator/rehearsal/scenario.ts';
import { surveyTrace } from '../../../operator/rehearsal/survey.ts';
import { readTrace } from '../../../operator/rehearsal/trace/trace.ts';
import { nodesQuota } from '../../kit/autoscaled-cluster.ts';
import { partOf } from '../../kit/builders/partial.ts';
import { type Draw, holds } from '../../kit/property.ts';
import { RehearsedNodes } from '../../kit/rehearsed-nodes.ts';
import { cluster, file, profile } from '../rehearsal/fixtures.ts';

const EPOCH = Date.UTC(2026, 0, 1);
const TYPES = [
  { name: 'm', cpu: 2, gpu: 0, memory: '8Gi', price: { hourly: '0.1', spot: '0.03', currency: 'USD' } },
  { name: 'l', cpu: 8, gpu: 0, memory: '32Gi', price: { hourly: '0.4', currency: 'USD' } },
  { name: 'g', cpu: 8, gpu: 1, memory: '32Gi', price: { hourly: '3', currency: 'USD' } },
];

/** What is played. */
interface History {
  readonly rows: string;
  readonly limit: number | undefined;
  readonly quota: number | undefined;
  readonly simulation: object;
  readonly pools: readonly object[];
}

const pool = (choose: Draw, name: string) => ({
  name,
  machineType: choose.pick(['m', 'm', 'l', 'g']),
  minimum: choose.integer(0, 1),
  maximum: choose.integer(2, 6),
  autoscale: 'Coppice',
  scaleInAfter: choose.pick(['5m', '10m']),
  ...(choose.chance(0.3) && { spot: true }),
  ...(choose.chance(0.3) && { machineTypes: ['m', 'l'], machineType: undefined }),
  ...(choose.chance(0.3) && { disruption: { budgets: [{ nodes: choose.pick(['0', '1', '50%']) }] } }),
});

function historyOf(choose: Draw): History {
  const hours = choose.integer(1, 3);
  const rows = Array.from({ length: choose.integer(3, 12) }, () => choose.integer(1, hours * 60))
    .sort((a, b) => a - b)
    .map((minute) => {
      const cpu = choose.pick(['300m', '900m', '1800m', '1900m', '7800m']);
      if (choose.chance(0.2)) return `${minute}m,job-${cpu},,${choose.integer(1, 3)},${cpu},1Gi,20m,own`;
      return `${minute}m,web-${choose.integer(1, 3)}-${cpu},${choose.integer(0, 8)},,${cpu},1Gi,,own`;
    });
  return {
    rows: `${rows.join('\n')}\n${hours * 60 + 60}m,end,0,,900m,1Gi,,own`,
    limit: choose.chance(0.4) ? choose.integer(2, 5) : undefined,
    quota: choose.chance(0.3) ? choose.integer(2, 5) : undefined,
    simulation: {
      controlPlane: { creation: { p50: choose.pick(['1m', '5m']) } },
      machines: { creation: { p50: choose.pick(['30s', '2m', '20m']) } },
      ...(choose.chance(0.4) && { spot: { interruptionsPerHour: 1.5 } }),
      ...(choose.chance(0.4) && { capacity: { depletionRate: 0.4 } }),
    },
    pools: [
      pool(choose, 'a'),
      pool(choose, 'b'),
      ...(choose.chance(0.5) ? [{ name: 'fixed', machineType: 'm', minimum: 1, maximum: 1 }] : []),
    ],
  };
}

/** Plays it, and has the controller decide beside it. @param changed puts a fault into what the rehearsal sees */
async function compared(history: History, changed?: (world: NodesWorld) => NodesWorld): Promise<RehearsedNodes> {
  const { rows, limit, quota, simulation, pools } = history;
  const limited = partOf<CloudProfile>({
    ...profile,
    spec: { ...profile.spec, type: 'aws', machineTypes: TYPES, ...(limit && { limits: { maxNodesTotal: limit } }) },
  });
  const trace = file('work.csv', `time,workload,replicas,jobs,cpu,memory,life,cluster\n${rows}\n`);
  const objects = [
    cluster('own', { mode: 'Hosted', dataPlaneNodes: undefined, pools }),
    ...(quota ? [nodesQuota(quota)] : []),
  ];
  const manifests = objects.map((object) => ({ object, source: 'own.yaml' }));
  const scenario = scenarioOf(manifests, [limited], { namespace: 'shop', simulations: { cloud: simulation } });
  const survey = await surveyTrace(readTrace(trace), scenario);
  const garden = new RehearsedNodes();
  await rehearse(scenario, readTrace(trace), survey, { epoch: EPOCH, nodesOf: garden.nodesOf(changed) });
  return garden;
}

describe('the nodes of a rehearsal', () => {
  holds(
    'come and go as the controller decides in a garden that is so',
    async (choose) => {
      const [first] = (await compared(historyOf(choose))).differences;
      expect(first && { at: first.at, ...first.rehearsal }).toEqual(first && { at: first.at, ...first.garden });
    },
    { runs: 8 },
  );

  const PLAIN: History = {
    rows: '10m,web,5,,1500m,1Gi,,own\n60m,end,0,,900m,1Gi,,own',
    limit: undefined,
    quota: undefined,
    simulation: { controlPlane: { creation: { p50: '1m' } }, machines: { creation: { p50: '1m' } } },
    pools: [{ name: 'a', machineType: 'm', minimum: 0, maximum: 6, autoscale: 'Coppice' }],
  };
  const without = (change: (world: NodesWorld) => Partial<NodesWorld>) => (world: NodesWorld) => ({
    ...world,
    ...change(world),
  });

  const FAULTS: readonly [string, History, (world: NodesWorld) => NodesWorld][] = [
    [
      'the limit of a CloudProfile',
      { ...PLAIN, limit: 3 },
      without(({ profile: known }) => ({ profile: { ...known, spec: { ...known.spec, limits: {} } } })),
    ],
    ['quotas', { ...PLAIN, quota: 3 }, without(() => ({ quotas: [] }))],
    // A node offers 1900m, of which the system takes 100m.
    [
      'what the system takes of a node, in a pool without one',
      { ...PLAIN, rows: PLAIN.rows.replace('1500m', '1850m') },
      without(() => ({ daemons: [] })),
    ],
    [
      'for which pods nodes are bought',
      PLAIN,
      without((world) => ({
        *waiting(memory) {
          const { demands, ignored } = yield* world.waiting(memory);
          return {
            demands: demands.map(({ who, replica, keys, since, source, isSystem }) => {
              return { who, replica, keys, since, source, isSystem };
            }),
            ignored,
          };
        },
      })),
    ],
    ['that nodes are there', PLAIN, without(() => ({ nodes: new Map(), podsOn: new Map() }))],
  ];
  it.each(FAULTS)('differ where it does not see %s', async (_, history, changed) => {
    const same = await compared(history);
    expect(same.looks.length).toBeGreaterThan(0);
    expect(same.differences).toEqual([]);
    expect((await compared(history, changed)).differences).not.toEqual([]);
  });
});
