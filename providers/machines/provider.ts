import { CoppiceError } from '../../operator/api/errors.ts';
import { LABELS } from '../../operator/api/group.ts';
import { conditionIsTrue, NODES, type Node } from '../../operator/kube/resources.ts';
import type { CloudContext, ManagedClusters } from '../cloud.ts';
import type { Pool, Provider, ProviderContext } from '../contract.ts';
import { followPool, type Marks, nodeLabels, nodesOf, ZONE_LABEL } from '../nodes.ts';
import { machineLayers, type WantedMachines } from '../pulumi/layers.ts';
import type { StackRunner } from '../pulumi/stack-runner.ts';
import { profileProblems } from '../validate.ts';
import { accountOf, sameAccount } from './account.ts';
import { controlPlaneGroup } from './control-plane-group.ts';
import { withoutOwn } from './drift.ts';
import { KnownMachines } from './known.ts';
import type { CloudMachine, MachineCloud } from './machine-cloud.ts';
import type { MachinesReceipt } from './receipt.ts';
import { aliveIn, hashOf, isAlive, isOutdated, networkOf, wantedMachines } from './wanted.ts';

/** A machine that is not a node by then never will be: its token has expired (operator/controllers/shoot/machines/bootstrap-tokens.ts). */
const JOINING_MS = 75 * 60_000;

/**
 * Machines in an account of the tenant for control planes that are hosted in a seed: a group for each pool, made by a program on
 * the runner; single machines are ended by the cloud's own API.
 */
