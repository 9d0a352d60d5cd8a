import * as eks from '@pulumi/aws/eks/index.js';
import { getCallerIdentity } from '@pulumi/aws/getCallerIdentity.js';
import * as iam from '@pulumi/aws/iam/index.js';
import * as kms from '@pulumi/aws/kms/index.js';
import type { Input, Resource } from '@pulumi/pulumi';
import type { CloudPool, ManagedClusterInputs, Owner } from '../../cloud.ts';
import { tagsOf } from '../../tags.ts';
import { clusterName, physicalName } from '../names.ts';
import { type Partition, partitionOf } from '../partitions.ts';
import { followHouseRules } from './house-rules.ts';
import { minorOf, nodeGroup, startSize } from './node-groups.ts';
import { declareRole, type RoleWithPolicies } from './roles.ts';

/** An EKS add-on. */
interface AddonDescription {
  name: string;
  /** The add-on's service account with a role by Pod Identity. */
  identity?: { serviceAccount: string; role: RoleWithPolicies };
  configuration?: object;
}

/** Add-ons required before nodes become Ready: the first provides the pod network, the last its role. */
function addonsBeforeNodes(owner: Owner, cni: RoleWithPolicies): AddonDescription[] {
  return [
    {
      name: 'vpc-cni',
      identity: { serviceAccount: 'aws-node', role: cni },
      configuration: {
        enableNetworkPolicy: 'true',
        // Interfaces left behind by the CNI would otherwise have no owner (amazon-vpc-cni-k8s, README).
        env: { ADDITIONAL_ENI_TAGS: JSON.stringify(tagsOf(owner)) },
      },
    },
    { name: 'kube-proxy' },
    { name: 'eks-pod-identity-agent' },
  ];
}

/** Add-ons that run on nodes. */
function addonsOnNodes(owner: Owner, csi: RoleWithPolicies): AddonDescription[] {
  return [
    { name: 'coredns' },
    {
      name: 'aws-ebs-csi-driver',
      identity: { serviceAccount: 'ebs-csi-controller-sa', role: csi },
      // Volumes outlive their cluster: the sweep finds them by these tags (aws-ebs-csi-driver, chart values).
      configuration: { controller: { extraVolumeTags: tagsOf(owner) } },
    },
  ];
}

/** Whether a pod without tolerations can run on some node. Otherwise the creation of an add-on waits until it fails. */
const hasRoomForAddons = (pools: readonly CloudPool[]): boolean =>
  pools.some((pool) => startSize(pool) > 0 && !pool.taints.some(({ effect }) => effect !== 'PreferNoSchedule'));

/** Declares an add-on in EKS' default version for the Kubernetes version, so that it is upgraded with the cluster. */
async function declareAddon(
  { name, identity, configuration }: AddonDescription,
  clusterName: Input<string>,
  kubernetesVersion: string,
  after: Resource[],
): Promise<eks.Addon> {
  const { version } = await eks.getAddonVersion({ addonName: name, kubernetesVersion });
  return new eks.Addon(
    `addon-${name}`,
    {
      clusterName,
      addonName: name,
      addonVersion: version,
      resolveConflictsOnCreate: 'OVERWRITE',
      // Keeps changes that people made in the cluster.
      resolveConflictsOnUpdate: 'PRESERVE',
      ...(configuration && { configurationValues: JSON.stringify(configuration) }),
      ...(identity && {
        podIdentityAssociations: [{ serviceAccount: identity.serviceAccount, roleArn: identity.role.role.arn }],
      }),
    },
    { dependsOn: [...(identity?.role.ready ?? []), ...after] },
  );
}

