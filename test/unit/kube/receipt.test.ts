import { expect, it } from 'vitest';
import { type ReceiptPlace, Receipts } from '../../../operator/kube/receipt.ts';
import { SECRETS, type Secret } from '../../../operator/kube/resources.ts';
import { MemoryApiServer } from '../../kit/memory-api-server.ts';

const place = (key: string): ReceiptPlace => ({
  name: `made-${key}`,
  namespace: 'seed',
  labels: { for: key },
  type: 'example.org/made',
  finalizer: 'example.org/made',
});
const stranger: Secret = {
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name: 'made-a', namespace: 'seed' },
  type: 'Opaque',
  data: { record: Buffer.from('{"id":7}').toString('base64') },
};

it('Receipts keep what was made until removal, and write only changes', async () => {
  const server = new MemoryApiServer();
  const receipts = new Receipts<{ id: number }>(server, place);
  expect(await receipts.read('a')).toBeUndefined();
  const first = { id: 1 };
  await receipts.save('a', first, undefined);
  await receipts.save('a', { id: 1 }, first);
  expect(server.writes).toEqual(['create secrets seed/made-a']);
  await receipts.save('a', { id: 2 }, first);
  expect([await receipts.read('a'), await receipts.read('b')]).toEqual([{ id: 2 }, undefined]);
  await receipts.remove('a');
  expect(server.objects.size).toBe(0);
});

it('Receipts neither trust, overwrite nor delete a Secret that only has the name', async () => {
  const server = new MemoryApiServer(stranger);
  const receipts = new Receipts<{ id: number }>(server, place);
  expect(await receipts.read('a')).toBeUndefined();
  await expect(receipts.save('a', { id: 1 }, undefined)).rejects.toThrow(
    'seed/made-a has the name of a receipt, but Coppice did not write it',
  );
  await receipts.remove('a');
  expect(server.writes).toEqual([]);
});

it('a receipt without its labels still counts, and gets them back on save', async () => {
  const server = new MemoryApiServer();
  const receipts = new Receipts<{ id: number }>(server, place);
  await receipts.save('a', { id: 1 }, undefined);
  const { labels: _, ...metadata } = server.find<Secret>(SECRETS, 'made-a', 'seed')!.metadata;
  server.put({ ...server.find<Secret>(SECRETS, 'made-a', 'seed')!, metadata });
  const found = await receipts.read('a');
  expect(found).toEqual({ id: 1 });
  await receipts.save('a', { id: 1 }, found);
  expect(server.find(SECRETS, 'made-a', 'seed')?.metadata.labels).toEqual({ for: 'a' });
});

it('reading a receipt that cannot be parsed throws', async () => {
  const broken = { ...stranger, type: 'example.org/made', data: { record: Buffer.from('{').toString('base64') } };
  await expect(new Receipts(new MemoryApiServer(broken), place).read('a')).rejects.toThrow('cannot be read');
});

it('of two receipts made from the same version the later save is refused', async () => {
  const server = new MemoryApiServer();
  const [one, other] = [new Receipts<{ id: number }>(server, place), new Receipts<{ id: number }>(server, place)];
  await one.save('a', { id: 1 }, undefined);
  const [mine, theirs] = [await one.read('a'), await other.read('a')];
  await one.save('a', { id: 2 }, mine);
  await expect(other.save('a', { id: 3 }, theirs)).rejects.toMatchObject({ isConflict: true });
  await expect(other.save('a', { id: 3 }, other.madeFrom({ id: 0 }, undefined))).rejects.toMatchObject({
    isAlreadyExists: true,
  });
  expect(await one.read('a')).toEqual({ id: 2 });
  await other.save('a', { id: 3 }, await other.read('a'));
  expect(await one.read('a')).toEqual({ id: 3 });
});
