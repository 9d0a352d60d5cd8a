import { describe, expect, it } from 'vitest';
import { imageReferenceOf } from '../../../../providers/azure/machine-image.ts';
import { programs } from '../../../../providers/azure/programs.ts';
import type { MachinePool, MachinesInputs } from '../../../../providers/cloud.ts';
import { graphOf } from '../../../kit/pulumi-graph.ts';
import { answers, machinePool, machinesInputs, subnet, tags } from './fixtures.ts';

const SCALE_SET = 'azure-native:compute:VirtualMachineScaleSet';
const WALL = 'azure-native:network:NetworkSecurityGroup';

const plain = graphOf(programs.machines!, machinesInputs(), answers);
const declared = async (changes?: Partial<MachinesInputs>) =>
  changes ? await graphOf(programs.machines!, machinesInputs(changes), answers) : await plain;
const setOf = async (changes: Partial<MachinePool>) =>
  (await declared({ pools: [machinePool(changes)] })).one(SCALE_SET).inputs;

describe('machines for a control plane of ours', () => {
  it('are a flexible scale set per pool, over the zones', async () => {
    expect((await declared()).one(SCALE_SET).inputs).toMatchObject({
      vmScaleSetName: 'shoot--shop--one-workers',
      resourceGroupName: 'shoot--shop--one',
      location: 'germanywestcentral',
      orchestrationMode: 'Flexible',
      platformFaultDomainCount: 1,
      sku: { name: 'Standard_D4s_v5', capacity: 5 },
      zones: ['1', '2', '3'],
      tags: { ...tags, 'coppice-pool': 'workers' },
    });
    expect((await setOf({ zones: ['3'] })).zones).toEqual(['3']);
  });

  it('are in the private subnet, behind the wall, and may do nothing at Azure', async () => {
    const { identity, virtualMachineProfile } = (await declared()).one(SCALE_SET).inputs;
    expect(identity).toBeUndefined();
    expect(virtualMachineProfile.networkProfile.networkInterfaceConfigurations).toEqual([
      {
        name: 'nodes',
        primary: true,
        deleteOption: 'Delete',
        enableIPForwarding: true,
        networkSecurityGroup: { id: '<machines.id>' },
        ipConfigurations: [{ name: 'nodes', primary: true, subnet: { id: subnet } }],
      },
    ]);
  });

  it('let nobody in but the API server to kubelets, where it has to call them', async () => {
    expect((await declared()).one(WALL).inputs).toMatchObject({ securityRules: [], tags });
    const { inputs } = (await declared({ kubeletClients: ['198.51.100.0/24'] })).one(WALL);
    expect(inputs.securityRules).toEqual([
      expect.objectContaining({
        direction: 'Inbound',
        access: 'Allow',
        protocol: 'Tcp',
        sourceAddressPrefixes: ['198.51.100.0/24'],
        destinationPortRange: '10250',
      }),
    ]);
  });

  it('start from the image with what cloud-init is told, and take no password', async () => {
    const { osProfile, storageProfile } = (await setOf({ diskGiB: 100 })).virtualMachineProfile;
    expect(Buffer.from(osProfile.customData, 'base64').toString()).toBe('#cloud-config');
    expect(osProfile.linuxConfiguration).toMatchObject({
      disablePasswordAuthentication: true,
      ssh: { publicKeys: [{ keyData: expect.stringMatching(/^ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI[\w+/]{43}$/) }] },
    });
    expect(storageProfile).toMatchObject({
      imageReference: { publisher: 'Debian', offer: 'debian-12', sku: '12-gen2', version: 'latest' },
      osDisk: { createOption: 'FromImage', deleteOption: 'Delete', diskSizeGB: 100 },
    });
  });

  it('bear from when they are made what they were made as, apart from what cloud-init is told', async () => {
    const { userData, osProfile } = (await setOf({ hash: 'abc' })).virtualMachineProfile;
    expect(Buffer.from(userData, 'base64').toString()).toBe('abc');
    expect(Buffer.from(osProfile.customData, 'base64').toString()).toBe('#cloud-config');
    expect((await declared()).one(SCALE_SET).inputs.virtualMachineProfile).not.toHaveProperty('userData');
  });

  it('of spot pay the price on demand at most, and go when they are evicted', async () => {
    expect((await setOf({ spot: true })).virtualMachineProfile).toMatchObject({
      priority: 'Spot',
      evictionPolicy: 'Delete',
      billingProfile: { maxPrice: -1 },
    });
    expect((await declared()).one(SCALE_SET).inputs.virtualMachineProfile).not.toHaveProperty('priority');
  });

  it('are as many as an autoscaler made them', async () => {
    const { desired: _, ...grown } = machinePool({ name: 'grown', minimum: 2 });
    const capacityOf = async (pool: MachinePool) =>
      (await declared({ pools: [pool] })).one(SCALE_SET).inputs.sku.capacity;
    expect(await capacityOf(grown)).toBe(7);
    expect(await capacityOf({ ...grown, name: 'new' })).toBe(2);
  });

  it('are known by group and pool', async () => {
    expect((await declared()).outputs).toEqual({
      extra: { securityGroup: '<machines.id>' },
      groups: { workers: 'shoot--shop--one-workers' },
    });
  });

  it.each([
    ['/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/images/i', 'id'],
    ['/CommunityGalleries/gardenlinux/Images/g/Versions/1', 'communityGalleryImageId'],
  ])('take image %s', (image, key) => {
    expect(imageReferenceOf(image)).toEqual({ [key]: image });
  });
});
