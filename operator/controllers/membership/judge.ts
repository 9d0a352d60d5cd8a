import { rfc3339 } from '../../api/conditions.ts';
import type { DrainEffect, JoinStep, Placement, Step } from '../../hubs/contract.ts';

/** How far a join has come. */
export interface JoinVerdict {
  /** Steps whose objects are to be applied now, in order. */
  readonly acting: readonly Step[];
  /** Steps that have nothing left to do once these objects are there. */
  readonly done: readonly JoinStep[];
  /** The step that the join stands at; undefined: all are done. */
  readonly at?: { readonly type: JoinStep; readonly waiting: string };
}

/**
 * Which steps of a join are to be taken now: each one when all before it are done. Pure.
 * @param missing whose credentials are not there yet, in words
 */
export function judgeJoin(steps: readonly Step[], missing: readonly string[]): JoinVerdict {
  const acting: Step[] = [];
  const done: JoinStep[] = [];
  for (const step of steps) {
    acting.push(step);
    const waiting =
      step.waiting ??
      (step.type === 'IdentityReady' && missing.length > 0
        ? `credentials of ${missing.join(', ')} are to be made`
        : undefined);
    if (waiting !== undefined) return { acting, done, at: { type: step.type, waiting } };
    done.push(step.type);
  }
  return { acting, done };
}

/** Stages of a leave; each is a condition of the Membership, and all hubs of a cluster reach one before any goes on to the next. */
export const LEAVE_STAGES = ['Cordoned', 'Drained', 'Withdrawn'] as const;
export type LeaveStage = (typeof LEAVE_STAGES)[number];

/** All that the next stage of a leave rests on. */
export interface LeaveView {
  /** What is placed on the cluster; undefined: the hub cannot tell. */
  readonly placements: readonly Placement[] | undefined;
  readonly effect: DrainEffect;
  readonly allowDelete: boolean;
  /** When the leave began, and how long the drain may take. */
  readonly began: Date;
  readonly timeoutMs: number;
  /** By the Hub's spec or an annotation; nothing else forces. */
  readonly force: boolean;
  /** Why its other members cannot take what runs on the cluster; asked before the drain begins, and only of a hub that moves work. */
  readonly noRoom?: string | undefined;
  /** What of its ServiceExports still stands, in words; asked when all else is done, and only of a cluster that is destroyed. */
  readonly exported?: readonly string[] | undefined;
  /** What no hub has placed there and is to be kept, in words; asked at the same time. */
  readonly ownWork?: readonly string[] | undefined;
  /** What the other hubs that the cluster is leaving have reached: "Hub production", and its stages. */
  readonly others: readonly { readonly hub: string; readonly reached: readonly LeaveStage[] }[];
}

/** What a leave may do now. */
export interface LeaveVerdict {
  /** Whether new work is kept away everywhere, so that draining may begin. */
  readonly drain: boolean;
  /** Whether nothing of the hub's is left on the cluster, or does not count. */
  readonly drained: boolean;
  /** Whether the cluster may be taken out of the hub. */
  readonly withdraw: boolean;
  readonly reason:
    | 'Drained'
    | 'Draining'
    | 'Exported'
    | 'OwnWork'
    | 'NoRoom'
    | 'DrainNotPossible'
    | 'DrainBlocked'
    | 'Forced';
  /** In spite of what it goes on, in words. */
  readonly forced?: string;
  /** The drain is not begun because nobody has room for the work. */
  readonly noRoom?: true;
  /** It is drained, and something else holds it: its Services are used by others yet, or it runs what no hub has placed. */
  readonly held?: 'Exported' | 'OwnWork';
  /** What it waits for; '' where it does not. */
  readonly waiting: string;
  /** The time of the drain is over. */
  readonly overdue: boolean;
  /** When to look again at the latest, though nothing changes. */
  readonly until?: Date;
}

/** All that rests on it whether a hub lets a cluster fall asleep. */
export interface SleepView extends Pick<LeaveView, 'placements' | 'effect' | 'noRoom'> {
  /** When it sleeps all the same: nothing is lost by that, as what was placed runs again when it wakes. */
  readonly ends: Date;
}

/** That a hub keeps a cluster awake which is to sleep. */
export interface KeptAwake {
  /** A sentence. */
  readonly why: string;
  /** The hub moves work away now. False: its other members have no room for it. */
  readonly drain: boolean;
}

/** Why a cluster that is to sleep is kept awake by a hub, a sentence; undefined: it may sleep. Pure. */
export function judgeSleep({ placements = [], effect, noRoom, ends }: SleepView, now: Date): string | undefined {
  if (effect !== 'Moves' || placements.length === 0 || now >= ends) return undefined;
  return noRoom ? `${noRoom}: it sleeps at ${rfc3339(ends)} all the same` : `the hub moves ${named(placements)}`;
}

