import { describe, expect, it } from 'vitest';
import type { CloudProfile } from '../../../operator/api/cloudprofile.ts';
import type { BurstWorld } from '../../../operator/controllers/burst/world.ts';
import { rehearse } from '../../../operator/rehearsal/rehearse.ts';
import { scenarioOf } from '../../../operator/rehearsal/scenario.ts';
import { surveyTrace } from '../../../operator/rehearsal/survey.ts';
import { readTrace } from '../../../operator/rehearsal/trace/trace.ts';
import { RehearsedGarden } from '../../kit/burst/rehearsed-garden.ts';
import { type Draw, holds } from '../../kit/property.ts';
import { cluster, file, profile } from '../rehearsal/fixtures.ts';
import { policy } from '../rehearsal/policy-fixtures.ts';

const EPOCH = Date.UTC(2026, 0, 1);

/** What is played. */
interface History {
  readonly rows: string;
  readonly limit: number | undefined;
  readonly simulation: object;
  readonly spec: object;
  readonly own: object;
}

const pool = (choose: Draw, name: string, isGrowing: boolean) => ({
  name,
  machineType: 'm',
  // Of a pool without a node a garden does not know what the system takes of one.
  minimum: choose.integer(1, 2),
  maximum: choose.integer(2, 6),
  ...(isGrowing && { autoscale: 'Coppice', scaleInAfter: choose.pick(['5m', '10m']) }),
});

function historyOf(choose: Draw): History {
  const hours = choose.integer(1, 3);
  const rows = Array.from({ length: choose.integer(2, 12) }, () => choose.integer(1, hours * 60))
    .sort((a, b) => a - b)
    .map((minute) => {
      const cpu = choose.pick(['900m', '1500m']);
      return `${minute}m,web-${choose.integer(1, 3)}-${cpu},${choose.integer(0, 6)},,${cpu},1Gi,,,`;
    });
  const candidate = (name: string) => ({
    name,
    ...(choose.chance(0.3) && { warmClusters: 1 }),
    ...(choose.chance(0.3) && { sleepingClusters: 1 }),
    template: {
      spec: {
        mode: 'Hosted',
        cloudProvider: 'cloud',
        pools: [{ ...pool(choose, 'a', choose.chance(0.5)), spot: choose.chance(0.3) }],
      },
    },
  });
  return {
    rows: `${rows.join('\n')}\n${hours * 60 + 60}m,end,0,,900m,1Gi,,,`,
    limit: choose.chance(0.4) ? choose.integer(2, 5) : undefined,
    simulation: {
      controlPlane: { creation: { p50: choose.pick(['1m', '5m']) } },
      machines: { creation: { p50: choose.pick(['30s', '2m']) } },
      ...(choose.chance(0.4) && { spot: { interruptionsPerHour: 1.5 } }),
      ...(choose.chance(0.4) && { capacity: { depletionRate: 0.4 } }),
    },
    spec: {
      candidates: choose.chance(0.5) ? [candidate('one')] : [candidate('one'), candidate('two')],
      maximumClusters: choose.integer(1, 4),
      budget: { hourly: choose.pick(['1', '2', '10']), currency: 'USD' },
      scaleIn: { idleFor: choose.pick(['5m', '10m']), minimumLife: choose.pick(['10m', '30m']) },
      ...(choose.chance(0.3) && { minimumClusters: 1 }),
      ...(choose.chance(0.6) && {
        grow: [{ name: 'own', clusterSelector: {}, maximumNodes: choose.integer(1, 6), assumedHourly: '0.1' }],
      }),
    },
    own: { mode: 'Hosted', dataPlaneNodes: undefined, pools: [pool(choose, 'a', true), pool(choose, 'b', false)] },
  };
}

/** Plays it, and has the controller decide beside it. @param changed puts a fault into what the rehearsal sees */
async function compared({ rows, limit, simulation, spec, own }: History, changed?: (world: BurstWorld) => BurstWorld) {
  const versions = [
    { version: '1.36.9', classification: 'supported', expirationDate: new Date(EPOCH + 2 * 3_600_000).toISOString() },
    ...(profile.spec.kubernetes.versions ?? []),
  ];
  const limited = {
    ...profile,
    spec: { ...profile.spec, kubernetes: { versions }, ...(limit && { limits: { maxNodesTotal: limit } }) },
  } as CloudProfile;
  const trace = file('work.csv', `time,workload,replicas,jobs,cpu,memory,life,clusterLabels,cluster\n${rows}\n`);
  const manifests = [cluster('own', own), policy(spec)].map((object) => ({ object, source: 'peak.yaml' }));
  const scenario = scenarioOf(manifests, [limited], { namespace: 'shop', simulations: { cloud: simulation } });
  const survey = await surveyTrace(readTrace(trace), scenario);
  const garden = new RehearsedGarden();
  await rehearse(scenario, readTrace(trace), survey, { epoch: EPOCH, worldOf: garden.worldOf(changed) });
  return garden;
}

describe('a rehearsal', () => {
  holds(
    'decides at each look what the controller decides in a garden that is so',
    async (choose) => {
      const garden = await compared(historyOf(choose));
      expect(garden.lookCount).toBeGreaterThan(0);
      const [first] = garden.differences;
      expect(first && { at: first.at, ...(first.rehearsal as object) }).toEqual(
        first && { at: first.at, ...(first.garden as object) },
      );
    },
    { runs: 6 },
  );

  const LIMITED: History = {
    rows: `10m,web,6,,1500m,1Gi,,,\n120m,end,0,,900m,1Gi,,,`,
    limit: 3,
    simulation: { controlPlane: { creation: { p50: '1m' } }, machines: { creation: { p50: '1m' } } },
    spec: {
      grow: [{ name: 'own', clusterSelector: {}, maximumNodes: 9, assumedHourly: '0.1' }],
      budget: { hourly: '0.5', currency: 'USD' },
    },
    own: {
      mode: 'Hosted',
      dataPlaneNodes: undefined,
      pools: [{ name: 'a', machineType: 'm', minimum: 1, maximum: 9, autoscale: 'Coppice' }],
    },
  };

  it('is found to decide something else where it does not see the limit of a CloudProfile', async () => {
    const unlimited = (world: BurstWorld): BurstWorld => ({
      ...world,
      profiles: {
        get(name) {
          const known = world.profiles.get(name);
          return known && { ...known, spec: { ...known.spec, limits: {} } };
        },
      },
    });
    expect((await compared(LIMITED)).differences).toEqual([]);
    expect((await compared(LIMITED, unlimited)).differences).not.toEqual([]);
  });
});
