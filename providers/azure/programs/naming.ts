import { type ResourceTransformation, runtime } from '@pulumi/pulumi';
import { ADOPTED } from '../../adopted-cluster.ts';
import type { Program } from '../../pulumi/program.ts';
import { OWNER_TAGS } from '../../tags.ts';

/** Tags of every owner; a garden that does not know its own UID says none. */
const { garden: _, ...REQUIRED_TAGS } = OWNER_TAGS;

/** Azure's types: the property with the physical name, and whether the type takes tags. */
const RULES: Readonly<Record<string, { name: string; tags: boolean }>> = {
  'azure-native:resources:ResourceGroup': { name: 'resourceGroupName', tags: true },
  'azure-native:network:PublicIPAddress': { name: 'publicIpAddressName', tags: true },
  'azure-native:network:NatGateway': { name: 'natGatewayName', tags: true },
  'azure-native:network:VirtualNetwork': { name: 'virtualNetworkName', tags: true },
  'azure-native:network:LoadBalancer': { name: 'loadBalancerName', tags: true },
  'azure-native:network:NetworkSecurityGroup': { name: 'networkSecurityGroupName', tags: true },
  'azure-native:compute:VirtualMachineScaleSet': { name: 'vmScaleSetName', tags: true },
  'azure-native:managedidentity:UserAssignedIdentity': { name: 'resourceName', tags: true },
  'azure-native:authorization:RoleAssignment': { name: 'roleAssignmentName', tags: false },
  'azure-native:containerservice:ManagedCluster': { name: 'resourceName', tags: true },
  'azure-native:containerservice:AgentPool': { name: 'agentPoolName', tags: true },
};

/**
 * Fails on a resource without a physical name or without the owner's tags. Pulumi would give it a random name: a run that is
 * repeated after a crash then makes it a second time instead of meeting "already exists", and no sweep could find the first one.
 */
const requireNameAndTags: ResourceTransformation = ({ type, name, props }) => {
  if (!type.startsWith('azure-native:')) return undefined;
  const rule = RULES[type];
  if (!rule) throw new Error(`${type} ${name}: which property names it? Say so in programs/naming.ts`);
  if (typeof props[rule.name] !== 'string')
    throw new Error(`${type} ${name} has no ${rule.name}: every resource needs a fixed one`);
  // What others made is not ours by its tags: the sweep would take it away.
  if (!rule.tags || name === ADOPTED) return undefined;
  const missing = Object.values(REQUIRED_TAGS).filter((tag) => typeof props.tags?.[tag] !== 'string');
  if (missing.length > 0) throw new Error(`${type} ${name} lacks the tags ${missing.join(', ')}`);
  return undefined;
};

/** The program, in which every resource must have a physical name and the owner's tags. */
export const named =
  <Inputs>(program: Program<Inputs>): Program<Inputs> =>
  (inputs) => {
    runtime.registerStackTransformation(requireNameAndTags);
    return program(inputs);
  };
