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

/** Name of AKS' system pool; other pools' names end in a hash. */
export const SYSTEM_POOL = 'system';
/** Name of the subnet of the nodes, within its network. */
export const NODES_SUBNET = 'nodes';

/** Resource group of everything of a cluster except its nodes. */
export const resourceGroupName = (owner: Owner): string => fitName(owner.technicalID, LONGEST.resourceGroup);
/** Resource group in which AKS creates machines, disks and load balancers; AKS deletes it with the cluster. */
export const nodeResourceGroupName = (owner: Owner): string =>
  fitName(`${owner.technicalID}-nodes`, LONGEST.resourceGroup);
export const virtualNetworkName = (owner: Owner): string => fitName(owner.technicalID, LONGEST.virtualNetwork);
/** Azure id of the network. */
export const virtualNetworkID = (subscription: string, owner: Owner): string =>
  `/subscriptions/${subscription}/resourceGroups/${resourceGroupName(owner)}/providers/Microsoft.Network/virtualNetworks/${virtualNetworkName(owner)}`;
export const natGatewayName = (owner: Owner): string => fitName(`${owner.technicalID}-nat`, LONGEST.natGateway);
export const publicIPAddressName = (owner: Owner): string =>
  fitName(`${owner.technicalID}-nat`, LONGEST.publicIPAddress);
export const identityName = (owner: Owner): string => fitName(`${owner.technicalID}-aks`, LONGEST.userAssignedIdentity);
export const managedClusterName = (owner: Owner): string => fitName(owner.technicalID, LONGEST.managedCluster);
/** Azure id of the cluster. */
export const managedClusterID = (subscription: string, owner: Owner): string =>
  `/subscriptions/${subscription}/resourceGroups/${resourceGroupName(owner)}/providers/Microsoft.ContainerService/managedClusters/${managedClusterName(owner)}`;
export const dnsPrefix = (owner: Owner): string => fitName(owner.technicalID, LONGEST.dnsPrefix);
export const securityGroupName = (owner: Owner): string =>
  fitName(`${owner.technicalID}-machines`, LONGEST.securityGroup);
/**
 * Name of the endpoint's load balancer, address and security group of a control plane on machines; 80 characters fit
 * all of them.
 */
export const endpointName = (owner: Owner): string => fitName(`${owner.technicalID}-endpoint`, LONGEST.publicIPAddress);
export const scaleSetName = (owner: Owner, pool: string): string =>
  fitName(`${owner.technicalID}-${pool}`, LONGEST.virtualMachineScaleSet);

/**
 * Pool name in AKS' characters plus part of a hash of the name and of `fixed`, the immutable properties: after a change
 * of these a new agent pool exists before the old one is deleted. `a-b` differs from `ab`.
 */
export function agentPoolName(pool: string, fixed: unknown): string {
  const plain = pool.replace(/[^a-z0-9]/g, '');
  const start = /^[a-z]/.test(plain) ? plain : `p${plain}`;
  return `${start.slice(0, LONGEST.agentPool - 5)}${shortHash(JSON.stringify([pool, fixed])).slice(0, 5)}`;
}

/**
 * Role for Coppice in an AKS cluster with Entra ID only: Azure Kubernetes Service RBAC Cluster Admin
 * (MicrosoftDocs/azure-docs articles/role-based-access-control/built-in-roles.md).
 */
export const ADMINISTRATOR = { purpose: 'administrator', role: 'b1ff04bb-8a4e-4dc4-8eb5-8693973ce19b' } as const;

/** Normalizes `Germany West Central` to `germanywestcentral`. */
export const plainRegion = (name: string): string => name.replaceAll(' ', '').toLowerCase();

/** Role assignments are named by UUID: a deterministic one, so that a second equal assignment is refused. */
export function roleAssignmentName(owner: Owner, purpose: string): string {
  const hex = createHash('sha256').update(`${owner.technicalID}/${owner.uid}/${purpose}`).digest('hex');
  // RFC 9562, version 8: custom.
  const variant = ((Number.parseInt(hex[16]!, 16) & 3) | 8).toString(16);
  return [
    hex.slice(0, 8),
    hex.slice(8, 12),
    `8${hex.slice(13, 16)}`,
    `${variant}${hex.slice(17, 20)}`,
    hex.slice(20, 32),
  ].join('-');
}
