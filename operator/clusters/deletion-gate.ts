/** Something that must let go of a cluster before anything of the cluster is taken apart. */
export interface Hold {
  /** The object that holds it, for example "Seed on-aws". */
  readonly by: string;
  /** What ends the hold, a sentence for people. */
  readonly advice: string;
  /** From then on it does not hold any more. Absent: it holds until it is gone. */
  readonly until?: Date;
}

/** What holds a cluster, looked up in caches. */
export type HoldsOf = (namespace: string, name: string) => readonly Hold[];

/** The same of a cluster that is to sleep since then. */
export type SleepHoldsOf = (namespace: string, name: string, since: Date) => readonly Hold[];

/** Whoever holds a cluster is asked for here: a new kind of holder is one more source. */
export const holdsFrom =
  (...sources: readonly HoldsOf[]): HoldsOf =>
  (namespace, name) =>
    sources.flatMap((source) => source(namespace, name));

/** What keeps a cluster awake that is to sleep: what needs its nodes for good, and what lets go of them first. */
export const sleepHoldsFrom =
  (needs: HoldsOf, letsGo: SleepHoldsOf): SleepHoldsOf =>
  (namespace, name, since) => [...needs(namespace, name), ...letsGo(namespace, name, since)];

/** Whether the deletion of a cluster may begin. */
export interface GateVerdict {
  readonly open: boolean;
  /** Who holds it and what to do about it; empty when the gate is open. */
  readonly message: string;
  /** When to ask again at the latest. */
  readonly until?: Date;
}

/** Reason of condition Deleting while somebody holds the cluster. */
export const HELD = 'Held';
const NAMED = 3;

/**
 * Judges whether a cluster may be taken apart. Pure. A deletion that has begun is never stopped half way: what holds the cluster only then
 * comes too late.
 */
export const judgeDeletion = (holds: readonly Hold[], begun: boolean, now: Date): GateVerdict =>
  judgeHolds(begun ? [] : holds, now);

/** Whether nothing holds a cluster any more. Pure. */
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
