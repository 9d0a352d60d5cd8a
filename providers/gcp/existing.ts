import { ADOPTED } from '../adopted-cluster.ts';
import type { CloudContext, Owner } from '../cloud.ts';
import { beingCreated } from '../pulumi/being-created.ts';
import type { FindExisting, WantedResource } from '../pulumi/request.ts';
import { credentialsOf } from './credentials.ts';
import { callGoogle, type Endpoints } from './google-api.ts';
import { findGrant, isGrant } from './grants.ts';
import { ownerOfDescription, ownerOfLabels } from './labels.ts';
import { clusterName, computeName, keyRingName } from './names.ts';
import { accessToken, type GoogleToken } from './token.ts';

/** Location of a resource. */
interface Place {
  endpoints: Endpoints;
  project: string;
  region: string;
  owner: Owner;
  /** Its name at Google. */
  name: string;
  /** For resources in a cluster: names of the cluster and its location, where they are not the owner's own. */
  cluster: string;
  location: string;
}

/**
 * Look-up of a resource type, and its import id. Sources: "Import" of each type in @pulumi/gcp; for instance groups the
 * importer of hashicorp/terraform-provider-google, which also accepts the path.
 */
interface Lookup<Answer = any> {
  /** Its path, also its import id unless `id` is given. */
  path(place: Place): string;
  /** Base URL of its API. */
  api(endpoints: Endpoints): string;
  id?(place: Place): string;
  /** The owner in its labels or description; true where the name alone proves the owner. */
  owner(answer: Answer, place: Place): Partial<Owner> | boolean | undefined;
}

const compute = ({ compute: host }: Endpoints) => `${host}/compute/v1`;
const container = ({ container: host }: Endpoints) => `${host}/v1`;
const kms = ({ kms: host }: Endpoints) => `${host}/v1`;

const described = ({ description = '' }: { description?: string }) => ownerOfDescription(description);
const labelled = (labels: Record<string, string> | undefined) => ownerOfLabels(labels ?? {});

const regional = (kind: string): Lookup => ({
  api: compute,
  path: ({ project, region, name }) => `projects/${project}/regions/${region}/${kind}/${name}`,
  owner: described,
});
const routers = regional('routers');
const clusterPath = ({ project, location, cluster }: Place) =>
  `projects/${project}/locations/${location}/clusters/${cluster}`;

const global = (kind: string): Lookup => ({
  api: compute,
  path: ({ project, name }) => `projects/${project}/global/${kind}/${name}`,
  owner: described,
});

const CLUSTER = 'gcp:container/cluster:Cluster';
const LOOKUPS: Readonly<Record<string, Lookup>> = {
  'gcp:compute/network:Network': global('networks'),
  'gcp:compute/firewall:Firewall': global('firewalls'),
  'gcp:compute/globalAddress:GlobalAddress': global('addresses'),
  'gcp:compute/healthCheck:HealthCheck': global('healthChecks'),
  'gcp:compute/backendService:BackendService': global('backendServices'),
  'gcp:compute/targetTCPProxy:TargetTCPProxy': global('targetTcpProxies'),
  'gcp:compute/globalForwardingRule:GlobalForwardingRule': global('forwardingRules'),
  'gcp:compute/instanceTemplate:InstanceTemplate': global('instanceTemplates'),
  'gcp:compute/regionInstanceGroupManager:RegionInstanceGroupManager': regional('instanceGroupManagers'),
  'gcp:compute/subnetwork:Subnetwork': regional('subnetworks'),
  'gcp:compute/router:Router': routers,
  // Part of its router.
  'gcp:compute/routerNat:RouterNat': {
    api: compute,
    path: (place) => routers.path({ ...place, name: computeName(place.owner, 'router') }),
    id: ({ project, region, owner, name }) => `${project}/${region}/${computeName(owner, 'router')}/${name}`,
    owner: (router: { nats?: { name: string }[]; description?: string }, { name }) =>
      router.nats?.some((nat) => nat.name === name) ? described(router) : undefined,
  },
  'gcp:kms/keyRing:KeyRing': {
    api: kms,
    path: ({ project, region, name }) => `projects/${project}/locations/${region}/keyRings/${name}`,
    owner: (_, { name, owner }) => name === keyRingName(owner),
  },
  'gcp:kms/cryptoKey:CryptoKey': {
    api: kms,
    path: ({ project, region, owner, name }) =>
      `projects/${project}/locations/${region}/keyRings/${keyRingName(owner)}/cryptoKeys/${name}`,
    owner: ({ labels }) => labelled(labels),
  },
  'gcp:serviceaccount/account:Account': {
    api: ({ iam }) => `${iam}/v1`,
    path: ({ project, name }) => `projects/${project}/serviceAccounts/${name}@${project}.iam.gserviceaccount.com`,
    owner: described,
  },
  [CLUSTER]: {
    api: container,
    path: clusterPath,
    owner: ({ resourceLabels }) => labelled(resourceLabels),
  },
  'gcp:container/nodePool:NodePool': {
    api: container,
    path: (place) => `${clusterPath(place)}/nodePools/${place.name}`,
    id: ({ project, location, cluster, name }) => `${project}/${location}/${cluster}/${name}`,
    owner: ({ config }) => labelled(config?.resourceLabels),
  },
};

const isOwner = (said: Partial<Owner> | boolean | undefined, owner: Owner): boolean =>
  typeof said === 'object' ? said.uid === owner.uid : said === true;

const textOf = (value: unknown, otherwise: string): string => (typeof value === 'string' ? value : otherwise);

/** Finds the owner's existing resources at Google; see FindExisting. */
export function existingAt(endpoints: Endpoints, ctx: CloudContext): FindExisting {
  const { project } = credentialsOf(ctx.account, ctx.profile);
  let token: Promise<GoogleToken> | undefined;
  return async (wanted: WantedResource, signal) => {
    const { type, name: logicalName, inputs } = wanted;
    if (isGrant(type)) {
      token ??= accessToken({ ...ctx, signal }, endpoints);
      const { owner, region } = ctx;
      const id = await findGrant(wanted, { endpoints, project, region, owner, token: (await token).token, signal });
      return id === undefined ? undefined : { id };
    }
    const lookup = LOOKUPS[type];
    const name = inputs.name ?? inputs.accountId;
    if (!lookup || typeof name !== 'string') return undefined;
    const isTakenOver = logicalName === ADOPTED;
    // Only the program knows the names of an adopted cluster.
    const cluster = isTakenOver ? name : textOf(inputs.cluster, clusterName(ctx.owner));
    const location = textOf(inputs.location, ctx.region);
    const place: Place = { endpoints, project, region: ctx.region, owner: ctx.owner, name, cluster, location };
    const path = lookup.path(place);
    // Its existence and the permission to adopt it were checked before the program started.
    if (isTakenOver) return { id: path, retain: true };
    token ??= accessToken({ ...ctx, signal }, endpoints);
    const answer = await callGoogle<object>(
      { url: `${lookup.api(endpoints)}/${path}`, token: (await token).token, what: `${path} cannot be read`, signal },
      { absent: true },
    );
    if (!answer || !isOwner(lookup.owner(answer, place), ctx.owner)) return undefined;
    if (type === CLUSTER && (answer as { status?: string }).status === 'PROVISIONING')
      throw beingCreated(`GKE cluster ${name}`);
    return { id: lookup.id?.(place) ?? path };
  };
}
