import { CoppiceError } from '../../operator/api/errors.ts';
import type { AccountCheck, CloudContext } from '../cloud.ts';
import { allPages, callAzure, type Endpoints } from './arm.ts';
import { credentialsOf } from './credentials.ts';
import { entraToken, managementScope } from './token.ts';

/** For the resource group and the network. */
const NETWORK = [
  'Microsoft.Resources/subscriptions/resourceGroups/read',
  'Microsoft.Resources/subscriptions/resourceGroups/write',
  'Microsoft.Resources/subscriptions/resourceGroups/delete',
  'Microsoft.Network/publicIPAddresses/read',
  'Microsoft.Network/publicIPAddresses/write',
  'Microsoft.Network/publicIPAddresses/delete',
  'Microsoft.Network/publicIPAddresses/join/action',
  'Microsoft.Network/natGateways/read',
  'Microsoft.Network/natGateways/write',
  'Microsoft.Network/natGateways/delete',
  'Microsoft.Network/natGateways/join/action',
  'Microsoft.Network/virtualNetworks/read',
  'Microsoft.Network/virtualNetworks/write',
  'Microsoft.Network/virtualNetworks/delete',
  'Microsoft.Network/virtualNetworks/subnets/join/action',
  // For this check itself, and for what is left over.
  'Microsoft.Authorization/permissions/read',
  'Microsoft.ResourceGraph/resources/read',
  'Microsoft.Resources/subscriptions/read',
  'Microsoft.Resources/subscriptions/resourceGroups/resources/read',
] as const;

/** Operations of Azure's resource providers that the programs need. */
const NEEDED = [
  ...NETWORK,
  'Microsoft.ManagedIdentity/userAssignedIdentities/read',
  'Microsoft.ManagedIdentity/userAssignedIdentities/write',
  'Microsoft.ManagedIdentity/userAssignedIdentities/delete',
  'Microsoft.ManagedIdentity/userAssignedIdentities/assign/action',
  'Microsoft.Authorization/roleAssignments/read',
  'Microsoft.Authorization/roleAssignments/write',
  'Microsoft.Authorization/roleAssignments/delete',
  'Microsoft.ContainerService/managedClusters/read',
  'Microsoft.ContainerService/managedClusters/write',
  'Microsoft.ContainerService/managedClusters/delete',
  'Microsoft.ContainerService/managedClusters/listClusterUserCredential/action',
  // Of an adopted cluster with local accounts.
  'Microsoft.ContainerService/managedClusters/listClusterAdminCredential/action',
  'Microsoft.ContainerService/managedClusters/agentPools/read',
  'Microsoft.ContainerService/managedClusters/agentPools/write',
  'Microsoft.ContainerService/managedClusters/agentPools/delete',
  // Nodes that the operator ends by name.
  'Microsoft.ContainerService/managedClusters/agentPools/machines/read',
  'Microsoft.ContainerService/managedClusters/agentPools/deleteMachines/action',
] as const;

/** For a control plane on machines, in addition to the permissions for the network. */
const CONTROL_PLANE = [
  'Microsoft.Network/loadBalancers/read',
  'Microsoft.Network/loadBalancers/write',
  'Microsoft.Network/loadBalancers/delete',
  'Microsoft.Network/loadBalancers/backendAddressPools/join/action',
  'Microsoft.Network/networkSecurityGroups/read',
  'Microsoft.Network/networkSecurityGroups/write',
  'Microsoft.Network/networkSecurityGroups/delete',
  'Microsoft.Network/networkSecurityGroups/join/action',
  'Microsoft.Network/networkInterfaces/read',
  'Microsoft.Network/networkInterfaces/write',
  'Microsoft.Network/networkInterfaces/delete',
  'Microsoft.Network/networkInterfaces/join/action',
  'Microsoft.Compute/virtualMachines/read',
  'Microsoft.Compute/virtualMachines/write',
  'Microsoft.Compute/virtualMachines/delete',
  'Microsoft.Compute/virtualMachineScaleSets/read',
  'Microsoft.Compute/virtualMachineScaleSets/write',
  'Microsoft.Compute/virtualMachineScaleSets/delete',
  'Microsoft.Compute/virtualMachineScaleSets/delete/action',
] as const;

/** Permissions checked before anything is created, by control plane mode: managed, or on a seed and machines. */
export const PERMISSIONS = { managed: NEEDED, onMachines: [...NETWORK, ...CONTROL_PLANE] } as const;

/** A role's permissions: patterns of permitted operations, and their exceptions. */
export interface Permission {
  actions?: string[];
  notActions?: string[];
}

/** Whether the pattern covers the operation, ignoring case; `*` matches anything, including slashes. */
function covers(pattern: string, operation: string): boolean {
  const parts = pattern.split('*').map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  return new RegExp(`^${parts.join('.*')}$`, 'i').test(operation);
}

/** Operations that no role permits. An exception of one role does not limit another. */
export const missingOf = (needed: readonly string[], permissions: readonly Permission[]): string[] =>
  needed.filter(
    (operation) =>
      !permissions.some(
        ({ actions = [], notActions = [] }) =>
          actions.some((pattern) => covers(pattern, operation)) &&
          !notActions.some((pattern) => covers(pattern, operation)),
      ),
  );

/**
 * Checks that the credentials are valid, the subscription is active, and its roles permit the programs' operations.
 * Conditions on roles and denials by policies appear only at the creation.
 *
 * API versions: Subscriptions - Get 2022-12-01; Permissions 2022-04-01, for a subscription as in
 * MicrosoftDocs/azure-docs articles/azure-resource-manager/resource-manager-api-authentication.md.
 */
export const checkAccount = (ctx: CloudContext, endpoints: Endpoints): Promise<AccountCheck> =>
  checkFor(NEEDED, ctx, endpoints);

/** Missing permissions for a control plane on machines. */
export const missingForControlPlane = async (ctx: CloudContext, endpoints: Endpoints): Promise<string[]> =>
  (await checkFor(PERMISSIONS.onMachines, ctx, endpoints)).missing;

async function checkFor(needed: readonly string[], ctx: CloudContext, endpoints: Endpoints): Promise<AccountCheck> {
  const { subscriptionID } = credentialsOf(ctx.account);
  const { token } = await entraToken(ctx, endpoints, managementScope(endpoints));
  const subscription = `${endpoints.management}/subscriptions/${subscriptionID}`;
  const get = <T>(url: string) =>
    callAzure<T>({
      url,
      token,
      what: `subscription ${subscriptionID} cannot be used`,
      signal: ctx.signal,
    });

  const about = await get<{ state?: string }>(`${subscription}?api-version=2022-12-01`);
  // PastDue and Warned subscriptions work; Disabled and Deleted ones permit no creation.
  if (about?.state === 'Disabled' || about?.state === 'Deleted') {
    throw new CoppiceError('ERR_INFRA_DEPENDENCIES', `subscription ${subscriptionID} is ${about.state.toLowerCase()}`, {
      advice: 'Enable it again, or use another one.',
    });
  }
  const permissions = await allPages<Permission>(
    `${subscription}/providers/Microsoft.Authorization/permissions?api-version=2022-04-01`,
    `the permissions on subscription ${subscriptionID} cannot be listed`,
    endpoints,
    get,
  );
  return { id: subscriptionID, missing: missingOf(needed, permissions) };
}
