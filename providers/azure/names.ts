import { createHash } from 'node:crypto';
import { fitName, shortHash } from '../../operator/api/names.ts';
import type { Owner } from '../cloud.ts';

/**
 * Longest names. Sources: MicrosoftDocs/azure-docs articles/azure-resource-manager/management/resource-name-rules.md;
 * dnsPrefix: cluster-api-provider-azure, validateDNSPrefix of AzureManagedControlPlane; agentPool:
 * MicrosoftDocs/azure-aks-docs articles/aks/use-system-pools.md (lowercase letters and digits, a letter first).
 */
export const LONGEST = {
  resourceGroup: 90,
  virtualNetwork: 64,
  subnet: 80,
  natGateway: 80,
  publicIPAddress: 80,
  userAssignedIdentity: 128,
  managedCluster: 63,
  dnsPrefix: 54,
  agentPool: 12,
  securityGroup: 80,
  virtualMachineScaleSet: 64,
} as const;

/** Name of the pool that runs what AKS itself needs; those of people end in a hash. */
export const SYSTEM_POOL = 'system';
/** Name of the subnet of the nodes, within its network. */
export const NODES_SUBNET = 'nodes';

/** Everything of a cluster but its nodes is in this group. */
export const resourceGroupName = (owner: Owner): string => fitName(owner.technicalID, LONGEST.resourceGroup);
/** Where AKS itself makes machines, disks and load balancers; taken away by AKS with the cluster. */
export const nodeResourceGroupName = (owner: Owner): string =>
  fitName(`${owner.technicalID}-nodes`, LONGEST.resourceGroup);
export const virtualNetworkName = (owner: Owner): string => fitName(owner.technicalID, LONGEST.virtualNetwork);
/** Azure's id of the network. */
export const virtualNetworkID = (subscription: string, owner: Owner): string =>
  `/subscriptions/${subscription}/resourceGroups/${resourceGroupName(owner)}/providers/Microsoft.Network/virtualNetworks/${virtualNetworkName(owner)}`;
export const natGatewayName = (owner: Owner): string => fitName(`${owner.technicalID}-nat`, LONGEST.natGateway);
export const publicIPAddressName = (owner: Owner): string =>
  fitName(`${owner.technicalID}-nat`, LONGEST.publicIPAddress);
export const identityName = (owner: Owner): string => fitName(`${owner.technicalID}-aks`, LONGEST.userAssignedIdentity);
export const managedClusterName = (owner: Owner): string => fitName(owner.technicalID, LONGEST.managedCluster);
/** Azure's id of the cluster. */
export const managedClusterID = (subscription: string, owner: Owner): string =>
  `/subscriptions/${subscription}/resourceGroups/${resourceGroupName(owner)}/providers/Microsoft.ContainerService/managedClusters/${managedClusterName(owner)}`;
export const dnsPrefix = (owner: Owner): string => fitName(owner.technicalID, LONGEST.dnsPrefix);
export const securityGroupName = (owner: Owner): string =>
  fitName(`${owner.technicalID}-machines`, LONGEST.securityGroup);
/** Of what stands in front of a control plane on machines: load balancer, address, security group; 80 characters fit all of them. */
export const endpointName = (owner: Owner): string => fitName(`${owner.technicalID}-endpoint`, LONGEST.publicIPAddress);
export const scaleSetName = (owner: Owner, pool: string): string =>
  fitName(`${owner.technicalID}-${pool}`, LONGEST.virtualMachineScaleSet);

/**
 * What AKS takes of the pool's name, and part of the hash of the name and of `fixed`, what AKS cannot change in a pool that
 * exists: when that changes the name does, so that the new agent pool is there before the old one goes. `a-b` is not `ab`.
 */
export function agentPoolName(pool: string, fixed: unknown): string {
  const plain = pool.replace(/[^a-z0-9]/g, '');
  const start = /^[a-z]/.test(plain) ? plain : `p${plain}`;
  return `${start.slice(0, LONGEST.agentPool - 5)}${shortHash(JSON.stringify([pool, fixed])).slice(0, 5)}`;
}

/**
 * Our own role in a cluster of AKS that knows people by Entra ID alone: Azure Kubernetes Service RBAC Cluster Admin
 * (MicrosoftDocs/azure-docs articles/role-based-access-control/built-in-roles.md).
 */
export const ADMINISTRATOR = { purpose: 'administrator', role: 'b1ff04bb-8a4e-4dc4-8eb5-8693973ce19b' } as const;

/** `Germany West Central` and `germanywestcentral` are the same. */
export const plainRegion = (name: string): string => name.replaceAll(' ', '').toLowerCase();

/** Role assignments are named by a UUID: the same for the same assignment, so that a second one is refused rather than made. */
export function roleAssignmentName(owner: Owner, purpose: string): string {
  const hex = createHash('sha256').update(`${owner.technicalID}/${owner.uid}/${purpose}`).digest('hex');
  // RFC 9562, version 8: of our own making.
  const variant = ((Number.parseInt(hex[16]!, 16) & 3) | 8).toString(16);
  return [
    hex.slice(0, 8),
    hex.slice(8, 12),
    `8${hex.slice(13, 16)}`,
    `${variant}${hex.slice(17, 20)}`,
    hex.slice(20, 32),
  ].join('-');
}
