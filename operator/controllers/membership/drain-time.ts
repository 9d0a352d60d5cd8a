import { parseDuration } from '../../api/duration.ts';
import type { HubSpec } from '../../api/hub.ts';
import type { Membership } from '../../api/membership.ts';

const DRAIN_MS = 10 * 60_000;

/** Timeout of a hub's drain, milliseconds. */
export const drainTimeoutMs = (spec: Pick<HubSpec, 'drain'> | undefined): number =>
  parseDuration(spec?.drain?.timeout ?? '') ?? DRAIN_MS;

/** End of the drain of a leaving cluster. */
export const drainEnds = ({ metadata }: Membership, spec: HubSpec): Date =>
  new Date(Date.parse(metadata.deletionTimestamp ?? '') + drainTimeoutMs(spec));
