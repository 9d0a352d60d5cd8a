import type { Machine } from '../../../../providers/contract.ts';
import { ANNOTATIONS } from '../../../api/group.ts';
import { countOf } from '../../../api/quantity.ts';
import { conditionIsTrue, type Node } from '../../../kube/resources.ts';
import { DRAINING_ANNOTATION } from './scale-in.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;

/** How long a node may be unwell before its machine is repaired, in milliseconds. */
export interface RepairPatience {
  /** The node is not there although the machine runs. */
  readonly missingMs: number;
  /** The node is there and not Ready. */
  readonly notReadyMs: number;
}

/**
 * A kubelet registers its node only as it starts, so a deleted node never comes back by itself. A node that is NotReady may: it loses its pods
 * after five minutes (the tolerations that Kubernetes adds to every pod), so the machine is restarted before that.
 */
const REPAIR_PATIENCE: RepairPatience = { missingMs: 2 * MINUTE, notReadyMs: 3 * MINUTE };

/** A machine that was restarted has a Ready node by then, also on a busy seed; otherwise the restart did not help. */
const HEAL_MS = 4 * MINUTE;
/** Kubelets report late after an outage of seed or API server (Gardener's dependency watchdog waits likewise). */
const CALM_MS = 10 * MINUTE;
/** A machine of which no node was ever seen is left to start for so long. */
const BOOT_MS = 10 * MINUTE;
/** One replacement of a machine per cluster in this time: where new machines do not come up either, replacing helps nobody. */
const REPLACE_EVERY_MS = 30 * MINUTE;
/** Where more nodes than this are NotReady at once, the way to them has failed, not their machines. */
const MOST_NOT_READY = '40%';

/** What is remembered of repairs in a cluster. Losing it costs a repeated restart, which harms nothing. */
export interface RepairMemory {
  /** Since when the node of a machine has been unwell, by the machine's name. */
  readonly unwell: ReadonlyMap<string, { readonly why: Unwell; readonly since: Date }>;
  /** When a machine whose node is still unwell was last restarted, by the machine's name. */
  readonly restarted: ReadonlyMap<string, Date>;
  /** Names of nodes that were seen: their machines have registered. */
  readonly registered: ReadonlySet<string>;
  /** When a machine of the cluster was last replaced. */
  readonly replacedAt?: Date;
}

export const NO_REPAIRS: RepairMemory = { unwell: new Map(), restarted: new Map(), registered: new Set() };

type Unwell = 'missing' | 'not-ready';

/** What planRepair judges. */
export interface RepairView {
  /** All machines for workloads. */
  readonly machines: readonly Machine[];
  /** Nodes of the cluster by name. */
  readonly nodes: ReadonlyMap<string, Node>;
  /** What a person reads of volumes that keep their data on the machine of a node, by the node's name. Absent: nobody has looked yet. */
  readonly volumes?: ReadonlyMap<string, readonly string[]>;
  /** Why machines cannot be repaired, a clause. Absent: they can. */
  readonly lacks?: string;
  /** When seed or API server were last known not to answer. Absent: since the cluster served, they always have. */
  readonly awayAt?: Date | undefined;
  /** By the name of the pool; absent: REPAIR_PATIENCE. */
  readonly patience?: ReadonlyMap<string, RepairPatience>;
}

/** What to do about a machine whose node is unwell. `restart` keeps its disks, `replace` loses them. */
interface RepairStep {
  readonly action: 'restart' | 'replace';
  readonly machine: Machine;
  /** For an Event: what the machine is repaired for. */
  readonly because: string;
}

/** What follows from a RepairView. */
export interface RepairPlan {
  readonly step?: RepairStep;
  /** One line for each machine whose node is unwell, for the condition. */
  readonly lines: readonly string[];
  /** What to remember if the step is not taken; see noteStep. */
  readonly memory: RepairMemory;
  /** When something is due although nothing changes. */
  readonly lookAt?: Date;
  /** Whether the plan depends on volumes that nobody has looked at. */
  readonly needsVolumes: boolean;
}

/**
 * The next step of repairing machines, pure. A machine is restarted first, over its disks. If its node is unwell still, it is replaced, unless
 * volumes keep their data on it: then people are told. One machine at a time. No machine is touched within ten minutes of an outage of seed or
 * API server. Machines that are outdated, drained or on their way out are for others to decide about.
 */
