import { digits } from '../digits.ts';
import { inventCA } from '../invented-ca.ts';
import {
  type CloudResource,
  isMade,
  type Machines,
  type Properties,
  type Refusal,
  type ResourceType,
  type Testbed,
} from '../model.ts';
import { inGroup, list, managed, subnetReference, within } from './naming.ts';

const DEFAULT_VERSION = '1.36.1';

const poolsOf = (cluster: CloudResource, testbed: Testbed): Properties[] => [
  ...list(cluster.inputs.agentPoolProfiles),
  ...testbed
    .all('azure-native:containerservice:AgentPool')
    .filter(({ inputs }) => inputs.resourceName === cluster.name && sameGroup(inputs, cluster.inputs))
    .map(({ name, inputs }) => ({ name, ...profileOf(inputs) })),
];

const profileOf = (inputs: Properties): Properties => {
  const { resourceGroupName: _, resourceName: _cluster, agentPoolName: _pool, ...profile } = inputs;
  return profile;
};

const sameGroup = (a: Properties, b: Properties): boolean =>
  String(a.resourceGroupName).toLowerCase() === String(b.resourceGroupName).toLowerCase();

const clusterOf = (inputs: Properties) => within('azure-native:containerservice:ManagedCluster', inputs);

const machinesOf = (profile: Properties): Machines => ({
  count: Number(profile.count ?? profile.minCount ?? 0),
  spot: profile.scaleSetPriority === 'Spot',
  types: list(profile.vmSize),
  // Without zones Azure puts them anywhere in the region.
  zones: list(profile.availabilityZones ?? ['']),
});

/** Minor and patch of two versions; a minor alone has no patch. */
const numbers = (version: unknown): number[] => String(version).split('.').slice(1).map(Number);

function refuseVersion(before: CloudResource, after: Properties): Refusal | undefined {
  const [from, to] = [before.inputs.kubernetesVersion ?? DEFAULT_VERSION, after.kubernetesVersion];
  if (to === undefined || to === from) return undefined;
  const [[fromMinor = 0, fromPatch = 0], [toMinor = 0, toPatch = Number.POSITIVE_INFINITY]] = [
    numbers(from),
    numbers(to),
  ];
  if (toMinor === fromMinor + 1 || (toMinor === fromMinor && toPatch >= fromPatch)) return undefined;
  // rancher/dashboard 11884.
  const message = `Upgrading Kubernetes version ${from} to ${to} is not allowed. Available upgrades: [1.${fromMinor + 1}.0]. Please see https://aka.ms/aks-supported-k8s-ver for version details.`;
  return { code: 'OperationNotAllowed', message };
}

function refuseCluster(
  { before, after }: { before?: CloudResource; after?: Properties },
  testbed: Testbed,
): Refusal | undefined {
  if (!before || !after) return undefined;
  const known = new Set(poolsOf(before, testbed).map(({ name }) => name));
  if (list(after.agentPoolProfiles).every(({ name }) => known.has(name))) return refuseVersion(before, after);
  // pulumi/pulumi-azure-native 579.
  const message =
    'A new agent pool was introduced. Adding agent pools to an existing cluster is not allowed through managed cluster operations. For agent pool specific change, please use per agent pool operations: https://aka.ms/agent-pool-rest-api';
  return { code: 'BadRequest', message };
}

const state = (resource: CloudResource, testbed: Testbed): string => {
  if (resource.goneAt !== undefined) return 'Deleting';
  if (resource.failure !== undefined) return 'Failed';
  if (testbed.now >= resource.readyAt) return 'Succeeded';
  return resource.generation === 1 ? 'Creating' : 'Updating';
};

