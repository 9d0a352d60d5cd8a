import * as eks from '@pulumi/aws/eks/index.js';
import type { Input, Resource } from '@pulumi/pulumi';
import type { CloudPool, Owner } from '../../cloud.ts';
import { tagsOf } from '../../tags.ts';
import { startSize } from './node-groups.ts';
import type { RoleWithPolicies } from './roles.ts';

/** An EKS add-on. */
interface AddonDescription {
  name: string;
  /** The add-on's service account with a role by Pod Identity. */
  identity?: { serviceAccount: string; role: RoleWithPolicies };
  configuration?: object;
}

/** Add-ons required before nodes become Ready: the first provides the pod network, the last its role. */
export function addonsBeforeNodes(owner: Owner, cni: RoleWithPolicies): AddonDescription[] {
  return [
    {
      name: 'vpc-cni',
      identity: { serviceAccount: 'aws-node', role: cni },
      configuration: {
        enableNetworkPolicy: 'true',
        // // Interfaces left behind by the CNI would otherwise have no owner (amazon-vpc-cni-k8s, README).
        env: { ADDITIONAL_ENI_TAGS: JSON.stringify(tagsOf(owner)) },
      },
    },
    { name: 'kube-proxy' },
    { name: 'eks-pod-identity-agent' },
  ];
}

/** Add-ons that run on nodes. */
export function addonsOnNodes(owner: Owner, csi: RoleWithPolicies): AddonDescription[] {
  return [
    { name: 'coredns' },
    {
      name: 'aws-ebs-csi-driver',
      identity: { serviceAccount: 'ebs-csi-controller-sa', role: csi },
      // // Volumes outlive their cluster: the sweep finds them by these tags (aws-ebs-csi-driver, chart values).
      configuration: { controller: { extraVolumeTags: tagsOf(owner) } },
    },
  ];
}

/** Whether a pod without tolerations can run on some node. Otherwise the creation of an add-on waits until it fails. */
export const hasRoomForAddons = (pools: readonly CloudPool[]): boolean =>
  pools.some((pool) => startSize(pool) > 0 && !pool.taints.some(({ effect }) => effect !== 'PreferNoSchedule'));

/** Declares an add-on in EKS' default version for the Kubernetes version, so that it is upgraded with the cluster. */
export async function declareAddon(
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
      // // Keeps changes that people made in the cluster.
      resolveConflictsOnUpdate: 'PRESERVE',
      ...(configuration && { configurationValues: JSON.stringify(configuration) }),
      ...(identity && {
        podIdentityAssociations: [{ serviceAccount: identity.serviceAccount, roleArn: identity.role.role.arn }],
      }),
    },
    { dependsOn: [...(identity?.role.ready ?? []), ...after] },
  );
}
