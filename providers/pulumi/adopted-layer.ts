import { CoppiceError, configurationProblem } from '../../operator/api/errors.ts';
import { ADOPTED } from '../adopted-cluster.ts';
import type { Adoption, Change, CloudContext, ManagedCluster, ManagedClusterOutputs } from '../cloud.ts';
import type { StackRequest } from './request.ts';
import type { StackRunner } from './stack-runner.ts';

/** A managed cluster that says which one it takes over. */
export type AdoptingCluster = ManagedCluster & { adopt: Adoption };

/** A cluster to be taken over, as the cloud shows it. */
export interface FoundCluster {
  /** What the program has to know of it: declared as it is, it is not changed. */
  facts: Record<string, unknown>;
  /** Whether it says by its tags that it was taken over for the owner. */
  isTaken: boolean;
}

/** How a cloud takes clusters over. */
export interface AdoptingCloud {
  /** Looks at the cluster. Throws a CoppiceError when it is not there, is somewhere else, or is another's. */
  look(ctx: CloudContext, cluster: AdoptingCluster): Promise<FoundCluster>;
  /** The same of one that cannot be looked at any more. */
  unseen(cluster: AdoptingCluster): FoundCluster;
}

/** A request for the layer `adopted`, for a program with these further inputs. */
type Open = (ctx: CloudContext, inputs: Record<string, unknown>) => Promise<StackRequest>;

/** Operations on a cluster that exists already: one stack, with the cluster and what we make in it. */
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
      // Others go on changing it, and some clouds are told all of a cluster for a change of its tags: what is left as it is must
      // be as it is now, for the look ahead too.
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
      // Says in the state whether the cluster itself goes, and takes our tags off one that stays.
      if (found.isTaken) await runner.apply({ ...asked, refresh: true });
      await runner.destroy(asked);
    },
  };
}

/** Pure: throws when a run would not leave the cluster that is taken over where it is. */
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
