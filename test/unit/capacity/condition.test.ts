import { expect, it } from 'vitest';
import { capacityCondition } from '../../../operator/capacity/condition.ts';

type CapacityView = Parameters<typeof capacityCondition>[0];

const SOLD_OUT: CapacityView = {
  pools: [{ pool: 'web', machineType: 'm', parts: [], lacking: 2 }],
  tries: [
    {
      part: 'web',
      machineType: 'm',
      zones: ['eu-1a'],
      spot: false,
      region: 'eu-1',
      profile: 'aws',
      at: Date.parse('2026-11-26T00:00:00Z'),
      until: Date.parse('2026-11-26T00:05:00Z'),
      over: false,
    },
  ],
  place: { profile: 'aws', region: 'eu-1' },
  isFull: false,
  goingTo: undefined,
};
const TRIED = 'sold out: m in eu-1a of aws (tried at 2026-11-26T00:00:00Z, not again before 2026-11-26T00:05:00Z).';

it.each<[string, Partial<CapacityView>, string, string]>([
  [
    'where the cluster is created instead',
    { goingTo: 'eu-2 of aws' },
    'MovingElsewhere',
    'No offer is left here: Coppice creates the cluster in eu-2 of aws instead',
  ],
  [
    'what it lacks, and what to do',
    {},
    'Depleted',
    'Nothing is left that the cluster may use: pool web lacks 2 nodes. Allow more in machineTypes, zones or fallback, or wait',
  ],
  [
    'that it lacks one node',
    { pools: [{ pool: 'web', machineType: 'm', parts: [], lacking: 1 }] },
    'Depleted',
    'Nothing is left that the cluster may use: pool web lacks 1 node. Allow more in machineTypes, zones or fallback, or wait',
  ],
  ['that it is tried again', { pools: [] }, 'Retrying', 'Coppice asks for it again'],
])('of depleted offers people read %s', (_, view, reason, next) => {
  const said = capacityCondition({ ...SOLD_OUT, ...view }, undefined);
  expect(said).toMatchObject({ reason, message: `${TRIED} ${next}` });
});
