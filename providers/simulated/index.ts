import { CoppiceError } from '../../operator/api/errors.ts';
import { machineName } from '../../operator/api/names.ts';
import { KubeApiError } from '../../operator/kube/errors.ts';
import { NODES, type Node, PODS, type Pod } from '../../operator/kube/resources.ts';
import { ignoreGone } from '../apply.ts';
import type { Pool, Provider, ProviderContext } from '../contract.ts';
import { directoryBuckets } from '../directory-buckets.ts';
import { recordsIn } from '../dns/records.ts';
import { capacityOf } from '../machine-types.ts';
import { nodesOf, ofPools } from '../nodes.ts';
import { profileProblems } from '../validate.ts';
import { Accounts } from './accounts.ts';
import { added, NO_USAGE } from './cloud-model.ts';
import { simulatedZones } from './dns.ts';
import { growPool } from './growth.ts';
import { KWOK_ANNOTATION, kwokObjects } from './kwok.ts';
import { followMarks, isNodeLost, machineOfNode, simulatedNode } from './node.ts';
import { simulationProblem } from './settings.ts';
import { clustersWithoutControlPlane } from './without-control-plane.ts';

/**
 * Simulated nodes on a real control plane, for any profile. A machine is its Node; kwok, beside the control plane, acts
 * as the kubelets. The profile configures the cloud's behaviour (settings.ts); by default it grants everything at once.
 * @param now milliseconds since the epoch
 */
export function simulatedProvider(now: () => number): Provider {
  const accounts = new Accounts();
  return {
    name: 'simulated',
    simulated: true,
    // kwok has no kubelets and no pods to connect to.
    clusterNetwork: () => 'none',
    needsBootstrapToken: false,
    backups: directoryBuckets('simulated'),
    withoutControlPlane: clustersWithoutControlPlane(accounts, now),
    dns: recordsIn(simulatedZones),

    validate(wanted, profile) {
      const problems = profileProblems(wanted, profile);
      const message = simulationProblem(profile);
      if (message === undefined) return problems;
      return [...problems, { field: 'cloudProfile', message, code: 'ERR_CONFIGURATION_PROBLEM' }];
    },

    async controlPlaneExtras(ctx) {
      // Its namespace holds the cluster's CA too, so fewer rights would protect nothing.
      return kwokObjects(ctx, await ctx.componentKubeconfig('kwok'));
    },

    async reconcilePool(ctx, pool) {
      if (!ctx.shoot) return;
      const time = now();
      const nodes = await nodesOf(ctx.shoot, pool.name);
      const lost = nodes.filter((node) => isNodeLost(node, time));
      for (const node of lost) await removeNode(ctx, node.metadata.name);
      const alive = nodes.filter((node) => !node.metadata.deletionTimestamp && !lost.includes(node));
      const refusal = await makeMissing(ctx, pool, nodes, alive.length, accounts, time);
      for (const node of alive) await followMarks(ctx, pool, node);
      // Thrown last: granted machines are made and kept first.
      if (refusal) throw refusal;
    },

    async listMachines(ctx) {
      if (!ctx.shoot) return [];
      const nodes = ctx.seen ? ofPools(ctx.seen.nodes) : await nodesOf(ctx.shoot);
      return nodes.map((node) => machineOfNode(node, now()));
    },

    async removeMachines(ctx, _pool, names) {
      if (!ctx.shoot) return;
      for (const name of names) await removeNode(ctx, name);
    },

    repair: {
      // kwok acts as the kubelet of nodes with its annotation only.
      async restart(ctx, { nodeName }) {
        const patch = { metadata: { annotations: KWOK_ANNOTATION } };
        if (ctx.shoot) await ignoreGone(ctx.shoot.mergePatch(NODES, nodeName, undefined, patch));
      },

      async replace(ctx, { nodeName }) {
        if (ctx.shoot) await removeNode(ctx, nodeName);
      },
    },

    // kwok requests the deletion of a pod once: if that request is lost, it never retries.
    async endPods(ctx, pods) {
      for (const { metadata } of pods) {
        await ctx
          .shoot!.delete(PODS, metadata.name, metadata.namespace, {
            gracePeriodSeconds: 0,
            preconditions: { uid: metadata.uid! },
          })
          .catch((error: unknown) => {
            if (!(error instanceof KubeApiError && error.isConflict)) throw error;
          });
      }
    },

    async deletePool(ctx, name) {
      accounts.has(ctx, name, NO_USAGE);
      if (!ctx.shoot) return;
      for (const node of await nodesOf(ctx.shoot, name)) await removeNode(ctx, node.metadata.name);
    },

    // Nothing exists outside of the cluster: its nodes go with its control plane.
    async deleteAll(ctx) {
      accounts.forget(ctx);
    },
  };
}

/** The simulated provider on the wall clock. */
export const simulated: Provider = simulatedProvider(Date.now);

/** Makes the nodes that the cloud grants. @returns why it grants no more */
async function makeMissing(
  ctx: ProviderContext,
  pool: Pool,
  nodes: readonly Node[],
  alive: number,
  accounts: Accounts,
  time: number,
): Promise<CoppiceError | undefined> {
  const capacity = capacityOf(ctx.profile, pool.machineType);
  accounts.has(ctx, pool.name, added(NO_USAGE, capacity, alive));
  const missing = pool.count - alive;
  if (missing <= 0) return undefined;
  const taken = new Set(nodes.map((node) => node.metadata.name));
  const grown = growPool(
    {
      profile: ctx.profile,
      region: ctx.region,
      cluster: `${ctx.shootNamespace}/${ctx.shootName}`,
      pool,
      missing,
      isTaken: (index) => taken.has(machineName(ctx.technicalID, pool.name, index)),
      sequence: accounts.sequence(ctx),
      account: accounts.account(ctx),
    },
    time,
  );
  // Before the first await: other clusters' requests must see these.
  accounts.asked(ctx, grown.sequence, grown.account.bucket);
  accounts.has(ctx, pool.name, added(NO_USAGE, capacity, alive + grown.machines.length));
  for (const machine of grown.machines) await makeNode(ctx, simulatedNode(ctx, pool, machine, time));
  const { refusal, short } = grown;
  if (!refusal) return undefined;
  return new CoppiceError(
    refusal.code,
    `pool ${pool.name} lacks ${short} of ${pool.count} machines: ${refusal.message}`,
    refusal.code === 'ERR_INFRA_RESOURCES_DEPLETED' ? { shortages: [{ pool: pool.name }] } : {},
  );
}

async function makeNode(ctx: ProviderContext, node: Node): Promise<void> {
  try {
    await ctx.shoot!.create(node);
  } catch (error) {
    if (!(error instanceof KubeApiError && error.isAlreadyExists)) throw error;
  }
}

/** Deletes a node with its pods, which the controller manager would keep for 40 s. */
async function removeNode(ctx: ProviderContext, name: string): Promise<void> {
  const shoot = ctx.shoot!;
  const pods = await shoot.list<Pod>(PODS, { fieldSelector: `spec.nodeName=${name}` });
  await shoot.delete(NODES, name);
  for (const pod of pods.items) {
    await shoot.delete(PODS, pod.metadata.name, pod.metadata.namespace, { gracePeriodSeconds: 0 });
  }
}
