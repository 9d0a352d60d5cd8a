import type { ChildProcess } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, inject } from 'vitest';
import { findCondition, isTrue, NETWORK_POLICIES_ENFORCED } from '../../operator/api/conditions.ts';
import { API_VERSION } from '../../operator/api/group.ts';
import type { Condition, ObjectMeta } from '../../operator/api/meta.ts';
import { KUBECONFIG_KEY, kubeconfigSecretName, technicalID } from '../../operator/api/names.ts';
import type { Seed } from '../../operator/api/seed.ts';
import type { Shoot } from '../../operator/api/shoot.ts';
import type { WorkerCluster } from '../../operator/api/workercluster.ts';
import { readStatus } from '../../operator/garden/daemon/status.ts';
import { StateDirectory } from '../../operator/garden/state/state.ts';
import { CLUSTERPROFILES } from '../../operator/hubs/cluster-profile.ts';
import { memberName } from '../../operator/hubs/member-name.ts';
import { KubeClient } from '../../operator/kube/client.ts';
import { Informer } from '../../operator/kube/informer.ts';
import type { ListOptions } from '../../operator/kube/requests/list-pages.ts';
import {
  type KubeObject,
  keyOf,
  NAMESPACES,
  PODS,
  type Pod,
  type Resource,
  SECRETS,
  SEEDS,
  type Secret,
  SHOOTS,
  WORKERCLUSTERS,
} from '../../operator/kube/resources.ts';
import { type CommandResult, type RunOptions, runCommand, runCoppice, startCommand } from './run.ts';

export type { CommandResult, RunOptions } from './run.ts';

const FIELD_MANAGER = 'coppice-e2e';
/** Long enough for a busy machine with two cores: a limit, not a promise. */
export const PATIENCE_MS = 7 * 60_000;

export interface Name {
  name: string;
  namespace: string;
}

/** A `describe` that is skipped where there is no garden (the reason was printed by the set-up). */
export const e2e = describe.skipIf(inject('noGarden') !== undefined);

/** The shared garden. */
export const garden = {
  /** COPPICE_HOME. */
  get home(): string {
    return inject('home');
  },
  /** File with the administrator's kubeconfig. */
  get kubeconfig(): string {
    return inject('kubeconfig');
  },
};

const clients = new Map<string, KubeClient>();
const informers = new Map<string, { client: KubeClient; informer: Informer }>();
const children = new Set<ChildProcess>();
const created = new Map<string, Name>();
let folder: Promise<string> | undefined;

afterAll(async () => {
  for (const child of children) child.kill('SIGKILL');
  // The files that follow start from an empty garden.
  const deleted = await Promise.allSettled([...created.values()].map((cluster) => deleteCluster(cluster)));
  await Promise.all([...informers.values()].map(({ informer }) => informer.stop()));
  await Promise.all([...clients.values()].map((client) => client.close()));
  if (folder) await rm(await folder, { recursive: true, force: true });
  for (const result of deleted) if (result.status === 'rejected') throw result.reason;
});

/** `coppice ARGS` on the shared garden. */
export const coppice = (args: readonly string[], options: RunOptions = {}): Promise<CommandResult> =>
  runCoppice(args, { home: inject('home'), tools: inject('tools'), ...options });

/** `kubectl ARGS` on the garden, or on the cluster of a kubeconfig file. */
export const kubectl = (
  args: readonly string[],
  { kubeconfig = garden.kubeconfig, ...options }: RunOptions & { kubeconfig?: string } = {},
): Promise<CommandResult> => runCommand(inject('kubectl'), [`--kubeconfig=${kubeconfig}`, ...args], options);

/** kubectl that goes on in the background (port-forward, logs -f) until the file's tests have ended, at the latest. */
function startKubectl(args: readonly string[], { kubeconfig = garden.kubeconfig } = {}): ChildProcess {
  const child = startCommand(inject('kubectl'), [`--kubeconfig=${kubeconfig}`, ...args]);
  children.add(child);
  child.once('exit', () => children.delete(child));
  return child;
}