/** Layer `cluster`: EKS with its roles, key, access, add-ons and a managed node group per pool. */
export async function cluster(inputs: ManagedClusterInputs) {
  const { owner, region, pools } = inputs;
  followHouseRules(owner);
  const partition = partitionOf(region);
  const version = minorOf(inputs.kubernetesVersion);
  const key = secretsKey(owner);
  const control = controlPlane(inputs, declareRole('cluster', owner, partition), key);
  await letCallerAdminister(control, partition);

  const cni = declareRole('cni', owner, partition);
  const before: eks.Addon[] = [];
  for (const addon of addonsBeforeNodes(owner, cni)) before.push(await declareAddon(addon, control.name, version, []));
  const node = declareRole('node', owner, partition);
  const groups = pools.map((pool) => nodeGroup(inputs, pool, control, node, before));
  // A sleeping cluster keeps its add-ons: otherwise waking it would have to create them again.
  if (inputs.asleep || hasRoomForAddons(pools)) {
    const csi = declareRole('csi', owner, partition);
    for (const addon of addonsOnNodes(owner, csi)) await declareAddon(addon, control.name, version, groups);
  }
  return clusterOutputs(control, node.role.arn);
}

/** Outputs of an EKS cluster; see ManagedClusterOutputs. */
export const clusterOutputs = (control: eks.Cluster, nodeRole: Input<string>) => ({
  name: control.name,
  endpoint: control.endpoint,
  certificateAuthority: control.certificateAuthority.apply(({ data }) => Buffer.from(data, 'base64').toString()),
  version: control.version,
  extra: {
    arn: control.arn,
    /** Issuer of service account tokens, for external identity providers. */
    issuer: control.identities.apply((identities) => identities[0]?.oidcs?.[0]?.issuer ?? ''),
    securityGroup: control.vpcConfig.apply(({ clusterSecurityGroupId }) => clusterSecurityGroupId),
    nodeRole,
  },
});

/** Key for the encryption of Secrets, in addition to disk encryption. */
function secretsKey(owner: Owner): kms.Key {
  const key = new kms.Key('secrets', {
    description: `Coppice: Secrets of ${owner.technicalID}`,
    enableKeyRotation: true,
    // The minimum of KMS (ScheduleKeyDeletion, PendingWindowInDays).
    deletionWindowInDays: 7,
  });
  new kms.Alias('secrets', { name: physicalName('aws:kms/alias:Alias', owner, 'secrets'), targetKeyId: key.id });
  return key;
}

function controlPlane(inputs: ManagedClusterInputs, { role, ready }: ReturnType<typeof declareRole>, key: kms.Key) {
  const { owner, network, cidrs, authorizedNetworks, kubernetesVersion } = inputs;
  return new eks.Cluster(
    'cluster',
    {
      name: clusterName(owner),
      version: minorOf(kubernetesVersion),
      roleArn: role.arn,
      vpcConfig: {
        subnetIds: network.subnets.map(({ id }) => id),
        endpointPrivateAccess: true,
        endpointPublicAccess: true,
        publicAccessCidrs: authorizedNetworks.length > 0 ? authorizedNetworks : ['0.0.0.0/0'],
      },
      accessConfig: { authenticationMode: 'API', bootstrapClusterCreatorAdminPermissions: false },
      kubernetesNetworkConfig: { ipFamily: 'ipv4', serviceIpv4Cidr: cidrs.services },
      encryptionConfig: { provider: { keyArn: key.arn }, resources: ['secrets'] },
      bootstrapSelfManagedAddons: false,
    },
    {
      dependsOn: ready,
      // Set at creation only and never returned by EKS: a difference on an imported cluster would replace it
      // (hashicorp/terraform-provider-aws, internal/service/eks/cluster.go: ForceNew).
      ignoreChanges: ['accessConfig.bootstrapClusterCreatorAdminPermissions', 'bootstrapSelfManagedAddons'],
    },
  );
}

/**
 * Makes the credentials' identity an administrator by an access entry that follows a change of credentials: EKS' own
 * mechanism binds the creator permanently, and new credentials would have no access.
 */
export async function letCallerAdminister(control: eks.Cluster, partition: Partition): Promise<void> {
  const caller = await getCallerIdentity({});
  const { issuerArn } = await iam.getSessionContext({ arn: caller.arn });
  const entry = new eks.AccessEntry('administrator', { clusterName: control.name, principalArn: issuerArn });
  new eks.AccessPolicyAssociation('administrator', {
    clusterName: control.name,
    principalArn: entry.principalArn,
    policyArn: `arn:${partition.id}:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy`,
    accessScope: { type: 'cluster' },
  });
}
