import { getClientConfig } from '@pulumi/azure-native/authorization/getClientConfig.js';
import { RoleAssignment } from '@pulumi/azure-native/authorization/roleAssignment.js';
import { AgentPool } from '@pulumi/azure-native/containerservice/agentPool.js';
import { getAgentPool } from '@pulumi/azure-native/containerservice/getAgentPool.js';
import { listManagedClusterUserCredentialsOutput } from '@pulumi/azure-native/containerservice/listManagedClusterUserCredentials.js';
import { ManagedCluster } from '@pulumi/azure-native/containerservice/managedCluster.js';
import { UserAssignedIdentity } from '@pulumi/azure-native/managedidentity/userAssignedIdentity.js';
import {
  type CustomResourceOptions,
  type Input,
  interpolate,
  type Output,
  type Resource,
  unsecret,
} from '@pulumi/pulumi';
import { ipv4Range, nthAddress } from '../../../operator/api/address-range.ts';
import type { CloudPool, ManagedClusterInputs, Owner } from '../../cloud.ts';
import { poolResource } from '../../pool-resource.ts';
import type { ProgramOutputs } from '../../pulumi/program.ts';
import { tagsOf } from '../../tags.ts';
import { type AgentPoolPlan, agentPoolNameOf, agentPoolOf, isPoolAutoscaled, systemPool } from '../agent-pools.ts';
import { certificateAuthorityOf } from '../kubeconfig.ts';
import {
  ADMINISTRATOR,
  dnsPrefix,
  identityName,
  managedClusterID,
  managedClusterName,
  nodeResourceGroupName,
  resourceGroupName,
  roleAssignmentName,
} from '../names.ts';
import { findResource } from './look-ups.ts';

/**
 * The tenth address of the range of Services, AKS' default for cluster DNS (10.0.0.10 of 10.0.0.0/16); '' without a
 * range, for a cluster that is only to be deleted and whose spec is lost.
 */
function dnsServiceIP(services: string): string {
  return ipv4Range(services) ? nthAddress(services, 10) : '';
}

/** Built-in role: MicrosoftDocs/azure-docs articles/role-based-access-control/built-in-roles.md. */
const NETWORK_CONTRIBUTOR = '4d97b98b-1d4f-4787-a291-c67834d212e7';

/**
 * An AKS cluster in the network's resource group: CNI overlay and Cilium, a small system pool, and an agent pool per
 * pool.
 *
 * Access. The cluster has an identity of its own whose only role is on the nodes' subnet. People and Coppice
 * authenticate by Entra ID alone: local accounts are disabled, since their client certificates are valid for years,
 * cannot be revoked individually, and leave no audit trail. This requires no further rights: the credentials must be
 * able to assign roles for the identity, and so can assign themselves the administrator role on this cluster.
 *
 * Encryption is Azure's own, always enabled, for disks and etcd. Not used: encryption at host requires a feature
 * registration on the subscription, encryption of Secrets with Azure's keys is a preview (azure-aks-docs
 * kms-data-encryption.md), and a key vault would outlive the cluster by soft deletion.
 */
