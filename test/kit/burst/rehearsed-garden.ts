import { ALPHA_API_VERSION, LABELS } from '../../../operator/api/group.ts';
import { formatCpu } from '../../../operator/api/quantity.ts';
import type { WorkerCluster } from '../../../operator/api/workercluster.ts';
import type { OwnCluster } from '../../../operator/burst/clusters/model.ts';
import type { FitNode } from '../../../operator/burst/fit/model.ts';
import { reconcileBurst } from '../../../operator/controllers/burst/controller.ts';
import { gardenWorld } from '../../../operator/controllers/burst/garden-world.ts';
import type { Outcome } from '../../../operator/controllers/burst/seen.ts';
import type { BurstWorld } from '../../../operator/controllers/burst/world.ts';
import { isAsleep } from '../../../operator/controllers/membership/member.ts';
import type { Demand, PlacedWork } from '../../../operator/hubs/contract.ts';
import { type Node, type Pod, WORKERCLUSTERS } from '../../../operator/kube/resources.ts';
import type { RehearsedCluster, Simulation } from '../../../operator/rehearsal/state.ts';
import type { WorkGroup } from '../../../operator/rehearsal/work-model.ts';
import { BurstTestbed } from './testbed.ts';

/** What a look has come to, by which two worlds are compared. An API server has its own words before those of a refusal. */
const decidedIn = ({ receipt, verdicts: all, seen, woken = [] }: Outcome): unknown => {
  const verdicts = all.map(({ source, state, message }) => ({ source, state, message }));
  const since = ({ name, phase, idleSince, unneededSince, underusedSince }: Partial<OwnCluster>) => ({
    name,
    phase,
    idleSince,
    unneededSince,
    underusedSince,
  });
  const clusters = [...seen.map(({ own }) => own), ...woken].filter(({ phase }) => phase !== 'Leaving').map(since);
  // Only a garden has read its receipt from somewhere.
  const decided = (field: string, value: unknown) => (field === 'stored' ? undefined : value);
  return JSON.parse(JSON.stringify({ ...receipt, verdicts, clusters }, decided).replaceAll('POST: 422 Invalid: ', ''));
};

const NEVER = new AbortController().signal;

/**
 * A garden in memory that has at each look what a rehearsal has: objects of clusters, memberships, nodes and pods, as API servers would show them. The
 * operator's controller decides there with a memory and a receipt of its own.
 */
export class RehearsedGarden extends BurstTestbed {
  /** Where both have decided something else: what the rehearsal has, and what the garden has. */
  readonly differences: { at: string; rehearsal: unknown; garden: unknown }[] = [];
  lookCount = 0;
  override removesNodes = true;
  /** What was decided, by action; why, and what was said of work. */
  readonly actions = new Set<string>();
  readonly said = new Set<string>();
  override refuse = ({ spec: { dataPlaneNodes, pools = [] } }: WorkerCluster): string | undefined => {
    const least = pools.reduce((sum, { minimum = 0 }) => sum + minimum, 0);
    return dataPlaneNodes !== undefined && dataPlaneNodes < least
      ? 'dataPlaneNodes is less than the minimums of the pools together'
      : undefined;
  };

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
          for (const { action, why } of outcome.receipt.decisions) {
            this.actions.add(action);
            this.said.add(why);
          }
          for (const { message } of outcome.verdicts) this.said.add(message);
          const [rehearsal, garden] = [outcome, this.#told].map((one) => one && decidedIn(one));
          if (JSON.stringify(rehearsal) !== JSON.stringify(garden))
            this.differences.push({ at: new Date(this.now).toISOString(), rehearsal, garden });
        },
      };
    };

  /** What the last look has come to. */
  #told: Outcome | undefined;
  #simulation: Simulation | undefined;

  override async look(): Promise<void> {
    const world = gardenWorld(this.deps);
    this.#told = undefined;
    const tell: BurstWorld['tell'] = async (policy, outcome, signal) => {
      this.#told = outcome;
      await world.tell(policy, outcome, signal);
    };
    const patch: BurstWorld['patch'] = async (cluster, its, signal) => {
      await world.patch(cluster, its, signal);
      this.#follow(cluster, its.metadata.labels ?? {});
    };
    await reconcileBurst({ ...world, tell, patch }, this.memory, 'production', NEVER);
  }

  /** Memberships and hubs are as quick as in a rehearsal. */
  #follow({ metadata }: WorkerCluster, labels: Readonly<Record<string, string | null>>): void {
    const key = `${metadata.namespace}/${metadata.name}`;
    const state = this.#simulation!.clusters.get(key)!;
    const object = this.objects.find<WorkerCluster>(WORKERCLUSTERS, metadata.name, metadata.namespace)!;
    const open = this.open.get(key);
    if (labels[LABELS.burstEmptying] && open) open.pods = [];
    this.#showMembership(state, object, (open?.pods.length ?? 0) > 0);
  }

  #show(simulation: Simulation): void {
    const { rehearsed, scenario, clusters, work } = simulation;
    this.#simulation = simulation;
    this.now = simulation.epoch + simulation.now;
    this.profile = scenario.profiles.get('cloud')!;
    this.depleted = [...simulation.capacity.known({ namespace: 'shop' }).depleted];
    if (!this.policy()) this.objects.put(rehearsed!.policy);
    for (const [key, { kind }] of this.objects.objects)
      if (kind === 'WorkerCluster' || kind === 'Membership') this.objects.objects.delete(key);
    this.open.clear();
    this.sizes.clear();
    this.placedBy = (member) => placedOn(simulation, clusters.get(`shop/${member}`)!);
    this.orders.clear();
    for (const state of clusters.values()) this.#showCluster(simulation, state);
    for (const quota of scenario.quotas) this.objects.put(quota);
    this.demands = [...work!.groups.values()].filter(({ cluster }) => cluster === undefined).flatMap(demandsOf);
  }

  #showCluster(simulation: Simulation, state: RehearsedCluster): void {
    const work = simulation.work!;
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
    this.#showMembership(state, object, work.isBusy(key));
    if (decided.size > 0) this.sizes.set(key, new Map(decided));
    if (sleepOrder) this.orders.set(key, sleepOrder);
    if (!serves) return;
    this.open.set(key, {
      nodes: [...nodes.keys()].flatMap((name) => {
        const there = work.room.node(work.nameOf(key, name));
        return there ? [nodeOf(name, there.node)] : [];
      }),
      pods: [...work.groups.values()].flatMap((group) => podsIn(work, group, state)),
    });
  }

  #showMembership({ serves, hasHadNode, pools }: RehearsedCluster, object: WorkerCluster, isBusy: boolean): void {
    const { name, namespace, labels = {} } = object.metadata;
    const isUsable = serves && (hasHadNode || [...pools.values()].every(({ wanted }) => wanted === 0));
    const isWarm = labels[LABELS.burstWarm] !== undefined;
    const state = isAsleep(object) ? 'Asleep' : isUsable && !isWarm ? 'Joined' : 'Joining';
    const drained = {
      type: 'Drained',
      status: isBusy ? 'False' : 'True',
      reason: isBusy ? 'Draining' : 'Drained',
      message: '',
    };
    const warm = { type: 'Warm', status: 'True', reason: 'Warm', message: '', lastTransitionTime: '' };
    this.objects.put({
      apiVersion: ALPHA_API_VERSION,
      kind: 'Membership',
      metadata: { name: `${name}.production`, namespace },
      spec: { cluster: name, hub: 'production' },
      status: {
        state,
        memberName: name,
        conditions: [...(isUsable && isWarm ? [warm] : []), ...(labels[LABELS.burstEmptying] ? [drained] : [])],
      },
    } as never);
  }
}