/** Forwards a free port of this machine to a pod or Service (`pod/x`, `:80`) of the cluster; ends when it is told to. */
export async function forwardPort(
  target: string,
  port: string,
  { kubeconfig }: { kubeconfig: string },
): Promise<{ url: string; end(): void }> {
  const forward = startKubectl(['port-forward', target, port], { kubeconfig });
  const own = await new Promise<string>((resolve, reject) => {
    let text = '';
    forward.stdout?.on('data', (data: Buffer) => {
      text += data.toString();
      const found = /127\.0\.0\.1:(\d+)/.exec(text)?.[1];
      if (found) resolve(found);
    });
    forward.once('exit', (code) => reject(new Error(`port-forward ended with ${code}: ${text}`)));
  });
  return { url: `http://127.0.0.1:${own}`, end: () => void forward.kill() };
}

/** The standard output of a command that must have gone well. */
export function ok(result: CommandResult): string {
  if (result.code !== 0) throw new Error(`exit code ${result.code}: ${result.stderr}${result.stdout}`);
  return result.stdout;
}

/** The administrator of the garden, which is the seed as well. */
export const gardenClient = (): KubeClient => clientOf(readFileSync(garden.kubeconfig, 'utf8'));

function clientOf(kubeconfig: string): KubeClient {
  let client = clients.get(kubeconfig);
  if (!client) {
    client = KubeClient.fromKubeconfig(kubeconfig, undefined, { userAgent: 'coppice-e2e' });
    clients.set(kubeconfig, client);
  }
  return client;
}

/** A cache that follows one kind (in one namespace, with these labels), shared by the tests of a file and ended after them. */
export async function follow<T extends KubeObject>(
  client: KubeClient,
  resource: Resource,
  options: ListOptions = {},
): Promise<Informer<T>> {
  const key = JSON.stringify([client.server, resource.plural, options]);
  let known = informers.get(key) as { client: KubeClient; informer: Informer<T> } | undefined;
  if (known?.client !== client) {
    known = { client, informer: new Informer<T>(client, resource, options) };
    // Another cluster of the same name and address: the old one's cache would never change again.
    const old = informers.get(key)?.informer;
    informers.set(key, known as unknown as { client: KubeClient; informer: Informer });
    void old?.stop();
    known.informer.start();
  }
  await known.informer.whenSynced(AbortSignal.timeout(PATIENCE_MS));
  return known.informer;
}

let counter = 0;
/** A name that no other test has, nor an earlier run of it. */
export const uniqueName = (prefix = 'c'): string =>
  `${prefix}-${Date.now().toString(36).slice(-5)}${(counter++).toString(36)}`;

/**
 * Applies a WorkerCluster as a person does (provider `local`, 1 control plane node, 0 nodes unless the spec says otherwise),
 * in a namespace that is made when it is not there. Returns at once; see untilReady. It is deleted after the file's tests.
 */
export async function makeCluster(
  spec: Partial<WorkerCluster['spec']> = {},
  { name = uniqueName(), namespace = 'default' }: Partial<Name> = {},
): Promise<Name> {
  const client = gardenClient();
  if (namespace !== 'default' && !(await client.getOrUndefined(NAMESPACES, namespace))) {
    await client.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } });
  }
  await client.apply(
    {
      apiVersion: API_VERSION,
      kind: 'WorkerCluster',
      metadata: { name, namespace },
      spec: { cloudProvider: 'local', controlPlaneNodes: 1, dataPlaneNodes: 0, ...spec },
    },
    { fieldManager: FIELD_MANAGER },
  );
  created.set(`${namespace}/${name}`, { name, namespace });
  return { name, namespace };
}

/** Changes fields of a WorkerCluster's spec. */
export const changeCluster = (
  { name, namespace }: Name,
  spec: Partial<WorkerCluster['spec']>,
): Promise<WorkerCluster> => gardenClient().mergePatch<WorkerCluster>(WORKERCLUSTERS, name, namespace, { spec });

