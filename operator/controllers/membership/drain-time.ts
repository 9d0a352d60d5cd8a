import { parseDuration } from '../../api/duration.ts';
import type { HubSpec } from '../../api/hub.ts';
import type { Membership } from '../../api/membership.ts';

const DRAIN_MS = 10 * 60_000;

/** How long a hub has to move work away from a cluster, milliseconds. */
export const drainTimeoutMs = (spec: Pick<HubSpec, 'drain'> | undefined): number =>
  parseDuration(spec?.drain?.timeout ?? '') ?? DRAIN_MS;

/** When the time for the drain of a cluster that leaves is over. */
export const drainEnds = ({ metadata }: Membership, spec: HubSpec): Date =>
  new Date(Date.parse(metadata.deletionTimestamp ?? '') + drainTimeoutMs(spec));
