import { CoppiceError, configurationProblem } from '../../operator/api/errors.ts';
import { LABELS } from '../../operator/api/group.ts';
import { conditionIsTrue, NODES, type Node } from '../../operator/kube/resources.ts';
import type { CloudContext, ManagedClusters } from '../cloud.ts';
import type { Pool, Provider, ProviderContext } from '../contract.ts';
import { followPool, type Marks, nodeLabels, nodesOf, ZONE_LABEL } from '../nodes.ts';
import { machineLayers, type WantedMachines } from '../pulumi/layers.ts';
import type { StackRunner } from '../pulumi/stack-runner.ts';
import { profileProblems } from '../validate.ts';
import { KnownMachines } from './known.ts';
import type { CloudMachine, MachineCloud } from './machine-cloud.ts';
import type { MachinesRecord } from './record.ts';
import { hashOf, isAlive, networkOf, wantedMachines } from './wanted.ts';

/** A machine that is not a node by then never will be: its token has expired (operator/controllers/shoot/bootstrap-tokens.ts). */
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

  /** Makes the groups be as wanted, unless that is how they were last made. */
  async function apply(
    ctx: ProviderContext,
    account: CloudContext,
    wanted: WantedMachines,
    mend = false,
  ): Promise<void> {
    const record = await known.record(ctx);
    // Of two versions of a program each may make something else of equal inputs.
    const [hash, network] = [hashOf([managed.version, wanted]), hashOf([managed.version, networkOf(wanted)])];
    if (record?.applied === hash && !mend) return;
    const { id } = await managed.checkAccount(account);
    if (record && record.account !== id) throw otherAccount(record.account, id);
    const begun: MachinesRecord = { ...record, account: id, wanted };
    delete begun.applied;
    await known.save(ctx, begun);
    await layers.apply({ ...account, refresh: mend }, wanted, record?.network === network);
    await known.save(ctx, { ...begun, applied: hash, network });
  }

  /** Says why a cloud does not give as many machines as are wanted; it goes on trying by itself. */
  async function reportFailure(ctx: ProviderContext, account: CloudContext, { pools }: WantedMachines): Promise<void> {
    if (!cloud.failure) return;
    const seen = known.seen(ctx).filter(isAlive);
    for (const { name: pool, desired = 0 } of pools) {
      if (seen.filter((machine) => machine.pool === pool).length >= desired) continue;
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
    managed,

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
      const record = await known.record(ctx);
      if (!record && pools.every(({ count }) => count === 0)) return;
      const account = await accountOf(ctx);
      const names = [...new Set([...pools, ...(record?.wanted.pools ?? [])].map((pool) => pool.name))];
      const nodes = ctx.shoot ? await nodesOf(ctx.shoot) : [];
      const machines = record ? await known.look(ctx, account, names) : [];
      const lost = ctx.shoot ? neverJoined(machines, nodes, account.now()) : [];
      for (const pool of names) {
        const those = lost.filter((machine) => machine.pool === pool);
        await known.remove(ctx, account, pool, those);
      }
      const left = machines.filter((machine) => !lost.includes(machine));
      const wanted = await wantedMachines(cloud, ctx, account, pools, left, record?.wanted);
      // What was ended is missing in groups that are said to be as they were: only a look at the cloud tells.
      await apply(ctx, account, wanted, lost.length > 0);
      if (ctx.shoot) await tellNodes(ctx, pools, machines, nodes);
      await reportFailure(ctx, account, wanted);
    },

    async reconcilePool(ctx, pool) {
      await this.reconcilePools!(ctx, [pool]);
    },

    async listMachines(ctx) {
      const record = await known.record(ctx);
      if (!record) return [];
      try {
        const account = await accountOf(ctx);
        if (!known.isFresh(ctx, account.now())) {
          await known.look(
            ctx,
            account,
            record.wanted.pools.map((pool) => pool.name),
          );
        }
      } catch (error) {
        // Who only wants to know must not fail with who acts, or nobody would read why that one failed.
        ctx.log.warn({ err: error, shoot: ctx.shootName }, 'machines could not be listed: they are told as last seen');
      }
      return known.seen(ctx).map((machine) => ({ ...machine, ready: machine.phase === 'Running' }));
    },

    async removeMachines(ctx, pool, names) {
      const account = await accountOf(ctx);
      const there = await known.look(ctx, account, [pool]);
      const going = there.filter((machine) => names.includes(machine.name) && isAlive(machine));
      await known.remove(ctx, account, pool, going);
    },

    async deletePool(ctx, pool) {
      const record = await known.record(ctx);
      if (!record?.wanted.pools.some((one) => one.name === pool)) return;
      const pools = record.wanted.pools.filter((one) => one.name !== pool);
      await apply(ctx, await accountOf(ctx), { ...record.wanted, pools });
    },

    async deleteAll(ctx) {
      const record = await known.record(ctx);
      // Written before anything was made: whoever has none has nothing in a cloud, and may have no credentials either.
      if (record) await layers.destroy(await accountOf(ctx), record.wanted);
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
    const record = (await known.record(ctx))!;
    const marks: Record<string, Marks> = {};
    for (const pool of pools) {
      const own: Marks = { labels: nodeLabels(ctx, pool), taints: pool.taints };
      marks[pool.name] = own;
      for (const node of nodes.filter(({ metadata }) => metadata.labels?.[LABELS.pool] === pool.name)) {
        const machine = machines.find(({ nodeName }) => nodeName === node.metadata.name);
        if (machine) {
          const labels = { ...own.labels, ...(machine.zone !== undefined && { [ZONE_LABEL]: machine.zone }) };
          await followPool(shoot, [node], { ...own, labels }, record.marks?.[pool.name] ?? own);
        } else if (!conditionIsTrue(node, 'Ready')) {
          ctx.log.info({ node: node.metadata.name, pool: pool.name }, 'node of a machine that is gone is removed');
          await shoot.delete(NODES, node.metadata.name, undefined, { preconditions: { uid: node.metadata.uid } });
        }
      }
    }
    if (hashOf(marks) !== hashOf(record.marks ?? {})) await known.save(ctx, { ...record, marks });
  }
}

async function accountOf(ctx: ProviderContext): Promise<CloudContext> {
  if (ctx.cloud) return ctx.cloud();
  throw configurationProblem(
    `cluster ${ctx.shootName} names no credentials of the account that its machines are to be in`,
    'Name them in spec.credentialsRef of the WorkerCluster, or in spec.credentialsBindingName of the Shoot.',
  );
}

const otherAccount = (made: string, given: string): CoppiceError =>
  configurationProblem(
    `the credentials are of account ${given}, but the machines are in ${made}`,
    'Put credentials of that account there, or make a new cluster.',
  );

/** Machines that had time enough to become nodes and did not. */
const neverJoined = (machines: readonly CloudMachine[], nodes: readonly Node[], now: Date): CloudMachine[] =>
  machines.filter(
    (machine) =>
      isAlive(machine) &&
      now.getTime() - Date.parse(machine.createdAt) > JOINING_MS &&
      !nodes.some(({ metadata }) => metadata.name === machine.nodeName),
  );