export function machineProvider(
  name: string,
  managed: ManagedClusters,
  cloud: MachineCloud,
  runner: StackRunner,
): Provider {
  const layers = machineLayers(runner, cloud.layers);
  const known = new KnownMachines(cloud);
  const ownControlPlane = controlPlaneGroup(
    managed,
    cloud,
    runner,
    async (ctx) => (await known.receipt(ctx))?.wanted.zones,
  );

  /** Makes the groups be as wanted, unless that is how they were last made. @param refresh what is compared with the cloud first */
  async function apply(
    ctx: ProviderContext,
    account: CloudContext,
    wanted: WantedMachines,
    refresh: 'nothing' | 'groups' | 'all' = 'nothing',
  ): Promise<void> {
    const receipt = await known.receipt(ctx);
    // Of two versions of a program each may make something else of equal inputs.
    const [hash, network] = [hashOf([managed.version, wanted]), hashOf([managed.version, networkOf(wanted)])];
    if (receipt?.applied === hash && refresh === 'nothing') return;
    const id = await sameAccount(managed, account, receipt);
    const begun: MachinesReceipt = { ...receipt, account: id, wanted };
    delete begun.applied;
    await known.save(ctx, begun);
    const below = refresh === 'all' ? 'mended' : receipt?.network === network ? 'kept' : 'made';
    await layers.apply({ ...account, refresh: refresh !== 'nothing' }, wanted, below);
    const { shrunk: _, ...made } = begun;
    await known.save(ctx, { ...made, applied: hash, network });
  }

  /** Whether all that is wanted was made, by this very version of the programs: what another one declares is nobody's change. */
  const isSettled = ({ applied, network, wanted }: MachinesReceipt): boolean =>
    applied === hashOf([managed.version, wanted]) && network === hashOf([managed.version, networkOf(wanted)]);

  /** Ends machines. That their group is smaller from then on is remembered before it is. */
  async function end(
    ctx: ProviderContext,
    account: CloudContext,
    pool: string,
    machines: readonly CloudMachine[],
  ): Promise<void> {
    if (machines.length === 0) return;
    const receipt = await known.receipt(ctx);
    if (receipt && !receipt.shrunk?.includes(pool)) {
      await known.save(ctx, { ...receipt, shrunk: [...(receipt.shrunk ?? []), pool] });
    }
    await known.remove(ctx, account, pool, machines);
  }

  /** Machines of before hashes came are what was asked for when they came: nothing else is known of them. */
  async function noteUnmarked(ctx: ProviderContext, { pools }: WantedMachines, now: Date): Promise<void> {
    const receipt = await known.receipt(ctx);
    const unmarked: NonNullable<MachinesReceipt['unmarked']> = {};
    for (const { name: pool, hash } of pools) {
      const before = receipt?.wanted.pools.find((one) => one.name === pool);
      if (before && before.hash === undefined && hash !== undefined) {
        unmarked[pool] = { hash, madeBefore: now.toISOString() };
      }
    }
    if (Object.keys(unmarked).length === 0) return;
    await known.save(ctx, { ...receipt!, unmarked: { ...receipt!.unmarked, ...unmarked } });
  }

  /** Says why a cloud does not give as many machines as are wanted; it goes on trying by itself. */
  async function reportFailure(ctx: ProviderContext, account: CloudContext, pools: readonly Pool[]): Promise<void> {
    if (!cloud.failure) return;
    const seen = known.seen(ctx);
    for (const { name: pool, count } of pools) {
      if (aliveIn(seen, pool).length >= count) continue;
      const text = await cloud.failure(account, pool);
      if (text === undefined) continue;
      const code = cloud.layers.classify({ text }) ?? 'ERR_RETRYABLE_INFRA_DEPENDENCIES';
      throw new CoppiceError(code, `pool ${pool} does not get its machines: ${text}`);
    }
  }

  return {
    name,
    simulated: false,
    needsBootstrapToken: true,
    inCloud: true,
    rolledByCaller: true,
    managed,
    ...(cloud.controlPlane && { controlPlaneGroup: ownControlPlane.group }),

    validate: (wanted, profile) => [...profileProblems(wanted, profile), ...cloud.problems(wanted)],

    // On a machine, kube-proxy and the program that keeps the routes between nodes are what its kubelet is.
    systemComponents: () => [
      {
        apiVersion: 'rbac.authorization.k8s.io/v1',
        kind: 'ClusterRoleBinding',
        metadata: { name: 'coppice:node-network' },
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'system:node-proxier' },
        subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'Group', name: 'system:nodes' }],
      },
    ],

    async reconcilePools(ctx, pools) {
      const receipt = await known.receipt(ctx);
      if (!receipt && pools.every(({ count }) => count === 0)) return;
      const account = await accountOf(ctx);
      const names = [...new Set([...pools, ...(receipt?.wanted.pools ?? [])].map((pool) => pool.name))];
      const nodes = ctx.shoot ? await nodesOf(ctx.shoot) : [];
      const machines = receipt ? await known.look(ctx, account, names) : [];
      const lost = ctx.shoot ? neverJoined(machines, nodes, account.now()) : [];
      for (const pool of names) {
        const those = lost.filter((machine) => machine.pool === pool);
        await end(ctx, account, pool, those);
      }
      const left = machines.filter((machine) => !lost.includes(machine));
      const controlPlane = await ownControlPlane.receipt(ctx);
      const wanted = await wantedMachines(cloud, ctx, account, pools, left, receipt, controlPlane);
      await noteUnmarked(ctx, wanted, account.now());
      // What was ended is missing in groups that are said to be as they were: only a look at the cloud tells.
      const shrunk = (await known.receipt(ctx))?.shrunk ?? [];
      const isSmaller = wanted.pools.some(
        ({ name: pool, desired = 0 }) => shrunk.includes(pool) && aliveIn(left, pool).length < desired,
      );
      // With a control plane in it, the network is mended as that allows.
      const mended = controlPlane ? 'groups' : 'all';
      await apply(ctx, account, wanted, ctx.mend ? mended : isSmaller ? 'groups' : 'nothing');
      if (ctx.shoot) await tellNodes(ctx, pools, machines, nodes);
      await reportFailure(ctx, account, pools);
    },

    async reconcilePool(ctx, pool) {
      await this.reconcilePools!(ctx, [pool]);
    },

    async listMachines(ctx) {
      const receipt = await known.receipt(ctx);
      if (!receipt) return [];
      try {
        const account = await accountOf(ctx);
        if (!known.isFresh(ctx, account.now())) {
          await known.look(
            ctx,
            account,
            receipt.wanted.pools.map((pool) => pool.name),
          );
        }
      } catch (error) {
        // Who only wants to know must not fail with who acts, or nobody would read why that one failed.
        ctx.log.warn({ err: error, shoot: ctx.shootName }, 'machines could not be listed: they are told as last seen');
      }
      const hashes = new Map(receipt.wanted.pools.map((pool) => [pool.name, pool.hash]));
      return known.seen(ctx).map((machine) => ({
        ...machine,
        ready: machine.phase === 'Running',
        ...(isOutdated(machine, hashes.get(machine.pool), receipt.unmarked?.[machine.pool]) && { outdated: true }),
      }));
    },

    removeMachines: (ctx, pool, names) =>
      known.removeInTurn(ctx, async () => {
        const account = await accountOf(ctx);
        const there = await known.look(ctx, account, [pool]);
        const going = there.filter((machine) => names.includes(machine.name) && isAlive(machine));
        await end(ctx, account, pool, going);
      }),

    async deletePool(ctx, pool) {
      const receipt = await known.receipt(ctx);
      if (!receipt?.wanted.pools.some((one) => one.name === pool)) return;
      const pools = receipt.wanted.pools.filter((one) => one.name !== pool);
      await apply(ctx, await accountOf(ctx), { ...receipt.wanted, pools });
    },

    async drift(ctx) {
      const [receipt, controlPlane] = [await known.receipt(ctx), await ownControlPlane.receipt(ctx)];
      if ((!receipt && !controlPlane) || (receipt && !isSettled(receipt))) return undefined;
      const account = await accountOf(ctx);
      const beside = controlPlane ? await ownControlPlane.drift(ctx, account) : [];
      if (!receipt || !beside) return beside;
      await sameAccount(managed, account, receipt);
      const found = await layers.drift(account, receipt.wanted, !controlPlane);
      const now = await known.receipt(ctx);
      if (!found || now?.applied !== receipt.applied) return undefined;
      return [...beside, ...withoutOwn(found, cloud.group, [...(receipt.shrunk ?? []), ...(now?.shrunk ?? [])])];
    },

    async deleteAll(ctx) {
      const receipt = await known.receipt(ctx);
      // Written before anything was made: whoever has none has nothing in a cloud, and may have no credentials either.
      if (receipt) {
        const account = await accountOf(ctx);
        await layers.destroy(account, receipt.wanted, () => ownControlPlane.destroy(ctx, account));
      }
      await ownControlPlane.deleteAll(ctx);
      await known.forget(ctx);
    },
  };

  /** Labels and taints as the pools say, zones as the cloud says; nodes whose machine is gone go too. */
  async function tellNodes(
    ctx: ProviderContext,
    pools: readonly Pool[],
    machines: readonly CloudMachine[],
    nodes: readonly Node[],
  ): Promise<void> {
    const shoot = ctx.shoot!;
    const receipt = (await known.receipt(ctx))!;
    const marks: Record<string, Marks> = {};
    for (const pool of pools) {
      const own: Marks = { labels: nodeLabels(ctx, pool), taints: pool.taints };
      marks[pool.name] = own;
      for (const node of nodes.filter(({ metadata }) => metadata.labels?.[LABELS.pool] === pool.name)) {
        const machine = machines.find(({ nodeName }) => nodeName === node.metadata.name);
        if (machine) {
          const labels = { ...own.labels, ...(machine.zone !== undefined && { [ZONE_LABEL]: machine.zone }) };
          await followPool(shoot, [node], { ...own, labels }, receipt.marks?.[pool.name] ?? own);
        } else if (!conditionIsTrue(node, 'Ready')) {
          ctx.log.info({ node: node.metadata.name, pool: pool.name }, 'node of a machine that is gone is removed');
          // Where machines keep their names, another one may have joined as this node since it was looked at.
          const { uid, resourceVersion } = node.metadata;
          await shoot.delete(NODES, node.metadata.name, undefined, { preconditions: { uid, resourceVersion } });
        }
      }
    }
    if (hashOf(marks) !== hashOf(receipt.marks ?? {})) await known.save(ctx, { ...receipt, marks });
  }
}

/** Machines that had time enough to become nodes and did not. */
const neverJoined = (machines: readonly CloudMachine[], nodes: readonly Node[], now: Date): CloudMachine[] =>
  machines.filter(
    (machine) =>
      isAlive(machine) &&
      now.getTime() - Date.parse(machine.createdAt) > JOINING_MS &&
      !nodes.some(({ metadata }) => metadata.name === machine.nodeName),
  );
