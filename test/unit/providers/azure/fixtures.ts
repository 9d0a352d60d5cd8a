import type {
  CloudPool,
  MachinePool,
  MachinesInputs,
  ManagedClusterInputs,
  NetworkInputs,
  Owner,
} from '../../../../providers/cloud.ts';
import type { Answers } from '../../../kit/pulumi-graph.ts';

export const owner: Owner = {
  technicalID: 'shoot--shop--one',
  uid: '2f6c1f0e-8f0a-4b57-9d3e-0d6a5b7c9e11',
  name: 'one',
  namespace: 'shop',
  garden: 'ffffffff-8f0a-4b57-9d3e-0d6a5b7c9e11',
};

/** The tags of everything that is the owner's. */
export const tags = {
  'coppice-technical-id': 'shoot--shop--one',
  'coppice-uid': '2f6c1f0e-8f0a-4b57-9d3e-0d6a5b7c9e11',
  'coppice-cluster': 'one',
  'coppice-namespace': 'shop',
  'coppice-garden': 'ffffffff-8f0a-4b57-9d3e-0d6a5b7c9e11',
};

export const subscription = '11111111-2222-4333-8444-555555555555';
export const tenant = '99999999-2222-4333-8444-555555555555';
export const client = 'aaaaaaaa-2222-4333-8444-555555555555';

const cidrs = { nodes: '10.0.0.0/20', pods: '100.96.0.0/11', services: '100.64.0.0/13' };
const zones = ['1', '2', '3'];
const region = 'germanywestcentral';

export const networkInputs: NetworkInputs = { owner, region, zones, cidrs };

export const pool = (changes: Partial<CloudPool> = {}): CloudPool => ({
  name: 'workers',
  machineType: 'Standard_D4s_v5',
  minimum: 0,
  maximum: 10,
  desired: 5,
  spot: false,
  gpu: 0,
  architecture: 'amd64',
  labels: {},
  taints: [],
  zones: [],
  ...changes,
});

/** A pool whose size an autoscaler decides. */
export function autoscaled(changes: Partial<CloudPool> = {}): CloudPool {
  const { desired: _, ...rest } = pool(changes);
  return rest;
}

const network = `/subscriptions/${subscription}/resourceGroups/shoot--shop--one/providers/Microsoft.Network/virtualNetworks/shoot--shop--one`;
export const subnet = `${network}/subnets/nodes`;

export const clusterInputs = (changes: Partial<ManagedClusterInputs> = {}): ManagedClusterInputs => ({
  owner,
  region,
  zones,
  kubernetesVersion: '1.36.3',
  cidrs,
  network: { network, subnets: [{ id: subnet }], extra: { egressAddress: '203.0.113.7' } },
  pools: [pool()],
  authorizedNetworks: [],
  ...changes,
});

export const machinePool = (changes: Partial<MachinePool> = {}): MachinePool => ({
  ...pool(),
  image: 'Debian:debian-12:12-gen2:latest',
  userData: '#cloud-config',
  ...changes,
});

export const machinesInputs = (changes: Partial<MachinesInputs> = {}): MachinesInputs => ({
  owner,
  region,
  zones,
  network: clusterInputs().network,
  pools: [machinePool()],
  kubeletClients: [],
  ...changes,
});

const encoded = (text: string): string => Buffer.from(text).toString('base64');
const userKubeconfig = `clusters: [{name: c, cluster: {server: "https://x", certificate-authority-data: ${encoded('CERTIFICATE')}}}]`;

/** An error as the engine tells a program of a look-up that failed. */
export const refusal = (details: string): Error => Object.assign(new Error(details), { details });

/** What Azure would answer: outputs that are not inputs. */
export const answers: Answers = {
  call: (token, inputs) => {
    if (token === 'azure-native:containerservice:getAgentPool') {
      if (!inputs.agentPoolName.startsWith('grown')) throw refusal('RESPONSE 404: 404 Not Found');
      return { count: 7 };
    }
    if (token === 'azure-native:authorization:getClientConfig') {
      return { objectId: 'us', clientId: client, subscriptionId: subscription, tenantId: tenant };
    }
    if (token === 'azure-native:compute:getVirtualMachineScaleSet') {
      if (!inputs.vmScaleSetName.endsWith('-grown')) throw refusal('RESPONSE 404: 404 Not Found');
      return { sku: { capacity: 7 } };
    }
    if (token === 'azure-native:containerservice:listManagedClusterUserCredentials') {
      return { kubeconfigs: [{ name: 'clusterUser', value: encoded(userKubeconfig) }] };
    }
    return {};
  },
  outputs: ({ type, inputs }) => {
    switch (type) {
      case 'azure-native:managedidentity:UserAssignedIdentity':
        return { principalId: `principal of ${inputs.resourceName}` };
      case 'azure-native:network:PublicIPAddress':
        return { ipAddress: '203.0.113.7' };
      case 'azure-native:containerservice:ManagedCluster':
        return {
          name: inputs.resourceName,
          fqdn: `${inputs.dnsPrefix}-x.hcp.${inputs.location}.azmk8s.io`,
          currentKubernetesVersion: '1.36.3',
        };
      case 'azure-native:compute:VirtualMachineScaleSet':
        return { name: inputs.vmScaleSetName };
      default:
        return {};
    }
  },
};
