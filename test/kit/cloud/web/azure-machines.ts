import { azure as model } from '../azure/model.ts';
import { digits } from '../digits.ts';
import { type Member, membersOf, removeMembers } from '../members.ts';
import type { CloudResource, Testbed } from '../model.ts';
import type { Store } from '../store.ts';
import type { Said } from './server.ts';

const SET = 'azure-native:compute:VirtualMachineScaleSet';

const suffix = ({ group, serial }: Member): string => digits(8, group.uid, String(serial));
const nameOf = (member: Member): string => `${member.group.name}_${suffix(member)}`;
const groupOf = (id: string): string => /\/resourceGroups\/([^/]+)/i.exec(id)?.[1]?.toLowerCase() ?? '';

const members = (set: CloudResource, testbed: Testbed, store: Store): Member[] =>
  membersOf(set, model.types.get(SET)!.machines!(set.inputs, testbed)!, store, testbed.now, () => {
    const { userData } = set.inputs.virtualMachineProfile;
    return { ...(userData !== undefined && { userData: String(userData) }) };
  });

/** What Compute and Network answer about machines of flexible scale sets; undefined for other paths. */
export function computeMachines(
  { method, path, query, body }: { method: string; path: string; query: URLSearchParams; body: string },
  testbed: Testbed,
  store: Store,
): Said | undefined {
  const sets = testbed.all(SET).filter(({ id }) => groupOf(id) === groupOf(path));
  const all = () => sets.flatMap((set) => members(set, testbed, store));
  const idOf = (member: Member) =>
    member.group.id.replace(/virtualMachineScaleSets\/.*$/, `virtualMachines/${nameOf(member)}`);
  const described = (member: Member, expand = '') => ({
    id: idOf(member),
    name: nameOf(member),
    zones: [member.zone],
    properties: {
      provisioningState: 'Succeeded',
      timeCreated: new Date(member.at).toISOString(),
      osProfile: {
        computerName: `${member.group.inputs.virtualMachineProfile.osProfile.computerNamePrefix}${suffix(member)}`,
      },
      virtualMachineScaleSet: { id: member.group.id },
      ...(expand === 'userData' && member.born),
    },
  });
  if (path.endsWith('/Microsoft.Compute/virtualMachines')) {
    return { body: { value: all().map((member) => described(member)) } };
  }
  if (method === 'GET' && /\/Microsoft\.Compute\/virtualMachines\/[^/]+$/.test(path)) {
    const member = all().find((one) => idOf(one).toLowerCase() === path.toLowerCase());
    return member && { body: described(member, query.get('$expand') ?? '') };
  }
  if (path.endsWith('/Microsoft.Network/networkInterfaces')) {
    const value = all().map((member) => ({
      properties: {
        virtualMachine: { id: idOf(member) },
        ipConfigurations: [{ properties: { privateIPAddress: member.address } }],
      },
    }));
    return { body: { value } };
  }
  const id = method === 'POST' ? /^(.*\/virtualMachineScaleSets\/[^/]+)\/delete$/.exec(path)?.[1] : undefined;
  const set = sets.find((one) => id !== undefined && model.isCalled(one, id));
  if (!set) return undefined;
  const named = (JSON.parse(body) as { instanceIds: string[] }).instanceIds;
  const going = members(set, testbed, store).filter((member) => named.includes(nameOf(member)));
  removeMembers(set, going, store, (inputs, by) => {
    inputs.sku = { ...inputs.sku, capacity: Number(inputs.sku.capacity) + by };
  });
  return { status: 202, body: '' };
}

/** Takes a machine away as somebody who deletes it does: the capacity of its set follows. */
export function loseAzure(name: string, testbed: Testbed, store: Store): void {
  const member = testbed
    .all(SET)
    .flatMap((set) => members(set, testbed, store))
    .find((one) => nameOf(one) === name);
  if (!member) throw new Error(`there is no machine ${name}`);
  removeMembers(member.group, [member], store, (inputs, by) => {
    inputs.sku = { ...inputs.sku, capacity: Number(inputs.sku.capacity) + by };
  });
}
