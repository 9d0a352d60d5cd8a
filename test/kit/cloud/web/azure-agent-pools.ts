import type { CloudNode } from '../../../../providers/cloud.ts';
import { azure as model } from '../azure/model.ts';
import { digits } from '../digits.ts';
import { type Member, membersOf, removeMembers } from '../members.ts';
import type { CloudResource, Testbed } from '../model.ts';
import type { Store } from '../store.ts';
import { FlatRefusal, type Said } from './server.ts';

const AGENT_POOL = 'azure-native:containerservice:AgentPool';
/** How long a pool is `Updating` once machines of it were to be deleted, in milliseconds. */
const DELETING_MS = 20;

const setOf = (pool: CloudResource): string => `aks-${pool.name}-${digits(8, pool.uid)}-vmss`;
/** The number of the machine in its scale set in base 36, in six places. */
const nameOf = ({ group, serial }: Member): string => `${setOf(group)}${serial.toString(36).padStart(6, '0')}`;

const resourceIDOf = ({ group, serial }: Member, testbed: Testbed): string => {
  const cluster = testbed.find('azure-native:containerservice:ManagedCluster', group.id.split('/agentPools/')[0]);
  const { nodeResourceGroup } = testbed.outputs(cluster!);
  return `/subscriptions/${group.account}/resourceGroups/${nodeResourceGroup}/providers/Microsoft.Compute/virtualMachineScaleSets/${setOf(group)}/virtualMachines/${serial}`;
};

const membersIn = (pool: CloudResource, testbed: Testbed, store: Store): Member[] =>
  membersOf(pool, model.types.get(AGENT_POOL)!.machines!(pool.inputs, testbed)!, store, testbed.now, () => ({}));

/** Nodes of an agent pool, as their kubelets register them: Azure writes the same id in other letters here and there. */
export const nodesOfAgentPool = (pool: CloudResource, testbed: Testbed, store: Store): CloudNode[] =>
  membersIn(pool, testbed, store).map((member) => ({
    name: nameOf(member),
    providerID: `azure://${resourceIDOf(member, testbed).replace('/resourceGroups/', '/resourcegroups/')}`,
  }));

/**
 * What AKS answers about agent pools and their machines; undefined for other paths. Forms: Azure REST API reference, Agent Pools - List,
 * Machines - List, Agent Pools - Delete Machines.
 * @param described as Azure Resource Manager shows it
 */
export function agentPools(
  { method, path, body }: { method: string; path: string; body: string },
  described: (pool: CloudResource) => object,
  testbed: Testbed,
  store: Store,
): Said | undefined {
  const pools = testbed.all(AGENT_POOL);
  const ofCluster = /^(.*\/managedClusters\/[^/]+)\/agentPools$/i.exec(path)?.[1];
  if (ofCluster !== undefined) {
    const value = pools.filter(({ id }) => id.toLowerCase().startsWith(`${ofCluster.toLowerCase()}/`)).map(described);
    return { body: { value } };
  }
  const [, id, verb] = /^(.*\/agentPools\/[^/]+)\/(machines|deleteMachines)$/i.exec(path) ?? [];
  const pool = id === undefined ? undefined : pools.find((one) => model.isCalled(one, id));
  if (!pool) return undefined;
  const members = membersIn(pool, testbed, store);
  if (verb === 'machines') {
    const told = (member: Member) => ({
      id: `${pool.id}/machines/${nameOf(member)}`,
      name: nameOf(member),
      properties: { resourceId: resourceIDOf(member, testbed) },
    });
    return { body: { value: members.map(told) } };
  }
  if (method !== 'POST') return undefined;
  if (testbed.now < pool.readyAt)
    throw new FlatRefusal(409, 'OperationNotAllowed', 'Operation is not allowed: another operation is in progress.');
  const { machineNames } = JSON.parse(body) as { machineNames: string[] };
  const going = members.filter((member) => machineNames.includes(nameOf(member)));
  if (going.length < machineNames.length)
    throw new FlatRefusal(400, 'InvalidParameter', 'Machines to be deleted are not in the agent pool.');
  pool.readyAt = testbed.now + DELETING_MS;
  pool.generation++;
  removeMembers(pool, going, store, (inputs, by) => {
    inputs.count = Number(inputs.count) + by;
  });
  return { status: 202, body: '' };
}
