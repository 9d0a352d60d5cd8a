import { configurationProblem } from '../../operator/api/errors.ts';
import { ownedByOther, versionProblem } from '../adopted-cluster.ts';
import type { Adoption, CloudContext } from '../cloud.ts';
import type { Problem } from '../contract.ts';
import type { AdoptingCluster, FoundCluster } from '../pulumi/adopted-layer.ts';
import { ADOPTION_TAGS, withoutAdoption } from '../tags.ts';
import { credentialsOf } from './credentials.ts';
import { callGoogle, type Endpoints } from './google-api.ts';
import { asTags } from './labels.ts';
import { accessToken } from './token.ts';

/** Facts on the cluster for the program `adopted`. */
export interface AdoptedFacts {
  name: string;
  project: string;
  /** Its region, or the zone of a zonal cluster. */
  location: string;
  /** Full version of the control plane. */
  version: string;
  /** Default zones of its nodes. */
  zones: string[];
  /** Its labels without Coppice's. */
  labels: Record<string, string>;
  /** Whether it has workload identity: node pools must declare it then, and only then. */
  workloadIdentity: boolean;
  /** Whether it is in a release channel, in which GKE enforces automatic node upgrades. */
  inChannel: boolean;
}

/** The fields of google.container.v1's Cluster that are read. */
interface Described {
  name: string;
  location: string;
  locations?: string[];
  status?: string;
  currentMasterVersion: string;
  resourceLabels?: Record<string, string>;
  releaseChannel?: { channel?: string };
  autopilot?: { enabled?: boolean };
  workloadIdentityConfig?: { workloadPool?: string };
}

/** A path in GKE's API, or a self link. */
const PATH =
  /^(?:https:\/\/container\.googleapis\.com\/v1\/)?projects\/([a-z0-9.:-]+)\/(?:locations|zones)\/([a-z]+-[a-z]+\d+(?:-[a-z])?)\/clusters\/([a-z](?:[a-z0-9-]{0,38}[a-z0-9])?)$/;
/** CreateClusterRequest.cluster.name of google.container.v1. */
const NAME = /^[a-z](?:[a-z0-9-]{0,38}[a-z0-9])?$/;

/** Name of the GKE cluster in an id, with project and location where present; undefined for an invalid id. */
export function clusterOfID(id: string): { name: string; project?: string; location?: string } | undefined {
  const [, project, location, name] = PATH.exec(id) ?? [];
  if (project && location && name) return { name, project, location };
  return NAME.test(id) ? { name: id } : undefined;
}

/** Problems of an id, independent of the cloud's state. Pure. */
export function adoptProblems({ id }: Adoption, region: string): Problem[] {
  const meant = clusterOfID(id);
  const say = (message: string): Problem[] => [{ field: 'adopt.id', message, code: 'ERR_CONFIGURATION_PROBLEM' }];
  if (!meant) {
    const form = 'projects/<project>/locations/<region or zone>/clusters/<name>';
    return say(`${id} is neither the name of a GKE cluster nor ${form}`);
  }
  const { location } = meant;
  if (location === undefined || location === region || location.startsWith(`${region}-`)) return [];
  return say(`${id} is in ${location}, the cluster is to be in ${region}: set spec.region`);
}

/** States (google.container.v1 Cluster.Status) in which the API server accepts changes. */
const WORKING = ['RUNNING', 'RECONCILING', 'DEGRADED'];

/** Reads the GKE cluster to adopt; see AdoptingCloud.look. */
export async function lookAtAdopted(
  ctx: CloudContext,
  endpoints: Endpoints,
  { adopt, kubernetesVersion, pools, zones }: AdoptingCluster,
): Promise<FoundCluster> {
  const { id } = adopt;
  const { project } = credentialsOf(ctx.account, ctx.profile);
  const refuse = (why: string, advice: string) =>
    configurationProblem(`GKE cluster ${id} cannot be taken over: ${why}`, advice);
  const meant = clusterOfID(id);
  if (!meant) throw refuse('this is no name or path of one', 'Correct spec.adopt.id.');
  if (meant.project !== undefined && meant.project !== project)
    throw refuse(`the credentials are of project ${project}`, `Name credentials of project ${meant.project}.`);

  const places = meant.location === undefined ? [ctx.region, ...zones] : [meant.location];
  const there = await described(ctx, endpoints, project, places, meant.name);
  const [cluster, another] = there;
  if (!cluster)
    throw refuse(`project ${project} has none of that name in ${places.join(', ')}`, 'Correct spec.adopt.id.');
  if (another)
    throw refuse(
      `${cluster.location} and ${another.location} have one of that name each`,
      `Name it in full: projects/${project}/locations/${cluster.location}/clusters/${cluster.name}.`,
    );

  const { resourceLabels = {}, status = '', currentMasterVersion: version } = cluster;
  const tags = asTags(resourceLabels);
  const other = ownedByOther(tags, ctx.owner);
  if (other) throw refuse(`it ${other}`, 'Release it there first.');
  if (!WORKING.includes(status)) throw refuse(`it is ${status}`, 'Take over a cluster that works.');
  const wrong = versionProblem(version, kubernetesVersion);
  if (wrong) throw refuse(wrong, 'Leave out spec.kubernetes.version to keep what it runs.');
  if (cluster.autopilot?.enabled && pools.length > 0)
    throw refuse('it is in Autopilot mode, which has no node pools', 'Leave out spec.dataPlaneNodes and spec.pools.');
  const facts: AdoptedFacts = {
    name: cluster.name,
    project,
    location: cluster.location,
    version,
    zones: [...(cluster.locations ?? [])].sort(),
    labels: withoutAdoption(resourceLabels),
    workloadIdentity: cluster.workloadIdentityConfig?.workloadPool !== undefined,
    inChannel: (cluster.releaseChannel?.channel ?? 'UNSPECIFIED') !== 'UNSPECIFIED',
  };
  return { facts: { ...facts }, isTaken: tags[ADOPTION_TAGS.uid] === ctx.owner.uid };
}

/** Facts on an unreadable cluster: enough to remove Coppice's resources from it. */
export function unseenCluster({ adopt, region }: AdoptingCluster): FoundCluster {
  const { name = adopt.id, project = '', location = region } = clusterOfID(adopt.id) ?? {};
  const unknown = { version: '', zones: [], labels: {}, workloadIdentity: false, inChannel: false };
  return { facts: { name, project, location, ...unknown }, isTaken: false };
}

/** Clusters of the name in these regions and zones. */
async function described(
  ctx: CloudContext,
  endpoints: Endpoints,
  project: string,
  locations: readonly string[],
  name: string,
): Promise<Described[]> {
  const { token } = await accessToken(ctx, endpoints);
  const answers = await Promise.all(
    locations.map((location) =>
      callGoogle<Described>(
        {
          url: `${endpoints.container}/v1/projects/${project}/locations/${location}/clusters/${name}`,
          token,
          what: `GKE cluster ${name} cannot be looked at`,
          signal: ctx.signal,
        },
        { absent: true },
      ),
    ),
  );
  return answers.filter((answer) => answer !== undefined);
}
