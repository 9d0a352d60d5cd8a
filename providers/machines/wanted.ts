import { createHash } from 'node:crypto';
import { readCount } from '../../operator/api/quantity.ts';
import type { CloudContext, MachinePool } from '../cloud.ts';
import { type Pool, type ProviderContext, sizeWhileRolling } from '../contract.ts';
import type { WantedMachines } from '../pulumi/layers.ts';
import type { CloudMachine, MachineCloud } from './machine-cloud.ts';
import type { ControlPlaneReceipt, MachinesReceipt, Unmarked } from './receipt.ts';
import { userData } from './user-data.ts';

/** Default address range of machines, as in Gardener's examples. */
const DEFAULT_NODES = '10.250.0.0/16';

export const isControlPlaneAlive = ({ phase }: CloudMachine): boolean => phase !== 'Terminating';
export const aliveIn = (machines: readonly CloudMachine[], pool: string): CloudMachine[] =>
  machines.filter((machine) => machine.pool === pool && isControlPlaneAlive(machine));

/** Equal hashes need no run. */
export const hashOf = (value: unknown): string =>
  createHash('sha256').update(JSON.stringify(value)).digest('hex').slice(0, 16);

/**
 * Hash by which outdated machines are recognised, similar to Gardener's worker pool hash. Excludes labels and taints
 * (applied to live nodes), the token, zones, and the releases of containerd etc., because a new version of this program
 * would otherwise roll the machines of all tenants at once. Pure.
 */
const poolHash = (
  { machineType, architecture, image, spot }: Pick<MachinePool, 'machineType' | 'architecture' | 'image' | 'spot'>,
  kubernetesVersion: string,
): string => hashOf([kubernetesVersion, machineType, architecture, image, spot]);

/** Whether a machine differs from its pool's description. False for a machine without a known description. Pure. */
export function isOutdated(machine: CloudMachine, wanted: string | undefined, unmarked: Unmarked | undefined): boolean {
  const isOlder = unmarked !== undefined && Date.parse(machine.createdAt) < Date.parse(unmarked.madeBefore);
  const hash = machine.hash ?? (isOlder ? unmarked.hash : undefined);
  return isControlPlaneAlive(machine) && wanted !== undefined && hash !== undefined && hash !== wanted;
}

export const networkOf = ({ region, zones, cidrs }: Pick<WantedMachines, 'region' | 'zones' | 'cidrs'>): object => ({
  region,
  zones,
  cidrs,
});

/**
 * Desired groups. Never shrinks a group: the drain removes machines one by one. Undescribed older pools keep their size
 * until deleted.
 * @param controlPlane control plane on machines in the same network
 */
export async function wantedMachines(
  cloud: MachineCloud,
  ctx: ProviderContext,
  account: CloudContext,
  pools: readonly Pool[],
  machines: readonly CloudMachine[],
  receipt: Pick<MachinesReceipt, 'wanted' | 'unmarked'> | undefined,
  controlPlane?: ControlPlaneReceipt,
): Promise<WantedMachines> {
  const before = receipt?.wanted;
  const made = new Map(before?.pools.map((pool) => [pool.name, pool]));
  const described = await Promise.all(
    pools.map((pool) =>
      machinePool(
        { cloud, ctx, account },
        pool,
        aliveIn(machines, pool.name),
        made.get(pool.name),
        receipt?.unmarked?.[pool.name],
      ),
    ),
  );
  const dropped = [...made.values()]
    .filter(({ name }) => !pools.some((pool) => pool.name === name) && aliveIn(machines, name).length > 0)
    .map((pool) => ({ ...pool, ...sizes(aliveIn(machines, pool.name).length) }));
  const all = [...described, ...dropped].sort((a, b) => (a.name < b.name ? -1 : 1));
  return {
    ...networkFor(ctx, [before?.zones ?? [], controlPlane?.wanted.zones ?? [], ...all.map(({ zones }) => zones)]),
    pools: all,
    // Machines accept no connections: API servers reach kubelets by the tunnel, or are beside them.
    kubeletClients: [],
    ...(controlPlane?.endpoint && { endpoint: controlPlane.endpoint }),
  };
}

/** Network of a cluster. Former zones stay: deleting a subnet would delete what is in it. */
export function networkFor(
  { nodeCIDR, podCIDR, profile, region, serviceCIDR }: ProviderContext,
  zones: readonly (readonly string[])[],
): Pick<WantedMachines, 'region' | 'zones' | 'cidrs'> {
  const offered = profile.spec.regions.find(({ name }) => name === region)?.zones?.map(({ name }) => name) ?? [];
  const named = [...new Set(zones.flat())].sort();
  return {
    region,
    zones: named.length > 0 ? named : offered,
    cidrs: { nodes: nodeCIDR ?? DEFAULT_NODES, pods: podCIDR, services: serviceCIDR },
  };
}

const sizes = (desired: number): Pick<MachinePool, 'minimum' | 'maximum' | 'desired'> => ({
  // A group at its minimum refuses to release a machine.
  minimum: 0,
  maximum: desired,
  desired,
});

async function machinePool(
  { cloud, ctx, account }: { cloud: MachineCloud; ctx: ProviderContext; account: CloudContext },
  pool: Pool,
  there: readonly CloudMachine[],
  before: MachinePool | undefined,
  unmarked: Unmarked | undefined,
): Promise<MachinePool> {
  const type = ctx.profile.spec.machineTypes.find(({ name }) => name === pool.machineType);
  const architecture = type?.architecture === 'arm64' ? 'arm64' : 'amd64';
  const described = {
    name: pool.name,
    machineType: pool.machineType,
    spot: pool.spot ?? false,
    gpu: readCount(type?.gpu ?? 0),
    architecture,
    // kubelets and the operator set them on nodes; the cloud's groups do not know nodes.
    labels: {},
    taints: [],
    zones: [...pool.zones].sort(),
  } satisfies Partial<MachinePool>;
  const hashWith = (image: string) => poolHash({ ...described, image }, ctx.kubernetesVersion);
  // The newest image changes over time: a pool keeps its own until its machines are replaced anyway.
  const isKept =
    before?.architecture === architecture && (before.hash === undefined || before.hash === hashWith(before.image));
  const { image, rootDevice } = isKept ? before : await cloud.image(account, architecture);
  const hash = hashWith(image);
  const outdated = there.filter((machine) => isOutdated(machine, hash, unmarked)).length;
  const desired = Math.max(sizeWhileRolling(pool, outdated), there.length);
  return {
    ...described,
    ...sizes(desired),
    image,
    ...(rootDevice !== undefined && { rootDevice }),
    hash,
    userData: userData(ctx, pool, await ctx.bootstrapKubeconfig(pool.name, desired)),
  };
}