/** Host (and port, when it is a real one) of the API server. */
const fqdnOf = (cluster: CloudResource, testbed: Testbed): string =>
  testbed.endpoint(cluster)?.endpoint.replace(/^https:\/\//, '') ??
  `${cluster.inputs.dnsPrefix ?? cluster.name}-${digits(8, cluster.uid)}.hcp.${cluster.region}.azmk8s.io`;

function clusterOutputs(cluster: CloudResource, testbed: Testbed): Properties {
  const version = cluster.inputs.kubernetesVersion ?? DEFAULT_VERSION;
  return {
    fqdn: isMade(cluster, testbed) ? fqdnOf(cluster, testbed) : '',
    kubernetesVersion: version,
    currentKubernetesVersion: /^\d+\.\d+$/.test(version) ? `${version}.1` : version,
    provisioningState: state(cluster, testbed),
    powerState: { code: 'Running' },
    nodeResourceGroup:
      cluster.inputs.nodeResourceGroup ?? `MC_${cluster.inputs.resourceGroupName}_${cluster.name}_${cluster.region}`,
    maxAgentPools: 100,
    resourceUID: digits(24, cluster.uid),
    // What AKS answers names all pools, those with resources of their own too.
    agentPoolProfiles: poolsOf(cluster, testbed),
    oidcIssuerProfile: {
      ...cluster.inputs.oidcIssuerProfile,
      issuerURL: `https://${cluster.region}.oic.prod-aks.azure.com/${digits(32, cluster.account)}/${digits(32, cluster.uid)}/`,
    },
    identityProfile: {
      kubeletidentity: {
        clientId: digits(32, cluster.uid, 'kubelet client'),
        objectId: digits(32, cluster.uid, 'kubelet object'),
        resourceId: `${cluster.id}-agentpool`,
      },
    },
  };
}

/** A kubeconfig as AKS hands one out: YAML (JSON is YAML) in base64. */
export function kubeconfigOf(cluster: CloudResource, testbed: Testbed, user: Properties): string {
  const ca = testbed.endpoint(cluster)?.certificateAuthority ?? String(cluster.facts.certificateAuthority);
  const name = cluster.name;
  const server = `https://${fqdnOf(cluster, testbed)}${testbed.endpoint(cluster) ? '' : ':443'}`;
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': name,
    clusters: [{ name, cluster: { server, 'certificate-authority-data': Buffer.from(ca).toString('base64') } }],
    users: [{ name: 'user', user }],
    contexts: [{ name, context: { cluster: name, user: 'user' } }],
  };
  return Buffer.from(JSON.stringify(config)).toString('base64');
}

/** AKS. */
export const clusterTypes: ResourceType[] = [
  managed('azure-native:containerservice:ManagedCluster', {
    cluster: true,
    immutable: ['resourceName', 'resourceGroupName', 'location', 'dnsPrefix', 'nodeResourceGroup'],
    facts: async ({ name }) => ({ certificateAuthority: await inventCA(`AKS ${name}`) }),
    outputs: clusterOutputs,
    references: (inputs) => [
      inGroup(inputs),
      ...list(inputs.agentPoolProfiles).flatMap(({ vnetSubnetID }) => subnetReference(vnetSubnetID)),
      ...list(inputs.identity?.userAssignedIdentities).map((handle) => ({
        type: 'azure-native:managedidentity:UserAssignedIdentity',
        handle,
        onDelete: 'ignore' as const,
      })),
    ],
    machines: (inputs) => {
      const profiles = list(inputs.agentPoolProfiles).map(machinesOf);
      const [first] = profiles;
      return first && { ...first, count: profiles.reduce((sum, { count }) => sum + count, 0) };
    },
    refuse: refuseCluster,
  }),
  managed('azure-native:containerservice:AgentPool', {
    immutable: ['resourceName', 'resourceGroupName', 'agentPoolName'],
    outputs: (pool, testbed) => ({
      provisioningState: state(pool, testbed),
      currentOrchestratorVersion: pool.inputs.orchestratorVersion ?? DEFAULT_VERSION,
      nodeImageVersion: 'AKSUbuntu-2404gen2containerd-202611.01.0',
      powerState: { code: 'Running' },
      eTag: digits(32, pool.uid, String(pool.generation)),
    }),
    references: (inputs) => [inGroup(inputs), clusterOf(inputs), ...subnetReference(inputs.vnetSubnetID)],
    machines: machinesOf,
  }),
];
