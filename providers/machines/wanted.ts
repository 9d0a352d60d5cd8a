import { createHash } from 'node:crypto';
import { readCount } from '../../operator/api/quantity.ts';
import type { CloudContext, MachinePool } from '../cloud.ts';
import { type Pool, type ProviderContext, sizeWhileRolling } from '../contract.ts';
import type { WantedMachines } from '../pulumi/layers.ts';
import type { CloudMachine, MachineCloud } from './machine-cloud.ts';
import type { ControlPlaneReceipt, MachinesReceipt, Unmarked } from './receipt.ts';
import { userData } from './user-data.ts';

/** Range of machines' addresses where nobody names one, as in Gardener's examples. */
const DEFAULT_NODES = '10.250.0.0/16';

export const isAlive = ({ phase }: CloudMachine): boolean => phase !== 'Terminating';
export const aliveIn = (machines: readonly CloudMachine[], pool: string): CloudMachine[] =>
  machines.filter((machine) => machine.pool === pool && isAlive(machine));

/** Equal hashes need no run. */
export const hashOf = (value: unknown): string =>
  createHash('sha256').update(JSON.stringify(value)).digest('hex').slice(0, 16);

/**
 * What tells machines from those that replace them, after Gardener's worker pool hash. Not in it: what nodes follow live (labels, taints),
 * what is told only once (the token), where machines are (zones), and which releases of containerd and the like we install, or another
 * version of this program would roll the machines of all tenants at once. Pure.
 */
const poolHash = (
  { machineType, architecture, image, spot }: Pick<MachinePool, 'machineType' | 'architecture' | 'image' | 'spot'>,
  kubernetesVersion: string,
): string => hashOf([kubernetesVersion, machineType, architecture, image, spot]);

/** Whether a machine is another one than its pool describes now. One that does not say what it is never is. Pure. */
export function isOutdated(machine: CloudMachine, wanted: string | undefined, unmarked: Unmarked | undefined): boolean {
  const isOlder = unmarked !== undefined && Date.parse(machine.createdAt) < Date.parse(unmarked.madeBefore);
  const hash = machine.hash ?? (isOlder ? unmarked.hash : undefined);
  return isAlive(machine) && wanted !== undefined && hash !== undefined && hash !== wanted;
}

export const networkOf = ({ region, zones, cidrs }: Pick<WantedMachines, 'region' | 'zones' | 'cidrs'>): object => ({
  region,
  zones,
  cidrs,
});

/**
 * What the groups should be like. A group is never made smaller here: who drains takes machines away one by one. Pools of before that
 * are no longer described stay as they are, without growing, until they are deleted.
 * @param controlPlane on machines beside these, in the same network
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
    // Nobody dials machines from outside: API servers reach kubelets by the tunnel, or are beside them.
    kubeletClients: [],
    ...(controlPlane?.endpoint && { endpoint: controlPlane.endpoint }),
  };
}

/** The network of a cluster. Zones that it once had stay: a subnet goes with whatever is in it. */
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
  // A group at its minimum refuses to let a machine go.
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
    // Nodes get them from kubelets and from us; the cloud's groups know nothing of nodes.
    labels: {},
    taints: [],
    zones: [...pool.zones].sort(),
  } satisfies Partial<MachinePool>;
  const hashWith = (image: string) => poolHash({ ...described, image }, ctx.kubernetesVersion);
  // The newest image of today is another next month: the pool keeps its own until its machines are replaced anyway.
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
