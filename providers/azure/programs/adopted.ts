import { getClientConfig } from '@pulumi/azure-native/authorization/getClientConfig.js';
import { ManagedCluster, type ManagedClusterArgs } from '@pulumi/azure-native/containerservice/managedCluster.js';
import { ADOPTED, upgradeOf } from '../../adopted-cluster.ts';
import type { Adoption, ManagedClusterInputs } from '../../cloud.ts';
import type { ProgramOutputs } from '../../pulumi/program.ts';
import { adoptionTags } from '../../tags.ts';
import type { AdoptedFacts } from '../adopted.ts';
import { agentPoolBeside } from '../agent-pools.ts';
import { ADMINISTRATOR } from '../names.ts';
import { agentPool, clusterOutputs, grantRole } from './cluster.ts';

/** Inputs of the layer `adopted`. */
interface AdoptedInputs extends Omit<ManagedClusterInputs, 'network' | 'adopt'> {
  adopt: Adoption;
  found: AdoptedFacts;
  /** Whether the cluster is being released. */
  leaving: boolean;
}

/** Arguments of a cluster that Coppice sets. */
type Ours = 'resourceGroupName' | 'resourceName' | 'kubernetesVersion' | 'tags' | 'apiServerAccessProfile';

/** Arguments chosen by the cluster's creator, left unchanged: all others, so that a new argument fails to compile. */
const THEIRS: Readonly<Record<Exclude<keyof ManagedClusterArgs, Ours>, true>> = {
  aadProfile: true,
  addonProfiles: true,
  agentPoolProfiles: true,
  aiToolchainOperatorProfile: true,
  autoScalerProfile: true,
  autoUpgradeProfile: true,
  azureMonitorProfile: true,
  bootstrapProfile: true,
  disableLocalAccounts: true,
  diskEncryptionSetID: true,
  dnsPrefix: true,
  enableRBAC: true,
  extendedLocation: true,
  fqdnSubdomain: true,
  httpProxyConfig: true,
  identity: true,
  identityProfile: true,
  ingressProfile: true,
  kind: true,
  linuxProfile: true,
  location: true,
  metricsProfile: true,
  networkProfile: true,
  nodeProvisioningProfile: true,
  nodeResourceGroup: true,
  nodeResourceGroupProfile: true,
  oidcIssuerProfile: true,
  podIdentityProfile: true,
  privateLinkResources: true,
  publicNetworkAccess: true,
  securityProfile: true,
  serviceMeshProfile: true,
  servicePrincipalProfile: true,
  sku: true,
  storageProfile: true,
  supportPlan: true,
  upgradeSettings: true,
  windowsProfile: true,
  workloadAutoScalerProfile: true,
};

/** Layer `adopted`: an existing AKS cluster, left as it is, with an agent pool per pool. */
export async function adopted(inputs: AdoptedInputs): Promise<ProgramOutputs> {
  const { owner, zones, pools, adopt, found, authorizedNetworks, leaving } = inputs;
  const { resourceGroup: resourceGroupName, name: resourceName } = found;
  const upgrade = upgradeOf(found.version, inputs.kubernetesVersion);
  const isReleased = leaving && adopt.deletionPolicy === 'Release';
  const isLimited = authorizedNetworks.length > 0;
  const aks = new ManagedCluster(
    ADOPTED,
    {
      resourceGroupName,
      resourceName,
      tags: { ...found.tags, ...(!isReleased && adoptionTags(owner, adopt.deletionPolicy)) },
      ...(upgrade !== undefined && { kubernetesVersion: upgrade }),
      ...(isLimited && {
        apiServerAccessProfile: { ...found.accessProfile, authorizedIPRanges: authorizedNetworks },
      }),
    },
    {
      ignoreChanges: [
        ...Object.keys(THEIRS),
        ...(upgrade === undefined ? ['kubernetesVersion'] : []),
        ...(isLimited ? [] : ['apiServerAccessProfile']),
      ],
      retainOnDelete: adopt.deletionPolicy === 'Release',
    },
  );
  if (found.administrators) {
    const us = await getClientConfig();
    // Azure refuses a second equal assignment.
    if (!found.administrators.includes(us.objectId)) grantRole(owner, us, { ...ADMINISTRATOR, scope: found.id }, [aks]);
  }
  const cluster = { owner, zones, kubernetesVersion: upgrade ?? found.version };
  for (const pool of pools) {
    const plan = (now?: number) => agentPoolBeside(found.addresses, pool, cluster, now);
    // Not deletedWith the cluster, which stays, while the agent pool must be deleted.
    await agentPool(pool, plan, { resourceGroupName, resourceName }, { dependsOn: aks });
  }
  return clusterOutputs(aks, resourceGroupName, found.isPrivate ? aks.privateFQDN : aks.fqdn);
}
