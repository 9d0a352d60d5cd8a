import { decimals, digits } from '../digits.ts';
import { gcp as model } from '../gcp/model.ts';
import type { LaunchedInstance } from '../launched.ts';
import { forgetLost, loseMember, lostIn, type Member, membersOf, removeMembers, repairMember } from '../members.ts';
import type { CloudResource, Properties, Testbed } from '../model.ts';
import type { Store } from '../store.ts';

const GROUP = 'gcp:compute:RegionInstanceGroupManager';

const nameOf = ({ group, serial }: Pick<Member, 'group' | 'serial'>): string =>
  `${group.inputs.baseInstanceName}-${digits(4, group.uid, String(serial))}`;

const members = (group: CloudResource, testbed: Testbed, store: Store): Member[] =>
  membersOf(group, model.types.get(GROUP)!.machines!(group.inputs, testbed)!, store, testbed.now, () =>
    bornIn(group, testbed),
  );

/** What the template has for instances that are made now. */
function bornIn(group: CloudResource, testbed: Testbed): Properties {
  const named = group.inputs.versions?.[0]?.instanceTemplate;
  const template = testbed.find('gcp:compute:InstanceTemplate', String(named).split('?')[0]);
  const { labels = {}, metadata = {}, machineType = '', disks } = template?.inputs ?? {};
  return { labels, metadata, machineType, image: disks?.[0]?.sourceImage ?? '' };
}

/** All instances of groups in the region of the testbed. */
export const launchedGoogle = (testbed: Testbed, store: Store): LaunchedInstance[] =>
  testbed
    .all(GROUP)
    .filter(({ region }) => region === testbed.region)
    .flatMap((group) => members(group, testbed, store))
    .map((member) => ({
      id: decimals(19, member.group.uid, `${member.serial}`, `${member.repairs ?? 0}`),
      name: nameOf(member),
      address: member.address,
      zone: member.zone,
      region: testbed.region,
      account: testbed.caller.account,
      machineType: member.born.machineType,
      image: member.born.image,
      attributes: member.born.metadata,
    }));

function described(member: Member, testbed: Testbed): Properties {
  return {
    name: nameOf(member),
    zone: `https://www.googleapis.com/compute/v1/projects/${testbed.caller.account}/zones/${member.zone}`,
    status: 'RUNNING',
    creationTimestamp: new Date(member.at).toISOString(),
    labels: member.born.labels,
    networkInterfaces: [{ networkIP: member.address }],
  };
}

/** What Compute answers about single machines; undefined for other paths. */
export function computeMachines(path: string, query: URLSearchParams, body: string, testbed: Testbed, store: Store) {
  if (path === `projects/${testbed.caller.account}/aggregated/instances`) {
    const [, label = '', value = ''] = /^labels\.([\w-]+)=(.*)$/.exec(query.get('filter') ?? '') ?? [];
    const instances = testbed
      .all(GROUP)
      .flatMap((group) => members(group, testbed, store))
      .map((member) => described(member, testbed))
      .filter(({ labels }) => labels[label] === value);
    const items: Record<string, { instances: Properties[] }> = {};
    for (const one of instances) {
      const place = `zones/${one.zone.split('/').at(-1)}`;
      items[place] = { instances: [...(items[place]?.instances ?? []), one] };
    }
    return { items };
  }
  const [, id, verb] =
    /^(.*\/instanceGroupManagers\/[^/]+)\/(deleteInstances|listErrors|listManagedInstances)$/.exec(path) ?? [];
  const group = id === undefined ? undefined : testbed.find(GROUP, id);
  if (!group) return undefined;
  if (verb === 'listErrors') return { items: [] };
  if (verb === 'listManagedInstances') {
    const there = members(group, testbed, store).map((member) => ({ name: nameOf(member), zone: member.zone }));
    const gone = lostIn(group).map((serial) => ({ name: nameOf({ group, serial }), zone: 'somewhere' }));
    const of = (zone: string) =>
      `https://www.googleapis.com/compute/v1/projects/${testbed.caller.account}/zones/${zone}`;
    return {
      managedInstances: [...there, ...gone].map(({ name, zone }) => ({
        instance: `${of(zone)}/instances/${name}`,
        currentAction: 'NONE',
      })),
    };
  }
  const named = (JSON.parse(body) as { instances: string[] }).instances.map((url) => url.split('/').at(-1));
  for (const serial of lostIn(group))
    if (named.includes(nameOf({ group, serial }))) {
      forgetLost(group, serial, store, (inputs) => {
        inputs.targetSize = Number(inputs.targetSize) - 1;
      });
    }
  const going = members(group, testbed, store).filter((member) => named.includes(nameOf(member)));
  removeMembers(group, going, store, (inputs, by) => {
    inputs.targetSize = Number(inputs.targetSize) + by;
  });
  return { kind: 'compute#operation', status: 'PENDING' };
}

/**
 * Takes an instance away as a failure of its host, or a preemption, does. A group that is not to repair any goes on counting it; else it makes
 * it again under its name, "using the same instance configuration that was originally used to create the VM" unless it was told to take the
 * newest (docs.cloud.google.com/compute/docs/instance-groups/update-on-repair).
 */
export function loseGoogle(name: string, testbed: Testbed, store: Store): void {
  for (const group of testbed.all(GROUP)) {
    const member = members(group, testbed, store).find((one) => nameOf(one) === name);
    if (!member) continue;
    const { defaultActionOnFailure, forceUpdateOnRepair } = group.inputs.instanceLifecyclePolicy ?? {};
    const born = forceUpdateOnRepair === 'YES' ? bornIn(group, testbed) : member.born;
    if (defaultActionOnFailure === 'DO_NOTHING') loseMember(group, member, store);
    else repairMember(group, member, { at: testbed.now, born }, store);
    return;
  }
  throw new Error(`there is no instance ${name}`);
}
