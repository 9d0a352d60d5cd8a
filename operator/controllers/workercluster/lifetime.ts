import { findCondition, rfc3339 } from '../../api/conditions.ts';
import { parseDuration } from '../../api/duration.ts';
import { ANNOTATIONS } from '../../api/group.ts';
import type { WorkerCluster } from '../../api/workercluster.ts';
import { type Said, say } from '../conditions.ts';
import type {} from './view.ts';

/** Condition of a cluster whose end is near. */
export const EXPIRING = 'Expiring';

/** How long before its end a cluster says so: a tenth of its life, an hour at most. */
const WARN_MS = 3600_000;
const WARN_PART = 0.1;
/** How much of that must lie between the warning and the end, however late the warning came: a clock may have stepped forward. */
const NOTICE_PART = 0.5;

/** What follows from `ttl`. */
export interface Lifetime {
  /** Its time is over: it is to be deleted. */
  readonly isOver: boolean;
  /** Condition Expiring, once the end is near. */
  readonly warning: Said<'WorkerCluster'> | undefined;
  /** RFC 3339; absent: it lives until somebody deletes it. */
  readonly expiresAt: string | undefined;
  /** When something of this changes. */
  readonly next: Date | undefined;
}

const UNLIMITED: Lifetime = { isOver: false, warning: undefined, expiresAt: undefined, next: undefined };

/** When the cluster said first that its end is near; undefined: it never did, or by a clock that was ahead of this one. */
export function warnedAt({ status }: Pick<WorkerCluster, 'status'>, now: Date): Date | undefined {
  const said = findCondition(status?.conditions, EXPIRING);
  const at = new Date(said?.status === 'True' ? said.lastTransitionTime : Number.NaN);
  return at <= now ? at : undefined;
}

/**
 * How long the cluster may still live. Pure. It is prolonged by a longer `ttl`, or by none. It is over only when its status has warned of
 * that for the time of notice: after a step of the clock, or where no operator ran, nobody was told.
 */
export function lifetimeOf(cluster: Pick<WorkerCluster, 'spec' | 'metadata' | 'status'>, now: Date): Lifetime {
  const { spec, metadata } = cluster;
  const ttl = parseDuration(spec.ttl ?? '');
  const from = Date.parse(metadata.creationTimestamp ?? '');
  if (ttl === undefined || Number.isNaN(from)) return UNLIMITED;
  const end = from + ttl;
  // Beyond that dates end.
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
