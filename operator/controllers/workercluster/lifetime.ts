import { findCondition, rfc3339 } from '../../api/conditions.ts';
import { parseDuration } from '../../api/duration.ts';
import { ANNOTATIONS } from '../../api/group.ts';
import type { WorkerCluster } from '../../api/workercluster.ts';
import { type Said, say } from '../conditions.ts';
import type {} from './view.ts';

/** Condition of a cluster that expires soon. */
export const EXPIRING = 'Expiring';

/** Warning time before expiry: a tenth of its life, at most an hour. */
const WARN_MS = 3600_000;
const WARN_PART = 0.1;
/** Share of the warning time that must remain after a late warning, such as after a clock step. */
const NOTICE_PART = 0.5;

/** Consequences of `ttl`. */
export interface Lifetime {
  /** The ttl is over: delete the cluster. */
  readonly isOver: boolean;
  /** Condition Expiring, shortly before expiry. */
  readonly warning: Said<'WorkerCluster'> | undefined;
  /** RFC 3339; absent: no expiry. */
  readonly expiresAt: string | undefined;
  /** Next change. */
  readonly next: Date | undefined;
}

const UNLIMITED: Lifetime = { isOver: false, warning: undefined, expiresAt: undefined, next: undefined };

/** When the cluster first warned of its expiry; undefined: never, or in this clock's future. */
export function warnedAt({ status }: Pick<WorkerCluster, 'status'>, now: Date): Date | undefined {
  const said = findCondition(status?.conditions, EXPIRING);
  const at = new Date(said?.status === 'True' ? said.lastTransitionTime : Number.NaN);
  return at <= now ? at : undefined;
}

/**
 * Remaining life of the cluster. Pure. A longer or removed `ttl` extends it. It expires only after its status has shown
 * the warning for the notice time: after a clock step, or without a running operator, nobody was warned.
 */
export function lifetimeOf(cluster: Pick<WorkerCluster, 'spec' | 'metadata' | 'status'>, now: Date): Lifetime {
  const { spec, metadata } = cluster;
  const ttl = parseDuration(spec.ttl ?? '');
  const from = Date.parse(metadata.creationTimestamp ?? '');
  if (ttl === undefined || Number.isNaN(from)) return UNLIMITED;
  const end = from + ttl;
  // Beyond the range of dates.
  if (Number.isNaN(+new Date(end))) return UNLIMITED;
  const early = Math.min(WARN_MS, ttl * WARN_PART);
  const warnAt = new Date(end - early);
  if (now < warnAt) return { isOver: false, warning: undefined, expiresAt: rfc3339(new Date(end)), next: warnAt };
  const told = warnedAt(cluster, now);
  const over = new Date(Math.max(end, +(told ?? now) + early * NOTICE_PART));
  const expiresAt = rfc3339(over);
  const isProtected =
    spec.deletionProtection === true || metadata.annotations?.[ANNOTATIONS.deletionProtection] === 'true';
  if (now < over || !told) {
    const prolong = 'To keep it, set a longer spec.ttl, or none';
    const message = `spec.ttl ${spec.ttl}: the cluster is deleted at ${expiresAt}. ${prolong}`;
    return { isOver: false, warning: say(EXPIRING, true, 'EndIsNear', message), expiresAt, next: over };
  }
  const message = isProtected
    ? `spec.ttl ${spec.ttl} was over at ${expiresAt}, but the cluster is protected from deletion: take the protection off, or set a longer spec.ttl`
    : `spec.ttl ${spec.ttl} was over at ${expiresAt}: the cluster is deleted`;
  const warning = say(EXPIRING, true, isProtected ? 'Protected' : 'Over', message);
  return { isOver: !isProtected, warning, expiresAt, next: undefined };
}
