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

/** NodePool of google.container.v1, as far as it is used. */
interface NodePool {
  config?: { resourceLabels?: Record<string, string> };
  /** Of managed instance groups, one in each of its zones. */
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

/** A group wants fewer machines within seconds; their end is not waited for. */
const PATIENCE_MS = 5 * 60_000;
const LONGEST_WAIT_MS = 5_000;

/**
 * Ends nodes of GKE node pools; see ManagedClusters.removeNodes. "This method reduces the targetSize of the managed instance group by the
 * number of instances that you delete" (deleteInstances, discovery document of compute v1), and that is what GKE tells as the size of the
 * node pool.
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

/** `projects/...` of a URL. */
const pathOf = (url: string): string => url.replace(/^.*?\/(?=projects\/)/, '');
const zoneOf = (path: string): string => /\/zones\/([^/]+)\//.exec(path)?.[1] ?? '';

/** Ends those nodes that are in the group, and waits until it wants as many fewer. */
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
  // One that others are deleting meanwhile is left out, and not counted twice.
  const body = { instances, skipInstancesOnValidationError: true };
  let operation = await ask<Operation>(`${group}/deleteInstances`, what, body);
  const operations = group.replace(/\/instanceGroupManagers\/.*$/, '/operations');
  // Not by the method `wait`: it answers after two minutes, for which no answer is waited here.
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

/** Whether the machine is this node's, and not on its way out. GKE makes a broken machine anew under its name: then its id is another. */
function isSame({ providerID, instance }: CloudNode, member: ManagedInstance): boolean {
  const [, project, zone, name] = /^gce:\/\/([^/]+)\/([^/]+)\/([^/]+)$/.exec(providerID) ?? [];
  return (
    member.currentAction !== 'DELETING' &&
    member.currentAction !== 'ABANDONING' &&
    member.instance.endsWith(`/projects/${project}/zones/${zone}/instances/${name}`) &&
    (instance === undefined || member.id === instance)
  );
}
