import type { CustomKind, HubMember, WaitingWork } from './model.ts';

/** Whether the hub would place work there, room aside: by what it asks of clusters, and by its kind. */
export const isPlaceable = (work: Pick<WaitingWork, 'accepts' | 'customKind'>, member: HubMember): boolean =>
  (work.accepts?.(member) ?? true) && isServed(work.customKind, member);

/**
 * Whether a member serves a kind that not every cluster has. What the hub does not say of one that is new follows from those made like it, if all
 * of them serve it: one that is believed in wrongly would be paid for, and left empty.
 */
export function isServed(kind: CustomKind | undefined, member: HubMember): boolean {
  if (!kind || kind.servedBy.has(member.name) || kind.isBroughtTo(member)) return true;
  const { alike = [] } = member;
  return alike.length > 0 && alike.every((name) => kind.servedBy.has(name));
}
