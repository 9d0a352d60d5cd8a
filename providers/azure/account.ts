import { CoppiceError } from '../../operator/api/errors.ts';
import type { AccountCheck, CloudContext } from '../cloud.ts';
import { allPages, callAzure, type Endpoints } from './arm.ts';
import { credentialsOf } from './credentials.ts';
import { entraToken, managementScope } from './token.ts';

/** For a network, and what all is in. */
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
] as const;

/** What the programs do to Azure, as operations of Azure's resource providers. */
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
  'Microsoft.ContainerService/managedClusters/agentPools/read',
  'Microsoft.ContainerService/managedClusters/agentPools/write',
  'Microsoft.ContainerService/managedClusters/agentPools/delete',
] as const;

/** What a control plane on machines needs besides those of its network. */
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

/** What is checked before anything is made, by what runs the control plane: the cloud, or a seed and machines. */
export const PERMISSIONS = { managed: NEEDED, onMachines: [...NETWORK, ...CONTROL_PLANE] } as const;

/** What one role allows: patterns of operations, and which of these it does not. */
export interface Permission {
  actions?: string[];
  notActions?: string[];
}

/** Whether the pattern, in which `*` stands for anything, slashes too, covers the operation; case means nothing. */
function covers(pattern: string, operation: string): boolean {
  const parts = pattern.split('*').map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  return new RegExp(`^${parts.join('.*')}$`, 'i').test(operation);
}

/** Which of the operations no role allows. What one role takes back, another may still give. */
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
 * Whether the credentials are somebody's, the subscription is alive, and the roles on it allow what the programs do. Roles may have
 * conditions, and policies may refuse what roles allow: these show only when something is made.
 *
 * API versions: Subscriptions - Get 2022-12-01; Permissions 2022-04-01, for a subscription as in MicrosoftDocs/azure-docs
 * articles/azure-resource-manager/resource-manager-api-authentication.md.
 */
export const checkAccount = (ctx: CloudContext, endpoints: Endpoints): Promise<AccountCheck> =>
  checkFor(NEEDED, ctx, endpoints);

/** What a control plane on machines needs and the credentials lack. */
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
  // PastDue and Warned ones still work; Disabled and Deleted ones let nothing be made.
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
