import { describe, expect, it } from 'vitest';
import type { KubeObject } from '../../../operator/api/meta.ts';
import { boundOf } from '../../../operator/rehearsal/bound/bound.ts';
import { partOf } from '../../kit/builders/partial.ts';
import { cluster, play, profile } from './fixtures.ts';
import { playWork, policy, SLOW } from './policy-fixtures.ts';

const [small] = profile.spec.machineTypes;

/** A second region of the cloud, where machines cost a quarter of what they cost in the first. */
const twoRegions = partOf<KubeObject>({
  ...profile,
  spec: {
    ...profile.spec,
    regions: [...profile.spec.regions, { name: 'south', zones: [{ name: 'south-a' }] }],
    machineTypes: [
      {
        ...small,
        price: { currency: 'USD', region: 'north', hourly: '0.1', regions: [{ name: 'south', hourly: '0.025' }] },
      },
    ],
  },
});

const inNorth = ['north-a', 'north-b'].map((zone) => ({ zone }));
const SOLD_OUT = { ...SLOW, capacity: { depleted: inNorth } };
const elsewhere = { fallback: [{ region: 'south' }] };
const MOVED = 'no machines are left for it in north of cloud: it is made in south of cloud instead';

describe('a cluster whose machines are sold out before its creation', () => {
  it('is created at its fallback place, whose prices apply from then on', async () => {
    const { timeline, report } = await play(
      '0h,shop,,2,,,\n2h,shop,,2,,,',
      [twoRegions, cluster('shop', elsewhere)],
      SOLD_OUT,
    );
    const told = timeline.map(({ at, kind, message }) => [at / 60_000, kind, message]);
    expect(told).toContainEqual([5, 'moved', MOVED]);
    // Another five minutes for the control plane, and two for the nodes.
    expect(told).toContainEqual([12, 'ready', 'all 2 nodes are Ready']);
    const [{ demand, cost }] = report.clusters as [(typeof report.clusters)[0]];
    expect(demand).toMatchObject({ served: 2, waitMax: 12 * 60_000, cancelled: 0, waiting: 0 });
    // The control plane for two hours, here and there, and two nodes there from the tenth minute on.
    expect(cost).toEqual({ currency: 'USD', amount: BigInt(Math.round(1_000_000 + 2 * 25_000 * (110 / 60))) });
  });

  it('stays where no cloud runs its control plane', async () => {
    const hosted = cluster('shop', { ...elsewhere, mode: 'Hosted' });
    const { timeline } = await play('0h,shop,,2,,,\n2h,shop,,2,,,', [twoRegions, hosted], SOLD_OUT);
    expect(timeline.map(({ kind }) => kind)).not.toContain('moved');
  });

  it('stays once it was completed, whatever is sold out later', async () => {
    const grows = cluster('shop', { ...elsewhere, dataPlaneNodes: 0, zones: ['north-a'] });
    const { timeline } = await play('0h,shop,,0,,,\n1h,shop,,2,,,\n3h,shop,,2,,,', [twoRegions, grows], SOLD_OUT);
    expect(timeline.map(({ kind }) => kind)).not.toContain('moved');
  });
});

describe('a candidate whose template falls back', () => {
  const [candidate] = policy().spec.candidates;
  const template = { ...candidate.template, spec: { ...candidate.template.spec, ...elsewhere } };
  const falling = (more: object = {}) => policy({ candidates: [{ ...candidate, template }], ...more });
  const rows = '20m,web,1,,1500m,1Gi,,\n26m,other,4,,1500m,1Gi,,\n3h,web,1,,,,,';

  it('serves work from the fallback place; its next cluster goes there at once, at that price', async () => {
    const { told, report } = await playWork(rows, [twoRegions, falling()], SOLD_OUT);
    expect(told('bought', 'moved', 'given-back').map((line) => line.replace(/ \(1500m.*have no place/, ''))).toEqual([
      '00:20:30 bought: 1 replica; public takes 1 of them for 0.6 USD an hour',
      `00:25:30 moved: ${MOVED}`,
      '00:26:30 bought: 4 replicas; public takes 4 of them for 0.6 USD an hour',
      `00:26:30 moved: ${MOVED}`,
    ]);
    expect(report.work).toMatchObject({ waiting: 0, cancelled: 0 });
    expect(report.bought).toMatchObject([{ profile: 'cloud', made: 2, demand: { waiting: 0, cancelled: 0 } }]);
  });

  it('is part of the least possible cost', async () => {
    const least = async (its: KubeObject) => {
      const { scenario, survey, trace } = await playWork(rows, [twoRegions, its]);
      return (await boundOf(scenario, scenario.policy!, trace(), { start: survey.start, end: survey.last }))!.least;
    };
    const [its, without] = await Promise.all([least(falling()), least(policy())]);
    expect(Number(its)).toBeCloseTo(Number(without) / 4, -1);
  });
});
