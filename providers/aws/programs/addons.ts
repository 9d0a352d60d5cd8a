import * as eks from '@pulumi/aws/eks/index.js';
import type { Input, Resource } from '@pulumi/pulumi';
import type { CloudPool, Owner } from '../../cloud.ts';
import { tagsOf } from '../../tags.ts';
import { startSize } from './node-groups.ts';
import type { RoleWithPolicies } from './roles.ts';

/** An add-on of EKS. */
interface AddonDescription {
  name: string;
  /** Service account of the add-on that takes the role by Pod Identity, and the role. */
  identity?: { serviceAccount: string; role: RoleWithPolicies };
  configuration?: object;
}

/** What nodes need before they can be Ready: without the first there is no pod network, without the last no role for it. */
export function addonsBeforeNodes(owner: Owner, cni: RoleWithPolicies): AddonDescription[] {
  return [
    {
      name: 'vpc-cni',
      identity: { serviceAccount: 'aws-node', role: cni },
      configuration: {
        enableNetworkPolicy: 'true',
        // Interfaces that the CNI leaves behind would otherwise belong to nobody (amazon-vpc-cni-k8s, README).
        env: { ADDITIONAL_ENI_TAGS: JSON.stringify(tagsOf(owner)) },
      },
    },
    { name: 'kube-proxy' },
    { name: 'eks-pod-identity-agent' },
  ];
}

/** What needs a node to run on. */
export function addonsOnNodes(owner: Owner, csi: RoleWithPolicies): AddonDescription[] {
  return [
    { name: 'coredns' },
    {
      name: 'aws-ebs-csi-driver',
      identity: { serviceAccount: 'ebs-csi-controller-sa', role: csi },
      // Volumes outlive their cluster: these tags are how the sweep finds them (aws-ebs-csi-driver, chart values).
      configuration: { controller: { extraVolumeTags: tagsOf(owner) } },
    },
  ];
}

/** Whether a pod without tolerations has a node to run on. An add-on that has none keeps its create waiting until it fails. */
export const hasRoomForAddons = (pools: readonly CloudPool[]): boolean =>
  pools.some((pool) => startSize(pool) > 0 && !pool.taints.some(({ effect }) => effect !== 'PreferNoSchedule'));

/** Declares an add-on in EKS' default version for the cluster's Kubernetes version, so that it is upgraded with the cluster. */
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
      // What people set on it in the cluster stays.
      resolveConflictsOnUpdate: 'PRESERVE',
      ...(configuration && { configurationValues: JSON.stringify(configuration) }),
      ...(identity && {
        podIdentityAssociations: [{ serviceAccount: identity.serviceAccount, roleArn: identity.role.role.arn }],
      }),
    },
    { dependsOn: [...(identity?.role.ready ?? []), ...after] },
  );
}
