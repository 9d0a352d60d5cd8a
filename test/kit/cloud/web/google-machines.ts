import { digits } from '../digits.ts';
import { gcp as model } from '../gcp/model.ts';
import { type Member, membersOf, removeMembers } from '../members.ts';
import type { CloudResource, Properties, Scene } from '../model.ts';
import type { Store } from '../store.ts';

const GROUP = 'gcp:compute:RegionInstanceGroupManager';

const nameOf = ({ group, serial }: Member): string =>
  `${group.inputs.baseInstanceName}-${digits(4, group.uid, String(serial))}`;

const members = (group: CloudResource, scene: Scene, store: Store): Member[] =>
  membersOf(group, model.types.get(GROUP)!.machines!(group.inputs, scene)!, store, scene.now);

function described(member: Member, scene: Scene): Properties {
  const named = member.group.inputs.versions?.[0]?.instanceTemplate;
  const template = scene.find('gcp:compute:InstanceTemplate', String(named).split('?')[0]);
  return {
    name: nameOf(member),
    zone: `https://www.googleapis.com/compute/v1/projects/${scene.caller.account}/zones/${member.zone}`,
    status: 'RUNNING',
    creationTimestamp: new Date(member.at).toISOString(),
    labels: template?.inputs.labels ?? {},
    networkInterfaces: [{ networkIP: member.address }],
  };
}

/** What Compute answers about single machines; undefined for other paths. */
export function computeMachines(path: string, query: URLSearchParams, body: string, scene: Scene, store: Store) {
  if (path === `projects/${scene.caller.account}/aggregated/instances`) {
    const [, label = '', value = ''] = /^labels\.([\w-]+)=(.*)$/.exec(query.get('filter') ?? '') ?? [];
    const instances = scene
      .all(GROUP)
      .flatMap((group) => members(group, scene, store))
      .map((member) => described(member, scene))
      .filter(({ labels }) => labels[label] === value);
    const items: Record<string, { instances: Properties[] }> = {};
    for (const one of instances) {
      const place = `zones/${one.zone.split('/').at(-1)}`;
      items[place] = { instances: [...(items[place]?.instances ?? []), one] };
    }
    return { items };
  }
  const [, id, verb] = /^(.*\/instanceGroupManagers\/[^/]+)\/(deleteInstances|listErrors)$/.exec(path) ?? [];
  const group = id === undefined ? undefined : scene.find(GROUP, id);
  if (!group) return undefined;
  if (verb === 'listErrors') return { items: [] };
  const named = (JSON.parse(body) as { instances: string[] }).instances.map((url) => url.split('/').at(-1));
  const going = members(group, scene, store).filter((member) => named.includes(nameOf(member)));
  removeMembers(group, going, store, (inputs, by) => {
    inputs.targetSize = Number(inputs.targetSize) + by;
  });
  return { kind: 'compute#operation', status: 'PENDING' };
}
