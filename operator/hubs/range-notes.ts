import { GROUP } from '../api/group.ts';
import type { Member } from './contract.ts';

/** The ranges of a member as a hub shows them where text may have a slash: as properties, or as annotations. */
export const rangeNotes = (ranges: Member['ranges']): Record<string, string> => ({
  ...(ranges?.pods && { [`${GROUP}/pod-range`]: ranges.pods }),
  ...(ranges?.services && { [`${GROUP}/service-range`]: ranges.services }),
});