/** What a hub says of a cluster whose BurstPolicy wants it emptied; the reason of condition Drained. */
export interface EmptyingVerdict {
  readonly drained: boolean;
  readonly reason: 'Drained' | 'Draining' | 'NoRoom' | 'DrainNotPossible';
  readonly message: string;
}

/**
 * Whether all was moved away from a cluster that could as well stay. Nothing is forced, and nothing deleted: whoever waits for it gives up.
 * Pure.
 */
export function judgeEmptying({ placements, effect, noRoom }: Omit<SleepView, 'ends'>): EmptyingVerdict {
  if (placements?.length === 0)
    return { drained: true, reason: 'Drained', message: 'the hub has nothing placed on it' };
  if (!placements || effect !== 'Moves')
    return { drained: false, reason: 'DrainNotPossible', message: 'the hub does not move what is placed on it' };
  if (noRoom) return { drained: false, reason: 'NoRoom', message: noRoom };
  return { drained: false, reason: 'Draining', message: `the hub moves ${named(placements)}` };
}

const NAMED = 3;

/** What the leave of a cluster from one hub may do now. Pure. Expects that new work is kept away from it in this hub already. */
export function judgeLeave(view: LeaveView, now: Date): LeaveVerdict {
  const { placements = [], effect, allowDelete, force, others, exported = [] } = view;
  const end = new Date(+view.began + view.timeoutMs);
  const overdue = now >= end;
  const until = overdue ? {} : { until: end };
  const left = placements.length > 0 ? named(placements) : '';
  const behind = (stage: LeaveStage) => others.filter(({ reached }) => !reached.includes(stage)).map(({ hub }) => hub);
  const blocked = { drain: false, drained: false, withdraw: false, overdue };

  const open = behind('Cordoned');
  if (open.length > 0 && !(force && overdue))
    return {
      ...blocked,
      reason: 'Draining',
      waiting: `${open.join(', ')} may still place new work on it`,
      ...until,
    };
  if (left !== '' && !(force && overdue)) {
    if (effect === 'Moves' && view.noRoom) {
      const reason = overdue ? 'DrainBlocked' : 'NoRoom';
      return { ...blocked, noRoom: true, reason, waiting: `${view.noRoom}: add nodes there, or force it`, ...until };
    }
    const drain = { ...blocked, drain: true };
    if (effect === 'Moves' && !overdue)
      return { ...drain, reason: 'Draining', waiting: `the hub moves ${left}`, ...until };
    if (effect === 'Moves') {
      const advice = 'make room elsewhere, or force it';
      return {
        ...drain,
        reason: 'DrainBlocked',
        waiting: `the drain deadline has passed, and ${left} is still there: ${advice}`,
      };
    }
    if (!allowDelete)
      return { ...drain, reason: 'DrainNotPossible', waiting: `${left} is placed, and ${WHY[effect]}`, ...until };
  }
  const forced = left !== '' && !allowDelete;
  const reason = forced ? 'Forced' : 'Drained';
  const undrained = behind('Drained');
  if (undrained.length > 0 && !(force && overdue)) {
    const waiting = `not drained yet: ${undrained.join(', ')}`;
    return { drain: true, drained: true, withdraw: false, reason, waiting, overdue, ...until };
  }
  const { ownWork = [] } = view;
  const used = exported.length > 0 ? `other clusters still send traffic to it through ${named(exported)}` : '';
  const kept = ownWork.length > 0 ? `no hub placed ${named(ownWork)}, which would be deleted with the cluster` : '';
  const held = used || kept;
  if (held !== '' && !(force && overdue)) {
    const stands = {
      drain: true,
      drained: true,
      withdraw: false,
      held: used ? 'Exported' : 'OwnWork',
      overdue,
    } as const;
    return overdue
      ? {
          ...stands,
          reason: 'DrainBlocked',
          waiting: `the drain deadline has passed, and ${held}: remove it, or force it`,
        }
      : { ...stands, reason: stands.held, waiting: held, ...until };
  }
  const inSpite = [forced ? 'it was not drained' : '', used, kept].filter((text) => text !== '').join(', and ');
  const last = { drain: true, drained: true, withdraw: true, waiting: '', overdue } as const;
  return inSpite === '' ? { ...last, reason } : { ...last, reason: 'Forced', forced: inSpite };
}

const WHY: Record<Exclude<DrainEffect, 'Moves'>, string> = {
  Waits: 'this hub does not move work: its owner must remove it, or set drain.allowDelete of the Hub',
  Deletes: 'would be deleted with the membership: move it, or set drain.allowDelete of the Hub',
  None: 'this hub does not drain: move it, or set drain.allowDelete of the Hub',
};

/** The first of them, and how many more. Pure. */
export const named = (placements: readonly Placement[]): string => {
  const more = placements.length > NAMED ? ` and ${placements.length - NAMED} more` : '';
  return `${placements.slice(0, NAMED).join(', ')}${more}`;
};
