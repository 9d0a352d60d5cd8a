import { Cluster, NodePool, type NodePoolArgs } from '@pulumi/gcp/container/index.js';
import { CryptoKey, CryptoKeyIAMMember, KeyRing } from '@pulumi/gcp/kms/index.js';
import { getProjectOutput } from '@pulumi/gcp/organizations/index.js';
import { IAMMember } from '@pulumi/gcp/projects/index.js';
import { Account } from '@pulumi/gcp/serviceaccount/index.js';
import { type Input, interpolate, type Output, type Resource, unsecret } from '@pulumi/pulumi';
import type { ManagedClusterInputs, Owner } from '../../cloud.ts';
import type { ProgramOutputs } from '../../pulumi/program.ts';
import { POOL_TAG } from '../../tags.ts';
import { descriptionOf, gcpLabelsOf } from '../labels.ts';
import { clusterName, keyRingName, SECRETS_KEY, serviceAccountName } from '../names.ts';
import { type NodePoolPlan, nodePoolsOf } from '../node-pools.ts';

/**
 * A regional, VPC-native GKE cluster with private nodes, and its node pools. Hardened according to "Harden your
 * cluster's security" (cloud.google.com/kubernetes-engine/docs/how-to/hardening-your-cluster).
 */
export function cluster(inputs: ManagedClusterInputs): ProgramOutputs {
  const { owner, region, zones, kubernetesVersion, authorizedNetworks } = inputs;
  const project = getProjectOutput({});
  const projectID = project.apply(({ projectId }) => projectId!);
  const nodes = nodeIdentity(owner, projectID);
  const secrets = secretsKey(owner, region, project.number);
  const gke = new Cluster(
    'cluster',
    {
      name: clusterName(owner),
      location: region,
      nodeLocations: zones,
      resourceLabels: gcpLabelsOf(owner),
      // Deletion protection is on the WorkerCluster: here it would only make a destroy fail midway.
      deletionProtection: false,
      // Outside of channels GKE upgrades nodes only on request; see NodePool.version.
      releaseChannel: { channel: 'UNSPECIFIED' },
      minMasterVersion: kubernetesVersion,
      ...network(inputs),
      ...(authorizedNetworks.length > 0 && {
        masterAuthorizedNetworksConfig: {
          cidrBlocks: authorizedNetworks.map((cidrBlock) => ({ cidrBlock })),
          gcpPublicCidrsAccessEnabled: false,
        },
      }),
      databaseEncryption: { state: 'ENCRYPTED', keyName: secrets.key.id },
      workloadIdentityConfig: { workloadPool: interpolate`${projectID}.svc.id.goog` },
      enableShieldedNodes: true,
      // Health endpoints stay open; all other requests need credentials.
      anonymousAuthenticationConfig: { mode: 'LIMITED' },
      masterAuth: { clientCertificateConfig: { issueClientCertificate: false } },
      costManagementConfig: { enabled: true },
      // GKE requires initial nodes; they are deleted at once, and must fit into the smallest quota until then.
      removeDefaultNodePool: true,
      initialNodeCount: 1,
      nodeConfig: {
        ...hardened({ serviceAccount: nodes.email, workloadIdentity: true }, true),
        machineType: 'e2-medium',
        diskSizeGb: 20,
        diskType: 'pd-standard',
      },
      // Node pools are separate resources: read through the cluster they would appear as a replacing change.
      skipNodePoolRefresh: true,
    },
    { ignoreChanges: ['nodeConfig'], dependsOn: [...nodes.grants, secrets.grant] },
  );
  for (const plan of nodePoolsOf(inputs.pools, zones)) {
    const at = { cluster: gke.name, location: gke.location, version: gke.masterVersion };
    nodePool(plan, at, {
      management: { autoRepair: true, autoUpgrade: false },
      networkConfig: { enablePrivateNodes: true },
      nodeConfig: nodeConfigOf(plan, owner, { serviceAccount: nodes.email, workloadIdentity: true }),
    });
  }
  return clusterOutputs(gke, projectID, region);
}

/** Outputs of every layer with a GKE cluster. */
export const clusterOutputs = (gke: Cluster, project: Input<string>, location: Input<string>): ProgramOutputs => ({
  name: gke.name,
  endpoint: interpolate`https://${gke.endpoint}`,
  // Declared secret like the keys beside it, though every kubeconfig contains it; secret outputs cannot be compared,
  // and each refresh of an unchanged cluster would be an update.
  certificateAuthority: unsecret(gke.masterAuth).apply(({ clusterCaCertificate }) =>
    Buffer.from(clusterCaCertificate, 'base64').toString(),
  ),
  version: gke.masterVersion,
  extra: { project, location },
});

