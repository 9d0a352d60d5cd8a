import * as iam from '@pulumi/aws/iam/index.js';
import type { Owner } from '../../cloud.ts';
import { physicalName } from '../names.ts';
import type { Partition } from '../partitions.ts';

/** A role's principal and AWS managed policies. */
interface RoleDescription {
  principal: (partition: Partition) => string;
  actions: string[];
  /** Path and name below `arn:<partition>:iam::aws:policy/`. */
  policies: string[];
}

const ASSUME = ['sts:AssumeRole'];
/** EKS Pod Identity tags the session with cluster, namespace and service account. */
const ASSUME_TAGGED = ['sts:AssumeRole', 'sts:TagSession'];
const POD_IDENTITY = () => 'pods.eks.amazonaws.com';

/**
 * Roles with minimal rights. The node role has no access to network interfaces or volumes, since pods on the host's
 * network could use it: the CNI and the CSI driver have roles of their own by Pod Identity. Sources: EKS user guide,
 * "Amazon EKS cluster IAM role", "Amazon EKS node IAM role", "Configure Amazon VPC CNI plugin to use Pod Identity",
 * "Store Kubernetes volumes with Amazon EBS".
 */
const ROLES = {
  cluster: { principal: () => 'eks.amazonaws.com', actions: ASSUME, policies: ['AmazonEKSClusterPolicy'] },
  node: {
    principal: (partition) => partition.ec2Principal,
    actions: ASSUME,
    policies: ['AmazonEKSWorkerNodePolicy', 'AmazonEC2ContainerRegistryPullOnly'],
  },
  /** Nodes in an adopted cluster: whether its CNI has a role of its own is unknown ("Amazon EKS node IAM role"). */
  'adopted-node': {
    principal: (partition) => partition.ec2Principal,
    actions: ASSUME,
    policies: ['AmazonEKSWorkerNodePolicy', 'AmazonEC2ContainerRegistryPullOnly', 'AmazonEKS_CNI_Policy'],
  },
  cni: { principal: POD_IDENTITY, actions: ASSUME_TAGGED, policies: ['AmazonEKS_CNI_Policy'] },
  csi: { principal: POD_IDENTITY, actions: ASSUME_TAGGED, policies: ['service-role/AmazonEBSCSIDriverPolicy'] },
  /** Machines of a hosted or self-managed cluster: may only pull images. */
  machine: {
    principal: (partition) => partition.ec2Principal,
    actions: ASSUME,
    policies: ['AmazonEC2ContainerRegistryPullOnly'],
  },
  'control-plane': {
    principal: (partition) => partition.ec2Principal,
    actions: ASSUME,
    policies: ['AmazonEC2ContainerRegistryPullOnly'],
  },
} as const satisfies Record<string, RoleDescription>;

/** A role with its policies. `ready`: resources that must exist before users of the role, and outlive them. */
export interface RoleWithPolicies {
  role: iam.Role;
  ready: iam.RolePolicyAttachment[];
}

/** Declares one of ROLES for the owner. */
export function declareRole(kind: keyof typeof ROLES, owner: Owner, partition: Partition): RoleWithPolicies {
  const { principal, actions, policies }: RoleDescription = ROLES[kind];
  const role = new iam.Role(`role-${kind}`, {
    name: physicalName('aws:iam/role:Role', owner, kind),
    description: `Coppice: ${kind} of ${owner.technicalID}`,
    assumeRolePolicy: JSON.stringify({
      Version: '2012-10-17',
      Statement: [{ Effect: 'Allow', Principal: { Service: principal(partition) }, Action: actions }],
    }),
  });
  const ready = policies.map(
    (policy) =>
      new iam.RolePolicyAttachment(`role-${kind}-${policy.split('/').at(-1)}`, {
        role: role.name,
        policyArn: `arn:${partition.id}:iam::aws:policy/${policy}`,
      }),
  );
  return { role, ready };
}
