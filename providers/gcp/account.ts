import type { AccountCheck, CloudContext } from '../cloud.ts';
import { posted } from '../json-api.ts';
import { credentialsOf } from './credentials.ts';
import { callGoogle, type Endpoints } from './google-api.ts';
import { accessToken } from './token.ts';

const NETWORK: readonly string[] = [
  ...['create', 'get', 'update', 'delete', 'updatePolicy'].map((verb) => `compute.networks.${verb}`),
  ...['create', 'get', 'update', 'use', 'delete'].map((verb) => `compute.subnetworks.${verb}`),
  ...['create', 'get', 'update', 'delete'].map((verb) => `compute.routers.${verb}`),
  'compute.globalOperations.get',
  'compute.regionOperations.get',
  // For the nodes' service account.
  ...['create', 'get', 'update', 'delete', 'actAs'].map((verb) => `iam.serviceAccounts.${verb}`),
  // For what is left over.
  'cloudasset.assets.searchAllResources',
];

/**
 * Project permissions for the layers network and cluster, the sweep and the first access to a new cluster. Names and
 * methods: github.com/iann0036/iam-dataset at 2073fa52a (2026-08-22), gcp/map.json and gcp/roles. Together less than
 * the roles Compute Network Admin, Kubernetes Engine Admin, Cloud KMS Admin, Service Account Admin and User, Project
 * IAM Admin, and Cloud Asset Viewer.
 */
const MANAGED: readonly string[] = [
  ...NETWORK,
  // Nodes that the operator ends by name.
  ...['get', 'update'].map((verb) => `compute.instanceGroupManagers.${verb}`),
  'compute.zoneOperations.get',
  ...['create', 'get', 'update', 'delete', 'getCredentials'].map((verb) => `container.clusters.${verb}`),
  'container.operations.get',
  ...['create', 'get'].map((verb) => `cloudkms.keyRings.${verb}`),
  ...['create', 'get', 'update', 'getIamPolicy', 'setIamPolicy'].map((verb) => `cloudkms.cryptoKeys.${verb}`),
  ...['list', 'destroy'].map((verb) => `cloudkms.cryptoKeyVersions.${verb}`),
  ...['get', 'getIamPolicy', 'setIamPolicy'].map((verb) => `resourcemanager.projects.${verb}`),
  // In the cluster: used at the first access, before the cluster's own account replaces it.
  'container.clusterRoleBindings.create',
  'container.serviceAccounts.create',
  'container.serviceAccounts.createToken',
];

/** For a control plane on machines, in addition to the network's. */
const CONTROL_PLANE: readonly string[] = [
  ...['create', 'get', 'use', 'delete', 'setLabels'].map((verb) => `compute.globalAddresses.${verb}`),
  ...['create', 'get', 'update', 'delete'].map((verb) => `compute.firewalls.${verb}`),
  ...['create', 'get', 'useReadOnly', 'delete'].map((verb) => `compute.instanceTemplates.${verb}`),
  ...['create', 'get', 'update', 'use', 'delete'].map((verb) => `compute.instanceGroupManagers.${verb}`),
  ...['use', 'delete'].map((verb) => `compute.instanceGroups.${verb}`),
  'compute.disks.create',
  ...['create', 'get', 'list', 'delete', 'setMetadata', 'setLabels', 'setServiceAccount'].map(
    (verb) => `compute.instances.${verb}`,
  ),
  ...['create', 'get', 'update', 'useReadOnly', 'delete'].map((verb) => `compute.healthChecks.${verb}`),
  ...['create', 'get', 'update', 'use', 'delete'].map((verb) => `compute.backendServices.${verb}`),
  ...['create', 'get', 'update', 'use', 'delete'].map((verb) => `compute.targetTcpProxies.${verb}`),
  ...['create', 'get', 'delete', 'setLabels'].map((verb) => `compute.globalForwardingRules.${verb}`),
];

/** Permissions checked before anything is created, by control plane mode: managed, or on a seed and machines. */
export const PERMISSIONS = { managed: MANAGED, onMachines: [...NETWORK, ...CONTROL_PLANE] } as const;

/** Missing permissions for a control plane on machines and its network. */
export const missingForControlPlane = async (ctx: CloudContext, endpoints: Endpoints): Promise<string[]> =>
  (await held(ctx, endpoints, PERMISSIONS.onMachines)).missing;

/** See ManagedClusters.checkAccount. */
export const checkAccount = (ctx: CloudContext, endpoints: Endpoints): Promise<AccountCheck> =>
  held(ctx, endpoints, MANAGED);

async function held(ctx: CloudContext, endpoints: Endpoints, permissions: readonly string[]): Promise<AccountCheck> {
  const { project } = credentialsOf(ctx.account, ctx.profile);
  const { token } = await accessToken(ctx, endpoints);
  const answer = await callGoogle<{ permissions?: string[] }>({
    url: `${endpoints.resourceManager}/v1/projects/${project}:testIamPermissions`,
    token,
    ...posted({ permissions }),
    what: `the permissions in project ${project} cannot be asked for`,
    signal: ctx.signal,
  });
  const given = new Set(answer?.permissions);
  return { id: project, missing: permissions.filter((permission) => !given.has(permission)) };
}
