import type { CloudNode } from '../../../../providers/cloud.ts';
import { decimals, digits } from '../digits.ts';
import { gcp as model } from '../gcp/model.ts';
import { type Member, membersOf, removeMembers } from '../members.ts';
import type { CloudResource, Properties, Testbed } from '../model.ts';
import type { Store } from '../store.ts';
import { Refused } from './server.ts';

const NODE_POOL = 'gcp:container:NodePool';

const nameOf = ({ group, serial }: Member): string =>
  `gke-${group.inputs.cluster}-${group.name}-${digits(4, group.uid, String(serial))}`.slice(-63);
const idOf = ({ group, serial, repairs = 0 }: Member): string => decimals(19, group.uid, `${serial}`, `${repairs}`);
const urlOf = (member: Member, project: string): string =>
  `https://www.googleapis.com/compute/v1/projects/${project}/zones/${member.zone}/instances/${nameOf(member)}`;

const membersIn = (pool: CloudResource, testbed: Testbed, store: Store): Member[] =>
  membersOf(pool, model.types.get(NODE_POOL)!.machines!(pool.inputs, testbed)!, store, testbed.now, () => ({}));

/** Nodes of a node pool, as they are registered: GKE notes the id of the instance as an annotation. */
export const nodesOfPool = (pool: CloudResource, testbed: Testbed, store: Store): CloudNode[] =>
  membersIn(pool, testbed, store).map((member) => ({
    name: nameOf(member),
    providerID: `gce://${pool.account}/${member.zone}/${nameOf(member)}`,
    instance: idOf(member),
  }));

/** The node pools of a cluster, as `nodePools` of google.container.v1 lists them; undefined for other paths. */
export function listNodePools(path: string, testbed: Testbed): Properties | undefined {
  const [, cluster] = /^projects\/[^/]+\/locations\/[^/]+\/clusters\/([^/]+)\/nodePools$/.exec(path) ?? [];
  if (cluster === undefined) return undefined;
  const pools = testbed.all(NODE_POOL).filter(({ inputs }) => inputs.cluster === cluster);
  return { nodePools: pools.map((pool) => ({ ...testbed.outputs(pool), config: pool.inputs.nodeConfig })) };
}

/** What Compute answers about the groups behind node pools; undefined for other paths. Methods and fields: discovery document of compute v1. */
export function nodePoolGroups(path: string, body: string, testbed: Testbed, store: Store): Properties | undefined {
  if (/\/operations\/[^/]+$/.test(path)) return { name: path.split('/').at(-1), status: 'DONE' };
  const [, group, zone, verb] = /^(.*\/zones\/([^/]+)\/instanceGroupManagers\/[^/]+)(?:\/(\w+))?$/.exec(path) ?? [];
  const pool = testbed
    .all(NODE_POOL)
    .find((one) => (testbed.outputs(one).instanceGroupUrls as string[]).some((url) => url.endsWith(`/${group}`)));
  if (!pool) return undefined;
  const members = membersIn(pool, testbed, store).filter((member) => member.zone === zone);
  if (verb === undefined) return { name: group!.split('/').at(-1), targetSize: members.length };
  if (verb === 'listManagedInstances')
    return {
      managedInstances: members.map((member) => ({
        instance: urlOf(member, pool.account),
        id: idOf(member),
        currentAction: 'NONE',
      })),
    };
  if (verb !== 'deleteInstances') return undefined;
  const asked = JSON.parse(body) as { instances: string[]; skipInstancesOnValidationError?: boolean };
  const going = members.filter((member) => asked.instances.includes(`zones/${zone}/instances/${nameOf(member)}`));
  if (going.length < asked.instances.length && !asked.skipInstancesOnValidationError)
    throw new Refused(400, 'invalid', 'Instances are not members of the managed instance group, or are being deleted.');
  const zones = new Set(pool.inputs.nodeLocations ?? []).size || 1;
  removeMembers(pool, going, store, (inputs, by) => {
    inputs.nodeCount = Number(inputs.nodeCount) + by / zones;
  });
  return { name: `operation-${digits(8, path, String(testbed.now))}`, status: 'PENDING' };
}
