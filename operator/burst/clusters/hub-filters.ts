import type { HubCustomKind, HubMember, WaitingWork } from './model.ts';

/** Whether the hub would place work on the member apart from room: by its cluster selection and kind. */
export const isPlaceable = (work: Pick<WaitingWork, 'accepts' | 'customKind'>, member: HubMember): boolean =>
  (work.accepts?.(member) ?? true) && isServed(work.customKind, member);

/**
 * Whether a member serves a custom kind. For a new member, unknown to the hub, all similar older members must serve it:
 * a wrong guess would be paid for and stay empty.
 */
export function isServed(kind: HubCustomKind | undefined, member: HubMember): boolean {
  if (!kind || kind.servedBy.has(member.name) || kind.isBroughtTo(member)) return true;
  const { alike = [] } = member;
  return alike.length > 0 && alike.every((name) => kind.servedBy.has(name));
}
