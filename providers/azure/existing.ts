import { ADOPTED } from '../adopted-cluster.ts';
import type { CloudContext } from '../cloud.ts';
import { beingCreated } from '../pulumi/being-created.ts';
import type { FindExisting, WantedResource } from '../pulumi/request.ts';
import { ownerOf } from '../tags.ts';
import { callAzure, type Endpoints } from './arm.ts';
import { credentialsOf } from './credentials.ts';
import { type EntraToken, entraToken, managementScope } from './token.ts';

type Inputs = WantedResource['inputs'];

/** How a resource of a type is found: Azure's ids are paths of names, and Coppice's names are fixed. */
interface Finding {
  /** Path of the id, with names of inputs in braces. */
  path: string;
  /** API version: that of @pulumi/azure-native 3.28. */
  api: string;
  /** Location of its owner tags. A role assignment has none, but its name is derived from the owner. */
  tags: (body: Body) => Record<string, string> | undefined | 'in its name';
}

interface Body {
  tags?: Record<string, string>;
  properties?: { tags?: Record<string, string>; provisioningState?: string };
}

const IN_GROUP = '/subscriptions/{subscription}/resourceGroups/{resourceGroupName}';
const own = ({ tags }: Body) => tags;

const CLUSTER = 'azure-native:containerservice:ManagedCluster';
const FINDINGS: Readonly<Record<string, Finding>> = {
  'azure-native:resources:ResourceGroup': { path: IN_GROUP, api: '2024-03-01', tags: own },
  'azure-native:network:PublicIPAddress': {
    path: `${IN_GROUP}/providers/Microsoft.Network/publicIPAddresses/{publicIpAddressName}`,
    api: '2024-05-01',
    tags: own,
  },
  'azure-native:network:NatGateway': {
    path: `${IN_GROUP}/providers/Microsoft.Network/natGateways/{natGatewayName}`,
    api: '2024-05-01',
    tags: own,
  },
  'azure-native:network:VirtualNetwork': {
    path: `${IN_GROUP}/providers/Microsoft.Network/virtualNetworks/{virtualNetworkName}`,
    api: '2024-05-01',
    tags: own,
  },
  'azure-native:network:LoadBalancer': {
    path: `${IN_GROUP}/providers/Microsoft.Network/loadBalancers/{loadBalancerName}`,
    api: '2024-05-01',
    tags: own,
  },
  'azure-native:network:NetworkSecurityGroup': {
    path: `${IN_GROUP}/providers/Microsoft.Network/networkSecurityGroups/{networkSecurityGroupName}`,
    api: '2024-05-01',
    tags: own,
  },
  'azure-native:compute:VirtualMachineScaleSet': {
    path: `${IN_GROUP}/providers/Microsoft.Compute/virtualMachineScaleSets/{vmScaleSetName}`,
    api: '2024-11-01',
    tags: own,
  },
  'azure-native:managedidentity:UserAssignedIdentity': {
    path: `${IN_GROUP}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/{resourceName}`,
    api: '2023-01-31',
    tags: own,
  },
  'azure-native:authorization:RoleAssignment': {
    path: '{scope}/providers/Microsoft.Authorization/roleAssignments/{roleAssignmentName}',
    api: '2022-04-01',
    tags: () => 'in its name',
  },
  [CLUSTER]: {
    path: `${IN_GROUP}/providers/Microsoft.ContainerService/managedClusters/{resourceName}`,
    api: '2025-09-01',
    tags: own,
  },
  'azure-native:containerservice:AgentPool': {
    path: `${IN_GROUP}/providers/Microsoft.ContainerService/managedClusters/{resourceName}/agentPools/{agentPoolName}`,
    api: '2025-09-01',
    tags: ({ properties }) => properties?.tags,
  },
};

/** Azure id of a declared resource; undefined while a part is unknown. */
export function resourceID(
  { type, inputs }: Pick<WantedResource, 'type' | 'inputs'>,
  subscription: string,
): string | undefined {
  const names: Inputs = { ...inputs, subscription };
  let known = true;
  const id = FINDINGS[type]?.path.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    if (typeof names[name] !== 'string') known = false;
    return String(names[name]);
  });
  return known ? id : undefined;
}

/** See FindExisting: by the id derived from names, if the resource has the owner's tags. */
export function existingAt(endpoints: Endpoints, ctx: CloudContext): FindExisting {
  // All look-ups happen within minutes: one token suffices.
  let asked: Promise<EntraToken> | undefined;
  return async (resource, signal) => {
    const { subscriptionID } = credentialsOf(ctx.account);
    const id = resourceID(resource, subscriptionID);
    const finding = FINDINGS[resource.type];
    if (id === undefined || !finding) return undefined;
    if (resource.name === ADOPTED) {
      // Its existence and the permission to adopt it were checked before the program started. No further inputs:
      // azure-native's first read keeps inputs that Azure does not return, so Coppice's tags would count as the
      // cluster's own.
      const { resourceGroupName, resourceName } = resource.inputs;
      return { id, retain: true, inputs: { resourceGroupName, resourceName } };
    }
    asked ??= entraToken(ctx, endpoints, managementScope(endpoints));
    const { token } = await asked;
    const body = await callAzure<Body>(
      {
        url: `${endpoints.management}${id}?api-version=${finding.api}`,
        token,
        what: `${resource.type} ${resource.name} cannot be looked for`,
        signal,
      },
      { absent: true },
    );
    if (!body) return undefined;
    const tags = finding.tags(body);
    if (tags === 'in its name') return { id };
    if (ownerOf(tags ?? {})?.uid !== ctx.owner.uid) return undefined;
    if (resource.type === CLUSTER && body.properties?.provisioningState === 'Creating')
      throw beingCreated(`AKS cluster ${String(resource.inputs.resourceName)}`);
    return { id };
  };
}
