import { configurationProblem } from '../../api/errors.ts';
import type { HubSpec } from '../../api/hub.ts';
import type { ForeignEntry, HubType, Member, Place, Reader } from '../../hubs/contract.ts';
import { type MembershipReceipt, samePlace } from './receipt.ts';
import type { TwoSides } from './two-sides.ts';

/**
 * What somebody else has put into the hub for this cluster, where the Hub says what is to become of it. undefined: nothing, or the hub cannot
 * tell, or the cluster is in it by us already: two objects of one cluster are then the hub's to judge.
 */
export async function foreignEntryOf(
  type: HubType,
  hub: Reader,
  { member, spec, receipt }: { member: () => Member; spec: HubSpec; receipt: MembershipReceipt },
): Promise<ForeignEntry | undefined> {
  if (!spec.adoption || receipt.opened) return undefined;
  return type.foreignEntry?.(hub, member(), spec);
}

/**
 * The receipt with what is to be taken over on it, under the name that it has in the hub. Pure. Throws where it cannot be taken over.
 */
export function owning(receipt: MembershipReceipt, { name, places, whyNot }: ForeignEntry): MembershipReceipt {
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

/** Labels as ours what is to be taken over. Last what stands for the cluster: who dies before that comes here again. */
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
