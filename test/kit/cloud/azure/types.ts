import { digits } from '../digits.ts';
import type { Machines, Properties, ResourceType } from '../model.ts';
import { inGroup, list, managed, subnetReference, within } from './naming.ts';

const uuid = (...words: string[]): string =>
  digits(32, ...words).replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');

const byId = (type: string, value: unknown) =>
  typeof (value as Properties | undefined)?.id === 'string'
    ? [{ type: `azure-native:${type}`, handle: (value as Properties).id }]
    : [];

const scaleSetMachines = (inputs: Properties): Machines => ({
  count: Number(inputs.sku?.capacity ?? 0),
  spot: inputs.virtualMachineProfile?.priority === 'Spot',
  types: list(inputs.sku?.name),
  zones: list(inputs.zones ?? ['']),
});

/** Azure's types, but for AKS'. */
export const types: ResourceType[] = [
  managed('azure-native:resources:ResourceGroup', { references: () => [] }),
  managed('azure-native:network:VirtualNetwork', {
    outputs: ({ id, uid, inputs }) => ({
      resourceGuid: uuid(uid),
      subnets: list(inputs.subnets).map((subnet) => ({
        ...subnet,
        id: `${id}/subnets/${subnet.name}`,
        provisioningState: 'Succeeded',
      })),
    }),
    references: (inputs) => [
      inGroup(inputs),
      ...list(inputs.subnets).flatMap(({ natGateway, networkSecurityGroup }) => [
        ...byId('network:NatGateway', natGateway),
        ...byId('network:NetworkSecurityGroup', networkSecurityGroup),
      ]),
    ],
  }),
  managed('azure-native:network:Subnet', {
    references: (inputs) => [inGroup(inputs), within('azure-native:network:VirtualNetwork', inputs)],
  }),
  managed('azure-native:network:NatGateway', {
    outputs: ({ uid }) => ({ resourceGuid: uuid(uid) }),
    references: (inputs) => [
      inGroup(inputs),
      ...list(inputs.publicIpAddresses).flatMap((one) => byId('network:PublicIPAddress', one)),
    ],
  }),
  managed('azure-native:network:PublicIPAddress', {
    outputs: ({ uid }) => ({
      resourceGuid: uuid(uid),
      ipAddress: [
        20,
        ...digits(6, uid)
          .match(/../g)!
          .map((pair) => Number.parseInt(pair, 16)),
      ].join('.'),
    }),
  }),
  managed('azure-native:network:LoadBalancer', {
    references: (inputs) => [
      inGroup(inputs),
      ...list(inputs.frontendIPConfigurations).flatMap(({ publicIPAddress }) =>
        byId('network:PublicIPAddress', publicIPAddress),
      ),
    ],
  }),
  managed('azure-native:network:NetworkSecurityGroup', { outputs: ({ uid }) => ({ resourceGuid: uuid(uid) }) }),
  managed('azure-native:network:RouteTable'),
  managed('azure-native:managedidentity:UserAssignedIdentity', {
    outputs: ({ uid }) => ({
      clientId: uuid(uid, 'client'),
      principalId: uuid(uid, 'principal'),
      tenantId: uuid('tenant'),
    }),
  }),
  managed('azure-native:managedidentity:FederatedIdentityCredential', {
    references: (inputs) => [inGroup(inputs), within('azure-native:managedidentity:UserAssignedIdentity', inputs)],
  }),
  // Its scope may be anything, a subnet in its network too; it stays when what it is on goes.
  managed('azure-native:authorization:RoleAssignment', {
    immutable: ['*'],
    references: () => [],
    outputs: ({ account }) => ({ updatedOn: '', updatedBy: '', createdBy: account }),
  }),
  managed('azure-native:compute:VirtualMachineScaleSet', {
    outputs: ({ uid }) => ({ uniqueId: uuid(uid) }),
    references: (inputs) => [
      inGroup(inputs),
      ...list(inputs.virtualMachineProfile?.networkProfile?.networkInterfaceConfigurations).flatMap((network) =>
        list(network.ipConfigurations).flatMap(({ subnet, loadBalancerBackendAddressPools: pools }) => [
          ...subnetReference(subnet?.id),
          ...list(pools).map(({ id }) => ({
            type: 'azure-native:network:LoadBalancer',
            handle: String(id).split('/backendAddressPools/')[0],
          })),
        ]),
      ),
    ],
    machines: scaleSetMachines,
  }),
  managed('azure-native:storage:StorageAccount', {
    outputs: ({ name }) => ({ primaryEndpoints: { blob: `https://${name}.blob.core.windows.net/` } }),
  }),
  managed('azure-native:storage:BlobContainer', {
    references: (inputs) => [inGroup(inputs), within('azure-native:storage:StorageAccount', inputs)],
  }),
];
