import { digits } from './digits.ts';
import type { CloudResource, Machines } from './model.ts';
import type { Store } from './store.ts';

/** A machine of a group. */
export interface Member {
  /** Unique in the group, and never given again. */
  serial: number;
  zone: string;
  address: string;
  /** Unix milliseconds. */
  at: number;
  group: CloudResource;
}

const membersIn = (group: CloudResource): Omit<Member, 'group'>[] => group.facts.members ?? [];

/** The machines of a group: as many as it asks for, made and taken away (oldest first) when somebody looks. */
export function membersOf(group: CloudResource, { count, zones }: Machines, store: Store, now: number): Member[] {
  const before = membersIn(group);
  const members = before.slice(Math.max(0, before.length - count));
  let serial = group.facts.serial ?? 0;
  while (members.length < count) {
    const hex = digits(4, group.uid, String(serial));
    const address = `10.250.${Number.parseInt(hex.slice(0, 2), 16)}.${Number.parseInt(hex.slice(2), 16)}`;
    members.push({ serial, zone: zones[serial % Math.max(1, zones.length)] ?? '', address, at: now });
    serial++;
  }
  if (members.length !== before.length || serial !== group.facts.serial) {
    group.facts = { ...group.facts, members, serial };
    store.put(group);
  }
  return members.map((member) => ({ ...member, group }));
}

/** Takes these machines out of their group, which from then on asks for as many fewer. */
export function removeMembers(
  group: CloudResource,
  going: readonly Member[],
  store: Store,
  resize: (inputs: CloudResource['inputs'], by: number) => void,
): void {
  const serials = new Set(going.map(({ serial }) => serial));
  group.facts = { ...group.facts, members: membersIn(group).filter(({ serial }) => !serials.has(serial)) };
  resize(group.inputs, -serials.size);
  store.put(group);
}
