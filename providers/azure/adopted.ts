import { configurationProblem } from '../../operator/api/errors.ts';
import { ownedByOther, versionProblem } from '../adopted-cluster.ts';
import type { Adoption, CloudContext } from '../cloud.ts';
import type { Problem } from '../contract.ts';
import type { AdoptingCluster, FoundCluster } from '../pulumi/adopted-layer.ts';
import { ADOPTION_TAGS, withoutAdoption } from '../tags.ts';
import type { TheirAddresses } from './agent-pools.ts';
import { allPages, callAzure, type Endpoints } from './arm.ts';
import { credentialsOf } from './credentials.ts';
import { AKS_API } from './kubeconfig.ts';
import { ADMINISTRATOR, plainRegion, roleAssignmentName } from './names.ts';
import { entraToken, managementScope } from './token.ts';

/** Facts on the cluster for the program `adopted`. */
export interface AdoptedFacts {
  /** Its Azure id. */
  id: string;
  resourceGroup: string;
  name: string;
  /** Full version of the control plane. */
  version: string;
  /** Its tags without Coppice's. */
  tags: Record<string, string>;
  /** Its API server access settings in Azure's format. */
  accessProfile: Record<string, unknown>;
  addresses: TheirAddresses;
  /** Whether its API server is reachable in its own network only. */
  isPrivate: boolean;
  /**
   * Principals with role ADMINISTRATOR on the cluster, assigned by others; undefined: the role has no effect there, or
   * is not needed.
   */
  administrators?: string[];
}

/** The fields of Managed Clusters - Get that are read. */
interface Described {
  name: string;
  location: string;
  tags?: Record<string, string>;
  properties: {
    provisioningState?: string;
    powerState?: { code?: string };
    kubernetesVersion?: string;
    currentKubernetesVersion?: string;
    agentPoolProfiles?: { name: string; mode?: string; vnetSubnetID?: string; podSubnetID?: string }[];
    fqdn?: string;
    privateFQDN?: string;
    disableLocalAccounts?: boolean;
    aadProfile?: { enableAzureRBAC?: boolean };
    apiServerAccessProfile?: Record<string, unknown>;
  };
}

/** A row of Role Assignments - List For Scope. */
interface RoleAssignment {
  name: string;
  properties: { scope: string; roleDefinitionId: string; principalId: string };
}

const ID =
  /^\/subscriptions\/([0-9a-f-]{36})\/resourceGroups\/([^/]+)\/providers\/Microsoft\.ContainerService\/managedClusters\/([^/]+)$/i;
const SHORT = /^([^/]+)\/([^/]+)$/;
/** MicrosoftDocs/azure-docs articles/azure-resource-manager/management/resource-name-rules.md. */
const GROUP = /^[\w().-]{0,89}[\w()-]$/;
const NAME = /^[0-9A-Za-z]([\w-]{0,61}[0-9A-Za-z])?$/;

/** Name and group of the AKS cluster in an id, with the subscription where present; undefined for an invalid id. */
export function clusterOfID(id: string): { name: string; resourceGroup: string; subscription?: string } | undefined {
  const [, subscription, ...long] = ID.exec(id) ?? [];
  const [resourceGroup = '', name = ''] = subscription === undefined ? (SHORT.exec(id)?.slice(1) ?? []) : long;
  if (!GROUP.test(resourceGroup) || !NAME.test(name)) return undefined;
  return { name, resourceGroup, ...(subscription !== undefined && { subscription: subscription.toLowerCase() }) };
}

/** Problems of an id, independent of the cloud's state. Pure. */
export function adoptProblems({ id }: Adoption): Problem[] {
  if (clusterOfID(id)) return [];
  const message = `${id} is neither an AKS cluster's resource id nor <resource group>/<name>`;
  return [{ field: 'adopt.id', message, code: 'ERR_CONFIGURATION_PROBLEM' }];
}

const idOf = (subscription: string, { resourceGroup, name }: { resourceGroup: string; name: string }): string =>
  `/subscriptions/${subscription}/resourceGroups/${resourceGroup}/providers/Microsoft.ContainerService/managedClusters/${name}`;

/** Provisioning states without a usable API server. */
const NOT_THERE = ['Creating', 'Deleting'];
/** States after a failed operation, in which an adoption is refused. */
const BROKEN = ['Failed', 'Canceled'];

