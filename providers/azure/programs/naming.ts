import { type ResourceTransformation, runtime } from '@pulumi/pulumi';
import { ADOPTED } from '../../adopted-cluster.ts';
import type { Program } from '../../pulumi/program.ts';
import { OWNER_TAGS } from '../../tags.ts';

/** Tags of every owner; the garden tag is optional. */
const { garden: _, ...REQUIRED_TAGS } = OWNER_TAGS;

/** Per Azure type: the property with the physical name, and whether the type has tags. */
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
 * Fails for a resource without a physical name or the owner's tags. Pulumi would assign a random name: a run repeated
 * after a crash would create a second resource instead of failing with "already exists", and no sweep could find the
 * first.
 */
const requireNameAndTags: ResourceTransformation = ({ type, name, props }) => {
  if (!type.startsWith('azure-native:')) return undefined;
  const rule = RULES[type];
  if (!rule) throw new Error(`${type} ${name}: which property names it? Say so in programs/naming.ts`);
  if (typeof props[rule.name] !== 'string')
    throw new Error(`${type} ${name} has no ${rule.name}: every resource needs a fixed one`);
  // Foreign resources must not get Coppice's tags: the sweep would delete them.
  if (!rule.tags || name === ADOPTED) return undefined;
  const missing = Object.values(REQUIRED_TAGS).filter((tag) => typeof props.tags?.[tag] !== 'string');
  if (missing.length > 0) throw new Error(`${type} ${name} lacks the tags ${missing.join(', ')}`);
  return undefined;
};

/** The program, with names and tags required for every resource. */
export const named =
  <Inputs>(program: Program<Inputs>): Program<Inputs> =>
  (inputs) => {
    runtime.registerStackTransformation(requireNameAndTags);
    return program(inputs);
  };
