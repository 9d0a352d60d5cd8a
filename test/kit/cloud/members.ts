import { digits } from './digits.ts';
import type { CloudResource, Machines, Properties } from './model.ts';
import type { Store } from './store.ts';

/** A machine of a group. */
export interface Member {
  /** Unique in the group, and never given again. */
  serial: number;
  zone: string;
  address: string;
  /** Unix milliseconds. */
  at: number;
  /** What it bears from when it was made: tags, labels or user data. */
  born: Properties;
  /** How often it was made again in its own place. Absent: never. */
  repairs?: number;
  group: CloudResource;
}

const membersIn = (group: CloudResource): Omit<Member, 'group'>[] => group.facts.members ?? [];

/** Machines that are gone and that their group still counts, by serial. */
export const lostIn = (group: CloudResource): number[] => group.facts.lost ?? [];

/** A machine is gone, and its group, which is not to replace any, goes on counting it. */
export function loseMember(group: CloudResource, { serial }: Member, store: Store): void {
  const members = membersIn(group).filter((one) => one.serial !== serial);
  group.facts = { ...group.facts, members, lost: [...lostIn(group), serial] };
  store.put(group);
}

/** The group counts a machine no longer that is gone. */
export function forgetLost(
  group: CloudResource,
  serial: number,
  store: Store,
  resize: (inputs: CloudResource['inputs']) => void,
): void {
  group.facts = { ...group.facts, lost: lostIn(group).filter((one) => one !== serial) };
  resize(group.inputs);
  store.put(group);
}

function addressOf(...words: string[]): string {
  const hex = digits(4, ...words);
  // The first few of a subnet are the cloud's own.
  const last = 10 + (Number.parseInt(hex.slice(2), 16) % 240);
  return `10.250.${Number.parseInt(hex.slice(0, 2), 16)}.${last}`;
}

/** Makes a machine that is gone again in its own place: zone and name stay, disk and address do not. */
export function repairMember(
  group: CloudResource,
  { serial, repairs = 0, zone }: Member,
  again: Pick<Member, 'at' | 'born'>,
  store: Store,
): void {
  const address = addressOf(group.uid, String(serial), String(repairs + 1));
  const made = { ...again, serial, zone, address, repairs: repairs + 1 };
  const members = membersIn(group).map((one) => (one.serial === serial ? made : one));
  group.facts = { ...group.facts, members };
  store.put(group);
}

/**
 * The machines of a group: as many as it asks for, made and taken away (oldest first) when somebody looks.
 * @param born what a machine that is made now bears
 */
export function membersOf(
  group: CloudResource,
  machines: Machines,
  store: Store,
  now: number,
  born: () => Properties,
): Member[] {
  const { zones } = machines;
  const count = Math.max(0, machines.count - lostIn(group).length);
  const before = membersIn(group);
  const members = before.slice(Math.max(0, before.length - count));
  let serial = group.facts.serial ?? 0;
  while (members.length < count) {
    const [zone = '', address] = [zones[serial % Math.max(1, zones.length)], addressOf(group.uid, String(serial))];
    members.push({ serial, zone, address, at: now, born: born() });
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
