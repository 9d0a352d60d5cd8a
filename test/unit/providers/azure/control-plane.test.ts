import { gunzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { programs } from '../../../../providers/azure/programs.ts';
import type { ControlPlanePool } from '../../../../providers/cloud.ts';
import type { Answers } from '../../../kit/pulumi-graph.ts';
import { graphOf } from '../../../kit/pulumi-graph.ts';
import { answers, machinePool, machinesInputs, owner, subnet, tags } from './fixtures.ts';

const BALANCER = 'azure-native:network:LoadBalancer';
const SCALE_SET = 'azure-native:compute:VirtualMachineScaleSet';
const WALL = 'azure-native:network:NetworkSecurityGroup';

const { region, zones, network } = machinesInputs();
const base = { owner, region, zones, network };
const reached = { host: '203.0.113.9', port: 6443, extra: { securityGroup: 'the/wall', backendPool: 'the/pool' } };
const named: Answers = {
  ...answers,
  outputs: (resource) => ({
    ...answers.outputs?.(resource),
    ...(resource.type === 'azure-native:network:PublicIPAddress' && { ipAddress: '203.0.113.9' }),
  }),
};
const pool = (changes: Partial<ControlPlanePool> = {}): ControlPlanePool => ({
  ...machinePool({ name: 'control-plane', desired: 3, maximum: 3, diskGiB: 32 }),
  holdsKeys: true,
  ...changes,
});

describe('the Azure endpoint of a control plane on machines', () => {
  const made = () => graphOf(programs.endpoint!, { ...base, port: 6443 }, named);

  it('is a static address with a load balancer, both Standard', async () => {
    const graph = await made();
    expect(graph.one('azure-native:network:PublicIPAddress').inputs).toMatchObject({
      publicIpAddressName: 'shoot--shop--one-endpoint',
      sku: { name: 'Standard' },
      publicIPAllocationMethod: 'Static',
      tags,
    });
    const { inputs } = graph.one(BALANCER);
    const id = `${network.network.split('/providers/')[0]}/providers/Microsoft.Network/loadBalancers/shoot--shop--one-endpoint`;
    expect(inputs).toMatchObject({
      loadBalancerName: 'shoot--shop--one-endpoint',
      sku: { name: 'Standard' },
      probes: [{ protocol: 'Https', port: 6443, requestPath: '/readyz' }],
      loadBalancingRules: [
        {
          protocol: 'Tcp',
          frontendPort: 6443,
          backendPort: 6443,
          disableOutboundSnat: true,
          frontendIPConfiguration: { id: `${id}/frontendIPConfigurations/api-server` },
          backendAddressPool: { id: `${id}/backendAddressPools/api-server` },
          probe: { id: `${id}/probes/api-server` },
        },
      ],
      tags,
    });
    expect(graph.outputs).toEqual({
      host: '203.0.113.9',
      port: 6443,
      extra: { securityGroup: '<endpoint.id>', backendPool: '<endpoint.id>/backendAddressPools/api-server' },
    });
  });

  it('admits clients to one port of the machines', async () => {
    const { inputs } = (await made()).one(WALL);
    expect(inputs.tags).toEqual(tags);
    expect(inputs.securityRules).toMatchObject([{ access: 'Allow', protocol: 'Tcp', destinationPortRange: '6443' }]);
  });
});

describe('the Azure machines of a control plane', () => {
  const made = async (changes: Partial<ControlPlanePool> = {}) =>
    (await graphOf(programs['control-plane']!, { ...base, endpoint: reached, pool: pool(changes) }, named)).one(
      SCALE_SET,
    ).inputs;

  /** What holds a secret is one as a whole: so Pulumi marks it on its way to the engine, which encrypts it. */
  const SECRET = '4dabf18193072939515e22adb298388d';
  const profileOf = async () => {
    const { virtualMachineProfile: marked } = await made();
    expect(marked).toHaveProperty(SECRET);
    return marked.value;
  };

  it('are a flexible scale set over the zones, without repairs by Azure', async () => {
    const inputs = await made();
    expect(inputs).toMatchObject({
      vmScaleSetName: 'shoot--shop--one-control-plane',
      orchestrationMode: 'Flexible',
      automaticRepairsPolicy: { enabled: false },
      sku: { capacity: 3 },
      zones,
      tags: { ...tags, 'coppice-pool': 'control-plane' },
    });
    expect(inputs.identity).toBeUndefined();
    expect((await profileOf()).priority).toBeUndefined();
  });

  it('are behind the load balancer, in the private subnet, without public addresses', async () => {
    const [nodes] = (await profileOf()).networkProfile.networkInterfaceConfigurations;
    expect(nodes.networkSecurityGroup).toEqual({ id: 'the/wall' });
    expect(nodes.ipConfigurations).toEqual([
      { name: 'nodes', primary: true, subnet: { id: subnet }, loadBalancerBackendAddressPools: [{ id: 'the/pool' }] },
    ]);
  });

  it('have room for etcd, and their user data is compressed and secret', async () => {
    const { osProfile, storageProfile } = await profileOf();
    expect(storageProfile.osDisk.diskSizeGB).toBe(32);
    expect(gunzipSync(Buffer.from(osProfile.customData, 'base64')).toString()).toBe('#cloud-config');
  });
});
