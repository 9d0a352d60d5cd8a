import { expect, it, vi } from 'vitest';
import type { OpenBucket } from '../../../operator/accounts/bucket-account.ts';
import { type EtcdOfShoot, Spool, takeSnapshot } from '../../../operator/controllers/backup/take-snapshot.ts';
import { issueShootPKI, PKI_SECRET, planShootPKI } from '../../../operator/shoot/pki.ts';
import { buildSeed } from '../../kit/builders/objects.ts';
import { partOf } from '../../kit/builders/partial.ts';
import { MemoryApiServer } from '../../kit/memory-api-server.ts';

const NS = 'shoot--shop--blue';
/** Folders are made in milliseconds, and beside a whole test run in seconds. */
const BUSY = { timeout: 20_000 };
const NOW = new Date('2026-11-22T12:00:00Z');
const parameters = { apiServerAddress: '10.0.0.1', etcdAddresses: ['127.0.0.1'], services: '10.0.0.0/16' };

/** What a try to take a snapshot says, of a cluster whose Service of etcd leads to nobody. */
async function tried(server: MemoryApiServer): Promise<string> {
  const access = {
    client: server,
    // Knows Secrets by their labels, and so none that lost them.
    secrets: { get: () => undefined },
    services: {
      get: (key: string) => (key === `${NS}/etcd-main-0` ? { spec: { clusterIP: '127.0.0.1' } } : undefined),
    },
  };
  const etcd = partOf<EtcdOfShoot>({ access, seed: buildSeed({}), technicalID: NS });
  const bucket = partOf<OpenBucket>({ ctx: { now: () => NOW } });
  const spool = new Spool(undefined);
  try {
    await takeSnapshot(etcd, bucket, '', spool, AbortSignal.timeout(60_000));
    return '';
  } catch (error) {
    return (error as Error).message;
  } finally {
    await spool.close();
  }
}

it('takeSnapshot reaches etcd with keys from a Secret that lost its labels', async () => {
  const keys = await issueShootPKI({}, planShootPKI({}, parameters, NOW), parameters, NOW);
  const data = Object.fromEntries(
    Object.entries(keys).map(([key, pem]) => [key, Buffer.from(pem!).toString('base64')]),
  );
  const metadata = { name: PKI_SECRET, namespace: NS };
  const said = await tried(new MemoryApiServer({ apiVersion: 'v1', kind: 'Secret', metadata, data }));
  expect(said).toContain('etcd');
  expect(said).not.toMatch(/has no certificate|no keys/);
});

it('takeSnapshot reports missing keys', async () => {
  expect(await tried(new MemoryApiServer())).toBe(`the etcd of ${NS} has no keys yet`);
});

it('takeSnapshot writes two snapshots at a time, in turns between tenants, when a whole fleet falls asleep', async () => {
  const spool = new Spool(undefined);
  const ends = new Map<string, () => void>();
  const begun: string[] = [];
  const take = (tenant: string, name: string, signal = AbortSignal.timeout(60_000)) => {
    const cluster = `shoot--${tenant}--${name}`;
    return spool.file(
      { tenant, cluster },
      () => {
        begun.push(name);
        return new Promise<void>((resolve) => ends.set(name, resolve));
      },
      signal,
    );
  };
  const all = ['a', 'b', 'c', 'd'].map((name) => take('shop', name));
  const left = new AbortController();
  const impatient = take('shop', 'e', left.signal);
  const other = take('bank', 'z');
  // Which of two folders is made first is the disk's affair.
  await vi.waitFor(() => expect(begun.toSorted()).toEqual(['a', 'b']), BUSY);
  left.abort(new Error('the cluster is being deleted'));
  await expect(impatient).rejects.toThrow('being deleted');
  ends.get('a')!();
  await vi.waitFor(() => expect(begun.toSorted()).toEqual(['a', 'b', 'z']), BUSY);
  for (const name of ['z', 'b', 'c', 'd']) {
    await vi.waitFor(() => expect(begun).toContain(name), BUSY);
    ends.get(name)!();
  }
  await Promise.all([...all, other]);
  await spool.close();
});