/** Deletes a WorkerCluster (one that is gone is fine) and, unless told otherwise, waits until it has gone. */
export async function deleteCluster(cluster: Name, { wait = true } = {}): Promise<void> {
  const key = keyOf({ metadata: cluster });
  await gardenClient().delete(WORKERCLUSTERS, cluster.name, cluster.namespace);
  created.delete(key);
  if (!wait) return;
  await until(cluster, (found) => !found, 'to be gone');
}

/** Waits, on events, until the predicate holds of the WorkerCluster (undefined when it does not exist). */
export async function until<R>(
  cluster: Name,
  predicate: (found: WorkerCluster | undefined) => R | undefined | false,
  what: string,
  timeoutMs: number = PATIENCE_MS,
): Promise<R> {
  const all = await follow<WorkerCluster>(gardenClient(), WORKERCLUSTERS);
  const key = keyOf({ metadata: cluster });
  return all.waitFor(() => predicate(all.get(key)), {
    timeoutMs,
    what: () => `WorkerCluster ${key} ${what}; its status is ${JSON.stringify(all.get(key)?.status, undefined, 1)}`,
  });
}

/** Waits until the cluster is Ready for the spec that it has now. Rejects at once when its operation has failed for good. */
export async function untilReady(cluster: Name, timeoutMs?: number): Promise<WorkerCluster> {
  // The cache may not have seen yet what was just written.
  const { metadata } = await gardenClient().get<WorkerCluster>(WORKERCLUSTERS, cluster.name, cluster.namespace);
  return until(
    cluster,
    (found) => {
      if (!isFor(metadata, found)) return undefined;
      const { status } = found;
      if (status?.phase === 'Failed' || status?.lastOperation?.state === 'Failed') {
        throw new Error(`${cluster.name} has failed: ${JSON.stringify(status, undefined, 1)}`);
      }
      return isTrue(status?.conditions, 'Ready') && found;
    },
    'to be Ready',
    timeoutMs,
  );
}

/** Waits until the cluster is in the inventory that a garden has. Resolves to its ClusterProfile. */
export async function untilJoined({ name, namespace }: Name): Promise<KubeObject> {
  const profiles = await follow(gardenClient(), CLUSTERPROFILES);
  const key = `${namespace}/${memberName(namespace, name, 63)}`;
  return profiles.waitFor(() => isTrue(profiles.get(key)?.status?.conditions, 'Joined') && profiles.get(key), {
    timeoutMs: PATIENCE_MS,
    what: () => `ClusterProfile ${key} to have joined: ${JSON.stringify(profiles.get(key))}`,
  });
}

/** untilReady for a Shoot that somebody made by hand. */
export async function untilShootReady(shoot: Name): Promise<Shoot> {
  const { metadata } = await gardenClient().get<Shoot>(SHOOTS, shoot.name, shoot.namespace);
  return untilShoot(
    shoot,
    (found) => isFor(metadata, found) && isTrue(found.status?.conditions, 'Ready') && found,
    'to be Ready',
  );
}

/** Whether the status is one of that object, and of the spec that it had then or later. */
const isFor = <T extends WorkerCluster | Shoot>(
  { uid, generation = 0 }: ObjectMeta,
  found: T | undefined,
): found is T =>
  found?.metadata.uid === uid &&
  (found?.metadata.generation ?? 0) >= generation &&
  found?.status?.observedGeneration === found?.metadata.generation;

/** Waits, on events, until the predicate holds of the cluster's Shoot (undefined when it does not exist). */
export async function untilShoot<R>(
  cluster: Name,
  predicate: (found: Shoot | undefined) => R | undefined | false,
  what: string,
  timeoutMs: number = PATIENCE_MS,
): Promise<R> {
  const all = await follow<Shoot>(gardenClient(), SHOOTS);
  const key = keyOf({ metadata: cluster });
  return all.waitFor(() => predicate(all.get(key)), {
    timeoutMs,
    what: () => `Shoot ${key} ${what}; its status is ${JSON.stringify(all.get(key)?.status, undefined, 1)}`,
  });
}

