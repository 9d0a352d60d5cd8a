import { parseCpu } from '../api/quantity.ts';
import type { HubCustomKind, Movable, WaitingWork } from '../burst/clusters/model.ts';
import type { FitPod } from '../burst/fit/model.ts';
import { pack } from '../burst/fit/pack.ts';
import { fitPod } from '../burst/fit/pod.ts';
import { ClusterState as FitState, type NodeState } from '../burst/fit/state.ts';
import type { Pod } from '../kube/resources.ts';
import type { EventQueue } from './event-queue.ts';
import type { TracedWork, WorkSize } from './trace/trace-line.ts';
import { addWait, emptyHistogram, mergeHistograms, type WaitHistogram } from './waits.ts';
import {
  type JobRun,
  mayGoTo,
  podOf,
  type WorkGroup,
  type WorkNode,
  type WorkWaits,
  withLabels,
} from './work-model.ts';

/** Work on one node. */
interface OnNode {
  readonly groups: readonly { readonly group: WorkGroup; readonly count: number }[];
  readonly pods: readonly Pod[];
}

/** Workloads and their nodes. Equal histories give equal states. */
export class RehearsedWorkState {
  readonly room = new FitState();
  readonly nodes = new Map<string, WorkNode>();
  readonly groups = new Map<string, WorkGroup>();
  readonly waits: WorkWaits = {
    all: emptyHistogram(),
    waited: emptyHistogram(),
    beyondStartup: emptyHistogram(),
    givenUp: emptyHistogram(),
  };
  /** Changes with every change of state. */
  version = 0;
  /** By cluster; waiting workloads of the hub have the empty key. */
  readonly #versions = new Map<string, number>();
  /** Node names by cluster, in order of creation. */
  readonly #inCluster = new Map<string, Set<string>>();
  /** Hot path: caches pods by node until they change, because each look lists them for all nodes. By name in `room`. */
  readonly #on = new Map<string, OnNode>();
  /** By the pod object in `room`. */
  readonly #groupOf = new Map<FitPod, WorkGroup>();
  readonly #events: Pick<EventQueue<void>, 'add'>;
  readonly #sizes = new Map<string, WorkSize>();
  /** Order of clusters in which they are filled. */
  readonly #ranks = new Map<string, string>();
  #hasRoom = false;
  /** Closed clusters: they wait, or their workloads are moved away. */
  readonly #closed = new Set<string>();

  constructor(events: Pick<EventQueue<void>, 'add'>) {
    this.#events = events;
  }

  /** Changes with the nodes or workloads of a cluster. @param cluster undefined: the hub's waiting workloads */
  versionOf(cluster?: string): number {
    return this.#versions.get(cluster ?? '') ?? 0;
  }

