import { LABELS } from '../../operator/api/group.ts';
import { conditionIsTrue, NODES, type Node } from '../../operator/kube/resources.ts';
import type { ManagedClusters } from '../cloud.ts';
import type { Pool, Provider, ProviderContext } from '../contract.ts';
import { followPool, type Marks, nodeLabels, nodesOf, ZONE_LABEL } from '../nodes.ts';
import type { StackRunner } from '../pulumi/stack-runner.ts';
import { profileProblems } from '../validate.ts';
import { accountOf } from './account.ts';
import { OwnControlPlane } from './control-plane-group.ts';
import { MachineGroups } from './groups.ts';
import type { KnownMachines } from './known.ts';
import type { CloudMachine, MachineCloud } from './machine-cloud.ts';
import { aliveIn, hashOf, isControlPlaneAlive, isOutdated, wantedMachines } from './wanted.ts';

/** Applies labels and taints of pools and zones of the cloud to nodes; deletes nodes without a machine. */
async function tellNodes(
  known: KnownMachines,
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
        // In clouds that reuse machine names, a new machine may have joined as this node meanwhile.
        const { uid, resourceVersion } = node.metadata;
        await shoot.delete(NODES, node.metadata.name, undefined, { preconditions: { uid, resourceVersion } });
      }
    }
  }
  if (hashOf(marks) !== hashOf(receipt.marks ?? {})) await known.save(ctx, { ...receipt, marks }, receipt);
}

/**
 * A machine without a node after this time will never have one: its token has expired
 * (operator/controllers/shoot/machines/bootstrap-tokens.ts).
 */
const JOINING_MS = 75 * 60_000;

/**
 * Machines in a tenant's account for hosted control planes: a group per pool, made by a program on the runner; single
 * machines are ended by the cloud's own API.
 */
export function machineProvider(
  name: string,
  managed: ManagedClusters,
  cloud: MachineCloud,
  runner: StackRunner,
): Provider {
  const groups = new MachineGroups(managed, cloud, runner);
  const { known } = groups;
  const ownControlPlane = new OwnControlPlane(
    managed,
    cloud,
    runner,
    async (ctx) => (await known.receipt(ctx))?.wanted.zones,
  );

  return {
    name,
    simulated: false,
    needsBootstrapToken: true,
    inCloud: true,
    rolledByCaller: true,
    managed,
    ...(cloud.controlPlane && { controlPlaneGroup: ownControlPlane }),

    validate: (wanted, profile) => [...profileProblems(wanted, profile), ...cloud.problems(wanted)],

    // kube-proxy and the route agent on a machine use its kubelet's identity.
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
        await groups.end(ctx, account, pool, those);
      }
      const left = machines.filter((machine) => !lost.includes(machine));
      const controlPlane = await ownControlPlane.receipt(ctx);
      const wanted = await wantedMachines(cloud, ctx, account, pools, left, receipt, controlPlane);
      await groups.noteUnmarked(ctx, wanted, account.now());
      // Groups of ended machines are smaller than the stack knows: only a refresh shows it.
      const shrunk = (await known.receipt(ctx))?.shrunk ?? [];
      const isSmaller = wanted.pools.some(
        ({ name: pool, desired = 0 }) => shrunk.includes(pool) && aliveIn(left, pool).length < desired,
      );
      // With a control plane in it, the network is repaired by the control plane's rules.
      const mended = controlPlane ? 'groups' : 'all';
      await groups.apply(ctx, account, wanted, ctx.mend ? mended : isSmaller ? 'groups' : 'nothing');
      if (ctx.shoot) await tellNodes(known, ctx, pools, machines, nodes);
      await groups.reportFailure(ctx, account, pools);
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
        // Status must not fail together with a run, or nobody would read the run's error.
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
        const going = there.filter((machine) => names.includes(machine.name) && isControlPlaneAlive(machine));
        await groups.end(ctx, account, pool, going);
      }),

    async deletePool(ctx, pool) {
      const receipt = await known.receipt(ctx);
      if (!receipt?.wanted.pools.some((one) => one.name === pool)) return;
      const pools = receipt.wanted.pools.filter((one) => one.name !== pool);
      await groups.apply(ctx, await accountOf(ctx), { ...receipt.wanted, pools });
    },

    async drift(ctx) {
      const [receipt, controlPlane] = [await known.receipt(ctx), await ownControlPlane.receipt(ctx)];
      if ((!receipt && !controlPlane) || (receipt && !groups.isSettled(receipt))) return undefined;
      const account = await accountOf(ctx);
      const beside = controlPlane ? await ownControlPlane.drift(ctx, account) : [];
      if (!receipt || !beside) return beside;
      const own = await groups.drift(ctx, account, receipt, !controlPlane);
      return own && [...beside, ...own];
    },

    async deleteAll(ctx) {
      const receipt = await known.receipt(ctx);
      // The receipt precedes everything: without it nothing is in a cloud, and credentials may be missing too.
      if (receipt) {
        const account = await accountOf(ctx);
        await groups.destroy(account, receipt, () => ownControlPlane.destroy(ctx, account));
      }
      await ownControlPlane.deleteAll(ctx);
      await known.forget(ctx);
    },
  };
}

/** Machines that had enough time to become nodes and did not. */
const neverJoined = (machines: readonly CloudMachine[], nodes: readonly Node[], now: Date): CloudMachine[] =>
  machines.filter(
    (machine) =>
      isControlPlaneAlive(machine) &&
      now.getTime() - Date.parse(machine.createdAt) > JOINING_MS &&
      !nodes.some(({ metadata }) => metadata.name === machine.nodeName),
  );
