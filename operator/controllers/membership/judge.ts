import { rfc3339 } from '../../api/conditions.ts';
import type { DrainEffect, HubStep, JoinStep, Placement } from '../../hubs/contract.ts';

/** Progress of a join. */
export interface JoinVerdict {
  /** Steps to apply now, in order. */
  readonly acting: readonly HubStep[];
  /** Steps that are done once these objects exist. */
  readonly done: readonly JoinStep[];
  /** The present step; undefined: all are done. */
  readonly at?: { readonly type: JoinStep; readonly waiting: string };
}

/**
 * Steps of a join to take now: each after all earlier ones are done. Pure.
 * @param missing identities without credentials, as text
 */
export function judgeJoin(steps: readonly HubStep[], missing: readonly string[]): JoinVerdict {
  const acting: HubStep[] = [];
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

/** Stages of a leave, each a condition of the Membership; all hubs of a cluster reach one before any continues. */
export const LEAVE_STAGES = ['Cordoned', 'Drained', 'Withdrawn'] as const;
export type LeaveStage = (typeof LEAVE_STAGES)[number];

/** Inputs of the next stage of a leave. */
export interface LeaveView {
  /** Placements on the cluster; undefined: the hub cannot tell. */
  readonly placements: readonly Placement[] | undefined;
  readonly effect: DrainEffect;
  readonly allowDelete: boolean;
  /** Start of the leave, and timeout of the drain. */
  readonly began: Date;
  readonly timeoutMs: number;
  /** Forced by the Hub's spec or an annotation only. */
  readonly force: boolean;
  /** Why other members lack room for the cluster's work; checked before the drain, for hubs that move work. */
  readonly noRoom?: string | undefined;
  /** Remaining ServiceExports, as text; checked last, for a cluster to be destroyed. */
  readonly exported?: readonly string[] | undefined;
  /** Work that no hub placed and that must be kept, as text; checked last. */
  readonly ownWork?: readonly string[] | undefined;
  /** Stages reached by other hubs that the cluster leaves, such as "Hub production". */
  readonly others: readonly { readonly hub: string; readonly reached: readonly LeaveStage[] }[];
}

/** Allowed next stage of a leave. */
export interface LeaveVerdict {
  /** Whether new work is kept away everywhere, so that draining may begin. */
  readonly drain: boolean;
  /** Whether no work of the hub is left, or it does not count. */
  readonly drained: boolean;
  /** Whether the cluster may be removed from the hub. */
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
  /** What is overridden by force, as text. */
  readonly forced?: string;
  /** The drain does not begin because nobody has room. */
  readonly noRoom?: true;
  /** Drained, but held: other clusters use its Services, or it runs work that no hub placed. */
  readonly held?: 'Exported' | 'OwnWork';
  /** Reason to wait; '' if none. */
  readonly waiting: string;
  /** The drain's timeout is over. */
  readonly overdue: boolean;
  /** Next check without a change. */
  readonly until?: Date;
}

/** Inputs of the decision whether a hub lets a cluster sleep. */
interface SleepView extends Pick<LeaveView, 'placements' | 'effect' | 'noRoom'> {
  /** When it sleeps in any case: nothing is lost, because placed work runs again on wake-up. */
  readonly ends: Date;
}

/** A hub's wake hold. */
export interface KeptAwake {
  /** A sentence. */
  readonly why: string;
  /** The hub moves work away now. False: other members have no room. */
  readonly drain: boolean;
}

/** Why a hub keeps a cluster awake, a sentence; undefined: it may sleep. Pure. */
export function judgeSleep({ placements = [], effect, noRoom, ends }: SleepView, now: Date): string | undefined {
  if (effect !== 'Moves' || placements.length === 0 || now >= ends) return undefined;
  return noRoom ? `${noRoom}: it sleeps at ${rfc3339(ends)} all the same` : `the hub moves ${firstNamed(placements)}`;
}

/** Progress of emptying for a BurstPolicy; the reason of condition Drained. */
export interface EmptyingVerdict {
  readonly drained: boolean;
  readonly reason: 'Drained' | 'Draining' | 'NoRoom' | 'DrainNotPossible';
  readonly message: string;
}

/**
 * Whether a cluster that could stay was emptied. Nothing is forced or deleted: the waiting policy gives up eventually.
 * Pure.
 */
export function judgeEmptying({ placements, effect, noRoom }: Omit<SleepView, 'ends'>): EmptyingVerdict {
  if (placements?.length === 0)
    return { drained: true, reason: 'Drained', message: 'the hub has nothing placed on it' };
  if (!placements || effect !== 'Moves')
    return { drained: false, reason: 'DrainNotPossible', message: 'the hub does not move what is placed on it' };
  if (noRoom) return { drained: false, reason: 'NoRoom', message: noRoom };
  return { drained: false, reason: 'Draining', message: `the hub moves ${firstNamed(placements)}` };
}

const NAMED = 3;

/**
 * Allowed next stage of a cluster's leave from one hub. Pure. Assumes that new work is already kept away in this hub.
 */
export function judgeLeave(view: LeaveView, now: Date): LeaveVerdict {
  const { placements = [], effect, allowDelete, force, others, exported = [] } = view;
  const end = new Date(+view.began + view.timeoutMs);
  const overdue = now >= end;
  const until = overdue ? {} : { until: end };
  const left = placements.length > 0 ? firstNamed(placements) : '';
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
  const used = exported.length > 0 ? `other clusters still send traffic to it through ${firstNamed(exported)}` : '';
  const kept =
    ownWork.length > 0 ? `no hub placed ${firstNamed(ownWork)}, which would be deleted with the cluster` : '';
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

/** Names the first placement, and the number of others. Pure. */
export const firstNamed = (placements: readonly Placement[]): string => {
  const more = placements.length > NAMED ? ` and ${placements.length - NAMED} more` : '';
  return `${placements.slice(0, NAMED).join(', ')}${more}`;
};
