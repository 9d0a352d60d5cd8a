import type { Needs } from './needs.ts';

/** Permissions of `verbs` on a collection, and others in full. */
const on = (collection: string, verbs: string, others = ''): string[] => [
  ...verbs.split(' ').map((verb) => `${collection}.${verb}`),
  ...others.split(' ').filter((word) => word !== ''),
];

/** Waiting for an operation of Compute Engine. */
const GLOBAL = 'compute.globalOperations.get';
const REGIONAL = 'compute.regionOperations.get';
const MACHINES =
  'compute.instances.create compute.instances.setMetadata compute.instances.setLabels compute.instances.setServiceAccount compute.disks.create compute.subnetworks.use compute.instanceTemplates.useReadOnly iam.serviceAccounts.actAs';

const IN_PROJECT = on('resourcemanager.projects', 'getIamPolicy setIamPolicy');
const ON_KEY = on('cloudkms.cryptoKeys', 'getIamPolicy setIamPolicy');
const IN_ROUTER = on('compute.routers', 'get update', REGIONAL);
const CLUSTER = on('container.clusters', 'get update', 'container.operations.get');

/**
 * What Google Cloud asks for, by type. Source: github.com/iann0036/iam-dataset at 2073fa52a (2026-08-22), gcp/map.json, for the methods that
 * terraform-provider-google calls. Images of other projects are read without a permission of ours.
 */
