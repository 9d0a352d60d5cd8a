/** An object that must release a cluster before the cluster is deleted. */
export interface Hold {
  /** The holder, for example "Seed on-aws". */
  readonly by: string;
  /** How to end the hold, a sentence for messages. */
  readonly advice: string;
  /** The hold ends at this time. Absent: it ends when the holder is gone. */
  readonly until?: Date;
}

/** Holds on a cluster, from caches. */
export type HoldsOf = (namespace: string, name: string) => readonly Hold[];

/** Holds on a cluster that shall sleep since a given time. */
export type SleepHoldsOf = (namespace: string, name: string, since: Date) => readonly Hold[];

/** Combines sources of holds; a new kind of holder is one more source. */
export const holdsFrom =
  (...sources: readonly HoldsOf[]): HoldsOf =>
  (namespace, name) =>
    sources.flatMap((source) => source(namespace, name));

/** Holds that keep a cluster awake: permanent users of its nodes, and those that release it before it sleeps. */
export const sleepHoldsFrom =
  (needs: HoldsOf, letsGo: SleepHoldsOf): SleepHoldsOf =>
  (namespace, name, since) => [...needs(namespace, name), ...letsGo(namespace, name, since)];

/** Whether the deletion of a cluster may begin. */
export interface GateVerdict {
  readonly open: boolean;
  /** The holders and the advice; empty when the gate is open. */
  readonly message: string;
  /** Latest time of the next check. */
  readonly until?: Date;
}

/** Reason of condition Deleting while a hold exists. */
export const HELD = 'Held';
const NAMED = 3;

/**
 * Judges whether a cluster may be deleted. Pure. A deletion that has begun is never stopped: later holds are ignored.
 */
export const judgeDeletion = (holds: readonly Hold[], begun: boolean, now: Date): GateVerdict =>
  judgeHolds(begun ? [] : holds, now);

/** Whether no hold on a cluster is left. Pure. */
export function judgeHolds(holds: readonly Hold[], now: Date): GateVerdict {
  const holding = holds.filter(({ until }) => until === undefined || until > now);
  if (holding.length === 0) return { open: true, message: '' };
  const more = holding.length > NAMED ? `; and ${holding.length - NAMED} more` : '';
  const named = holding.slice(0, NAMED).map(({ by, advice }) => `${by} holds the cluster: ${advice}`);
  const ends = holding.flatMap(({ until }) => (until ? [+until] : []));
  return {
    open: false,
    message: `${named.join('; ')}${more}`,
    ...(ends.length > 0 && { until: new Date(Math.min(...ends)) }),
  };
}
