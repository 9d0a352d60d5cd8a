import { LABELS } from '../../api/group.ts';
import type { Membership } from '../../api/membership.ts';
import type { Condition, KubeObject } from '../../api/meta.ts';
import { COMPONENTS, KUBECONFIG_KEY, kubeconfigSecretName, technicalID } from '../../api/names.ts';
import { type Seed, seedKubeconfigRef } from '../../api/seed.ts';
import type { Shoot } from '../../api/shoot.ts';
import type { WorkerCluster } from '../../api/workercluster.ts';
import { KubeClient } from '../../kube/client.ts';
import { DEPLOYMENTS, NODES, PODS, SECRETS, STATEFULSETS } from '../../kube/resources.ts';
import { conditionOf, showsNoControlPlane, simulatedWarning } from '../clusterview.ts';
import { type CliConnection, connect } from '../connect.ts';
import type { Context } from '../context.ts';
import { explain, UsageError } from '../errors.ts';
import {
  type CliKind,
  kindOf,
  kindWords,
  MEMBERSHIP_KIND,
  SEED_KIND,
  SHOOT_KIND,
  WORKER_CLUSTER_KIND,
} from '../kinds.ts';
import {
  type ClusterDescription,
  type ControlPlaneWorkload,
  describeTree,
  type MachineDescription,
  objectTree,
  picturesSimulated,
  TREE_HEADER,
} from '../render/describe.ts';
import { renderTree } from '../render/tree.ts';
import { didYouMean } from '../suggest.ts';
import { missingError } from './get.ts';

const API_SERVER = "the cluster's own API server";
/** Time limit for each part: one that does not answer must not delay the others. */
const PEEK_MS = 3000;

/** `coppice describe [KIND] NAME`. */
export async function run(context: Context): Promise<undefined> {
  const { options, terminal } = context;
  const { kind, name } = target(context.positionals);
  const connection = await connect(context);
  const namespace = kind.resource.namespaced ? connection.namespace : undefined;
  const object = await connection.client.getOrUndefined(kind.resource, name, namespace, { signal: context.signal });
  if (object === undefined) throw await missingError(connection.client, kind, name, namespace, context.signal);

  const view = {
    now: Date.now(),
    allConditions: options.flag('show-conditions'),
    grouping: !options.flag('no-grouping'),
  };
  const table = { paint: terminal.paint, ...(terminal.width === undefined ? {} : { width: terminal.width }) };
  if (kind !== WORKER_CLUSTER_KIND && kind !== SHOOT_KIND) {
    terminal.print(...renderTree(TREE_HEADER, objectTree(object, view), table));
    return;
  }
  const picture = await gather(connection, object as WorkerCluster | Shoot, context.signal);
  if (picturesSimulated(picture)) terminal.print(terminal.paint('loud', simulatedWarning(picture.cluster!)), '');
  terminal.print(...renderTree(TREE_HEADER, describeTree(picture, view), table));
}

function target(positionals: readonly string[]): { kind: CliKind; name: string } {
  const [first, second] = positionals;
  if (first === undefined) throw new UsageError('describe needs a NAME', 'usage: coppice describe [KIND] NAME');
  const [word, name] = second !== undefined ? [first, second] : first.includes('/') ? split(first) : [undefined, first];
  if (word === undefined) return { kind: WORKER_CLUSTER_KIND, name: name! };
  const kind = kindOf(word);
  if (kind === undefined) throw new UsageError(`describe: unknown kind "${word}"`, didYouMean(word, kindWords()));
  return { kind, name: name! };
}

function split(word: string): [string, string] {
  const slash = word.indexOf('/');
  return [word.slice(0, slash), word.slice(slash + 1)];
}

