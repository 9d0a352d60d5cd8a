import { expect, it } from 'vitest';
import {
  clusterOfRecord,
  type ManagedRecord,
  recordOf,
  recordSecret,
} from '../../../operator/controllers/managed/record.ts';
import { clusterIn } from '../../../operator/controllers/managed/wish.ts';

const record: ManagedRecord = {
  owner: { technicalID: 'shoot--shop--one', uid: 'u1', name: 'one', namespace: 'shop' },
  profile: 'aws',
  account: '1',
  credentials: { namespace: 'shop', secret: 'cloud' },
  cluster: clusterIn('here', undefined),
};

it('a record is written and read back, and belongs to its cluster', () => {
  const secret = recordSecret(record);
  expect(recordOf(secret)).toEqual(record);
  expect(clusterOfRecord(secret)).toBe('shop/one');
  expect(secret.metadata.ownerReferences).toBeUndefined();
});

it('what cannot be read is no record', () => {
  expect(recordOf(undefined)).toBeUndefined();
  const broken = { ...recordSecret(record), data: { record: Buffer.from('{').toString('base64') } };
  expect(recordOf(broken)).toBeUndefined();
});

it('keeps no more differences than a Secret holds', () => {
  const many = Array.from({ length: 10_000 }, (_, n) => ({ operation: 'update', resource: `memory:pool ${n}` }));
  expect(recordOf(recordSecret({ ...record, drift: many }))?.drift).toHaveLength(100);
});
