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

describe('the Azure machines of hosted and self-managed clusters', () => {
  it('are one flexible scale set per pool, over the zones', async () => {
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

  it('are in the private subnet behind the security group, without permissions at Azure', async () => {
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

  it('admit nobody but the API server to kubelets, if it is outside of the network', async () => {
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

  it("start from the image with cloud-init's user data, and accept no password", async () => {
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

  it("keep their pool hash in userData, apart from cloud-init's data", async () => {
    const { userData, osProfile } = (await setOf({ hash: 'abc' })).virtualMachineProfile;
    expect(Buffer.from(userData, 'base64').toString()).toBe('abc');
    expect(Buffer.from(osProfile.customData, 'base64').toString()).toBe('#cloud-config');
    expect((await declared()).one(SCALE_SET).inputs.virtualMachineProfile).not.toHaveProperty('userData');
  });

  it('of a spot pool pay at most the on-demand price, and are deleted on eviction', async () => {
    expect((await setOf({ spot: true })).virtualMachineProfile).toMatchObject({
      priority: 'Spot',
      evictionPolicy: 'Delete',
      billingProfile: { maxPrice: -1 },
    });
    expect((await declared()).one(SCALE_SET).inputs.virtualMachineProfile).not.toHaveProperty('priority');
  });

  it('keep the number that an autoscaler decided', async () => {
    const { desired: _, ...grown } = machinePool({ name: 'grown', minimum: 2 });
    const capacityOf = async (pool: MachinePool) =>
      (await declared({ pools: [pool] })).one(SCALE_SET).inputs.sku.capacity;
    expect(await capacityOf(grown)).toBe(7);
    expect(await capacityOf({ ...grown, name: 'new' })).toBe(2);
  });

  it('are listed by group and pool', async () => {
    expect((await declared()).outputs).toEqual({
      extra: { securityGroup: '<machines.id>' },
      groups: { workers: 'shoot--shop--one-workers' },
    });
  });

  it.each([
    ['/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/images/i', 'id'],
    ['/CommunityGalleries/gardenlinux/Images/g/Versions/1', 'communityGalleryImageId'],
  ])('use image %s', (image, key) => {
    expect(imageReferenceOf(image)).toEqual({ [key]: image });
  });
});
