import { globSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { readReceipt, type StoredReceipt, storedReceipt } from '../../../operator/burst/clusters/stored-receipt.ts';
import { burstReceipts } from '../../../operator/controllers/burst/dependencies.ts';
import { manifestOf } from '../../../operator/controllers/burst/own-clusters.ts';
import { type MembershipReceipt, membershipReceipts } from '../../../operator/controllers/membership/receipt.ts';
import { SECRETS, type Secret } from '../../../operator/kube/resources.ts';
import { BurstTestbed, demand, MINUTE, policyNamed } from '../../kit/burst/testbed.ts';
import { MemoryApiServer } from '../../kit/memory-api-server.ts';

interface Line {
  readonly of: string;
  readonly phase: string;
  readonly receipt: unknown;
}

/** Phases of the earliest commit come first. */
const FILES = globSync('test/fixtures/receipts-*.jsonl').sort();
const lines = FILES.flatMap((file) =>
  readFileSync(file, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Line),
);
const of = <Receipt>(kind: string) =>
  lines.filter((line) => line.of === kind).map(({ phase, receipt }) => ({ phase, receipt: receipt as Receipt }));

/** The testbed of policy peak, with this in its receipt and a cluster for each purchase that was seen. */
async function opened(stored: unknown): Promise<BurstTestbed> {
  const bed = new BurstTestbed();
  const policy = bed.objects.put(policyNamed('peak'));
  await burstReceipts(bed.deps.garden, 'kube-system').save('shop/peak', stored as StoredReceipt, undefined);
  const { purchases = [] } = stored as Partial<StoredReceipt>;
  if (Array.isArray(purchases))
    for (const purchase of purchases) {
      const candidate = policy.spec.candidates.find(({ name }) => name === purchase.candidate);
      if (!candidate || !purchase.uid) continue;
      const phase = { name: purchase.warm ? 'Warm' : 'Coming' } as const;
      const cluster = manifestOf(policy, candidate, { ...purchase, phase });
      bed.objects.put({ ...cluster, metadata: { ...cluster.metadata, uid: purchase.uid } });
    }
  const times = JSON.stringify(stored).match(/2026-11-23T[0-9:.]+Z/g) ?? [];
  bed.now = Math.max(bed.now, ...times.map((text) => Date.parse(text)));
  bed.objects.writes.length = 0;
  return bed;
}

const spentOf = ({ spent }: StoredReceipt) => Object.values(spent).reduce((sum, amount) => sum + Number(amount), 0);

describe('receipts written by earlier commits', () => {
  it.each(of<StoredReceipt>('BurstPolicy'))('of a policy are opened: $phase', async ({ receipt }) => {
    const bed = await opened(receipt);
    expect(await burstReceipts(bed.deps.garden, 'kube-system').read('shop/peak')).toEqual(receipt);
    await bed.look();
    expect(bed.says('Reconciled')).toBeUndefined();
    const after = bed.receipt() ?? receipt;
    const isKept = ({ name }: { name: string }) => after.purchases.some((one) => one.name === name);
    expect(receipt.purchases.filter(({ uid }) => uid !== undefined).every(isKept)).toBe(true);
    expect(after.next).toBeGreaterThanOrEqual(receipt.next);
    expect(spentOf(after)).toBeGreaterThanOrEqual(spentOf(receipt));
    // What had been ordered is made under the name that was written down, and nothing else is.
    const names = receipt.purchases.map(({ name }) => name);
    expect(bed.clusters().filter(({ metadata }) => !names.includes(metadata.name))).toEqual([]);
  });

  it.each(of<StoredReceipt>('BurstPolicy'))('of a policy are stored unchanged byte for byte: $phase', ({ receipt }) => {
    expect(JSON.stringify(storedReceipt(readReceipt(receipt)))).toBe(JSON.stringify(receipt));
  });

  it.each(of<MembershipReceipt>('Membership'))('of a membership are opened: $phase', async ({ receipt }) => {
    const garden = new MemoryApiServer();
    const cache = { get: () => undefined, absorb: () => {}, waitFor: async () => {} } as never;
    const receipts = membershipReceipts(garden as never, 'kube-system', cache);
    await receipts.save('shop/demo.production', receipt, undefined);
    expect(await receipts.read('shop/demo.production')).toEqual(receipt);
  });
});

const [known] = of<StoredReceipt>('BurstPolicy').filter(({ receipt }) => receipt.purchases.length > 0);
const [purchase] = known!.receipt.purchases;

describe('an unreadable receipt', () => {
  it.each([
    ['nothing but the name of its policy is in it', { policy: { name: 'peak' } }, 'policy.namespace'],
    ['it is of another form', { ...known!.receipt, purchases: { one: purchase } }, 'purchases'],
    [
      'a purchase has no rate',
      { ...known!.receipt, purchases: [{ ...purchase, rate: undefined }] },
      'purchases.0.rate',
    ],
    ['a rate is no money', { ...known!.receipt, purchases: [{ ...purchase, rate: 'much' }] }, 'purchases.0.rate'],
    ['a time is none', { ...known!.receipt, purchases: [{ ...purchase, joinedAt: 'soon' }] }, 'purchases.0.joinedAt'],
    [
      'a pool is granted no number of nodes',
      { ...known!.receipt, purchases: [{ ...purchase, granted: { a: { nodes: 'many', each: '0.1' } } }] },
      'purchases.0.granted.a.nodes',
    ],
    [
      'a cluster sleeps and does not wait',
      { ...known!.receipt, purchases: [{ ...purchase, sleeps: true }] },
      'purchases.0.sleeps',
    ],
    [
      'a cluster is emptied that has not joined',
      { ...known!.receipt, purchases: [{ ...purchase, emptyingSince: purchase!.at }] },
      'purchases.0.emptyingSince',
    ],
    [
      'a cluster waits and is of no use',
      { ...known!.receipt, purchases: [{ ...purchase, warm: true, joinedAt: purchase!.at, useless: true }] },
      'purchases.0.useless',
    ],
    [
      'a cluster was given back and does not leave',
      { ...known!.receipt, purchases: [{ ...purchase, leavingAt: purchase!.at }] },
      'purchases.0.leavingAt',
    ],
    ['a growth has no pool', { ...known!.receipt, growths: [{ cluster: 'shop/private' }] }, 'growths.0.uid'],
  ])('is held and named, and its policy does nothing: %s', async (_, stored, field) => {
    const bed = await opened(stored);
    const before = bed.objects.find(SECRETS, bed.recordName(), 'kube-system') as Secret;
    bed.demands = [demand('Deployment shop/web', 3)];
    for (let look = 0; look < 3; look++) await bed.look(MINUTE);
    expect(bed.says('Reconciled')).toBe('False ReconcileFailed');
    const { message } = bed.policy()!.status!.conditions!.find(({ type }) => type === 'Reconciled')!;
    expect(message).toContain(`the receipt in Secret kube-system/${bed.recordName()} cannot be read (${field}`);
    expect(bed.clusters()).toEqual([]);
    expect(bed.objects.find(SECRETS, bed.recordName(), 'kube-system')).toEqual(before);
  });

  it('of a policy keeps its work from other policies, which would buy a second time', async () => {
    const bed = await opened({ ...known!.receipt, purchases: {} });
    bed.objects.put(policyNamed('later', {}, bed.now));
    bed.demands = [demand('Deployment shop/web', 3)];
    for (let look = 0; look < 3; look++) await bed.look(MINUTE);
    expect(bed.clusters()).toEqual([]);
  });

  it('of a membership does not count as missing', async () => {
    const [one] = of<MembershipReceipt>('Membership');
    const garden = new MemoryApiServer();
    const cache = { get: () => undefined, absorb: () => {}, waitFor: async () => {} } as never;
    const receipts = membershipReceipts(garden as never, 'kube-system', cache);
    await receipts.save('shop/demo.production', { ...one!.receipt, parked: 'Somehow' } as never, undefined);
    await expect(receipts.read('shop/demo.production')).rejects.toThrow('cannot be read (parked:');
  });

  it('of a later Coppice keeps unknown fields of purchases of each kind', () => {
    const later = { later: { is: 'kept' } };
    const wide = of<StoredReceipt>('BurstPolicy').map(({ receipt: { growths, wakes, purchases, ...receipt } }) => ({
      ...later,
      ...receipt,
      purchases: purchases.map((one) => ({ ...later, ...one })),
      ...(growths && { growths: growths.map((one) => ({ ...one, ...later })) }),
      ...(wakes && { wakes: wakes.map((one) => ({ ...one, ...later })) }),
    }));
    for (const stored of wide) expect(storedReceipt(readReceipt(stored))).toEqual(stored);
  });

  it('of a later Coppice keeps unknown fields of each phase', async () => {
    const stored = { ...known!.receipt, later: 1, purchases: [{ ...purchase, later: { is: 'kept' } }] };
    const bed = await opened(stored);
    await bed.look(MINUTE);
    expect(bed.receipt()).toMatchObject({ later: 1, purchases: [{ later: { is: 'kept' } }] });
  });
});
