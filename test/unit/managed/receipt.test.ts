import { expect, it } from 'vitest';
import {
  assertOwnNames,
  boundReceipt,
  clusterOfReceipt,
  type ManagedReceipt,
  managedReceiptIn,
  managedReceipts,
} from '../../../operator/controllers/managed/receipt.ts';
import { clusterIn } from '../../../operator/controllers/managed/wish.ts';
import { SECRETS, type Secret } from '../../../operator/kube/resources.ts';
import { MemoryApiServer } from '../../kit/memory-api-server.ts';

const OPERATOR = 'kube-system';
const receipt: ManagedReceipt = {
  owner: { technicalID: 'shoot--shop--one', uid: 'u1', name: 'one', namespace: 'shop' },
  profile: 'aws',
  account: '1',
  credentials: { namespace: 'shop', secret: 'cloud' },
  cluster: clusterIn('here', undefined),
};

/** The one Secret that there is after the receipt was saved. */
async function saved(garden = new MemoryApiServer()): Promise<Secret> {
  await managedReceipts(garden, OPERATOR).save('shop/one', receipt, undefined);
  return (await garden.list<Secret>(SECRETS)).items[0]!;
}

it("a receipt is written to the operator's namespace, names its owner, and outlives its cluster", async () => {
  const secret = await saved();
  expect(secret.metadata.namespace).toBe(OPERATOR);
  expect(secret.metadata.ownerReferences).toBeUndefined();
  expect(Object.values(secret.metadata.labels!)).toEqual(expect.arrayContaining(['shop', 'one', 'u1']));
  expect(managedReceiptIn(secret)).toEqual(receipt);
  expect(clusterOfReceipt(receipt)).toBe('shop/one');
});

it("a receipt with another cluster's name is invalid", async () => {
  const secret = await saved();
  const moved = { ...secret, metadata: { ...secret.metadata, name: `managed-cluster-${'0'.repeat(64)}` } };
  expect(managedReceiptIn(moved)).toBeUndefined();
});

it('receipt names distinguish clusters by more than 32 bits', async () => {
  const secret = await saved();
  expect(secret.metadata.name).toMatch(/-[0-9a-f]{64}$/);
});

it("a cluster with another's hashed name is refused before it opens the other's receipt", async () => {
  const there = [await saved()];
  const other = { ...receipt, owner: { ...receipt.owner, uid: 'u2', name: 'another', namespace: 'bank' } };
  expect(() => assertOwnNames(other, there)).toThrow('WorkerCluster shop/one has the name shoot--shop--one');
  expect(() => assertOwnNames(receipt, there)).not.toThrow();
});

it('an unreadable receipt is none', async () => {
  expect(
    managedReceiptIn({ ...(await saved()), data: { record: Buffer.from('{').toString('base64') } }),
  ).toBeUndefined();
});

it('a receipt contains no more differences than fit into a Secret', () => {
  const many = Array.from({ length: 10_000 }, (_, n) => ({ operation: 'update', resource: `memory:pool ${n}` }));
  expect(boundReceipt({ ...receipt, drift: many }).drift).toHaveLength(100);
});
