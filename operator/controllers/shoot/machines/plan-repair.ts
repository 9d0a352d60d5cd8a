import type { Machine } from '../../../../providers/contract.ts';
import { ANNOTATIONS } from '../../../api/group.ts';
import { countOrPercentOf } from '../../../api/quantity.ts';
import { conditionIsTrue, type Node } from '../../../kube/resources.ts';
import { DRAINING_ANNOTATION } from './scale-in.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;

/** Time before the machine of an unhealthy node is repaired, milliseconds. */
export interface RepairPatience {
  /** The machine runs without a Node. */
  readonly missingMs: number;
  /** The Node is not Ready. */
  readonly notReadyMs: number;
}

/**
 * kubelet registers its Node only on start, so a deleted Node does not come back. A NotReady node may recover, but
 * loses its pods after five minutes (default tolerations): the machine is restarted before that.
 */
const REPAIR_PATIENCE: RepairPatience = { missingMs: 2 * MINUTE, notReadyMs: 3 * MINUTE };

/** Time for a restarted machine to become Ready on a busy seed; then the restart failed. */
const HEAL_MS = 4 * MINUTE;
/**
 * No repair within this time after an outage of seed or API server, because kubelets report late (as in Gardener's
 * dependency watchdog).
 */
const CALM_MS = 10 * MINUTE;
/** Time for a machine to register its first Node. */
const BOOT_MS = 10 * MINUTE;
/** At most one replacement per cluster in this time: if new machines fail as well, replacing does not help. */
const REPLACE_EVERY_MS = 30 * MINUTE;
/** Above this share of NotReady nodes, the network is at fault, not the machines. */
const MOST_NOT_READY = '40%';

/** Memory about repairs in a cluster. Losing it costs a harmless repeated restart. */
export interface RepairMemory {
  /** Since when a machine's node is unhealthy, by machine. */
  readonly unwell: ReadonlyMap<string, { readonly why: Unwell; readonly since: Date }>;
  /** Last restart of a machine whose node is still unhealthy, by machine. */
  readonly restarted: ReadonlyMap<string, Date>;
  /** Names of nodes that have registered once. */
  readonly registered: ReadonlySet<string>;
  /** Last replacement of a machine in the cluster. */
  readonly replacedAt?: Date;
}

export const NO_REPAIRS: RepairMemory = { unwell: new Map(), restarted: new Map(), registered: new Set() };

type Unwell = 'missing' | 'not-ready';

/** Inputs of planRepair. */
export interface RepairView {
  /** All worker machines. */
  readonly machines: readonly Machine[];
  /** Nodes of the cluster by name. */
  readonly nodes: ReadonlyMap<string, Node>;
  /** Descriptions of volumes with data on a node's machine, by node. Absent: not read yet. */
  readonly volumes?: ReadonlyMap<string, readonly string[]>;
  /** Why machines cannot be repaired, a clause. Absent: they can. */
  readonly lacks?: string;
  /** Last time when seed or API server did not answer. Absent: never since the cluster served. */
  readonly awayAt?: Date | undefined;
  /** By pool; absent: REPAIR_PATIENCE. */
  readonly patience?: ReadonlyMap<string, RepairPatience>;
}

/** A repair: `restart` keeps the disks, `replace` loses them. */
interface RepairStep {
  readonly action: 'restart' | 'replace';
  readonly machine: Machine;
  /** Reason for the Event. */
  readonly because: string;
}

/** Result of planRepair. */
export interface RepairPlan {
  readonly step?: RepairStep;
  /** One line per unhealthy node, for the condition. */
  readonly lines: readonly string[];
  /** Memory if the step is not taken; see noteStep. */
  readonly memory: RepairMemory;
  /** Next check without a change. */
  readonly lookAt?: Date;
  /** Whether the plan needs the volumes, which were not read yet. */
  readonly needsVolumes: boolean;
}

/**
 * The next repair step. Pure. A machine is restarted first, keeping its disks. If its node stays unhealthy, it is
 * replaced, unless it holds volumes' data: then people are told. One machine at a time, and none within ten minutes of
 * an outage of seed or API server. Ignores machines that are outdated, drained or being deleted.
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
  const tooMany = notReady > Math.max(1, countOrPercentOf(MOST_NOT_READY, view.machines.length, Math.floor));
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
    // Many machines starting at once on a busy seed take minutes to register.
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

/** Memory after a step. Pure. */
export function noteStep(memory: RepairMemory, { action, machine }: RepairStep, now: Date): RepairMemory {
  if (action === 'restart') return { ...memory, restarted: new Map([...memory.restarted, [machine.name, now]]) };
  const without = <T>(map: ReadonlyMap<string, T>) => new Map([...map].filter(([name]) => name !== machine.name));
  return { ...memory, unwell: without(memory.unwell), restarted: without(memory.restarted), replacedAt: now };
}

/** Why a machine's node is unhealthy; undefined: healthy, or not to be repaired. */
function unwellness({ phase, ready, outdated }: Machine, node: Node | undefined): Unwell | undefined {
  // A machine that is not up is handled by its provider.
  if (phase !== 'Running' || !ready || outdated) return undefined;
  if (!node) return 'missing';
  const { annotations, deletionTimestamp } = node.metadata;
  const leaves = deletionTimestamp || annotations?.[DRAINING_ANNOTATION] || annotations?.[ANNOTATIONS.emptiedSince];
  return leaves || conditionIsTrue(node, 'Ready') ? undefined : 'not-ready';
}

/** A restarting machine is not up and thus not unhealthy: only a Ready node ends its restart entry. */
function isUnhealed({ machines, nodes }: RepairView, name: string): boolean {
  const machine = machines.find((one) => one.name === name);
  const node = machine && nodes.get(machine.nodeName);
  return machine !== undefined && !(node && conditionIsTrue(node, 'Ready'));
}

/** A missing node that returns NotReady, as each does at first, gets new time. */
function sinceOf(before: RepairMemory, { name }: Machine, why: Unwell, now: Date): Date {
  const known = before.unwell.get(name);
  return known?.why === why ? known.since : now;
}

const text = (time: Date): string => `${time.toISOString().slice(0, 19)}Z`;

const NAMED = 3;
const some = (names: readonly string[]): string =>
  names.length > NAMED ? `${names.slice(0, NAMED).join(', ')} and ${names.length - NAMED} more` : names.join(', ');
