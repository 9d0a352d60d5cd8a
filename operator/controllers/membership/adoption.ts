import { configurationProblem } from '../../api/errors.ts';
import type { HubSpec } from '../../api/hub.ts';
import type { ForeignEntry, HubType, Member, Place, Reader } from '../../hubs/contract.ts';
import { type MembershipReceipt, samePlace } from './receipt.ts';
import type { TwoSides } from './two-sides.ts';

/**
 * A foreign entry for this cluster in the hub, when the Hub has an adoption policy. undefined: none, the hub cannot
 * tell, or our own entry exists: then the hub judges two entries.
 */
export async function foreignEntryOf(
  type: HubType,
  hub: Reader,
  { member, spec, receipt }: { member: () => Member; spec: HubSpec; receipt: MembershipReceipt },
): Promise<ForeignEntry | undefined> {
  if (!spec.adoption || receipt.opened) return undefined;
  return type.foreignEntry?.(hub, member(), spec);
}

/** The receipt with a foreign entry to adopt, under its name in the hub. Pure. Throws when adoption is impossible. */
export function noteOwner(receipt: MembershipReceipt, { name, places, whyNot }: ForeignEntry): MembershipReceipt {
  if (whyNot)
    throw configurationProblem(
      `${whyNot}, so this cluster cannot be taken over in the hub`,
      'Set adoption of the Hub to Observe, or take the cluster out of the hub by hand, and it joins.',
    );
  const fresh = places.map(withoutUID).filter((place) => !receipt.places.some((known) => samePlace(known, place)));
  return {
    ...receipt,
    member: { ...receipt.member, name },
    places: [...receipt.places, ...fresh],
    takingOver: places,
  };
}

/** Labels the adopted objects as ours. The cluster's entry comes last, so that a crash before leads here again. */
export async function takeOver(
  sides: TwoSides,
  receipt: MembershipReceipt,
  signal: AbortSignal,
): Promise<MembershipReceipt> {
  const { takingOver = [], ...rest } = receipt;
  for (const { uid, ...place } of [...takingOver].reverse()) await sides.takeOver(place, uid, signal);
  return rest;
}

const withoutUID = (place: ForeignEntry['places'][number]): Place => {
  const { uid: _, ...rest } = place;
  return rest;
};
