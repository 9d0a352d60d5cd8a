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
 * Azure makes no machine without a password or a key. This one nobody has the private half of: it was never derived from one. The
 * same for an owner for ever, because a scale set does not let it be changed.
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

/** A scale set (orchestration Flexible) per pool, for clusters whose control plane is not Azure's; in the network's resource group. */
export async function machines(inputs: MachinesInputs): Promise<ProgramOutputs> {
  const wall = securityGroup(inputs);
  const groups: Record<string, Output<string>> = {};
  for (const pool of inputs.pools) groups[pool.name] = (await scaleSet(inputs, pool, wall.id)).name;
  return { extra: { securityGroup: wall.id }, groups };
}

/** By Azure's own rules machines of a network reach each other, and nobody else reaches them; kubelets may be opened. */
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
  // What is declared replaces what is there, the number too.
  const now = isPoolAutoscaled(pool) ? await findResource(getVirtualMachineScaleSet(id)) : undefined;
  return new VirtualMachineScaleSet(`pool-${pool.name}`, {
    ...id,
    location: region,
    tags: { ...tagsOf(owner), [POOL_TAG]: pool.name },
    orchestrationMode: 'Flexible',
    // As many hosts as there are; the only value for machines in zones.
    platformFaultDomainCount: 1,
    singlePlacementGroup: false,
    sku: { name: pool.machineType, tier: 'Standard', capacity: declaredCountOf(pool, now?.sku?.capacity) },
    zones: poolZonesOf(pool, zones),
    virtualMachineProfile: profileOf(inputs, pool, wall),
  });
}

/**
 * How every machine of the pool is made. It has no identity: to Azure it may do nothing.
 * @param behind of machines behind a load balancer: its pool, and what they are told where it is not the pool's user data as it is
 */
export function profileOf(
  { owner, network }: Pick<MachinesInputs, 'owner' | 'network'>,
  pool: MachinePool,
  wall: Input<string>,
  behind?: { backendPool: string; told: Input<string> },
): NonNullable<VirtualMachineScaleSetArgs['virtualMachineProfile']> {
  const adminUsername = 'coppice';
  return {
    // Read back from each machine: of all that a profile says, tags reach no machine by this API (Azure/azure-rest-api-specs issue 42439).
    ...(pool.hash !== undefined && { userData: Buffer.from(pool.hash).toString('base64') }),
    // -1: never more than the price on demand. An evicted machine goes: a stopped one would keep its disk, and be paid for.
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
      // Needed with Flexible, which makes interfaces of its own: they go with their machine.
      networkApiVersion: '2020-11-01',
      networkInterfaceConfigurations: [
        {
          name: 'nodes',
          primary: true,
          deleteOption: 'Delete',
          // Pods send from addresses that are not the machine's.
          enableIPForwarding: true,
          networkSecurityGroup: { id: wall },
          // Without publicIPAddressConfiguration there is no address of the internet.
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
