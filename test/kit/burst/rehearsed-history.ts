import type { CloudProfile } from '../../../operator/api/cloudprofile.ts';
import { API_VERSION } from '../../../operator/api/group.ts';
import type { KubeObject } from '../../../operator/api/meta.ts';
import type { BurstWorld } from '../../../operator/controllers/burst/world.ts';
import { rehearse } from '../../../operator/rehearsal/rehearse.ts';
import { scenarioOf } from '../../../operator/rehearsal/scenario.ts';
import { surveyTrace } from '../../../operator/rehearsal/survey.ts';
import { readTrace } from '../../../operator/rehearsal/trace/trace.ts';
import { cluster, file, profile } from '../../unit/rehearsal/fixtures.ts';
import { policy } from '../../unit/rehearsal/policy-fixtures.ts';
import type { Draw } from '../property.ts';
import { RehearsedGarden } from './rehearsed-garden.ts';

const EPOCH = Date.UTC(2026, 0, 1);
/** Of the version of Kubernetes that clusters get first. */
const EXPIRES_MS = 75 * 60_000;
const HEADER = 'time,workload,replicas,jobs,cpu,memory,life,clusterLabels,cluster,priority';

/** What is played. */
export interface History {
  /** Of the trace, below HEADER. */
  readonly rows: string;
  /** Of all nodes of a cluster, as the CloudProfile has it. */
  readonly limit?: number | undefined;
  readonly simulation: object;
  /** Of the policy. */
  readonly spec: object;
  /** By name, the specs of clusters that are there before. */
  readonly clusters: Readonly<Record<string, object>>;
  /** Metrics of a Quota of their namespace. */
  readonly quota?: object | undefined;
}

const pool = (choose: Draw, name: string, isGrowing: boolean) => ({
  name,
  machineType: 'm',
  minimum: choose.integer(isGrowing ? 0 : 1, 2),
  maximum: choose.integer(2, 6),
  ...(isGrowing && { autoscale: 'Coppice', scaleInAfter: choose.pick(['5m', '10m']) }),
});

function candidateOf(choose: Draw, name: string) {
  const [isRefused, isOld] = [choose.chance(0.1), choose.chance(0.1)];
  const its = pool(choose, 'a', choose.chance(0.5));
  return {
    name,
    ...(choose.chance(0.3) && { warmClusters: 1 }),
    ...(choose.chance(0.3) && { sleepingClusters: 1 }),
    ...(choose.chance(0.3) && { assumedHourly: '0.3' }),
    template: {
      metadata: { labels: { tier: name } },
      spec: {
        mode: 'Hosted',
        cloudProvider: 'cloud',
        // Fewer nodes than its pool has: no API server takes it.
        ...(isRefused && { dataPlaneNodes: 1 }),
        ...(isOld && { kubernetes: { version: '1.20.0' } }),
        pools: [{ ...its, ...(isRefused && { minimum: 2 }), spot: choose.chance(0.3) }],
      },
    },
  };
}

/** Few workloads that come and go again and again: so clusters are left with little work, and others with room. */
function rowsOf(choose: Draw, hours: number): string {
  const workloads = choose.many(choose.integer(2, 4), (index) => {
    const cpu = choose.pick(['900m', '1500m']);
    const [labels, priority] = [choose.chance(0.2) ? 'tier=one' : '', choose.chance(0.2) ? '5' : ''];
    if (choose.chance(0.15)) return () => `batch-${index},,${choose.integer(1, 3)},${cpu},1Gi,20m,,,`;
    if (choose.chance(0.15)) return () => `local-${index},${choose.integer(0, 3)},,${cpu},1Gi,,,own,`;
    const replicas = () => choose.pick([0, 0, 1, 2, 3, 4, 6]);
    return () => `web-${index},${replicas()},,${cpu},1Gi,,${labels},,${priority}`;
  });
  const rows = choose
    .many(choose.integer(3, 12), () => choose.integer(1, hours * 60))
    .sort((a, b) => a - b)
    .map((minute) => `${minute}m,${choose.pick(workloads)()}`);
  return `${rows.join('\n')}\n${hours * 60 + 60}m,end,0,,900m,1Gi,,,,`;
}