export const GOOGLE_NEEDS: Needs = {
  'gcp:compute:Network': {
    create: on('compute.networks', 'create get', GLOBAL),
    read: on('compute.networks', 'get'),
    update: on('compute.networks', 'update get', GLOBAL),
    delete: on('compute.networks', 'delete get', GLOBAL),
  },
  'gcp:compute:Subnetwork': {
    create: on('compute.subnetworks', 'create get', REGIONAL),
    read: on('compute.subnetworks', 'get'),
    update: on('compute.subnetworks', 'update get', REGIONAL),
    delete: on('compute.subnetworks', 'delete get', REGIONAL),
  },
  'gcp:compute:Router': {
    create: on('compute.routers', 'create get', `compute.networks.updatePolicy ${REGIONAL}`),
    read: on('compute.routers', 'get'),
    update: IN_ROUTER,
    delete: on('compute.routers', 'delete get', REGIONAL),
  },
  'gcp:compute:RouterNat': { create: IN_ROUTER, read: ['compute.routers.get'], update: IN_ROUTER, delete: IN_ROUTER },
  'gcp:compute:Firewall': {
    create: on('compute.firewalls', 'create get', `compute.networks.updatePolicy ${GLOBAL}`),
    read: on('compute.firewalls', 'get'),
    update: on('compute.firewalls', 'update get', `compute.networks.updatePolicy ${GLOBAL}`),
    delete: on('compute.firewalls', 'delete get', `compute.networks.updatePolicy ${GLOBAL}`),
  },
  'gcp:compute:GlobalAddress': {
    create: on('compute.globalAddresses', 'create get setLabels', GLOBAL),
    read: on('compute.globalAddresses', 'get'),
    update: on('compute.globalAddresses', 'get setLabels', GLOBAL),
    delete: on('compute.globalAddresses', 'delete get', GLOBAL),
  },
  'gcp:compute:HealthCheck': {
    create: on('compute.healthChecks', 'create get', GLOBAL),
    read: on('compute.healthChecks', 'get'),
    update: on('compute.healthChecks', 'update get', GLOBAL),
    delete: on('compute.healthChecks', 'delete get', GLOBAL),
  },
  'gcp:compute:BackendService': {
    create: on(
      'compute.backendServices',
      'create get',
      `compute.healthChecks.useReadOnly compute.instanceGroups.use ${GLOBAL}`,
    ),
    read: on('compute.backendServices', 'get'),
    update: on(
      'compute.backendServices',
      'update get',
      `compute.healthChecks.useReadOnly compute.instanceGroups.use ${GLOBAL}`,
    ),
    delete: on('compute.backendServices', 'delete get', GLOBAL),
  },
  'gcp:compute:TargetTCPProxy': {
    create: on('compute.targetTcpProxies', 'create get', `compute.backendServices.use ${GLOBAL}`),
    read: on('compute.targetTcpProxies', 'get'),
    update: on('compute.targetTcpProxies', 'update get', `compute.backendServices.use ${GLOBAL}`),
    delete: on('compute.targetTcpProxies', 'delete get', GLOBAL),
  },
  'gcp:compute:GlobalForwardingRule': {
    create: on(
      'compute.globalForwardingRules',
      'create get setLabels',
      `compute.targetTcpProxies.use compute.globalAddresses.use ${GLOBAL}`,
    ),
    read: on('compute.globalForwardingRules', 'get'),
    update: on('compute.globalForwardingRules', 'get setLabels', GLOBAL),
    delete: on('compute.globalForwardingRules', 'delete get', GLOBAL),
  },
  'gcp:compute:InstanceTemplate': {
    create: on('compute.instanceTemplates', 'create get', `iam.serviceAccounts.actAs ${GLOBAL}`),
    read: on('compute.instanceTemplates', 'get'),
    update: on('compute.instanceTemplates', 'get'),
    delete: on('compute.instanceTemplates', 'delete get', GLOBAL),
  },
  'gcp:compute:RegionInstanceGroupManager': {
    create: on('compute.instanceGroupManagers', 'create get', `${MACHINES} ${REGIONAL}`),
    read: on('compute.instanceGroupManagers', 'get'),
    update: on('compute.instanceGroupManagers', 'update get', `${MACHINES} ${REGIONAL}`),
    delete: on(
      'compute.instanceGroupManagers',
      'delete get',
      `compute.instanceGroups.delete compute.instances.delete ${REGIONAL}`,
    ),
  },
  'gcp:container:Cluster': {
    create: on(
      'container.clusters',
      'create get update',
      'container.operations.get iam.serviceAccounts.actAs compute.subnetworks.use',
    ),
    read: on('container.clusters', 'get'),
    update: CLUSTER,
    delete: on('container.clusters', 'delete get', 'container.operations.get'),
  },
  // GKE has no permissions of their own for node pools.
  'gcp:container:NodePool': {
    create: [...CLUSTER, 'iam.serviceAccounts.actAs', 'compute.instanceGroupManagers.get'],
    read: on('container.clusters', 'get', 'compute.instanceGroupManagers.get'),
    update: [...CLUSTER, 'compute.instanceGroupManagers.get'],
    delete: CLUSTER,
  },
  'gcp:serviceaccount:Account': {
    create: on('iam.serviceAccounts', 'create get'),
    read: on('iam.serviceAccounts', 'get'),
    update: on('iam.serviceAccounts', 'update get'),
    delete: on('iam.serviceAccounts', 'delete get'),
  },
  'gcp:projects:IAMMember': {
    create: IN_PROJECT,
    read: IN_PROJECT.slice(0, 1),
    update: IN_PROJECT,
    delete: IN_PROJECT,
  },
  'gcp:kms:KeyRing': {
    create: on('cloudkms.keyRings', 'create get'),
    read: on('cloudkms.keyRings', 'get'),
    update: on('cloudkms.keyRings', 'get'),
    // Key rings stay.
    delete: [],
  },
  'gcp:kms:CryptoKey': {
    create: on('cloudkms.cryptoKeys', 'create get'),
    read: on('cloudkms.cryptoKeys', 'get'),
    update: on('cloudkms.cryptoKeys', 'update get'),
    // The key stays, its versions go.
    delete: [...on('cloudkms.cryptoKeys', 'get update'), ...on('cloudkms.cryptoKeyVersions', 'list destroy')],
  },
  'gcp:kms:CryptoKeyIAMMember': { create: ON_KEY, read: ON_KEY.slice(0, 1), update: ON_KEY, delete: ON_KEY },
  // A look-up of programs.
  'gcp:organizations:getProject': { invoke: ['resourcemanager.projects.get'] },
};