export function planRepair(view: RepairView, before: RepairMemory, now: Date): RepairPlan {
  const sick = view.machines.flatMap((machine) => {
    const why = unwellness(machine, view.nodes.get(machine.nodeName));
    return why ? [{ machine, why, since: sinceOf(before, machine, why, now) }] : [];
  });
  const memory: RepairMemory = {
    ...before,
    unwell: new Map(sick.map(({ machine, why, since }) => [machine.name, { why, since }])),
    restarted: new Map([...before.restarted].filter(([name]) => isUnhealed(view, name))),
    registered: new Set(
      view.machines.flatMap(({ nodeName }) =>
        view.nodes.has(nodeName) || before.registered.has(nodeName) ? [nodeName] : [],
      ),
    ),
  };
  const notReady = sick.filter(({ why }) => why === 'not-ready').length;
  const tooMany = notReady > Math.max(1, countOf(MOST_NOT_READY, view.machines.length, Math.floor));
  const calmAt = view.awayAt ? +view.awayAt + CALM_MS : 0;
  const healing = [...memory.restarted].find(([, at]) => +now < +at + HEAL_MS);
  const due: number[] = [];
  const lines: string[] = [];
  let step: RepairStep | undefined;
  let needsVolumes = false;
  const bySince = [...sick].sort((a, b) => +a.since - +b.since || a.machine.name.localeCompare(b.machine.name));
  for (const { machine, why, since } of bySince) {
    const { name, nodeName, pool } = machine;
    const patience = view.patience?.get(pool) ?? REPAIR_PATIENCE;
    // Many machines that start at once on a busy seed take minutes to register for the first time.
    const bootsUntil = memory.registered.has(nodeName) ? 0 : Date.parse(machine.createdAt) + BOOT_MS || 0;
    const overdueAt =
      why === 'missing' ? Math.max(+since + patience.missingMs, bootsUntil) : +since + patience.notReadyMs;
    const what =
      why === 'missing'
        ? `machine ${name} runs without its node since ${text(since)}`
        : `node ${nodeName} is not Ready since ${text(since)}`;
    const restartedAt = memory.restarted.get(name);
    const waitUntil = (at: number, line: string) => {
      due.push(at);
      lines.push(`${what}: ${line}`);
    };
    if (+now < overdueAt) {
      due.push(overdueAt);
    } else if (view.lacks !== undefined) {
      lines.push(`${what}: ${view.lacks}`);
    } else if (why === 'not-ready' && tooMany) {
      lines.push(`${what}: not repaired, since ${notReady} of ${view.machines.length} nodes are not Ready at once`);
    } else if (+now < calmAt) {
      waitUntil(
        calmAt,
        `its machine is restarted after ${text(new Date(calmAt))}, ten minutes after seed or API server were away`,
      );
    } else if (restartedAt && +now < +restartedAt + HEAL_MS) {
      waitUntil(+restartedAt + HEAL_MS, `its machine was restarted at ${text(restartedAt)}`);
    } else if (healing || step) {
      lines.push(`${what}: its machine waits until machine ${healing?.[0] ?? step!.machine.name} is repaired`);
      if (healing) due.push(+healing[1] + HEAL_MS);
    } else if (!restartedAt) {
      step = { action: 'restart', machine, because: what };
      lines.push(`${what}: its machine is restarted`);
    } else {
      const held = view.volumes?.get(nodeName);
      const replaceAt = memory.replacedAt ? +memory.replacedAt + REPLACE_EVERY_MS : 0;
      const tried = `the restart at ${text(restartedAt)} did not help`;
      if (!view.volumes) {
        needsVolumes = true;
        lines.push(`${what}: ${tried}`);
      } else if (held && held.length > 0) {
        lines.push(
          `${what}: ${tried}. The machine is not replaced, since it holds the data of ${some(held)}: repair it, or delete these claims`,
        );
      } else if (+now < replaceAt) {
        waitUntil(replaceAt, `${tried}; its machine is replaced after ${text(new Date(replaceAt))}`);
      } else {
        step = { action: 'replace', machine, because: `${what}, and ${tried}` };
        lines.push(`${what}: ${tried}, so its machine is replaced`);
      }
    }
  }
  const lookAt = Math.min(...due);
  return {
    ...(step && { step }),
    lines,
    memory,
    ...(Number.isFinite(lookAt) && { lookAt: new Date(lookAt) }),
    needsVolumes,
  };
}

/** What to remember once a step was taken. Pure. */
export function noteStep(memory: RepairMemory, { action, machine }: RepairStep, now: Date): RepairMemory {
  if (action === 'restart') return { ...memory, restarted: new Map([...memory.restarted, [machine.name, now]]) };
  const without = <T>(map: ReadonlyMap<string, T>) => new Map([...map].filter(([name]) => name !== machine.name));
  return { ...memory, unwell: without(memory.unwell), restarted: without(memory.restarted), replacedAt: now };
}

/** Why the node of a machine is unwell; undefined: it is well, or the machine is not for repair. */
function unwellness({ phase, ready, outdated }: Machine, node: Node | undefined): Unwell | undefined {
  // A machine that is not up itself is made, or started again, by who runs it.
  if (phase !== 'Running' || !ready || outdated) return undefined;
  if (!node) return 'missing';
  const { annotations, deletionTimestamp } = node.metadata;
  const leaves = deletionTimestamp || annotations?.[DRAINING_ANNOTATION] || annotations?.[ANNOTATIONS.emptiedSince];
  return leaves || conditionIsTrue(node, 'Ready') ? undefined : 'not-ready';
}

/** While a machine starts again it is not up, and so not unwell: only a Ready node ends what is remembered of its restart. */
function isUnhealed({ machines, nodes }: RepairView, name: string): boolean {
  const machine = machines.find((one) => one.name === name);
  const node = machine && nodes.get(machine.nodeName);
  return machine !== undefined && !(node && conditionIsTrue(node, 'Ready'));
}

/** A node that was missing and comes back NotReady, as each does at first, is given its time anew. */
function sinceOf(before: RepairMemory, { name }: Machine, why: Unwell, now: Date): Date {
  const known = before.unwell.get(name);
  return known?.why === why ? known.since : now;
}

const text = (time: Date): string => `${time.toISOString().slice(0, 19)}Z`;

const NAMED = 3;
const some = (names: readonly string[]): string =>
  names.length > NAMED ? `${names.slice(0, NAMED).join(', ')} and ${names.length - NAMED} more` : names.join(', ');
