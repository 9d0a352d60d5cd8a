import { ALPHA_API_VERSION, LABELS } from '../../../operator/api/group.ts';
import { formatCpu } from '../../../operator/api/quantity.ts';
import type { WorkerCluster } from '../../../operator/api/workercluster.ts';
import { type BurstReceipt, emptyReceipt } from '../../../operator/burst/clusters/kept.ts';
import type { FitNode } from '../../../operator/burst/fit/model.ts';
import type { BurstWorld } from '../../../operator/controllers/burst/world.ts';
import { isAsleep } from '../../../operator/controllers/membership/member.ts';
import type { Demand } from '../../../operator/hubs/contract.ts';
import type { Node, Pod } from '../../../operator/kube/resources.ts';
import type { ClusterState, Simulation } from '../../../operator/rehearsal/state.ts';
import { BurstTestbed } from './testbed.ts';

/**
 * What is decided, by which two worlds are compared. Without why nothing is bought: a garden and a rehearsal reckon differently what else could take
 * the rest of some work.
 */
export const decidedIn = ({ purchases, growths, wakes, rests, spent, decisions, next }: BurstReceipt): unknown =>
  JSON.parse(
    JSON.stringify({
      next,
      purchases,
      growths,
      wakes,
      rests,
      spent,
      decisions: decisions.filter(({ action }) => action !== 'Refuse').slice(0, 5),
    }),
  );

/**
 * A garden in memory that has at each look what a rehearsal has: objects of clusters, memberships, nodes and pods, as API servers would show them. The
 * operator's controller decides there with a memory and a receipt of its own.
 */
export class RehearsedGarden extends BurstTestbed {
  /** Where both have decided something else: what the rehearsal has, and what the garden has. */
  readonly differences: { at: string; rehearsal: unknown; garden: unknown }[] = [];
  lookCount = 0;

  constructor() {
    super();
    // A hub that counts on nodes what is free there.
    const hub = [...this.objects.objects.values()].find(({ kind }) => kind === 'Hub')!;
    this.objects.put({ ...hub, spec: { type: 'ClusterProfile', allowedNamespaces: ['*'] } } as never);
  }

  /** For RehearsalOptions. @param changed puts a fault into what the rehearsal sees */
  readonly worldOf =
    (changed: (world: BurstWorld) => BurstWorld = (world) => world) =>
    (simulated: BurstWorld, simulation: Simulation): BurstWorld => {
      const world = changed(simulated);
      return {
        ...world,
        hear: async (hub, signal) => {
          this.#show(simulation);
          await this.look();
          return world.hear(hub, signal);
        },
        tell: async (policy, outcome, signal) => {
          await world.tell(policy, outcome, signal);
          this.lookCount++;
          const [rehearsal, garden] = [outcome.receipt, this.receipt() ?? emptyReceipt(outcome.receipt.policy)].map(
            decidedIn,
          );
          if (JSON.stringify(rehearsal) !== JSON.stringify(garden))
            this.differences.push({ at: new Date(this.now).toISOString(), rehearsal, garden });
        },
      };
    };

  #show(simulation: Simulation): void {
    const { rehearsed, scenario, clusters, work } = simulation;
    this.now = simulation.epoch + simulation.now;
    this.profile = scenario.profiles.get('cloud')!;
    this.depleted = [...simulation.capacity.known({ namespace: 'shop' }).depleted];
    if (!this.policy()) this.objects.put(rehearsed!.policy);
    for (const [key, { kind }] of this.objects.objects)
      if (kind === 'WorkerCluster' || kind === 'Membership') this.objects.objects.delete(key);
    this.open.clear();
    this.sizes.clear();
    this.orders.clear();
    for (const state of clusters.values()) this.#showCluster(simulation, state);
    this.demands = [...work!.groups.values()]
      .filter(({ cluster, waitingCount }) => cluster === undefined && waitingCount > 0)
      .map(
        ({ name, size: { cpu, memory }, waitingCount }): Demand => ({
          source: `${name} (${cpu} CPU, ${memory})`,
          namespace: 'default',
          count: waitingCount,
          each: { cpu, memory },
          since: '',
        }),
      );
  }

  #showCluster({ work }: Simulation, state: ClusterState): void {
    const { object, key, serves, nodes, pools, decided, sleepOrder, machineRefusal } = state;
    if (!object) return;
    const desired = [...pools.values()].reduce((sum, pool) => sum + pool.wanted, 0);
    const code = /\((ERR_[A-Z_]+)\)$/.exec(machineRefusal ?? '')?.[1];
    const refused = code ? [{ description: machineRefusal, codes: [code] }] : [];
    this.objects.put({
      ...object,
      status: {
        ...object.status,
        nodes: { desired, current: nodes.size, ready: nodes.size },
        lastErrors: [...(object.status?.lastErrors ?? []), ...refused],
      },
    } as WorkerCluster);
    this.#showMembership(state, serves && (state.hasHadNode || desired === 0));
    if (decided.size > 0) this.sizes.set(key, new Map(decided));
    if (sleepOrder) this.orders.set(key, sleepOrder);
    if (!serves) return;
    const there = [...nodes.keys()].flatMap((name) => work!.room.node(work!.nameOf(key, name)) ?? []);
    this.open.set(key, {
      nodes: [...nodes.keys()].flatMap((name, index) => (there[index] ? nodeOf(name, there[index].node) : [])),
      pods: [...nodes.keys()].flatMap((name) =>
        work!.podsOn(key, name).map((pod, index): Pod => {
          const metadata = { ...pod.metadata, name: `${name}-${index}`, namespace: 'default', uid: `${name}/${index}` };
          return { ...pod, metadata, spec: { ...pod.spec, nodeName: name }, status: { phase: 'Running' } };
        }),
      ),
    });
  }

  #showMembership({ object }: ClusterState, isUsable: boolean): void {
    const { name, namespace, labels } = object!.metadata;
    const isWarm = labels?.[LABELS.burstWarm] !== undefined;
    const state = isAsleep(object!) ? 'Asleep' : isUsable && !isWarm ? 'Joined' : 'Joining';
    const warm = { type: 'Warm', status: 'True', reason: 'Warm', message: '', lastTransitionTime: '' };
    this.objects.put({
      apiVersion: ALPHA_API_VERSION,
      kind: 'Membership',
      metadata: { name: `${name}.production`, namespace },
      spec: { cluster: name, hub: 'production' },
      status: { state, memberName: name, conditions: isUsable && isWarm ? [warm] : [] },
    } as never);
  }
}

const nodeOf = (name: string, { labels, taints, allocatable: { cpu, memory, storage, pods } }: FitNode): Node =>
  ({
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name, labels },
    spec: { taints },
    status: {
      allocatable: {
        cpu: formatCpu(cpu),
        memory: String(memory),
        'ephemeral-storage': String(storage),
        pods: String(pods),
      },
      conditions: [{ type: 'Ready', status: 'True' }],
    },
  }) as unknown as Node;
