import { rfc3339 } from '../../api/conditions.ts';
import { parseDuration } from '../../api/duration.ts';
import { ANNOTATIONS } from '../../api/group.ts';
import type { WorkerCluster } from '../../api/workercluster.ts';
import { say } from '../conditions.ts';
import type { Said } from './view.ts';

/** How long before its end a cluster says so: a tenth of its life, an hour at most. */
const WARN_MS = 3600_000;
const WARN_PART = 0.1;

/** What follows from `ttl`. */
export interface Lifetime {
  /** Its time is over: it is to be deleted. */
  readonly isOver: boolean;
  /** Condition Expiring, once the end is near. */
  readonly warning: Said | undefined;
  /** RFC 3339; absent: it lives until somebody deletes it. */
  readonly expiresAt: string | undefined;
  /** When something of this changes. */
  readonly next: Date | undefined;
}

/** How long the cluster may still live. Pure. It is prolonged by a longer `ttl`, or by none. */
export function lifetimeOf({ spec, metadata }: WorkerCluster, now: Date): Lifetime {
  const ttl = parseDuration(spec.ttl ?? '');
  const from = Date.parse(metadata.creationTimestamp ?? '');
  if (ttl === undefined || Number.isNaN(from))
    return { isOver: false, warning: undefined, expiresAt: undefined, next: undefined };
  const end = new Date(from + ttl);
  const warnAt = new Date(+end - Math.min(WARN_MS, ttl * WARN_PART));
  const expiresAt = rfc3339(end);
  const isProtected =
    spec.deletionProtection === true || metadata.annotations?.[ANNOTATIONS.deletionProtection] === 'true';
  const prolong = 'To keep it, set a longer spec.ttl, or none';
  if (now < warnAt) return { isOver: false, warning: undefined, expiresAt, next: warnAt };
  if (now < end) {
    const warning = say(
      'Expiring',
      true,
      'EndIsNear',
      `spec.ttl ${spec.ttl}: the cluster is deleted at ${expiresAt}. ${prolong}`,
    );
    return { isOver: false, warning, expiresAt, next: end };
  }
  const message = isProtected
    ? `spec.ttl ${spec.ttl} was over at ${expiresAt}, but the cluster is protected from deletion: take the protection off, or set a longer spec.ttl`
    : `spec.ttl ${spec.ttl} was over at ${expiresAt}: the cluster is deleted`;
  const warning = say('Expiring', true, isProtected ? 'Protected' : 'Over', message);
  return { isOver: !isProtected, warning, expiresAt, next: undefined };
}