const sourceOf = ({ name, size: { cpu, memory } }: WorkGroup): string => `${name} (${cpu} CPU, ${memory})`;

/** What a hub has no place for: a workload as a whole, of jobs each. */
function demandsOf(group: WorkGroup): Demand[] {
  const { size, isJobs, waiting, waitingCount, accepts, priority } = group;
  const { cpu, memory } = size;
  const said = {
    namespace: 'default',
    each: { cpu, memory },
    since: '',
    ...(accepts && { accepts }),
    ...(priority !== undefined && { priority }),
  };
  if (!isJobs) return waitingCount > 0 ? [{ ...said, source: sourceOf(group), count: waitingCount }] : [];
  return [...Map.groupBy(waiting, ({ since }) => since)].flatMap(([since, alike]) => {
    const count = alike.reduce((sum, one) => sum + one.count, 0);
    return Array.from({ length: count }, (_, index) => {
      const source = `${sourceOf(group)} of second ${since / 1000}, job ${count - index}`;
      return { ...said, source, count: 1 };
    });
  });
}

/** Name of the object that makes the pods of a group. */
const makerOf = ({ name, size }: WorkGroup): string => `${name}-${size.cpu}`;

/** Pods of a group in a cluster: those on its nodes; of work that belongs to it also those that wait. */
function podsIn(work: NonNullable<Simulation['work']>, group: WorkGroup, { key, nodes }: RehearsedCluster): Pod[] {
  const pod = (name: string, more: object, status: object) => ({
    ...group.object,
    metadata: {
      name,
      namespace: 'default',
      uid: name,
      ownerReferences: group.object.metadata.ownerReferences?.map((owner) => ({ ...owner, name: makerOf(group) })),
    },
    spec: { ...group.object.spec, ...more },
    status,
  });
  const running = [...nodes.keys()].flatMap((nodeName) =>
    Array.from({ length: group.on.get(work.nameOf(key, nodeName)) ?? 0 }, (_, index) =>
      pod(`${nodeName}-${makerOf(group)}-${index}`, { nodeName }, { phase: 'Running' }),
    ),
  );
  if (group.cluster !== key) return running;
  const waiting = Array.from({ length: group.waitingCount }, (_, index) =>
    pod(`${makerOf(group)}-${index}`, {}, { phase: 'Pending' }),
  );
  return [...running, ...waiting];
}

/** What a hub has placed on a member, and would move. */
function placedOn({ work }: Simulation, { key, nodes }: RehearsedCluster): PlacedWork[] {
  return [...work!.groups.values()].flatMap((group) => {
    const count = [...nodes.keys()].reduce((sum, node) => sum + (group.on.get(work!.nameOf(key, node)) ?? 0), 0);
    const { name: source, size, isJobs, accepts, cluster } = group;
    if (count === 0 || cluster !== undefined) return [];
    const { cpu, memory } = size;
    const workload = { kind: isJobs ? 'Job' : 'ReplicaSet', namespace: 'default', name: makerOf(group) };
    return [{ source, count, each: { cpu, memory }, workload, ...(accepts && { accepts }) }];
  });
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
