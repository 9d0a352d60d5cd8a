import { providerOf } from '../../operator/api/cloudprofile.ts';
import type { ProviderContext } from '../contract.ts';
import { type Account, type Bucket, NO_USAGE, type Usage } from './cloud-model.ts';

type Customer = Pick<ProviderContext, 'profile' | 'region' | 'technicalID'>;

interface Cloud {
  bucket?: Bucket;
  /** By technicalID, then by pool. */
  clusters: Map<string, { region: string; pools: Map<string, Usage> }>;
}

/**
 * What the simulated clouds remember of their customers, a cloud a profile. In memory: after a restart each cluster tells anew
 * what it has when it is reconciled, so for that moment quotas do not see the others, and nobody waits in line.
 */
export class Accounts {
  readonly #clouds = new Map<string, Cloud>();
  readonly #sequences = new Map<string, number>();

  /** The account as this cluster's next request meets it. */
  account({ profile, region }: Customer): Account {
    const { bucket, clusters } = this.#cloud(profile);
    const usage = [...clusters.values()]
      .filter((cluster) => cluster.region === region)
      .flatMap(({ pools }) => [...pools.values()])
      .reduce(
        (sum, pool) => ({
          nodes: sum.nodes + pool.nodes,
          millicores: sum.millicores + pool.millicores,
          gpus: sum.gpus + pool.gpus,
        }),
        NO_USAGE,
      );
    return { usage, ...(bucket && { bucket }) };
  }

  /** How many machines were asked for on behalf of the cluster. */
  sequence({ technicalID }: Customer): number {
    return this.#sequences.get(technicalID) ?? 0;
  }

  /** Notes what a pool has now. */
  has({ profile, region, technicalID }: Customer, pool: string, usage: Usage): void {
    const { clusters } = this.#cloud(profile);
    const cluster = clusters.get(technicalID) ?? { region, pools: new Map<string, Usage>() };
    clusters.set(technicalID, cluster);
    cluster.pools.set(pool, usage);
  }

  /** Notes requests that were made. */
  asked({ profile, technicalID }: Customer, sequence: number, bucket: Bucket | undefined): void {
    this.#sequences.set(technicalID, sequence);
    if (bucket) this.#cloud(profile).bucket = bucket;
  }

  /** The cluster has gone. */
  forget({ profile, technicalID }: Customer): void {
    this.#cloud(profile).clusters.delete(technicalID);
    this.#sequences.delete(technicalID);
  }

  #cloud(profile: ProviderContext['profile']): Cloud {
    const key = `${providerOf(profile)}/${profile.metadata.name}`;
    let cloud = this.#clouds.get(key);
    if (!cloud) {
      cloud = { clusters: new Map() };
      this.#clouds.set(key, cloud);
    }
    return cloud;
  }
}
