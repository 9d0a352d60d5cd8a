import type { Needs } from './needs.ts';

const NETWORK = 'Microsoft.Network';
const COMPUTE = 'Microsoft.Compute';
const AKS = 'Microsoft.ContainerService/managedClusters';
const IDENTITY = 'Microsoft.ManagedIdentity/userAssignedIdentities';
const SUBNET_JOIN = `${NETWORK}/virtualNetworks/subnets/join/action`;
const ADDRESS_JOIN = `${NETWORK}/publicIPAddresses/join/action`;

/** Operations on a type, and what it takes to refer to others. Azure's provider reads before and after each of them. */
const on = (type: string, ...joins: string[]): Needs[string] => ({
  create: [`${type}/read`, `${type}/write`, ...joins],
  read: [`${type}/read`],
  update: [`${type}/read`, `${type}/write`, ...joins],
  delete: [`${type}/read`, `${type}/delete`],
});

/**
 * What Azure Resource Manager asks for, by type: read, write and delete of the resource type, and a join of what it refers to. Nobody has
 * compared these with Azure.
 */
export const AZURE_NEEDS: Needs = {
  'azure-native:resources:ResourceGroup': on('Microsoft.Resources/subscriptions/resourceGroups'),
  'azure-native:network:PublicIPAddress': on(`${NETWORK}/publicIPAddresses`),
  'azure-native:network:NatGateway': on(`${NETWORK}/natGateways`, ADDRESS_JOIN),
  'azure-native:network:VirtualNetwork': on(`${NETWORK}/virtualNetworks`, `${NETWORK}/natGateways/join/action`),
  'azure-native:network:LoadBalancer': on(`${NETWORK}/loadBalancers`, ADDRESS_JOIN),
  'azure-native:network:NetworkSecurityGroup': on(`${NETWORK}/networkSecurityGroups`),
  'azure-native:managedidentity:UserAssignedIdentity': on(IDENTITY),
  'azure-native:authorization:RoleAssignment': on('Microsoft.Authorization/roleAssignments'),
  'azure-native:containerservice:ManagedCluster': on(AKS, SUBNET_JOIN, `${IDENTITY}/assign/action`),
  'azure-native:containerservice:AgentPool': on(`${AKS}/agentPools`, SUBNET_JOIN),
  'azure-native:compute:VirtualMachineScaleSet': on(
    `${COMPUTE}/virtualMachineScaleSets`,
    SUBNET_JOIN,
    `${NETWORK}/networkSecurityGroups/join/action`,
    `${NETWORK}/loadBalancers/backendAddressPools/join/action`,
  ),
  // Look-ups of programs.
  'azure-native:containerservice:getAgentPool': { invoke: [`${AKS}/agentPools/read`] },
  'azure-native:compute:getVirtualMachineScaleSet': { invoke: [`${COMPUTE}/virtualMachineScaleSets/read`] },
  'azure-native:containerservice:listManagedClusterUserCredentials': {
    invoke: [`${AKS}/listClusterUserCredential/action`],
  },
  'azure-native:authorization:getClientConfig': { invoke: [] },
};
