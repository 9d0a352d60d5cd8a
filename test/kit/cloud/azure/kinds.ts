/** What Azure Resource Manager calls a type. */
export interface Kind {
  /** `Microsoft.Network/virtualNetworks`; for what is within another: `.../subnets`. */
  resourceType: string;
  /** Inputs with the names along the path, the last one its own. */
  names: readonly string[];
  /** Where it hangs: in a resource group, in the subscription, or at the input `scope`. Default: a group. */
  level?: 'subscription' | 'scope';
  /** Says how many there may be: a code and a sentence of Azure's. */
  quota?: readonly [code: string, message: string];
}

const KINDS: Readonly<Record<string, Kind>> = {
  'azure-native:resources:ResourceGroup': {
    resourceType: 'Microsoft.Resources/resourceGroups',
    names: ['resourceGroupName'],
    level: 'subscription',
  },
  'azure-native:network:VirtualNetwork': {
    resourceType: 'Microsoft.Network/virtualNetworks',
    names: ['virtualNetworkName'],
  },
  'azure-native:network:Subnet': {
    resourceType: 'Microsoft.Network/virtualNetworks/subnets',
    names: ['virtualNetworkName', 'subnetName'],
  },
  'azure-native:network:NatGateway': { resourceType: 'Microsoft.Network/natGateways', names: ['natGatewayName'] },
  'azure-native:network:PublicIPAddress': {
    resourceType: 'Microsoft.Network/publicIPAddresses',
    names: ['publicIpAddressName'],
  },
  'azure-native:network:LoadBalancer': {
    resourceType: 'Microsoft.Network/loadBalancers',
    names: ['loadBalancerName'],
  },
  'azure-native:network:NetworkSecurityGroup': {
    resourceType: 'Microsoft.Network/networkSecurityGroups',
    names: ['networkSecurityGroupName'],
  },
  'azure-native:network:RouteTable': { resourceType: 'Microsoft.Network/routeTables', names: ['routeTableName'] },
  'azure-native:containerservice:ManagedCluster': {
    resourceType: 'Microsoft.ContainerService/managedClusters',
    names: ['resourceName'],
  },
  'azure-native:containerservice:AgentPool': {
    resourceType: 'Microsoft.ContainerService/managedClusters/agentPools',
    names: ['resourceName', 'agentPoolName'],
  },
  'azure-native:managedidentity:UserAssignedIdentity': {
    resourceType: 'Microsoft.ManagedIdentity/userAssignedIdentities',
    names: ['resourceName'],
  },
  'azure-native:managedidentity:FederatedIdentityCredential': {
    resourceType: 'Microsoft.ManagedIdentity/userAssignedIdentities/federatedIdentityCredentials',
    names: ['resourceName', 'federatedIdentityCredentialResourceName'],
  },
  'azure-native:authorization:RoleAssignment': {
    resourceType: 'Microsoft.Authorization/roleAssignments',
    names: ['roleAssignmentName'],
    level: 'scope',
  },
  'azure-native:compute:VirtualMachineScaleSet': {
    resourceType: 'Microsoft.Compute/virtualMachineScaleSets',
    names: ['vmScaleSetName'],
  },
  'azure-native:storage:StorageAccount': { resourceType: 'Microsoft.Storage/storageAccounts', names: ['accountName'] },
  'azure-native:storage:BlobContainer': {
    resourceType: 'Microsoft.Storage/storageAccounts/blobServices/containers',
    names: ['accountName', 'containerName'],
  },
};

export const KIND_TYPES: readonly string[] = Object.keys(KINDS);

/** The type's entry, or what can be told of an unknown type by its name. */
export function kindOf(type: string): Kind {
  const [, module = '', object = ''] = type.split(':');
  const lower = `${object[0]?.toLowerCase() ?? ''}${object.slice(1)}`;
  const provider = `Microsoft.${module[0]?.toUpperCase() ?? ''}${module.slice(1)}`;
  return KINDS[type] ?? { resourceType: `${provider}/${lower}s`, names: [`${lower}Name`] };
}

/** The resource id: names along the path, in the group, the subscription or at the scope. */
export function resourceId(kind: Kind, subscription: string, inputs: Record<string, unknown>): string {
  const [provider, ...types] = kind.resourceType.split('/');
  const names = kind.names.map((name) => String(inputs[name]));
  if (kind.resourceType === 'Microsoft.Resources/resourceGroups') {
    return `/subscriptions/${subscription}/resourceGroups/${names[0]}`;
  }
  // A path has a name for each type; services within (blobServices) are called default.
  const spare = types.length - names.length;
  const path = types.map((type, index) => {
    const name = spare > 0 && index === types.length - 2 ? 'default' : names.shift();
    return `${type}/${name}`;
  });
  const home =
    kind.level === 'scope'
      ? String(inputs.scope).replace(/\/$/, '')
      : kind.level === 'subscription'
        ? `/subscriptions/${subscription}`
        : `/subscriptions/${subscription}/resourceGroups/${inputs.resourceGroupName}`;
  return `${home}/providers/${provider}/${path.join('/')}`;
}
