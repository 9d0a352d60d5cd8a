import { CoppiceError } from '../../operator/api/errors.ts';
import { LABELS, ROLES } from '../../operator/api/group.ts';
import type { KubeObject } from '../../operator/api/meta.ts';
import { machineName } from '../../operator/api/names.ts';
import type { Node } from '../../operator/kube/resources.ts';
import type { ClustersWithoutControlPlane, Machine, MachinesSeen, Pool, ProviderContext } from '../contract.ts';
import { capacityOf } from '../machine-types.ts';
import type { Accounts } from './accounts.ts';
import { added, controlPlaneCreation, NO_USAGE } from './cloud-model.ts';
import { growPool } from './growth.ts';
import { simulatedNode } from './node.ts';
import { simulationOf, simulationProblem } from './settings.ts';

/** ConfigMap in the shoot's namespace with a key per machine, for a cluster that exists as objects only. */
const MACHINES_CONFIG_MAP = 'machines';

/** A machine in the ConfigMap. Times are RFC 3339. */
interface KeptMachine {
  /** Absent: a control plane machine. */
  pool?: string;
  /** Number in its pool. */
  number: number;
  zone?: string;
  createdAt: string;
  readyAt: string;
  /** When the cloud interrupts it; absent: never. */
  lostAt?: string;
}

/** Machines by name. An invalid value counts as no machine: it is made again. */
function keptMachines(configMap: KubeObject | undefined): Map<string, KeptMachine> {
  const machines = new Map<string, KeptMachine>();
  for (const [name, text] of Object.entries((configMap?.data ?? {}) as Record<string, string>)) {
    const machine = parsed(text);
    if (machine) machines.set(name, machine);
  }
  return machines;
}

/** ConfigMap of these machines, independent of their order. */
function configMapOf(
  ctx: Pick<ProviderContext, 'namespace' | 'shootName' | 'shootNamespace'>,
  machines: ReadonlyMap<string, KeptMachine>,
): KubeObject {
  const names = [...machines.keys()].sort();
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: {
      name: MACHINES_CONFIG_MAP,
      namespace: ctx.namespace,
      labels: {
        [LABELS.managedBy]: 'coppice',
        [LABELS.shoot]: ctx.shootName,
        [LABELS.shootNamespace]: ctx.shootNamespace,
        [LABELS.role]: ROLES.machine,
      },
    },
    data: Object.fromEntries(names.map((name) => [name, JSON.stringify(machines.get(name))])),
  };
}

function parsed(text: string): KeptMachine | undefined {
  try {
    const machine = JSON.parse(text) as Partial<KeptMachine> | null;
    const isSound =
      Number.isInteger(machine?.number) &&
      [machine?.createdAt, machine?.readyAt].every((time) => Number.isFinite(Date.parse(time ?? '')));
    return isSound ? (machine as KeptMachine) : undefined;
  } catch {
    return undefined;
  }
}

type Machines = Map<string, KeptMachine>;

/** Clusters without control planes: `simulation.controlPlane.run: false`. @param now milliseconds since the epoch */
export function clustersWithoutControlPlane(accounts: Accounts, now: () => number): ClustersWithoutControlPlane {
  return {
    configMapName: MACHINES_CONFIG_MAP,

    includes: (profile) => simulationProblem(profile) === undefined && !simulationOf(profile).controlPlane.run,

    update(ctx, { members, pools }, configMap) {
      const time = now();
      const before = keptMachines(configMap);
      const after: Machines = new Map();
      for (let number = 0; number < members; number++) {
        const name = controlPlaneMachine(number);
        after.set(name, before.get(name) ?? newMember(ctx, number, time));
      }
      const refusals: Error[] = [];
      for (const pool of pools) {
        const own = [...before].filter(([, machine]) => machine.pool === pool.name && !isLost(machine, time));
        const kept = new Map(own.sort(([, a], [, b]) => firstToStay(a, b, time)).slice(0, pool.count));
        const refusal = grow(ctx, pool, kept, accounts, time);
        if (refusal) refusals.push(refusal);
        for (const [name, machine] of kept) after.set(name, machine);
      }
      for (const pool of droppedPools(before, pools)) accounts.has(ctx, pool, NO_USAGE);
      return { configMap: configMapOf(ctx, after), ...(refusals[0] && { refusal: refusals[0] }) };
    },

    read: (ctx, pools, configMap) => machinesSeen(ctx, pools, keptMachines(configMap), now()),
  };
}

/** No machine name of a pool contains a dot. */
const controlPlaneMachine = (number: number): string => `control-plane.${number}`;