/** What came first goes, and leaves room for the little work that is on clusters that were bought since. */
export function emptyingHistoryOf(choose: Draw): History {
  const nodes = choose.integer(2, 4);
  const work = (minute: number, name: string, count: number) => ({ minute, name, count });
  const rows = [
    work(1, 'old', nodes),
    work(10, 'web', 3),
    ...(choose.chance(0.5) ? [work(20, 'more', 3)] : []),
    work(60, 'old', choose.integer(0, 1)),
    work(choose.integer(55, 70), 'web', 1),
    work(choose.integer(70, 80), 'more', choose.integer(0, 1)),
    ...(choose.chance(0.5) ? [work(choose.integer(75, 90), 'late', 1)] : []),
    work(180, 'end', 0),
  ];
  const candidate = { ...pool(choose, 'a', false), maximum: choose.integer(2, 3) };
  return {
    rows: rows
      .sort((a, b) => a.minute - b.minute)
      .map(({ minute, name, count }) => `${minute}m,${name},${count},,1500m,1Gi,,,,`)
      .join('\n'),
    simulation: { controlPlane: { creation: { p50: '1m' } }, machines: { creation: { p50: '1m' } } },
    spec: {
      candidates: [
        {
          name: 'one',
          ...(choose.chance(0.5) && { warmClusters: 1 }),
          template: { spec: { mode: 'Hosted', cloudProvider: 'cloud', pools: [candidate] } },
        },
      ],
      scaleIn: {
        idleFor: choose.pick(['5m', '10m']),
        minimumLife: choose.pick(['10m', '30m']),
        consolidationPolicy: 'WhenEmptyOrUnderutilized',
        utilizationThreshold: choose.pick([50, 90]),
      },
    },
    clusters: {
      own: { mode: 'Hosted', dataPlaneNodes: undefined, pools: [{ ...candidate, minimum: nodes, maximum: nodes }] },
    },
  };
}

/** Any history of a policy. */
export function historyOf(choose: Draw): History {
  const hours = choose.integer(1, 2);
  const underused = choose.chance(0.5) && {
    consolidationPolicy: 'WhenEmptyOrUnderutilized',
    utilizationThreshold: choose.pick([50, 90]),
  };
  const peak = { name: 'rush', start: '30 * * * *', duration: '20m', clusters: 1 };
  const sleeper = { mode: 'Hosted', hibernation: { enabled: true }, pools: [pool(choose, 'a', choose.chance(0.5))] };
  return {
    rows: rowsOf(choose, hours),
    limit: choose.chance(0.4) ? choose.integer(2, 5) : undefined,
    simulation: {
      controlPlane: { creation: { p50: choose.pick(['1m', '5m']) } },
      machines: { creation: { p50: choose.pick(['30s', '2m']) } },
      ...(choose.chance(0.4) && { spot: { interruptionsPerHour: 1.5 } }),
      ...(choose.chance(0.4) && { capacity: { depletionRate: 0.4 } }),
    },
    spec: {
      candidates: ['one', 'two'].slice(0, choose.integer(1, 2)).map((name) => candidateOf(choose, name)),
      maximumClusters: choose.integer(1, 4),
      budget: { hourly: choose.pick(['1', '2', '10']), currency: 'USD' },
      scaleIn: { idleFor: choose.pick(['5m', '10m']), minimumLife: choose.pick(['10m', '30m']), ...underused },
      ...(choose.chance(0.2) && { minimumClusters: 1 }),
      ...(choose.chance(0.3) && { minimumPriority: 5 }),
      ...(choose.chance(0.3) && { schedule: [{ ...peak, ...(choose.chance(0.5) && { leadTime: '10m' }) }] }),
      ...(choose.chance(0.4) && { wake: [{ name: 'asleep', clusterSelector: {}, assumedHourly: '0.05' }] }),
      ...(choose.chance(0.5) && {
        grow: [{ name: 'own', clusterSelector: {}, maximumNodes: choose.integer(1, 6), assumedHourly: '0.1' }],
      }),
    },
    clusters: {
      own: { mode: 'Hosted', dataPlaneNodes: undefined, pools: [pool(choose, 'a', true), pool(choose, 'b', false)] },
      ...(choose.chance(0.5) && { sleeper: { ...sleeper, dataPlaneNodes: undefined } }),
    },
    quota: choose.chance(0.5) ? { nodes: choose.integer(3, 8) } : undefined,
  };
}

/** Plays it, and has the controller decide beside it. @param changed puts a fault into what the rehearsal sees */
export async function compared(
  { rows, limit, simulation, spec, clusters, quota }: History,
  changed?: (world: BurstWorld) => BurstWorld,
): Promise<RehearsedGarden> {
  const versions = [
    { version: '1.36.9', classification: 'supported', expirationDate: new Date(EPOCH + EXPIRES_MS).toISOString() },
    ...(profile.spec.kubernetes.versions ?? []),
  ];
  const limited = {
    ...profile,
    spec: { ...profile.spec, kubernetes: { versions }, ...(limit && { limits: { maxNodesTotal: limit } }) },
  } as CloudProfile;
  const objects: KubeObject[] = [
    ...Object.entries(clusters).map(([name, its]) => cluster(name, its)),
    policy(spec),
    ...(quota ? [{ apiVersion: API_VERSION, kind: 'Quota', metadata: { name: 'all' }, spec: { metrics: quota } }] : []),
  ];
  const trace = file('work.csv', `${HEADER}\n${rows}\n`);
  const manifests = objects.map((object) => ({ object, source: 'peak.yaml' }));
  const scenario = scenarioOf(manifests, [limited], { namespace: 'shop', simulations: { cloud: simulation } });
  const survey = await surveyTrace(readTrace(trace), scenario);
  const garden = new RehearsedGarden();
  await rehearse(scenario, readTrace(trace), survey, { epoch: EPOCH, worldOf: garden.worldOf(changed) });
  return garden;
}