  #changed(cluster = ''): void {
    this.version++;
    this.#versions.set(cluster, this.versionOf(cluster) + 1);
  }

  /** Applies a line of the trace. @param cluster namespace/name of the workload's cluster; undefined: the hub's */
  ask(work: TracedWork, cluster: string | undefined, now: number): string | undefined {
    const { name, replicas, jobs, lifeMs } = work;
    const size = work.size ?? this.#sizes.get(name);
    if (!size) return `workload ${name} does not say what a replica asks for: cpu and memory`;
    this.#sizes.set(name, size);
    const group = this.#group(work, size, cluster);
    if (jobs !== undefined) this.#wait(group, jobs, now, lifeMs);
    else this.#scale(name, group, replicas ?? 0, now);
    return undefined;
  }

  #group(work: TracedWork, size: WorkSize, cluster: string | undefined): WorkGroup {
    const { name, jobs, priority, clusterLabels, nodes, kind } = work;
    const { cpu, memory, gpu } = size;
    const asks = [cpu, memory, gpu, clusterLabels, priority, nodes, kind];
    const key = JSON.stringify([name, cluster, jobs !== undefined, ...asks]);
    let group = this.groups.get(key);
    if (!group) {
      const object = podOf(size, jobs !== undefined, nodes);
      group = {
        name,
        cluster,
        isJobs: jobs !== undefined,
        size,
        millicores: parseCpu(size.cpu),
        object,
        // A separate object, so that placed pods can be told from equal ones.
        pod: { ...fitPod(object) },
        accepts: withLabels(clusterLabels),
        kind,
        waiting: [],
        waitingCount: 0,
        running: 0,
        priority,
        on: new Map(),
        rank: this.groups.size,
      };
      this.groups.set(key, group);
      this.#groupOf.set(group.pod, group);
    }
    return group;
  }

  #scale(name: string, group: WorkGroup, replicas: number, now: number): void {
    // Replicas of another size are replaced.
    for (const other of this.groups.values())
      if (other !== group && other.name === name && !other.isJobs && other.cluster === group.cluster)
        this.#less(other, other.running + other.waitingCount, now);
    const more = replicas - group.running - group.waitingCount;
    if (more > 0) this.#wait(group, more, now);
    else this.#less(group, -more, now);
  }

  #wait(group: WorkGroup, count: number, since: number, lifeMs?: number, isMoved = false): void {
    group.waiting.push({ since, count, ...(lifeMs !== undefined && { lifeMs }), ...(isMoved && { isMoved }) });
    group.waitingCount += count;
    this.#changed(group.cluster);
    this.#hasRoom = true;
  }

  /** Removes waiting pods first, the latest first; then those on the clusters that are filled last. */
  #less(group: WorkGroup, count: number, now: number): void {
    let left = count;
    while (left > 0 && group.waitingCount > 0) {
      const last = group.waiting.at(-1)!;
      const gone = Math.min(left, last.count);
      last.count -= gone;
      if (last.count === 0) group.waiting.pop();
      group.waitingCount -= gone;
      addWait(this.waits.givenUp, now - last.since, gone);
      left -= gone;
    }
    for (const node of [...group.on.keys()].sort().reverse()) {
      if (left <= 0) break;
      const gone = Math.min(left, group.on.get(node)!);
      this.#leave(group, node, gone);
      left -= gone;
    }
    if (count > 0) this.#changed(group.cluster);
  }

  #leave(group: WorkGroup, node: string, count: number): void {
    const left = (group.on.get(node) ?? 0) - count;
    if (left > 0) group.on.set(node, left);
    else group.on.delete(node);
    group.running -= count;
    this.room.remove(group.pod, node, count);
    this.#on.delete(node);
    this.#hasRoom = true;
    this.#changed(this.nodes.get(node)?.cluster);
  }

  /** Waits of workloads that never ran: until their cancellation, or until now. */
  neverRan(now: number): WaitHistogram {
    const waiting = emptyHistogram();
    for (const group of this.groups.values())
      for (const { since, count } of group.waiting) addWait(waiting, now - since, count);
    return mergeHistograms([this.waits.givenUp, waiting]);
  }

  /** Adds a Ready node. Clusters are filled in the order of their first node. */
  addNode(node: Omit<WorkNode, 'jobs'>, room: NodeState['node']): void {
    const rank = this.#ranks.get(node.cluster) ?? String(this.#ranks.size).padStart(6, '0');
    this.#ranks.set(node.cluster, rank);
    const name = `${rank}:${node.cluster}:${node.node}`;
    this.nodes.set(name, { ...node, jobs: new Set() });
    const beside = this.#inCluster.get(node.cluster);
    if (beside) beside.add(name);
    else this.#inCluster.set(node.cluster, new Set([name]));
    this.room.addNode({ ...room, name });
    this.#hasRoom = true;
    this.#changed(node.cluster);
  }

  /** Removes a node: its pods wait again, and its jobs restart from the beginning. */
  removeNode(cluster: string, node: string, now: number): void {
    const name = this.nameOf(cluster, node);
    if (!this.nodes.has(name)) return;
    this.#moveFrom(name, now);
    this.nodes.delete(name);
    this.#inCluster.get(cluster)?.delete(name);
    this.room.removeNode(name);
    this.#on.delete(name);
    this.#changed(cluster);
  }

  /** Cordons or uncordons a node. */
  cordon(cluster: string, node: string, isCordoned: boolean): void {
    const name = this.nameOf(cluster, node);
    const there = this.room.node(name);
    if (!there || there.node.unschedulable === isCordoned) return;
    const pods = this.room.removeNode(name);
    this.room.addNode({ ...there.node, unschedulable: isCordoned });
    for (const [pod, count] of pods) this.room.place(pod, name, count);
    this.#hasRoom ||= !isCordoned;
    this.#changed(cluster);
  }

  nodeOf(cluster: string, node: string): WorkNode | undefined {
    return this.nodes.get(this.nameOf(cluster, node));
  }

  nameOf(cluster: string, node: string): string {
    return `${this.#ranks.get(cluster) ?? ''}:${cluster}:${node}`;
  }

  /** Pods on a node: one shared object for equal pods. */
  podsOn(cluster: string, node: string): readonly Pod[] {
    return this.#onNode(this.nameOf(cluster, node)).pods;
  }

  /** Groups on a node with their pod counts, in order of placement. */
  groupsOn(cluster: string, node: string): OnNode['groups'] {
    return this.#onNode(this.nameOf(cluster, node)).groups;
  }

  #onNode(name: string): OnNode {
    const known = this.#on.get(name);
    if (known) return known;
    const groups = [...(this.room.node(name)?.pods ?? [])]
      .map(([pod, count]) => ({ group: this.#groupOf.get(pod)!, count }))
      .sort((one, other) => one.group.rank - other.group.rank);
    const pods = groups.flatMap(({ group: { object }, count }) => Array.from({ length: count }, () => object));
    const made = { groups, pods };
    this.#on.set(name, made);
    return made;
  }

  /** Whether any workload runs on the cluster. */
  isBusy(cluster: string): boolean {
    for (const name of this.#inCluster.get(cluster) ?? []) if ((this.room.node(name)?.podCount ?? 0) > 0) return true;
    return false;
  }

  /**
   * Used share of a cluster's allocatable in percent, rounded down: CPU or memory, whichever is higher. undefined: it
   * has no nodes.
   */
  utilization(cluster: string): number | undefined {
    const sums = { cpu: [0, 0], memory: [0, 0] };
    for (const { used, node } of this.#nodesOf(cluster))
      for (const key of ['cpu', 'memory'] as const) {
        sums[key][0]! += used[key];
        sums[key][1]! += node.allocatable[key];
      }
    const shares = Object.values(sums).flatMap(([used = 0, all = 0]) => (all > 0 ? [(100 * used) / all] : []));
    return shares.length > 0 ? Math.floor(Math.max(...shares)) : undefined;
  }

  #nodesOf(cluster: string): NodeState[] {
    return [...(this.#inCluster.get(cluster) ?? [])].flatMap((name) => this.room.node(name) ?? []);
  }

  /**
   * Pods that would need another place if a cluster were removed. Jobs would restart, so they stay.
   * @param kindOf the hub's knowledge of a kind
   */
  movable(cluster: string, kindOf: (kind: WorkGroup['kind']) => HubCustomKind | undefined): Movable {
    const names = this.#nodesOf(cluster).map(({ node }) => node.name);
    const work: WaitingWork[] = [];
    for (const group of this.groups.values()) {
      const count = names.reduce((sum, name) => sum + (group.on.get(name) ?? 0), 0);
      if (count === 0) continue;
      const { name: source, object, size, accepts } = group;
      const customKind = kindOf(group.kind);
      if (group.isJobs) return { stays: `jobs of ${source} have not ended` };
      if (group.cluster !== undefined) return { stays: `${source} belongs to it` };
      const each = `${size.cpu} CPU, ${size.memory} memory`;
      work.push({
        source,
        count,
        pod: fitPod(object),
        each,
        since: 0,
        ...(accepts && { accepts }),
        ...(customKind && { customKind }),
      });
    }
    return { work };
  }

  /** Closes a cluster and moves its pods elsewhere. */
  moveAway(cluster: string, now: number): void {
    this.#closed.add(cluster);
    for (const { node } of this.#nodesOf(cluster)) this.#moveFrom(node.name, now);
    this.#changed(cluster);
  }

  /** The node's pods wait again, and its jobs restart from the beginning. */
  moveFrom(cluster: string, node: string, now: number): void {
    this.#moveFrom(this.nameOf(cluster, node), now);
  }

  #moveFrom(node: string, now: number): void {
    const { jobs } = this.nodes.get(node) ?? { jobs: [] };
    for (const run of jobs) {
      run.isLive = false;
      this.#leave(run.group, node, run.count);
      this.#wait(run.group, run.count, now, run.lifeMs, true);
    }
    for (const { group, count } of this.#onNode(node).groups) {
      this.#leave(group, node, count);
      this.#wait(group, count, now, undefined, true);
    }
  }

  /** Closes a waiting cluster to workloads. */
  close(cluster: string): void {
    this.#closed.add(cluster);
  }

  /** Reopens a cluster to workloads. */
  reopen(cluster: string): void {
    this.#closed.delete(cluster);
    this.#hasRoom = true;
    this.version++;
  }

  isClosed(cluster: string): boolean {
    return this.#closed.has(cluster);
  }

  /** Places waiting pods on nodes with room, in the clusters' order of filling. @returns whether it placed any */
  place(now: number): boolean {
    if (!this.#hasRoom) return false;
    this.#hasRoom = false;
    let hasPlaced = false;
    for (const group of this.groups.values()) {
      if (group.waitingCount === 0) continue;
      const pending = Array.from({ length: group.waitingCount }, (_, index) => ({
        key: String(index),
        pod: group.pod,
      }));
      const { placed } = pack(pending, this.room, { among: this.#open(group) });
      if (placed.size === 0) continue;
      hasPlaced = true;
      const counts = new Map<string, number>();
      for (const node of placed.values()) counts.set(node, (counts.get(node) ?? 0) + 1);
      for (const [node, count] of [...counts].sort(([a], [b]) => (a < b ? -1 : 1))) this.#run(group, node, count, now);
    }
    if (hasPlaced) this.version++;
    return hasPlaced;
  }

  /** Nodes permitted by the hub, or nodes of the workload's own cluster. */
  #open(group: WorkGroup): readonly NodeState[] {
    const { cluster, accepts, kind } = group;
    const all = this.room.nodes();
    if (cluster === undefined && !accepts && !kind && this.#closed.size === 0) return all;
    return all.filter(({ node: { name } }) => {
      const known = this.nodes.get(name)!;
      if (this.#closed.has(known.cluster)) return false;
      return cluster === undefined ? mayGoTo(group, known.member) : known.cluster === cluster;
    });
  }

  #run(group: WorkGroup, name: string, count: number, now: number): void {
    const node = this.nodes.get(name)!;
    this.#on.delete(name);
    group.on.set(name, (group.on.get(name) ?? 0) + count);
    group.running += count;
    group.waitingCount -= count;
    this.#changed(node.cluster);
    this.#changed(group.cluster);
    let left = count;
    while (left > 0) {
      const first = group.waiting[0]!;
      const begun = Math.min(left, first.count);
      first.count -= begun;
      if (first.count === 0) group.waiting.shift();
      left -= begun;
      if (!first.isMoved || now > first.since) this.#noteWait(now - first.since, node, first.since, begun);
      if (first.lifeMs !== undefined)
        this.#begin({ group, count: begun, lifeMs: first.lifeMs, isLive: true }, name, now);
    }
  }

  #begin(run: JobRun, name: string, now: number): void {
    const node = this.nodes.get(name)!;
    node.jobs.add(run);
    this.#events.add({
      at: now + run.lifeMs,
      isLive: () => run.isLive,
      run: () => {
        run.isLive = false;
        node.jobs.delete(run);
        this.#leave(run.group, name, run.count);
      },
    });
  }

  #noteWait(ms: number, { readyAt, startupMs }: WorkNode, since: number, count: number): void {
    addWait(this.waits.all, ms, count);
    if (ms <= 0) return;
    addWait(this.waits.waited, ms, count);
    // A node that existed at the request caused no wait.
    addWait(this.waits.beyondStartup, Math.max(0, readyAt > since ? ms - startupMs : ms), count);
  }
}