const isLost = ({ lostAt }: KeptMachine, time: number): boolean => lostAt !== undefined && Date.parse(lostAt) <= time;
const isUp = ({ readyAt }: KeptMachine, time: number): boolean => Date.parse(readyAt) <= time;

/** Like real machines: those that are not up go first, then the youngest. */
const firstToStay = (a: KeptMachine, b: KeptMachine, time: number): number =>
  Number(isUp(b, time)) - Number(isUp(a, time)) ||
  Date.parse(a.createdAt) - Date.parse(b.createdAt) ||
  a.number - b.number;

const droppedPools = (machines: Machines, pools: readonly Pool[]): Set<string> =>
  new Set(
    [...machines.values()].flatMap(({ pool }) =>
      pool !== undefined && !pools.some(({ name }) => name === pool) ? [pool] : [],
    ),
  );

function newMember(ctx: ProviderContext, number: number, time: number): KeptMachine {
  const takes = controlPlaneCreation(simulationOf(ctx.profile), clusterOf(ctx), number);
  return { number, createdAt: rfc3339(time), readyAt: rfc3339(time + takes) };
}

/** Adds granted machines to `kept`. @returns why the cloud grants no more */
function grow(
  ctx: ProviderContext,
  pool: Pool,
  kept: Machines,
  accounts: Accounts,
  time: number,
): CoppiceError | undefined {
  const capacity = capacityOf(ctx.profile, pool.machineType);
  const missing = pool.count - kept.size;
  accounts.has(ctx, pool.name, added(NO_USAGE, capacity, kept.size));
  if (missing <= 0) return undefined;
  const nameOf = (index: number) => machineName(ctx.technicalID, pool.name, index);
  const grown = growPool(
    {
      profile: ctx.profile,
      region: ctx.region,
      cluster: clusterOf(ctx),
      pool,
      missing,
      isTaken: (index) => kept.has(nameOf(index)),
      sequence: accounts.sequence(ctx),
      account: accounts.account(ctx),
    },
    time,
  );
  for (const { index, zone, readyAfterMs, lostAfterMs } of grown.machines) {
    kept.set(nameOf(index), {
      pool: pool.name,
      number: index,
      ...(zone !== undefined && { zone }),
      createdAt: rfc3339(time),
      readyAt: rfc3339(time + readyAfterMs),
      ...(lostAfterMs !== undefined && { lostAt: rfc3339(time + lostAfterMs) }),
    });
  }
  accounts.asked(ctx, grown.sequence, grown.account.bucket);
  accounts.has(ctx, pool.name, added(NO_USAGE, capacity, kept.size));
  const { refusal, short } = grown;
  if (!refusal) return undefined;
  return new CoppiceError(
    refusal.code,
    `pool ${pool.name} lacks ${short} of ${pool.count} machines: ${refusal.message}`,
  );
}

function machinesSeen(ctx: ProviderContext, pools: readonly Pool[], machines: Machines, time: number): MachinesSeen {
  const seen: MachinesSeen = { controlPlane: [], machines: [], nodes: [] };
  let next = Number.POSITIVE_INFINITY;
  for (const [name, machine] of machines) {
    for (const change of [machine.readyAt, machine.lostAt]) {
      const at = Date.parse(change ?? '');
      if (at > time) next = Math.min(next, at);
    }
    const shown = machineOf(name, machine, time);
    if (machine.pool === undefined) {
      seen.controlPlane.push(shown);
      continue;
    }
    seen.machines.push(shown);
    const pool = pools.find((candidate) => candidate.name === machine.pool);
    if (pool && !isLost(machine, time)) seen.nodes.push(nodeOf(ctx, pool, machine, shown.ready));
  }
  return Number.isFinite(next) ? { ...seen, changesAt: new Date(next) } : seen;
}

function machineOf(name: string, machine: KeptMachine, time: number): Machine {
  const ready = isUp(machine, time) && !isLost(machine, time);
  return {
    name,
    pool: machine.pool ?? '',
    nodeName: name,
    phase: isLost(machine, time) ? 'Terminating' : ready ? 'Running' : 'Pending',
    ready,
    createdAt: machine.createdAt,
  };
}

function nodeOf(ctx: ProviderContext, pool: Pool, machine: KeptMachine, ready: boolean): Node {
  const { number: index, zone } = machine;
  const node = simulatedNode(ctx, pool, { index, ...(zone !== undefined && { zone }), readyAfterMs: 0 }, 0);
  return {
    ...node,
    status: { ...node.status, conditions: [{ type: 'Ready', status: ready ? 'True' : 'False' }] },
  } as Node;
}

const clusterOf = ({ shootNamespace, shootName }: ProviderContext): string => `${shootNamespace}/${shootName}`;
const rfc3339 = (time: number): string => new Date(time).toISOString();