/** Reads everything that belongs to a cluster. A part that cannot be read becomes a gap, not an error. */
async function gather(
  connection: CliConnection,
  object: WorkerCluster | Shoot,
  signal: AbortSignal,
): Promise<ClusterDescription> {
  const { client } = connection;
  const picture: ClusterDescription = { controlPlane: [], machines: [], gaps: [] };
  const namespace = object.metadata.namespace ?? connection.namespace;
  if (object.kind === 'WorkerCluster') {
    picture.cluster = object as WorkerCluster;
    const { name } = object.metadata;
    const found = await noting(picture, 'its hubs', signal, () =>
      client.list<Membership>(MEMBERSHIP_KIND.resource, {
        namespace,
        signal: AbortSignal.any([signal, AbortSignal.timeout(PEEK_MS)]),
      }),
    );
    picture.memberships = (found?.items ?? []).filter(({ spec }) => spec.cluster === name);
    const ref = picture.cluster.status?.shootRef;
    if (ref === undefined) {
      const { attached } = picture.cluster.spec;
      // The operator refuses to connect, and the condition says why: do not connect either.
      if (attached && conditionOf(object, 'APIServerAvailable')?.status === 'False') return picture;
      const own = attached ? attached.kubeconfigSecretRef : { name: kubeconfigSecretName(name) };
      if (picture.cluster.status?.kubeconfigRef || attached?.garden)
        await gatherNodes(connection, picture, own && { namespace, ...own }, signal);
      return picture;
    }
    picture.shoot = await client.getOrUndefined<Shoot>(SHOOT_KIND.resource, ref.name, ref.namespace ?? namespace, {
      signal,
    });
  } else {
    picture.shoot = object as Shoot;
  }
  const { shoot } = picture;
  // No control plane: there is nothing else to read.
  if (shoot === undefined || showsNoControlPlane(shoot)) return picture;

  const peek = AbortSignal.any([signal, AbortSignal.timeout(PEEK_MS)]);
  const shootNamespace = shoot.metadata.namespace ?? namespace;
  const inSeed = shoot.status?.technicalID ?? technicalID(shootNamespace, shoot.metadata.name);
  const [pods, nodes] = await Promise.all([
    noting(picture, `seed ${shoot.status?.seedName ?? ''}`, signal, async () => {
      const seed = await seedClient(client, shoot, peek);
      if (seed === undefined) return [];
      picture.controlPlane = await controlPlane(seed, inSeed, peek);
      const list = await seed.list(PODS, { namespace: inSeed, labelSelector: LABELS.pool, signal: peek });
      if (seed !== client) await seed.close();
      return list.items;
    }),
    // A hibernated cluster has no API server to ask.
    shoot.status?.hibernated
      ? []
      : noting(picture, API_SERVER, signal, () =>
          nodesOf(client, { name: kubeconfigSecretName(shoot.metadata.name), namespace: shootNamespace }, peek),
        ),
  ]);
  picture.machines = machinesOf(pods ?? [], nodes ?? []);
  return picture;
}

/** Secret with a kubeconfig. */
interface KubeconfigPlace {
  readonly namespace: string;
  readonly name: string;
  /** Key in the Secret; absent: the key that the operator writes. */
  readonly key?: string | undefined;
}

/** Reads nodes, which is all that is visible of a managed or attached cluster. `at` absent: the cluster is the garden itself. */
async function gatherNodes(
  { client }: CliConnection,
  picture: ClusterDescription,
  at: KubeconfigPlace | undefined,
  signal: AbortSignal,
): Promise<void> {
  const peek = AbortSignal.any([signal, AbortSignal.timeout(PEEK_MS)]);
  const nodes = await noting(picture, API_SERVER, signal, () => nodesOf(client, at, peek));
  picture.machines = machinesOf([], nodes ?? []);
}

async function noting<T>(
  picture: ClusterDescription,
  what: string,
  signal: AbortSignal,
  look: () => Promise<T>,
): Promise<T | undefined> {
  try {
    return await look();
  } catch (error) {
    signal.throwIfAborted();
    const late = (error as Error).name === 'TimeoutError';
    picture.gaps.push(`${what}: ${late ? `no answer within ${PEEK_MS / 1000} s` : explain(error, false).message}`);
    return undefined;
  }
}

async function seedClient(garden: KubeClient, shoot: Shoot, signal: AbortSignal): Promise<KubeClient | undefined> {
  const name = shoot.status?.seedName ?? shoot.spec.seedName;
  if (name === undefined) return undefined;
  const seed = await garden.getOrUndefined<Seed>(SEED_KIND.resource, name, undefined, { signal });
  const ref = seed && seedKubeconfigRef(seed);
  if (ref === undefined) return garden;
  return secretClient(garden, ref, signal, true);
}

async function secretClient(
  client: KubeClient,
  { name, namespace, key = KUBECONFIG_KEY }: KubeconfigPlace,
  signal: AbortSignal,
  isAdministrators = false,
): Promise<KubeClient | undefined> {
  const secret = await client.getOrUndefined(SECRETS, name, namespace, { signal });
  const data = secret?.data as Record<string, string> | undefined;
  const value = data?.[key] ?? data?.kubeconfig;
  if (value === undefined) return undefined;
  const text = Buffer.from(value, 'base64').toString('utf8');
  const source = `the kubeconfig in Secret ${namespace}/${name}`;
  const userAgent = 'coppice-cli';
  return isAdministrators
    ? KubeClient.fromAdministratorsKubeconfig(text, source, { userAgent })
    : KubeClient.fromKubeconfig(text, undefined, { userAgent, source });
}

