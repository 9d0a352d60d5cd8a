import { CoppiceError, configurationProblem } from '../../operator/api/errors.ts';
import { ADOPTED } from '../adopted-cluster.ts';
import type { Adoption, Change, CloudContext, ManagedClusterOutputs, WantedCluster } from '../cloud.ts';
import type { StackRequest } from './request.ts';
import type { StackRunner } from './stack-runner.ts';

/** A managed cluster with the cluster to adopt. */
export type AdoptingCluster = WantedCluster & { adopt: Adoption };

/** A cluster to adopt, as read from the cloud. */
export interface FoundCluster {
  /** Properties that the program declares as they are, so that it does not change them. */
  facts: Record<string, unknown>;
  /** Whether its tags say that this owner adopted it. */
  isTaken: boolean;
}

/** Adoption of clusters in a cloud. */
export interface AdoptingCloud {
  /** Reads the cluster. Throws a CoppiceError when it is missing, elsewhere, or owned by another. */
  look(ctx: CloudContext, cluster: AdoptingCluster): Promise<FoundCluster>;
  /** Facts for a cluster that cannot be read any more. */
  unseen(cluster: AdoptingCluster): FoundCluster;
}

/** Creates a request for the layer `adopted` with further program inputs. */
type Open = (ctx: CloudContext, inputs: Record<string, unknown>) => Promise<StackRequest>;

/** Operations on an existing cluster: one stack with the cluster and what Coppice makes in it. */
export function adoptedLayer(runner: StackRunner, cloud: AdoptingCloud, open: Open) {
  const request = async (ctx: CloudContext, cluster: AdoptingCluster, found: FoundCluster, leaving = false) => ({
    ...(await open(ctx, { ...cluster, owner: ctx.owner, found: found.facts, leaving })),
    importFirst: true,
  });
  const look = async (ctx: CloudContext, cluster: AdoptingCluster) =>
    request(ctx, cluster, await cloud.look(ctx, cluster));
  const harmless = (changes: Change[], { adopt }: AdoptingCluster): Change[] => {
    refuseLosses(changes, adopt);
    return changes;
  };

  return {
    preview: async (ctx: CloudContext, cluster: AdoptingCluster) =>
      harmless(await runner.preview(await look(ctx, cluster)), cluster),

    async apply(ctx: CloudContext, cluster: AdoptingCluster): Promise<ManagedClusterOutputs> {
      const asked = await look(ctx, cluster);
      // Others keep changing the cluster, and some clouds rewrite the whole cluster for a tag: refresh first, for the
      // preview too, so that unmanaged properties stay as they are.
      harmless(await runner.drift(asked), cluster);
      const { outputs } = await runner.apply({ ...asked, refresh: true });
      return outputs as unknown as ManagedClusterOutputs;
    },

    drift: async (ctx: CloudContext, cluster: AdoptingCluster) => runner.drift(await look(ctx, cluster)),

    async destroy(ctx: CloudContext, cluster: AdoptingCluster): Promise<void> {
      const leaving = { ...cluster, pools: [], kubernetesVersion: '' };
      const found = await cloud.look(ctx, leaving).catch((error: unknown) => {
        if (!(error instanceof CoppiceError) || error.code !== 'ERR_CONFIGURATION_PROBLEM') throw error;
        ctx.log.warn({ cluster: cluster.adopt.id, err: error }, 'what was to be taken over is gone, or of others');
        return cloud.unseen(cluster);
      });
      const asked = await request(ctx, leaving, found, true);
      // Records in the state whether the cluster is deleted, and removes our tags from one that stays.
      if (found.isTaken) await runner.apply({ ...asked, refresh: true });
      await runner.destroy(asked);
    },
  };
}

/** Pure: throws when a run would delete or replace the adopted cluster. */
export function refuseLosses(changes: readonly Change[], { id }: Adoption): void {
  const loss = changes.find(({ operation, resource }) => resource.endsWith(` ${ADOPTED}`) && operation !== 'update');
  if (!loss) return;
  const { operation, properties = [] } = loss;
  const because = properties.length > 0 ? ` because of ${properties.join(', ')}` : '';
  throw configurationProblem(
    `taking over ${id} would ${operation} it${because}`,
    'Nothing was changed. Ask for the cluster as it is, or make a new one.',
  );
}