/** Reads the AKS cluster to adopt; see AdoptingCloud.look. */
export async function lookAtAdopted(
  ctx: CloudContext,
  endpoints: Endpoints,
  { adopt, kubernetesVersion }: AdoptingCluster,
): Promise<FoundCluster> {
  const { subscriptionID } = credentialsOf(ctx.account);
  const refuse = (why: string, advice: string) =>
    configurationProblem(`AKS cluster ${adopt.id} cannot be taken over: ${why}`, advice);
  const meant = clusterOfID(adopt.id);
  if (!meant) throw refuse('this is no resource id and no <resource group>/<name>', 'Correct spec.adopt.id.');
  const { resourceGroup, subscription } = meant;
  if (subscription !== undefined && subscription !== subscriptionID.toLowerCase())
    throw refuse(
      `the credentials are of subscription ${subscriptionID}`,
      `Name credentials of subscription ${subscription}.`,
    );

  const { token } = await entraToken(ctx, endpoints, managementScope(endpoints));
  const what = `AKS cluster ${meant.name} cannot be looked at`;
  const get = <T>(url: string) => callAzure<T>({ url, token, what, signal: ctx.signal }, { absent: true });
  const path = idOf(subscriptionID, meant);
  const cluster = await get<Described>(`${endpoints.management}${path}?api-version=${AKS_API}`);
  if (!cluster)
    throw refuse(
      `resource group ${resourceGroup} of subscription ${subscriptionID} has none of that name`,
      'Correct spec.adopt.id.',
    );
  const { name, tags = {}, properties } = cluster;
  const isTaken = tags[ADOPTION_TAGS.uid] === ctx.owner.uid;
  if (plainRegion(cluster.location) !== plainRegion(ctx.region))
    throw refuse(
      `it is in region ${plainRegion(cluster.location)}, the cluster is to be in ${ctx.region}`,
      'Set spec.region.',
    );
  const other = ownedByOther(tags, ctx.owner);
  if (other) throw refuse(`it ${other}`, 'Release it there first.');
  const state = properties.provisioningState ?? '';
  const isStopped = properties.powerState?.code === 'Stopped';
  // An adopted cluster with a failed operation must be repaired or released.
  if (NOT_THERE.includes(state) || isStopped || (BROKEN.includes(state) && !isTaken))
    throw refuse(`it is ${isStopped ? 'Stopped' : state}`, 'Take over a cluster that works.');
  const version = properties.currentKubernetesVersion ?? properties.kubernetesVersion ?? '';
  const wrong = versionProblem(version, kubernetesVersion);
  if (wrong) throw refuse(wrong, 'Leave out spec.kubernetes.version to keep what it runs.');

  const id = idOf(subscriptionID, { resourceGroup, name });
  // Local accounts give access anyway; without Azure RBAC its roles have no effect in the cluster.
  const isByRole = properties.disableLocalAccounts === true && properties.aadProfile?.enableAzureRBAC === true;
  const facts: AdoptedFacts = {
    id,
    resourceGroup,
    name,
    version,
    tags: withoutAdoption(tags),
    accessProfile: properties.apiServerAccessProfile ?? {},
    addresses: addressesOf(properties),
    isPrivate: !properties.fqdn && properties.privateFQDN !== undefined,
    ...(isByRole && { administrators: await administratorsOf(get, endpoints, id, ctx) }),
  };
  return { facts: { ...facts }, isTaken };
}

/** Facts on an unreadable cluster: enough to remove Coppice's resources from it. */
export function unseenCluster({ adopt }: AdoptingCluster): FoundCluster {
  const { name, resourceGroup } = clusterOfID(adopt.id) ?? { name: adopt.id, resourceGroup: adopt.id };
  const facts: AdoptedFacts = {
    id: adopt.id,
    resourceGroup,
    name,
    version: '',
    tags: {},
    accessProfile: {},
    addresses: {},
    isPrivate: false,
  };
  return { facts: { ...facts }, isTaken: false };
}

/** Subnets of its nodes and pods: those of its first system pool, which always exists. */
function addressesOf({ agentPoolProfiles = [] }: Described['properties']): TheirAddresses {
  const system = agentPoolProfiles.filter(({ mode }) => mode === 'System');
  const [first] = system.sort((one, other) => (one.name < other.name ? -1 : 1));
  const { vnetSubnetID, podSubnetID } = first ?? {};
  return { ...(vnetSubnetID && { vnetSubnetID }), ...(podSubnetID && { podSubnetID }) };
}

/** Principals with the role on exactly this cluster: Azure refuses a second equal assignment (RoleAssignmentExists). */
async function administratorsOf(
  get: <T>(url: string) => Promise<T | undefined>,
  endpoints: Endpoints,
  id: string,
  { owner }: CloudContext,
): Promise<string[]> {
  const path = `${endpoints.management}${id}/providers/Microsoft.Authorization/roleAssignments`;
  const found = await allPages<RoleAssignment>(
    `${path}?api-version=2022-04-01&$filter=${encodeURIComponent('atScope()')}`,
    'the role assignments of the AKS cluster cannot be listed',
    endpoints,
    get,
  );
  const ours = roleAssignmentName(owner, ADMINISTRATOR.purpose);
  return found
    .filter(({ name, properties: { scope, roleDefinitionId } }) => {
      const isHere = scope.toLowerCase() === id.toLowerCase();
      return isHere && roleDefinitionId.endsWith(ADMINISTRATOR.role) && name !== ours;
    })
    .map(({ properties }) => properties.principalId)
    .sort();
}
