import { CoppiceError, dependencyNotReady } from '../../operator/api/errors.ts';
import { sleep } from '../../operator/kube/clock.ts';
import type { CloudContext, CloudNode, ManagedClusterOutputs, PoolLeft } from '../cloud.ts';
import { posted } from '../json-api.ts';
import { eachPage } from '../pages.ts';
import { removalRefusalOf } from '../refused-removal.ts';
import { OWNER_TAGS, POOL_TAG } from '../tags.ts';
import { callGoogle, type Endpoints } from './google-api.ts';
import { asTags } from './labels.ts';
import { accessToken } from './token.ts';

/** The fields of google.container.v1's NodePool that are read. */
interface NodePool {
  config?: { resourceLabels?: Record<string, string> };
  /** URLs of its managed instance groups, one per zone. */
  instanceGroupUrls?: string[];
}

/** ManagedInstance of compute v1. */
interface ManagedInstance {
  instance: string;
  id?: string;
  currentAction?: string;
}

/** Operation of compute v1. */
interface Operation {
  name: string;
  status?: string;
  error?: { errors?: { code?: string; message?: string }[] };
}

type Ask = <T>(url: string, what: string, body?: object) => Promise<T>;

/** A group lowers its target size within seconds; the machines' end is not awaited. */
const PATIENCE_MS = 5 * 60_000;
const LONGEST_WAIT_MS = 5_000;

/**
 * Deletes nodes of GKE node pools; see ManagedClusters.removeNodes. "This method reduces the targetSize of the managed
 * instance group by the number of instances that you delete" (deleteInstances, discovery document of compute v1), which
 * GKE reports as the node pool's size.
 */
export async function removeNodes(
  ctx: CloudContext,
  endpoints: Endpoints,
  { name, extra }: ManagedClusterOutputs,
  pool: string,
  nodes: readonly CloudNode[],
): Promise<PoolLeft> {
  const { token } = await accessToken(ctx, endpoints);
  const ask: Ask = async <T>(url: string, what: string, body?: object) =>
    (await callGoogle<T>({ url, token, what, signal: ctx.signal, ...(body && posted(body)) }))!;
  const { nodePools = [] } = await ask<{ nodePools?: NodePool[] }>(
    `${endpoints.container}/v1/projects/${extra?.project}/locations/${extra?.location}/clusters/${name}/nodePools`,
    `node pools of ${name} cannot be listed`,
  );
  const isOurs = ({ config }: NodePool): boolean => {
    const tags = asTags(config?.resourceLabels ?? {});
    return tags[OWNER_TAGS.uid] === ctx.owner.uid && tags[POOL_TAG] === pool;
  };
  const groups = nodePools.filter(isOurs).flatMap(({ instanceGroupUrls = [] }) => instanceGroupUrls.map(pathOf));
  const inZones: Record<string, number> = {};
  let refused: PoolLeft['refused'];
  for (const path of groups) {
    const group = `${endpoints.compute}/compute/v1/${path}`;
    const zone = zoneOf(path);
    refused ??= await removalRefusalOf(end(ask, group, zone, pool, nodes, ctx.signal));
    const { targetSize = 0 } = await ask<{ targetSize?: number }>(group, `the group ${path} cannot be read`);
    inZones[zone] = (inZones[zone] ?? 0) + targetSize;
  }
  const size = Object.values(inZones).reduce((sum, count) => sum + count, 0);
  return { size, inZones, ...(refused && { refused }) };
}

/** The `projects/...` path of a URL. */
const pathOf = (url: string): string => url.replace(/^.*?\/(?=projects\/)/, '');
const zoneOf = (path: string): string => /\/zones\/([^/]+)\//.exec(path)?.[1] ?? '';

/** Deletes the nodes in the group and waits until its target size is lower. */
async function end(
  ask: Ask,
  group: string,
  zone: string,
  pool: string,
  nodes: readonly CloudNode[],
  signal: AbortSignal,
): Promise<void> {
  const what = `nodes of pool ${pool} cannot be ended`;
  const instances: string[] = [];
  await eachPage(what, async (page) => {
    const at = `${group}/listManagedInstances${page === undefined ? '' : `?pageToken=${encodeURIComponent(page)}`}`;
    const answer = await ask<{ managedInstances?: ManagedInstance[]; nextPageToken?: string }>(at, what, {});
    for (const member of answer.managedInstances ?? [])
      if (nodes.some((node) => isSame(node, member)))
        instances.push(`zones/${zone}/instances/${lastOf(member.instance)}`);
    return answer.nextPageToken;
  });
  if (instances.length === 0) return;
  // A node concurrently deleted by others is skipped and not counted twice.
  const body = { instances, skipInstancesOnValidationError: true };
  let operation = await ask<Operation>(`${group}/deleteInstances`, what, body);
  const operations = group.replace(/\/instanceGroupManagers\/.*$/, '/operations');
  // Not by the method `wait`, which answers after two minutes, longer than the timeout here.
  for (
    let waited = 0, wait = 100;
    operation.status !== 'DONE';
    waited += wait, wait = Math.min(2 * wait, LONGEST_WAIT_MS)
  ) {
    if (waited > PATIENCE_MS) throw dependencyNotReady(`${what}: Google is still at it (${operation.name})`);
    await sleep(wait, signal);
    operation = await ask<Operation>(`${operations}/${operation.name}`, what);
  }
  const [error] = operation.error?.errors ?? [];
  if (error) throw new CoppiceError('ERR_INFRA_DEPENDENCIES', `${what}: ${error.code}: ${error.message}`);
}

const lastOf = (url: string): string => url.split('/').at(-1)!;

/**
 * Whether the machine is this node's, and not being deleted. GKE recreates a broken machine under its name with another
 * id.
 */
function isSame({ providerID, instance }: CloudNode, member: ManagedInstance): boolean {
  const [, project, zone, name] = /^gce:\/\/([^/]+)\/([^/]+)\/([^/]+)$/.exec(providerID) ?? [];
  return (
    member.currentAction !== 'DELETING' &&
    member.currentAction !== 'ABANDONING' &&
    member.instance.endsWith(`/projects/${project}/zones/${zone}/instances/${name}`) &&
    (instance === undefined || member.id === instance)
  );
}
