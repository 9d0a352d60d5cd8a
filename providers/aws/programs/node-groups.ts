import * as eks from '@pulumi/aws/eks/index.js';
import type { Resource } from '@pulumi/pulumi';
import { LABELS } from '../../../operator/api/group.ts';
import type { CloudPool, ManagedClusterInputs } from '../../cloud.ts';
import { registeredTaints } from '../../nodes.ts';
import { poolResource } from '../../pool-resource.ts';
import { POOL_TAG } from '../../tags.ts';
import { nodeGroupName } from '../names.ts';
import { launchTemplate } from './launch-template.ts';
import type { RoleWithPolicies } from './roles.ts';

/** Values of AMITypes in EKS' service model (botocore 1.43.11): Amazon Linux 2023, with NVIDIA's drivers for GPUs. */
const AMI_TYPES = {
  amd64: { plain: 'AL2023_x86_64_STANDARD', gpu: 'AL2023_x86_64_NVIDIA' },
  arm64: { plain: 'AL2023_ARM_64_STANDARD', gpu: 'AL2023_ARM_64_NVIDIA' },
} as const;

/** EKS image type of the pool's nodes. */
const amiTypeOf = (pool: Pick<CloudPool, 'architecture' | 'gpu'>): string =>
  AMI_TYPES[pool.architecture][pool.gpu > 0 ? 'gpu' : 'plain'];

/** Values of TaintEffect in EKS' service model. */
const TAINT_EFFECTS: Readonly<Record<string, string>> = {
  NoSchedule: 'NO_SCHEDULE',
  PreferNoSchedule: 'PREFER_NO_SCHEDULE',
  NoExecute: 'NO_EXECUTE',
};

/** Root device of EKS' Amazon Linux 2023 images. Source: EKS user guide, "Customize managed nodes with launch templates". */
const ROOT_DEVICE = '/dev/xvda';

/** Initial number of nodes. */
export const startSize = (pool: CloudPool): number => pool.desired ?? pool.minimum;

function scaling(pool: CloudPool) {
  const start = startSize(pool);
  // An unlimited maximum is lost in JSON.
  const most = Number.isFinite(pool.maximum) ? pool.maximum : start;
  // EKS rejects a group with maximum zero (Capacity: min 1).
  const maxSize = Math.max(1, most, pool.minimum);
  return { minSize: pool.minimum, maxSize, desiredSize: Math.min(Math.max(start, pool.minimum), maxSize) };
}

/** Declares a managed node group with its launch template. `after`: resources that nodes need to become Ready. */
export function nodeGroup(
  inputs: ManagedClusterInputs,
  pool: CloudPool,
  cluster: eks.Cluster,
  node: RoleWithPolicies,
  after: Resource[],
): eks.NodeGroup {
  const { owner, network, kubernetesVersion } = inputs;
  const subnets = network.subnets.filter(({ zone }) => pool.zones.length === 0 || pool.zones.includes(zone ?? ''));
  const template = launchTemplate(owner, pool, ROOT_DEVICE);
  const amiType = amiTypeOf(pool);
  return new eks.NodeGroup(
    poolResource(pool.name),
    {
      clusterName: cluster.name,
      nodeGroupName:
        pool.nodeGroup ??
        nodeGroupName(
          pool,
          amiType,
          subnets.map(({ zone }) => zone ?? ''),
        ),
      nodeRoleArn: node.role.arn,
      subnetIds: subnets.map(({ id }) => id),
      version: minorOf(kubernetesVersion),
      amiType,
      capacityType: pool.spot ? 'SPOT' : 'ON_DEMAND',
      instanceTypes: [pool.machineType],
      scalingConfig: scaling(pool),
      updateConfig: { maxUnavailablePercentage: 33 },
      launchTemplate: { id: template.id, version: template.latestVersion.apply(String) },
      labels: { ...pool.labels, [LABELS.pool]: pool.name },
      taints: registeredTaints(pool).map(({ key, value, effect }) => ({
        key,
        effect: TAINT_EFFECTS[effect] ?? effect,
        ...(value && { value }),
      })),
      tags: { [POOL_TAG]: pool.name },
    },
    {
      dependsOn: [...node.ready, ...after],
      // Without `desired` an autoscaler decides, whose result an apply must not revert.
      ...(pool.desired === undefined && { ignoreChanges: ['scalingConfig.desiredSize'] }),
    },
  );
}

/** EKS uses minor versions: "1.36.3" is "1.36". */
export const minorOf = (version: string): string => version.split('.').slice(0, 2).join('.');
