import type { AccountCheck, CloudContext } from '../cloud.ts';
import { credentialsOf } from './credentials.ts';
import { call, type Endpoints } from './google-api.ts';
import { accessToken } from './token.ts';

/**
 * What the layers network and cluster, the sweep and the first contact with a new cluster need, in the project. Names, and which method needs which:
 * github.com/iann0036/iam-dataset at 2073fa52a (2026-08-22), gcp/map.json and gcp/roles. Together less than the roles Compute Network
 * Admin, Kubernetes Engine Admin, Cloud KMS Admin, Service Account Admin and User, Project IAM Admin, and Cloud Asset Viewer.
 */
export const PERMISSIONS: readonly string[] = [
  ...['create', 'get', 'delete', 'updatePolicy'].map((verb) => `compute.networks.${verb}`),
  ...['create', 'get', 'use', 'delete'].map((verb) => `compute.subnetworks.${verb}`),
  ...['create', 'get', 'update', 'delete'].map((verb) => `compute.routers.${verb}`),
  'compute.globalOperations.get',
  'compute.regionOperations.get',
  'compute.instanceGroupManagers.get',
  ...['create', 'get', 'update', 'delete', 'getCredentials'].map((verb) => `container.clusters.${verb}`),
  'container.operations.get',
  ...['create', 'get'].map((verb) => `cloudkms.keyRings.${verb}`),
  ...['create', 'get', 'update', 'getIamPolicy', 'setIamPolicy'].map((verb) => `cloudkms.cryptoKeys.${verb}`),
  ...['list', 'destroy'].map((verb) => `cloudkms.cryptoKeyVersions.${verb}`),
  ...['create', 'get', 'update', 'delete', 'actAs'].map((verb) => `iam.serviceAccounts.${verb}`),
  ...['get', 'getIamPolicy', 'setIamPolicy'].map((verb) => `resourcemanager.projects.${verb}`),
  // In the cluster: after the first contact, an account of the cluster's own takes over.
  'container.clusterRoleBindings.create',
  'container.serviceAccounts.create',
  'container.serviceAccounts.createToken',
  'cloudasset.assets.searchAllResources',
];

/** See ManagedClusters.checkAccount. */
export async function checkAccount(ctx: CloudContext, endpoints: Endpoints): Promise<AccountCheck> {
  const { project } = credentialsOf(ctx.account, ctx.profile);
  const { token } = await accessToken(ctx, endpoints);
  const answer = await call<{ permissions?: string[] }>({
    method: 'POST',
    url: `${endpoints.resourceManager}/v1/projects/${project}:testIamPermissions`,
    token,
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ permissions: PERMISSIONS }),
    what: `the permissions in project ${project} cannot be asked for`,
    signal: ctx.signal,
  });
  const held = new Set(answer?.permissions);
  return { id: project, missing: PERMISSIONS.filter((permission) => !held.has(permission)) };
}
