import { GROUP } from '../api/group.ts';
import type { Member } from './contract.ts';

/** A member's CIDR ranges where a hub permits a slash: as properties or annotations. */
export const rangeNotes = (ranges: Member['ranges']): Record<string, string> => ({
  ...(ranges?.pods && { [`${GROUP}/pod-range`]: ranges.pods }),
  ...(ranges?.services && { [`${GROUP}/service-range`]: ranges.services }),
});
