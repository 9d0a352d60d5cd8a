import { providerOf } from '../../operator/api/cloudprofile.ts';
import type { ProviderContext } from '../contract.ts';
import { type Account, type Bucket, NO_USAGE, type QuotaUsage } from './cloud-model.ts';

type Customer = Pick<ProviderContext, 'profile' | 'region' | 'technicalID'>;

interface Cloud {
  bucket?: Bucket;
  /** By technicalID, then by pool. */
  clusters: Map<string, { region: string; pools: Map<string, QuotaUsage> }>;
  /** By region: running sum, so that the thousandth cluster costs no more than the first. */
  usage: Map<string, QuotaUsage>;
}

const plus = (a: QuotaUsage, b: QuotaUsage, sign: 1 | -1): QuotaUsage => ({
  nodes: a.nodes + sign * b.nodes,
  millicores: a.millicores + sign * b.millicores,
  gpus: a.gpus + sign * b.gpus,
});

/**
 * Memory of the simulated clouds about accounts, one cloud per profile. After a restart each cluster reports again when
 * reconciled: until then quotas miss the others, and throttling starts empty.
 */
export class Accounts {
  readonly #clouds = new Map<string, Cloud>();
  readonly #sequences = new Map<string, number>();

  /** The account for this cluster's next request. */
  account({ profile, region }: Customer): Account {
    const { bucket, usage } = this.#cloud(profile);
    return { usage: usage.get(region) ?? NO_USAGE, ...(bucket && { bucket }) };
  }

  /** Number of machines requested for the cluster so far. */
  sequence({ technicalID }: Customer): number {
    return this.#sequences.get(technicalID) ?? 0;
  }

  /** Records the usage of a pool. */
  has({ profile, region, technicalID }: Customer, pool: string, usage: QuotaUsage): void {
    const cloud = this.#cloud(profile);
    const cluster = cloud.clusters.get(technicalID) ?? { region, pools: new Map<string, QuotaUsage>() };
    cloud.clusters.set(technicalID, cluster);
    const before = cloud.usage.get(cluster.region) ?? NO_USAGE;
    cloud.usage.set(cluster.region, plus(plus(before, usage, 1), cluster.pools.get(pool) ?? NO_USAGE, -1));
    cluster.pools.set(pool, usage);
  }

  /** Records requests. */
  asked({ profile, technicalID }: Customer, sequence: number, bucket: Bucket | undefined): void {
    this.#sequences.set(technicalID, sequence);
    if (bucket) this.#cloud(profile).bucket = bucket;
  }

  /** Forgets a deleted cluster. */
  forget({ profile, technicalID }: Customer): void {
    const cloud = this.#cloud(profile);
    const cluster = cloud.clusters.get(technicalID);
    if (cluster) {
      const had = [...cluster.pools.values()].reduce((sum, pool) => plus(sum, pool, 1), NO_USAGE);
      cloud.usage.set(cluster.region, plus(cloud.usage.get(cluster.region) ?? NO_USAGE, had, -1));
      cloud.clusters.delete(technicalID);
    }
    this.#sequences.delete(technicalID);
  }

  #cloud(profile: ProviderContext['profile']): Cloud {
    const key = `${providerOf(profile)}/${profile.metadata.name}`;
    let cloud = this.#clouds.get(key);
    if (!cloud) {
      cloud = { clusters: new Map(), usage: new Map() };
      this.#clouds.set(key, cloud);
    }
    return cloud;
  }
}