async function nodesOf(
  client: KubeClient,
  at: KubeconfigPlace | undefined,
  signal: AbortSignal,
): Promise<KubeObject[]> {
  if (at === undefined) return (await client.list(NODES, { signal })).items;
  const own = await secretClient(client, at, signal);
  if (own === undefined) return [];
  try {
    return (await own.list(NODES, { signal })).items;
  } finally {
    await own.close();
  }
}

async function controlPlane(seed: KubeClient, namespace: string, signal: AbortSignal): Promise<ControlPlaneWorkload[]> {
  const [sets, deployments] = await Promise.all([
    seed.list(STATEFULSETS, { namespace, signal }),
    seed.list(DEPLOYMENTS, { namespace, signal }),
  ]);
  const order: string[] = Object.values(COMPONENTS);
  return [...sets.items, ...deployments.items]
    .filter((workload) => order.includes(workload.metadata.name))
    .sort((a, b) => order.indexOf(a.metadata.name) - order.indexOf(b.metadata.name))
    .map((workload) => {
      const conditions = (workload.status?.conditions ?? []) as Condition[];
      const available = conditions.find(({ type }) => type === 'Available');
      const problem = conditions.find(
        ({ type, status }) =>
          (type === 'ReplicaFailure' && status === 'True') || (type !== 'ReplicaFailure' && status === 'False'),
      );
      return {
        name: `${workload.kind}/${workload.metadata.name}`,
        desired: Number(workload.spec?.replicas ?? 1),
        ready: Number(workload.status?.readyReplicas ?? 0),
        since: available?.lastTransitionTime ?? workload.metadata.creationTimestamp ?? '',
        ...(problem?.message && { problem: problem.message }),
      };
    });
}

/** Machines of a pool: pods in the seed (local) or nodes alone (simulated). A pod and its node have the same name. */
export function machinesOf(pods: readonly KubeObject[], nodes: readonly KubeObject[]): MachineDescription[] {
  const byName = new Map(nodes.map((node) => [node.metadata.name, node]));
  const machines = pods.map((pod) => {
    const node = byName.get(pod.metadata.name);
    byName.delete(pod.metadata.name);
    return node === undefined ? fromPod(pod) : fromNode(node, pod.metadata.labels?.[LABELS.pool]);
  });
  return [...machines, ...[...byName.values()].map((node) => fromNode(node, undefined))];
}

function fromPod(pod: KubeObject): MachineDescription {
  const containers = (pod.status?.containerStatuses ?? []) as {
    state?: { waiting?: { reason?: string; message?: string } };
  }[];
  const waiting = containers.map((container) => container.state?.waiting).find((state) => state !== undefined);
  const scheduled = ((pod.status?.conditions ?? []) as Condition[]).find(
    ({ type, status }) => type === 'PodScheduled' && status === 'False',
  );
  const deleting = pod.metadata.deletionTimestamp !== undefined;
  return {
    name: pod.metadata.name,
    pool: pod.metadata.labels?.[LABELS.pool] ?? 'unknown',
    ready: 'False',
    reason: deleting ? 'Deleting' : (waiting?.reason ?? scheduled?.reason ?? String(pod.status?.phase ?? 'Pending')),
    message: waiting?.message ?? scheduled?.message ?? (deleting ? '' : 'the machine has not registered its node yet'),
    since: pod.metadata.creationTimestamp,
  };
}

function fromNode(node: KubeObject, pool: string | undefined): MachineDescription {
  const ready = ((node.status?.conditions ?? []) as Condition[]).find(({ type }) => type === 'Ready');
  const cordoned = node.spec?.unschedulable === true;
  const good = ready?.status === 'True';
  return {
    name: node.metadata.name,
    pool: pool ?? node.metadata.labels?.[LABELS.pool] ?? 'unknown',
    ready: ready?.status ?? 'Unknown',
    reason: cordoned ? 'Cordoned' : good ? 'NodeReady' : (ready?.reason ?? 'Unknown'),
    message: good ? '' : (ready?.message ?? 'the node has not reported its state yet'),
    since: ready?.lastTransitionTime ?? node.metadata.creationTimestamp,
  };
}
