import { gzipSync } from 'node:zlib';
import { VirtualMachineScaleSet } from '@pulumi/azure-native/compute/virtualMachineScaleSet.js';
import * as pulumi from '@pulumi/pulumi';
import type { ControlPlaneInputs } from '../../cloud.ts';
import type { ProgramOutputs } from '../../pulumi/program.ts';
import { POOL_TAG, tagsOf } from '../../tags.ts';
import { poolZonesOf } from '../agent-pools.ts';
import { resourceGroupName, scaleSetName } from '../names.ts';
import { profileOf } from './machines.ts';

/**
 * Layer `control-plane`: a scale set (orchestration Flexible) of stateful machines, which only Coppice adds and
 * removes: Azure repairs none by default, and Flexible has no overprovisioning.
 */
export function controlPlane({ owner, region, zones, network, endpoint, pool }: ControlPlaneInputs): ProgramOutputs {
  const { name } = new VirtualMachineScaleSet(`pool-${pool.name}`, {
    resourceGroupName: resourceGroupName(owner),
    vmScaleSetName: scaleSetName(owner, pool.name),
    location: region,
    tags: { ...tagsOf(owner), [POOL_TAG]: pool.name },
    orchestrationMode: 'Flexible',
    // Maximum spreading; the only value for machines in zones.
    platformFaultDomainCount: 1,
    singlePlacementGroup: false,
    automaticRepairsPolicy: { enabled: false },
    sku: { name: pool.machineType, tier: 'Standard', capacity: pool.desired ?? pool.minimum },
    zones: poolZonesOf(pool, zones),
    virtualMachineProfile: profileOf({ owner, network }, pool, endpoint.extra.securityGroup!, {
      // cloud-init decompresses it. It is a secret in Pulumi's state, since it may contain keys.
      told: pulumi.secret(gzipSync(pool.userData).toString('base64')),
      backendPool: endpoint.extra.backendPool!,
    }),
  });
  return { group: name };
}