/** The administrator's kubeconfig of a cluster, from its Secret. Throws when there is none. */
export async function kubeconfigOf({ name, namespace }: Name): Promise<string> {
  const secret = await gardenClient().get<Secret>(SECRETS, kubeconfigSecretName(name), namespace);
  return Buffer.from(secret.data?.[KUBECONFIG_KEY] ?? '', 'base64').toString();
}

/** The same in a file that is removed after the file's tests. */
export const kubeconfigFile = async (cluster: Name): Promise<string> =>
  temporaryFile(`${cluster.namespace}-${cluster.name}.yaml`, await kubeconfigOf(cluster));

/** A file that is removed after the file's tests. */
export async function temporaryFile(name: string, text: string): Promise<string> {
  // The promise, not its value: two calls at once must not make two folders.
  folder ??= mkdtemp(join(tmpdir(), 'coppice-e2e-files-'));
  const file = join(await folder, name);
  await writeFile(file, text, { mode: 0o600 });
  return file;
}

/** The administrator of a cluster that has a kubeconfig. Closed after the file's tests. */
export const clusterClient = async (cluster: Name): Promise<KubeClient> => clientOf(await kubeconfigOf(cluster));

/** Where a cluster's control plane and machines run in the seed. */
export const seedNamespace = ({ name, namespace }: Name): string => technicalID(namespace, name);

/**
 * What the garden's seed says of its network, once that was tried: a new garden does so by itself, and again where a busy machine was too
 * slow for it.
 */
export async function networkTried(): Promise<Condition> {
  const seeds = await follow<Seed>(gardenClient(), SEEDS);
  const said = () => findCondition(seeds.list()[0]?.status?.conditions, NETWORK_POLICIES_ENFORCED);
  await seeds.waitFor(() => said() !== undefined && said()!.status !== 'Unknown', {
    timeoutMs: PATIENCE_MS,
    what: () => `the seed to say whether its network enforces NetworkPolicies; it says: ${said()?.message}`,
  });
  return said()!;
}

/** Pods of a cluster in the seed: control plane and machines. */
export const seedPods = async (cluster: Name): Promise<Pod[]> =>
  (await gardenClient().list<Pod>(PODS, { namespace: seedNamespace(cluster) })).items;

/** Kills the operator of the shared garden, which starts it anew. */
export async function killOperator(): Promise<void> {
  const status = await readStatus(new StateDirectory(garden.home).statusFile);
  process.kill(status!.processes.find(({ name }) => name === 'operator')!.pid!, 'SIGKILL');
}

/**
 * Takes a cluster away that a test left when it failed, before its cloud goes: at the worst without its finalizers, or the garden would not
 * go down.
 */
export async function giveUp(cluster: Name): Promise<void> {
  const client = gardenClient();
  if (!(await client.getOrUndefined(WORKERCLUSTERS, cluster.name, cluster.namespace))) return;
  await client.delete(WORKERCLUSTERS, cluster.name, cluster.namespace);
  await until(cluster, (found) => found === undefined, 'to be gone').catch(async (error: Error) => {
    console.warn(error.message);
    for (const kind of [SHOOTS, WORKERCLUSTERS])
      await client
        .mergePatch(kind, cluster.name, cluster.namespace, { metadata: { finalizers: null } })
        .catch((second: Error) => console.warn(second.message));
  });
}

/** Undoes in the opposite order what was done, all of it; rejects with what went wrong first. */
export async function endAll(ends: readonly (() => Promise<unknown>)[]): Promise<void> {
  const failed: unknown[] = [];
  for (const end of ends.toReversed()) await end().catch((error: unknown) => failed.push(error));
  if (failed.length > 0) throw failed[0];
}
