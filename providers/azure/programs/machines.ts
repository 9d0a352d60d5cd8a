import { createHash } from 'node:crypto';
import { getVirtualMachineScaleSet } from '@pulumi/azure-native/compute/getVirtualMachineScaleSet.js';
import {
  VirtualMachineScaleSet,
  type VirtualMachineScaleSetArgs,
} from '@pulumi/azure-native/compute/virtualMachineScaleSet.js';
import { NetworkSecurityGroup } from '@pulumi/azure-native/network/networkSecurityGroup.js';
import type { Input, Output } from '@pulumi/pulumi';
import type { MachinePool, MachinesInputs, Owner } from '../../cloud.ts';
import type { ProgramOutputs } from '../../pulumi/program.ts';
import { POOL_TAG, tagsOf } from '../../tags.ts';
import { declaredCountOf, isPoolAutoscaled, poolZonesOf } from '../agent-pools.ts';
import { imageReferenceOf } from '../machine-image.ts';
import { resourceGroupName, scaleSetName, securityGroupName } from '../names.ts';
import { findResource } from './look-ups.ts';

const KUBELET_PORT = '10250';

/**
 * Azure requires a password or key for each machine. This key has no private half: it was never derived from one.
 * Constant per owner, since a scale set does not permit a change.
 */
function keyOfNobody({ uid }: Owner): string {
  const field = (bytes: Buffer) => {
    const length = Buffer.alloc(4);
    length.writeUInt32BE(bytes.length);
    return Buffer.concat([length, bytes]);
  };
  const type = 'ssh-ed25519';
  const point = createHash('sha256').update(`a key of nobody for ${uid}`).digest();
  return `${type} ${Buffer.concat([field(Buffer.from(type)), field(point)]).toString('base64')}`;
}

/**
 * A scale set (orchestration Flexible) per pool, for clusters whose control plane is not Azure's; in the network's
 * resource group.
 */
export async function machines(inputs: MachinesInputs): Promise<ProgramOutputs> {
  const wall = securityGroup(inputs);
  const groups: Record<string, Output<string>> = {};
  for (const pool of inputs.pools) groups[pool.name] = (await scaleSet(inputs, pool, wall.id)).name;
  return { extra: { securityGroup: wall.id }, groups };
}

/** Azure's default rules permit traffic within the network and nothing from outside; kubelets can be opened. */
function securityGroup({ owner, region, kubeletClients }: MachinesInputs): NetworkSecurityGroup {
  const kubelet = {
    name: 'kubelets',
    description: 'API server to kubelets',
    priority: 100,
    direction: 'Inbound',
    access: 'Allow',
    protocol: 'Tcp',
    sourceAddressPrefixes: kubeletClients,
    sourcePortRange: '*',
    destinationAddressPrefix: '*',
    destinationPortRange: KUBELET_PORT,
  };
  return new NetworkSecurityGroup('machines', {
    resourceGroupName: resourceGroupName(owner),
    networkSecurityGroupName: securityGroupName(owner),
    location: region,
    tags: tagsOf(owner),
    securityRules: kubeletClients.length > 0 ? [kubelet] : [],
  });
}

async function scaleSet(
  inputs: MachinesInputs,
  pool: MachinePool,
  wall: Output<string>,
): Promise<VirtualMachineScaleSet> {
  const { owner, region, zones } = inputs;
  const id = { resourceGroupName: resourceGroupName(owner), vmScaleSetName: scaleSetName(owner, pool.name) };
  // Declared values replace present ones, the number of machines included.
  const now = isPoolAutoscaled(pool) ? await findResource(getVirtualMachineScaleSet(id)) : undefined;
  return new VirtualMachineScaleSet(`pool-${pool.name}`, {
    ...id,
    location: region,
    tags: { ...tagsOf(owner), [POOL_TAG]: pool.name },
    orchestrationMode: 'Flexible',
    // Maximum spreading; the only value for machines in zones.
    platformFaultDomainCount: 1,
    singlePlacementGroup: false,
    sku: { name: pool.machineType, tier: 'Standard', capacity: declaredCountOf(pool, now?.sku?.capacity) },
    zones: poolZonesOf(pool, zones),
    virtualMachineProfile: profileOf(inputs, pool, wall),
  });
}

/**
 * Profile of the pool's machines. They have no identity and so no rights at Azure.
 * @param behind for machines behind a load balancer: its backend pool, and user data that differs from the pool's
 */
export function profileOf(
  { owner, network }: Pick<MachinesInputs, 'owner' | 'network'>,
  pool: MachinePool,
  wall: Input<string>,
  behind?: { backendPool: string; told: Input<string> },
): NonNullable<VirtualMachineScaleSetArgs['virtualMachineProfile']> {
  const adminUsername = 'coppice';
  return {
    // Read back per machine: tags in a profile do not reach machines with this API (Azure/azure-rest-api-specs issue
    // 42439).
    ...(pool.hash !== undefined && { userData: Buffer.from(pool.hash).toString('base64') }),
    // -1: at most the on-demand price. Evicted machines are deleted: a stopped one would keep its billed disk.
    ...(pool.spot && { priority: 'Spot', evictionPolicy: 'Delete', billingProfile: { maxPrice: -1 } }),
    osProfile: {
      computerNamePrefix: `${pool.name}-`,
      adminUsername,
      customData: behind?.told ?? Buffer.from(pool.userData).toString('base64'),
      linuxConfiguration: {
        disablePasswordAuthentication: true,
        ssh: { publicKeys: [{ path: `/home/${adminUsername}/.ssh/authorized_keys`, keyData: keyOfNobody(owner) }] },
      },
    },
    storageProfile: {
      imageReference: imageReferenceOf(pool.image),
      osDisk: {
        createOption: 'FromImage',
        deleteOption: 'Delete',
        managedDisk: { storageAccountType: 'StandardSSD_LRS' },
        ...(pool.diskGiB !== undefined && { diskSizeGB: pool.diskGiB }),
      },
    },
    networkProfile: {
      // Required with Flexible, which creates the interfaces; they are deleted with their machine.
      networkApiVersion: '2020-11-01',
      networkInterfaceConfigurations: [
        {
          name: 'nodes',
          primary: true,
          deleteOption: 'Delete',
          // Pods send from addresses other than the machine's.
          enableIPForwarding: true,
          networkSecurityGroup: { id: wall },
          // Without publicIPAddressConfiguration there is no public address.
          ipConfigurations: [
            {
              name: 'nodes',
              primary: true,
              subnet: { id: network.subnets[0]!.id },
              ...(behind && { loadBalancerBackendAddressPools: [{ id: behind.backendPool }] }),
            },
          ],
        },
      ],
    },
  };
}
