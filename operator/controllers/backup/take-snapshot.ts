import { createReadStream } from 'node:fs';
import { mkdir, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { OpenBucket } from '../../accounts/bucket-account.ts';
import { dependencyNotReady, notYetConfigured } from '../../api/errors.ts';
import { COMPONENTS, etcdMemberName } from '../../api/names.ts';
import type { Seed } from '../../api/seed.ts';
import type { SeedAccess } from '../../clusters/seed-access.ts';
import type { EtcdClient } from '../../etcd/etcd-client.ts';
import { FairQueue } from '../../kube/fair-queue.ts';
import { decodeSecret, SECRETS, type Secret } from '../../kube/resources.ts';
import { PKI_SECRET } from '../../shoot/pki.ts';
import { ETCD_GATEWAY_PORT } from '../../shoot/values.ts';
import { openEtcd } from '../shoot/etcd-access.ts';
import { writeVerified } from './integrity.ts';
import { type Snapshot, snapshotName } from './plan.ts';

/**
 * Most snapshots on disk at once: each may be as large as an etcd, and a pod with a full disk is evicted. They share
 * disk and network bandwidth too.
 */
export const SNAPSHOTS_AT_ONCE = 2;

/** Directory for snapshots before upload: they may have gigabytes, and are never held in memory. */
export class Spool {
  readonly #directory: string | undefined;
  readonly #places = new FairQueue({ total: SNAPSHOTS_AT_ONCE, perGroup: SNAPSHOTS_AT_ONCE });
  #root: Promise<string> | undefined;

  /** `directory`: persistent, emptied on first use, because leftovers of a killed process are worthless. */
  constructor(directory: string | undefined) {
    this.#directory = directory;
  }

  /**
   * Calls `use` with a new file path, and deletes the file afterwards. Waits for disk space in turns of tenants.
   * Rejects with the signal's reason on abort.
   */
  async file<T>(
    who: { tenant: string; cluster: string },
    use: (path: string) => Promise<T>,
    signal: AbortSignal,
  ): Promise<T> {
    const leave = await this.#places.acquire({ tenant: who.tenant, group: '', exclusive: who.cluster }, signal);
    try {
      return await this.#inFolder(use);
    } finally {
      leave();
    }
  }

  async #inFolder<T>(use: (path: string) => Promise<T>): Promise<T> {
    this.#root ??= this.#make().catch((error: unknown) => {
      // Retry with a new folder next time: the disk may have been full.
      this.#root = undefined;
      throw error;
    });
    const folder = await mkdtemp(join(await this.#root, 's-'));
    try {
      return await use(join(folder, 'snapshot'));
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  }

  async close(): Promise<void> {
    if (this.#root) await rm(await this.#root, { recursive: true, force: true });
    this.#root = undefined;
  }

  async #make(): Promise<string> {
    if (this.#directory === undefined) return emptyTemporaryFolder(`coppice-snapshots-${process.pid}-`);
    const root = join(this.#directory, 'snapshots');
    await rm(root, { recursive: true, force: true });
    await mkdir(root, { recursive: true, mode: 0o700 });
    return root;
  }
}

/**
 * A new temporary folder, after deleting those of an earlier process with this PID: in a container every process has
 * the same PID, and temporary files outlive a kill.
 */
async function emptyTemporaryFolder(prefix: string): Promise<string> {
  const left = (await readdir(tmpdir())).filter((name) => name.startsWith(prefix));
  await Promise.all(left.map((name) => rm(join(tmpdir(), name), { recursive: true, force: true })));
  return mkdtemp(join(tmpdir(), prefix));
}

/** Location and owner of a shoot's etcd. */
export interface EtcdOfShoot {
  access: SeedAccess;
  seed: Seed;
  /** Namespace of the shoot in the garden. */
  tenant: string;
  /** Namespace of the shoot in the seed. */
  technicalID: string;
}

/** Whether the shoot has an etcd in the seed. */
export const hasEtcd = ({ access, technicalID }: Pick<EtcdOfShoot, 'access' | 'technicalID'>): boolean =>
  access.statefulSets.get(`${technicalID}/${COMPONENTS.etcd}`) !== undefined;

/** Number of ready members of the shoot's etcd. */
export const readyMembers = ({ access, technicalID }: Pick<EtcdOfShoot, 'access' | 'technicalID'>): number =>
  access.statefulSets.get(`${technicalID}/${COMPONENTS.etcd}`)?.status?.readyReplicas ?? 0;

/** Takes a snapshot of etcd, verifies it, and uploads it. Rejects with CoppiceErrors. */
export async function takeSnapshot(
  etcd: EtcdOfShoot,
  { buckets, ctx }: OpenBucket,
  prefix: string,
  spool: Spool,
  signal: AbortSignal,
): Promise<Snapshot> {
  const who = { tenant: etcd.tenant, cluster: etcd.technicalID };
  const take = async (file: string): Promise<Snapshot> => {
    const takenAt = new Date(Math.floor(+ctx.now() / 1000) * 1000);
    const client = await clientOf(etcd, ctx.now(), signal);
    try {
      const { revision, chunks } = await client.snapshot(signal);
      const known = await writeVerified(file, chunks, signal);
      const name = snapshotName(revision, takenAt);
      const key = `${prefix}${name}`;
      await buckets.put({ ...ctx, signal }, key, { ...known, open: () => createReadStream(file) });
      return { name, key, takenAt, revision, size: known.size };
    } finally {
      await client.close();
    }
  };
  try {
    return await spool.file(who, take, signal);
  } catch (error) {
    signal.throwIfAborted();
    throw (error as Error).name === 'EtcdError' ? dependencyNotReady((error as Error).message, error) : error;
  }
}

async function clientOf(
  { access, seed, technicalID }: EtcdOfShoot,
  now: Date,
  signal: AbortSignal,
): Promise<EtcdClient> {
  const addresses: string[] = [];
  for (;;) {
    const member = access.services.get(`${technicalID}/${etcdMemberName(addresses.length)}`);
    if (!member?.spec.clusterIP) break;
    addresses.push(member.spec.clusterIP);
  }
  if (addresses.length === 0) throw notYetConfigured(`the etcd of ${technicalID} has no address yet`);
  const place = {
    namespace: technicalID,
    addresses: { apiServer: '', etcd: addresses },
    exposure: seed.spec.exposure?.type ?? 'ClusterIP',
    dialPod: access.dialPod,
    podName: etcdMemberName,
    gatewayPort: ETCD_GATEWAY_PORT,
  };
  // Caches select Secrets by label: a removed label must not stop backups.
  const keys =
    access.secrets.get(`${technicalID}/${PKI_SECRET}`) ??
    (await access.client.getOrUndefined<Secret>(SECRETS, PKI_SECRET, technicalID, { signal }));
  if (!keys) throw notYetConfigured(`the etcd of ${technicalID} has no keys yet`);
  return openEtcd(place, decodeSecret(keys.data), now);
}
