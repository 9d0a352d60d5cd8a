import { createHash } from 'node:crypto';
import { parseCount } from '../../operator/api/quantity.ts';
import type { CloudContext, MachinePool } from '../cloud.ts';
import type { Pool, ProviderContext } from '../contract.ts';
import type { WantedMachines } from '../pulumi/layers.ts';
import type { CloudMachine, MachineCloud } from './machine-cloud.ts';
import { userData } from './user-data.ts';

/** Range of machines' addresses where nobody names one, as in Gardener's examples. */
const DEFAULT_NODES = '10.250.0.0/16';

export const isAlive = ({ phase }: CloudMachine): boolean => phase !== 'Terminating';
const alive = (machines: readonly CloudMachine[], pool: string): number =>
  machines.filter((machine) => machine.pool === pool && isAlive(machine)).length;

/** Equal hashes need no run. */
export const hashOf = (value: unknown): string =>
  createHash('sha256').update(JSON.stringify(value)).digest('hex').slice(0, 16);

export const networkOf = ({ region, zones, cidrs }: WantedMachines): object => ({ region, zones, cidrs });

/**
 * What the groups should be like. A group is never made smaller here: who drains takes machines away one by one. Pools of before that
 * are no longer described stay as they are, without growing, until they are deleted.
 */
export async function wantedMachines(
  cloud: MachineCloud,
  ctx: ProviderContext,
  account: CloudContext,
  pools: readonly Pool[],
  machines: readonly CloudMachine[],
  before: WantedMachines | undefined,
): Promise<WantedMachines> {
  const made = new Map(before?.pools.map((pool) => [pool.name, pool]));
  const described = await Promise.all(
    pools.map((pool) => machinePool(cloud, ctx, account, pool, alive(machines, pool.name), made.get(pool.name))),
  );
  const dropped = [...made.values()]
    .filter(({ name }) => !pools.some((pool) => pool.name === name) && alive(machines, name) > 0)
    .map((pool) => ({ ...pool, ...sizes(alive(machines, pool.name)) }));
  const all = [...described, ...dropped].sort((a, b) => (a.name < b.name ? -1 : 1));
  const { region, profile } = ctx;
  const offered = profile.spec.regions.find(({ name }) => name === region)?.zones?.map(({ name }) => name) ?? [];
  const named = [...new Set([...(before?.zones ?? []), ...all.flatMap(({ zones }) => zones)])].sort();
  return {
    region,
    zones: named.length > 0 ? named : offered,
    cidrs: { nodes: ctx.nodeCIDR ?? DEFAULT_NODES, pods: ctx.podCIDR, services: ctx.serviceCIDR },
    pools: all,
    // Clouds are dialled from machines only: the way back, for logs and webhooks, is not there yet.
    kubeletClients: [],
  };
}

const sizes = (desired: number): Pick<MachinePool, 'minimum' | 'maximum' | 'desired'> => ({
  // A group at its minimum refuses to let a machine go.
  minimum: 0,
  maximum: desired,
  desired,
});

async function machinePool(
  cloud: MachineCloud,
  ctx: ProviderContext,
  account: CloudContext,
  pool: Pool,
  there: number,
  before: MachinePool | undefined,
): Promise<MachinePool> {
  const type = ctx.profile.spec.machineTypes.find(({ name }) => name === pool.machineType);
  const architecture = type?.architecture === 'arm64' ? 'arm64' : 'amd64';
  // The newest image of today is another next month: the pool keeps what it began with.
  const kept = before?.architecture === architecture ? before : undefined;
  const { image, rootDevice } = kept ?? (await cloud.image(account, architecture));
  return {
    name: pool.name,
    machineType: pool.machineType,
    ...sizes(Math.max(pool.count, there)),
    spot: pool.spot ?? false,
    gpu: parseCount(type?.gpu ?? 0),
    architecture,
    // Nodes get them from kubelets and from us; the cloud's groups know nothing of nodes.
    labels: {},
    taints: [],
    zones: [...pool.zones].sort(),
    image,
    ...(rootDevice !== undefined && { rootDevice }),
    userData: userData(ctx, pool, await ctx.bootstrapKubeconfig(pool.name)),
  };
}
