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
 * The tenth address of the range of Services, where AKS puts the cluster's DNS by default (10.0.0.10 of 10.0.0.0/16); '' for no
 * range, as of a cluster that is only to be taken away and of which nobody knows more.
 */
function dnsServiceIP(services: string): string {
  return ipv4Range(services) ? nthAddress(services, 10) : '';
}

/** Built-in role: MicrosoftDocs/azure-docs articles/role-based-access-control/built-in-roles.md. */
const NETWORK_CONTRIBUTOR = '4d97b98b-1d4f-4787-a291-c67834d212e7';

/**
 * An AKS cluster in the network's resource group: pods by CNI overlay and Cilium, a small system pool, and an agent pool for each of
 * our pools.
 *
 * Who may do what. The cluster is an identity of its own whose only role is on the nodes' subnet. People and Coppice are known to
 * the API server by Entra ID alone: local accounts are off, because their client certificates are good for years, cannot be
 * revoked one by one, and leave no trace of who used them. That asks for nothing that the credentials do not need anyway: they
 * must be allowed to assign roles for the identity, and so assign themselves the role of an administrator, on this cluster.
 *
 * Encryption is Azure's own, always on, for disks and for etcd. More is not asked for: encryption at the host is refused until
 * somebody registers a feature on the subscription, encryption of Secrets by Azure's keys is a preview
 * (azure-aks-docs kms-data-encryption.md), and a key vault of ours would outlive the cluster, being deleted softly.
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
      // Versions change when we say so; Ubuntu itself still installs security fixes, without restarting nodes.
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
      // Others have resources of their own; AKS leaves alone what is not named here (pulumi-azure-native issues 1686, 4264).
      agentPoolProfiles: [systemPool(inputs)],
    },
    { dependsOn: joinsSubnet },
  );
  grantRole(owner, us, { ...ADMINISTRATOR, scope: managedClusterID(us.subscriptionId, owner) }, [aks]);
  const at = { resourceGroupName: group, resourceName: managedClusterName(owner) };
  for (const pool of pools) {
    // Goes with the cluster: deleting it first would only take time.
    const options = { dependsOn: aks, deletedWith: aks };
    await agentPool(pool, (now) => agentPoolOf(pool, inputs, now), at, options);
  }
  return clusterOutputs(aks, group);
}

/** Gives somebody, by default us, a role on something. */
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
      // Said, so that Azure does not look for an identity that its directory may not show yet.
      principalType: 'ServicePrincipal',
      roleDefinitionId: `/subscriptions/${us.subscriptionId}/providers/Microsoft.Authorization/roleDefinitions/${role}`,
    },
    // An assignment cannot be changed, and its name is taken until it is gone.
    { dependsOn, deleteBeforeReplace: true },
  );
}

/** What every layer with an AKS cluster gives back. */
export function clusterOutputs(
  aks: ManagedCluster,
  resourceGroupName: string,
  // Not both asked for: what Azure does not answer stays unknown in a plan, which then never says that all is as it should be.
  host: Output<string> = aks.fqdn,
): ProgramOutputs {
  const { kubeconfigs } = listManagedClusterUserCredentialsOutput({ resourceGroupName, resourceName: aks.name });
  return {
    name: aks.name,
    endpoint: interpolate`https://${host}`,
    // No secret, unlike the credentials beside it; see programs/cluster.ts of gcp.
    certificateAuthority: unsecret(kubeconfigs).apply(([first]) => certificateAuthorityOf(first?.value ?? '')),
    version: aks.currentKubernetesVersion,
    extra: { id: aks.id, localAccounts: aks.disableLocalAccounts.apply((disabled) => String(!disabled)) },
  };
}

/** Everybody, or those named and the nodes themselves: their requests come from the gateway, which AKS does not let in by itself. */
function authorizedRanges({ authorizedNetworks, network }: ManagedClusterInputs): string[] {
  const egress = network.extra?.egressAddress;
  if (authorizedNetworks.length === 0) return [];
  return egress === undefined ? authorizedNetworks : [...authorizedNetworks, `${egress}/32`];
}

/** Declares the agent pool that stands for a pool of ours. `plan`: what it is to be, when it has `now` nodes. */
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
      // Under another name the new one can be there before the old one goes; the plugin by itself deletes first.
      replaceOnChanges: ['agentPoolName'],
      deleteBeforeReplace: false,
    },
  );
}
