import * as eks from '@pulumi/aws/eks/index.js';
import { ADOPTED } from '../../adopted-cluster.ts';
import type { Adoption, CloudPool, ManagedClusterInputs, NetworkOutputs } from '../../cloud.ts';
import { adoptionTags } from '../../tags.ts';
import type { AdoptedFacts } from '../adopted.ts';
import { partitionOf } from '../partitions.ts';
import { clusterOutputs, letCallerAdminister } from './cluster.ts';
import { followHouseRules } from './house-rules.ts';
import { minorOf, nodeGroup } from './node-groups.ts';
import { declareRole } from './roles.ts';

/** Inputs of the layer `adopted`. */
interface AdoptedInputs extends Omit<ManagedClusterInputs, 'network' | 'adopt'> {
  adopt: Adoption;
  found: AdoptedFacts;
  /** Whether the cluster is being released. */
  leaving: boolean;
}

/**
 * Arguments chosen by the cluster's creator, left unchanged: those in the .d.ts of @pulumi/aws 7.48's Cluster, except
 * name, version, tags, and API server access.
 */
const THEIRS = [
  'accessConfig',
  'bootstrapSelfManagedAddons',
  'computeConfig',
  'controlPlaneScalingConfig',
  'defaultAddonsToRemoves',
  'deletionProtection',
  'enabledClusterLogTypes',
  'encryptionConfig',
  'forceUpdateVersion',
  'kubeApiServerConfig',
  'kubeControllerManagerConfig',
  'kubeSchedulerConfig',
  'kubernetesNetworkConfig',
  'outpostConfig',
  'region',
  'remoteNetworkConfig',
  'roleArn',
  'storageConfig',
  'upgradePolicy',
  'zonalShiftConfig',
];
const THEIR_NETWORK = ['subnetIds', 'securityGroupIds', 'endpointPrivateAccess', 'endpointPublicAccess'];

/** Layer `adopted`: an existing EKS cluster, left as it is, with a managed node group per pool. */
export function adopted(inputs: AdoptedInputs) {
  const { owner, region, pools, adopt, found, authorizedNetworks, leaving } = inputs;
  followHouseRules(owner);
  const partition = partitionOf(region);
  const version = inputs.kubernetesVersion === '' ? found.version : minorOf(inputs.kubernetesVersion);
  const isReleased = leaving && adopt.deletionPolicy === 'Release';
  const isLimited = authorizedNetworks.length > 0;
  const control = new eks.Cluster(
    ADOPTED,
    {
      name: found.name,
      version,
      roleArn: found.roleArn,
      vpcConfig: {
        subnetIds: found.network.subnets.map(({ id }) => id),
        ...(isLimited && { publicAccessCidrs: authorizedNetworks }),
      },
      tags: { ...found.tags, ...(!isReleased && adoptionTags(owner, adopt.deletionPolicy)) },
    },
    {
      ignoreChanges: [...THEIRS, ...(isLimited ? THEIR_NETWORK.map((field) => `vpcConfig.${field}`) : ['vpcConfig'])],
      retainOnDelete: adopt.deletionPolicy === 'Release',
    },
  );
  const letIn = found.letIn ? letCallerAdminister(control, partition) : undefined;
  const node = pools.length > 0 ? declareRole('adopted-node', owner, partition) : undefined;
  for (const pool of pools) {
    const network = withinZones(found.network, pool);
    nodeGroup({ ...inputs, kubernetesVersion: version, network }, { ...pool, zones: [] }, control, node!, []);
  }
  const outputs = clusterOutputs(control, node?.role.arn ?? '');
  return letIn ? letIn.then(() => outputs) : outputs;
}

/** The cluster's own subnets in the pool's zones. */
function withinZones(network: NetworkOutputs, { name, zones }: CloudPool): NetworkOutputs {
  const subnets = network.subnets.filter(({ zone }) => zones.length === 0 || zones.includes(zone ?? ''));
  if (subnets.length > 0) return { ...network, subnets };
  // EKS' own code and message, so that classify recognizes it.
  const there = network.subnets.map(({ zone }) => zone).join(', ');
  throw new Error(
    `UnsupportedAvailabilityZoneException: pool ${name} wants ${zones.join(', ')}, the cluster has ${there || 'no subnets'}`,
  );
}
