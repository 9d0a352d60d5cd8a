import { Cluster, type ClusterArgs } from '@pulumi/gcp/container/index.js';
import { output } from '@pulumi/pulumi';
import { ADOPTED, upgradeOf } from '../../adopted-cluster.ts';
import type { Adoption, ManagedClusterInputs } from '../../cloud.ts';
import type { ProgramOutputs } from '../../pulumi/program.ts';
import { adoptionTags } from '../../tags.ts';
import type { AdoptedFacts } from '../adopted.ts';
import { asLabels } from '../labels.ts';
import { nodePoolsOf } from '../node-pools.ts';
import { clusterOutputs, nodeConfigOf, nodeIdentity, nodePool } from './cluster.ts';

/** Inputs of the layer `adopted`. */
interface AdoptedInputs extends Omit<ManagedClusterInputs, 'network' | 'adopt'> {
  adopt: Adoption;
  found: AdoptedFacts;
  /** Whether the cluster is being released. */
  leaving: boolean;
}

/** Arguments of a cluster that Coppice sets; deletionProtection exists in the plugin only. */
type Ours =
  | 'name'
  | 'location'
  | 'deletionProtection'
  | 'minMasterVersion'
  | 'resourceLabels'
  | 'masterAuthorizedNetworksConfig';

/** Arguments chosen by the cluster's creator, left unchanged: all others, so that a new argument fails to compile. */
const THEIRS: Readonly<Record<Exclude<keyof ClusterArgs, Ours>, true>> = {
  addonsConfig: true,
  allowNetAdmin: true,
  anonymousAuthenticationConfig: true,
  authenticatorGroupsConfig: true,
  autopilotClusterPolicyConfig: true,
  autopilotPrivilegedAdmissions: true,
  binaryAuthorization: true,
  clusterAutoscaling: true,
  clusterIpv4Cidr: true,
  clusterTelemetry: true,
  confidentialNodes: true,
  controlPlaneEndpointsConfig: true,
  costManagementConfig: true,
  databaseEncryption: true,
  datapathProvider: true,
  dataplaneOptimizationMode: true,
  defaultMaxPodsPerNode: true,
  defaultSnatStatus: true,
  deletionPolicy: true,
  description: true,
  desiredEmulatedVersion: true,
  disableL4LbFirewallReconciliation: true,
  dnsConfig: true,
  enableAutopilot: true,
  enableCiliumClusterwideNetworkPolicy: true,
  enableFqdnNetworkPolicy: true,
  enableIntranodeVisibility: true,
  enableK8sBetaApis: true,
  enableKubernetesAlpha: true,
  enableL4IlbSubsetting: true,
  enableLegacyAbac: true,
  enableMultiNetworking: true,
  enableShieldedNodes: true,
  enableTpu: true,
  enterpriseConfig: true,
  fleet: true,
  gatewayApiConfig: true,
  gkeAutoUpgradeConfig: true,
  identityServiceConfig: true,
  ignoreNodeCountChanges: true,
  inTransitEncryptionConfig: true,
  initialNodeCount: true,
  ipAllocationPolicy: true,
  loggingConfig: true,
  loggingService: true,
  maintenancePolicy: true,
  managedMachineLearningDiagnosticsConfig: true,
  managedOpentelemetryConfig: true,
  masterAuth: true,
  meshCertificates: true,
  monitoringConfig: true,
  monitoringService: true,
  network: true,
  networkPerformanceConfig: true,
  networkPolicy: true,
  networkingMode: true,
  nodeConfig: true,
  nodeCreationConfig: true,
  nodeLocations: true,
  nodePoolAutoConfig: true,
  nodePoolDefaults: true,
  nodePools: true,
  nodeVersion: true,
  notificationConfig: true,
  podAutoscaling: true,
  podSecurityPolicyConfig: true,
  privateClusterConfig: true,
  privateIpv6GoogleAccess: true,
  project: true,
  protectConfig: true,
  rbacBindingConfig: true,
  releaseChannel: true,
  removeDefaultNodePool: true,
  resourceUsageExportConfig: true,
  rollbackSafeUpgrade: true,
  secretManagerConfig: true,
  secretSyncConfig: true,
  securityPostureConfig: true,
  serviceExternalIpsConfig: true,
  skipNodePoolRefresh: true,
  subnetwork: true,
  tpuConfig: true,
  userManagedKeysConfig: true,
  verticalPodAutoscaling: true,
  workloadAltsConfig: true,
  workloadIdentityConfig: true,
};

/** Layer `adopted`: an existing GKE cluster, left as it is, with Coppice's node pools. */
export function adopted(inputs: AdoptedInputs): ProgramOutputs {
  const { owner, adopt, found, authorizedNetworks, leaving } = inputs;
  const upgrade = upgradeOf(found.version, inputs.kubernetesVersion);
  const isReleased = leaving && adopt.deletionPolicy === 'Release';
  const isLimited = authorizedNetworks.length > 0;
  const gke = new Cluster(
    ADOPTED,
    {
      name: found.name,
      location: found.location,
      resourceLabels: {
        ...found.labels,
        ...(!isReleased && asLabels(adoptionTags(owner, adopt.deletionPolicy))),
      },
      // Further protection while the deletion policy is not Delete.
      deletionProtection: adopt.deletionPolicy === 'Release',
      ...(upgrade !== undefined && { minMasterVersion: upgrade }),
      ...(isLimited && {
        masterAuthorizedNetworksConfig: {
          cidrBlocks: authorizedNetworks.map((cidrBlock) => ({ cidrBlock })),
          gcpPublicCidrsAccessEnabled: false,
        },
      }),
    },
    {
      ignoreChanges: [
        ...Object.keys(THEIRS),
        ...(upgrade === undefined ? ['minMasterVersion'] : []),
        ...(isLimited ? [] : ['masterAuthorizedNetworksConfig']),
      ],
      retainOnDelete: adopt.deletionPolicy === 'Release',
    },
  );
  const plans = nodePoolsOf(inputs.pools, found.zones);
  const nodes = plans.length > 0 ? nodeIdentity(owner, output(found.project)) : undefined;
  for (const plan of plans) {
    const at = { cluster: found.name, location: found.location, version: gke.masterVersion };
    nodePool(
      plan,
      at,
      {
        // Public node addresses follow the cluster's setting: the outbound access of its network is unknown.
        management: { autoRepair: true, autoUpgrade: found.inChannel },
        nodeConfig: nodeConfigOf(plan, owner, {
          serviceAccount: nodes!.email,
          workloadIdentity: found.workloadIdentity,
        }),
      },
      [gke, ...nodes!.grants],
    );
  }
  return clusterOutputs(gke, found.project, found.location);
}