const network = ({ network: outputs }: ManagedClusterInputs) => ({
  network: outputs.network,
  subnetwork: outputs.subnets[0]!.id,
  networkingMode: 'VPC_NATIVE',
  datapathProvider: 'ADVANCED_DATAPATH',
  ipAllocationPolicy: {
    clusterSecondaryRangeName: outputs.extra!.podsRange!,
    servicesSecondaryRangeName: outputs.extra!.servicesRange!,
  },
  privateClusterConfig: { enablePrivateNodes: true, enablePrivateEndpoint: false },
});

/**
 * Service account of nodes, with the one role that GKE requires
 * (cloud.google.com/kubernetes-engine/docs/how-to/service-accounts), instead of the project's default account, an
 * editor.
 */
export function nodeIdentity(owner: Owner, project: Output<string>) {
  const account = new Account('nodes', {
    accountId: serviceAccountName(owner),
    displayName: owner.technicalID,
    description: descriptionOf(owner),
  });
  const grants = ['roles/container.defaultNodeServiceAccount'].map(
    (role) =>
      new IAMMember(`nodes ${role}`, {
        project,
        role,
        member: interpolate`serviceAccount:${account.email}`,
      }),
  );
  return { email: account.email, grants };
}

/**
 * Key with which GKE encrypts Secrets before storage, and its grant to GKE's own account
 * (cloud.google.com/kubernetes-engine/docs/how-to/encrypting-secrets).
 */
function secretsKey(owner: Owner, region: string, projectNumber: Output<string>) {
  const ring = new KeyRing('keys', { name: keyRingName(owner), location: region });
  const key = new CryptoKey('secrets', {
    name: SECRETS_KEY,
    keyRing: ring.id,
    purpose: 'ENCRYPT_DECRYPT',
    rotationPeriod: `${90 * 24 * 60 * 60}s`,
    labels: gcpLabelsOf(owner),
  });
  const grant = new CryptoKeyIAMMember('secrets-gke', {
    cryptoKeyId: key.id,
    role: 'roles/cloudkms.cryptoKeyEncrypterDecrypter',
    member: interpolate`serviceAccount:service-${projectNumber}@container-engine-robot.iam.gserviceaccount.com`,
  });
  return { key, grant };
}

/** Google identity of nodes, and whether the cluster's pods have workload identity. */
interface NodeIdentity {
  serviceAccount: Output<string>;
  workloadIdentity: boolean;
}

/** Security settings of every node. Secure boot rejects unsigned kernel modules, which GPU drivers need. */
const hardened = ({ serviceAccount, workloadIdentity }: NodeIdentity, secureBoot: boolean) => ({
  serviceAccount,
  // The account's role decides the rights; scopes are the older mechanism.
  oauthScopes: ['https://www.googleapis.com/auth/cloud-platform'],
  shieldedInstanceConfig: { enableSecureBoot: secureBoot, enableIntegrityMonitoring: true },
  ...(workloadIdentity && { workloadMetadataConfig: { mode: 'GKE_METADATA' } }),
  metadata: { 'disable-legacy-endpoints': 'true' },
  kubeletConfig: { insecureKubeletReadonlyPortEnabled: 'FALSE' },
});

/** Node configuration of a pool. */
export function nodeConfigOf({ pool, labels, taints, accelerator }: NodePoolPlan, owner: Owner, nodes: NodeIdentity) {
  return {
    ...hardened(nodes, !accelerator),
    machineType: pool.machineType,
    spot: pool.spot,
    ...(pool.diskGiB !== undefined && { diskSizeGb: pool.diskGiB }),
    labels,
    taints,
    resourceLabels: gcpLabelsOf(owner, { [POOL_TAG]: pool.name }),
    ...(accelerator && {
      guestAccelerators: [{ ...accelerator, gpuDriverInstallationConfig: { gpuDriverVersion: 'DEFAULT' } }],
    }),
  };
}

/** Declares a node pool in a cluster. `version`: nodes follow the control plane in the same run, after it. */
export function nodePool(
  plan: NodePoolPlan,
  at: { cluster: Input<string>; location: Input<string>; version: Input<string> },
  args: Pick<NodePoolArgs, 'management' | 'networkConfig' | 'nodeConfig'>,
  dependsOn: Resource[] = [],
): NodePool {
  return new NodePool(
    plan.key,
    {
      name: plan.name,
      ...at,
      nodeLocations: plan.zones,
      ...sizeArgs(plan.size),
      upgradeSettings: { strategy: 'SURGE', maxSurge: 1, maxUnavailable: 0 },
      ...args,
    },
    // Initial size only: a later minimum must not replace the node pool.
    { ignoreChanges: ['initialNodeCount'], dependsOn },
  );
}

function sizeArgs(size: NodePoolPlan['size']) {
  if ('nodes' in size) return { nodeCount: size.nodes };
  const { minimum, maximum, locationPolicy } = size.autoscale;
  return {
    autoscaling: { totalMinNodeCount: minimum, totalMaxNodeCount: maximum, locationPolicy },
    initialNodeCount: 0,
    // The autoscaler decides the number, which is no drift.
    ignoreNodeCountChanges: true,
  };
}