export async function cluster(inputs: ManagedClusterInputs): Promise<ProgramOutputs> {
  const { owner, region, kubernetesVersion, cidrs, pools } = inputs;
  const group = resourceGroupName(owner);
  const common = { resourceGroupName: group, location: region, tags: tagsOf(owner) };
  const us = await getClientConfig();
  const identity = new UserAssignedIdentity('identity', { ...common, resourceName: identityName(owner) });
  const subnet = inputs.network.subnets[0]!.id;
  const mayJoin = { purpose: 'subnet', role: NETWORK_CONTRIBUTOR, scope: subnet, principalId: identity.principalId };
  const joinsSubnet = grantRole(owner, us, mayJoin);

  const aks = new ManagedCluster(
    'cluster',
    {
      ...common,
      resourceName: managedClusterName(owner),
      nodeResourceGroup: nodeResourceGroupName(owner),
      dnsPrefix: dnsPrefix(owner),
      kubernetesVersion,
      sku: { name: 'Base', tier: 'Standard' },
      identity: { type: 'UserAssigned', userAssignedIdentities: [identity.id] },
      enableRBAC: true,
      aadProfile: { managed: true, enableAzureRBAC: true },
      disableLocalAccounts: true,
      oidcIssuerProfile: { enabled: true },
      securityProfile: { workloadIdentity: { enabled: true } },
      apiServerAccessProfile: { authorizedIPRanges: authorizedRanges(inputs) },
      // Version upgrades are Coppice's decision; Ubuntu still installs security fixes without restarts.
      autoUpgradeProfile: { upgradeChannel: 'none', nodeOSUpgradeChannel: 'Unmanaged' },
      networkProfile: {
        networkPlugin: 'azure',
        networkPluginMode: 'overlay',
        networkDataplane: 'cilium',
        networkPolicy: 'cilium',
        podCidr: cidrs.pods,
        serviceCidr: cidrs.services,
        dnsServiceIP: dnsServiceIP(cidrs.services),
        outboundType: 'userAssignedNATGateway',
        loadBalancerSku: 'standard',
      },
      // Other pools are separate resources; AKS ignores pools not named here (pulumi-azure-native issues 1686,
      // 4264).
      agentPoolProfiles: [systemPool(inputs)],
    },
    { dependsOn: joinsSubnet },
  );
  grantRole(owner, us, { ...ADMINISTRATOR, scope: managedClusterID(us.subscriptionId, owner) }, [aks]);
  const at = { resourceGroupName: group, resourceName: managedClusterName(owner) };
  for (const pool of pools) {
    // Deleted with the cluster: a separate deletion would only take time.
    const options = { dependsOn: aks, deletedWith: aks };
    await agentPool(pool, (now) => agentPoolOf(pool, inputs, now), at, options);
  }
  return clusterOutputs(aks, group);
}

/** Assigns a role on a scope, by default to the caller. */
export function grantRole(
  owner: Owner,
  us: { subscriptionId: string; objectId: string },
  to: { purpose: string; role: string; scope: string; principalId?: Input<string> },
  dependsOn: Resource[] = [],
): RoleAssignment {
  const { purpose, role, scope, principalId = us.objectId } = to;
  return new RoleAssignment(
    purpose,
    {
      roleAssignmentName: roleAssignmentName(owner, purpose),
      scope,
      principalId,
      // Explicit, so that Azure does not search for an identity that its directory may not list yet.
      principalType: 'ServicePrincipal',
      roleDefinitionId: `/subscriptions/${us.subscriptionId}/providers/Microsoft.Authorization/roleDefinitions/${role}`,
    },
    // An assignment is immutable, and its name is taken until it is deleted.
    { dependsOn, deleteBeforeReplace: true },
  );
}

/** Outputs of every layer with an AKS cluster. */
export function clusterOutputs(
  aks: ManagedCluster,
  resourceGroupName: string,
  // Only one of the two is read: an output that Azure does not return stays unknown in a plan, which would then
  // always report changes.
  host: Output<string> = aks.fqdn,
): ProgramOutputs {
  const { kubeconfigs } = listManagedClusterUserCredentialsOutput({ resourceGroupName, resourceName: aks.name });
  return {
    name: aks.name,
    endpoint: interpolate`https://${host}`,
    // Not a secret, unlike the credentials beside it; see programs/cluster.ts of gcp.
    certificateAuthority: unsecret(kubeconfigs).apply(([first]) => certificateAuthorityOf(first?.value ?? '')),
    version: aks.currentKubernetesVersion,
    extra: { id: aks.id, localAccounts: aks.disableLocalAccounts.apply((disabled) => String(!disabled)) },
  };
}

/** Everybody, or the named ranges and the nodes' gateway, which AKS does not admit by itself. */
function authorizedRanges({ authorizedNetworks, network }: ManagedClusterInputs): string[] {
  const egress = network.extra?.egressAddress;
  if (authorizedNetworks.length === 0) return [];
  return egress === undefined ? authorizedNetworks : [...authorizedNetworks, `${egress}/32`];
}

/** Declares a pool's agent pool. `plan`: its arguments for `now` nodes. */
export async function agentPool(
  pool: CloudPool,
  plan: (now?: number) => AgentPoolPlan,
  at: { resourceGroupName: string; resourceName: string },
  options: CustomResourceOptions,
): Promise<void> {
  const id = { ...at, agentPoolName: agentPoolNameOf(pool, plan()) };
  const now = isPoolAutoscaled(pool) ? await findResource(getAgentPool(id)) : undefined;
  new AgentPool(
    poolResource(pool.name),
    { ...plan(now?.count), ...id },
    {
      ...options,
      // With another name the new pool can exist before the old one is deleted; the plugin's default deletes first.
      replaceOnChanges: ['agentPoolName'],
      deleteBeforeReplace: false,
    },
  );
}
