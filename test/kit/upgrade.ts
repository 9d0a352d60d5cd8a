import { expect } from 'vitest';
import { findCondition } from '../../operator/api/conditions.ts';
import { LABELS, ROLES } from '../../operator/api/group.ts';
import type { KubeClient } from '../../operator/kube/client.ts';
import { NODES, type Node, PDBS, type Pod } from '../../operator/kube/resources.ts';
import { changeCluster, clusterClient, makeCluster, type Name, seedPods, until, untilReady } from './garden.ts';
import { OLDER_KUBERNETES } from './needed-tools.ts';
import { isAll } from './rotation.ts';
import { areMade } from './tools.ts';
import { guard, run } from './workload.ts';
import { Writer } from './writer.ts';

/** Where kubeadm runs API servers, and what it calls their nodes. */
export const SERVERS = { namespace: 'kube-system', labelSelector: 'component=kube-apiserver' };
export const CONTROL_PLANE = 'node-role.kubernetes.io/control-plane';

export const OLD = '1.35.4';
export const NEW = '1.36.3';
/** Where nobody has asked for it before, all of the older version is made first. */
export const MAKE_MS = 25 * 60_000;
/** A node for workloads, and what keeps its pod there until `letGo`. */
const GUARDED = 'guarded';

/** Whether tests can run the older version, and if not, why. */
export const hasOld = isAll() || (await areMade(OLDER_KUBERNETES));
export const why = hasOld ? '' : ` [Kubernetes ${OLD} is not made on this machine: npm run test:all makes it]`;

/** A cluster of the older version that somebody writes to without pause. */
export interface Upgraded {
  readonly cluster: Name;
  readonly client: KubeClient;
  readonly writer: Writer;
}

export const makeOld = (spec: Parameters<typeof makeCluster>[0]): Promise<Name> =>
  makeCluster({ kubernetes: { version: OLD }, ...spec });

export async function whenReady(cluster: Name): Promise<Upgraded> {
  const { status } = await untilReady(cluster, MAKE_MS);
  expect(status?.kubernetesVersion).toBe(OLD);
  const client = await clusterClient(cluster);
  expect((await client.serverVersion()).gitVersion).toBe(`v${OLD}`);
  const writer = new Writer(client);
  writer.start();
  return { cluster, client, writer };
}

/** Asks for the newer version and waits until it is there. @param meanwhile what has to happen for that */
export async function upgrade(
  { cluster, client, writer }: Upgraded,
  meanwhile: () => Promise<void> = async () => {},
): Promise<void> {
  const began = performance.now();
  await changeCluster(cluster, { kubernetes: { version: NEW } });
  await meanwhile();
  const { status } = await untilReady(cluster, MAKE_MS);
  await writer.stop();
  const { acknowledged, refused, refusals, longestPauseMs } = writer;
  const pause = `${Math.round(longestPauseMs)} ms between two at most`;
  const seconds = ((performance.now() - began) / 1000).toFixed(1);
  console.log(`${seconds} s: ${acknowledged.length} writes confirmed, ${refused} not, ${pause}`, ...refusals);
  expect(status?.kubernetesVersion).toBe(NEW);
  expect((await client.serverVersion()).gitVersion).toBe(`v${NEW}`);
  expect(await writer.lost()).toEqual([]);
}

/** Versions of kubelets of nodes with these labels, or of all. */
export const kubelets = async ({ client }: Upgraded, labelSelector?: string): Promise<(string | undefined)[]> =>
  (await client.list<Node>(NODES, { ...(labelSelector && { labelSelector }) })).items.map(
    ({ status }) => status?.nodeInfo?.kubeletVersion,
  );

/** Runs a pod that may not be evicted on a node for workloads. */
export async function runGuarded({ client }: Upgraded): Promise<void> {
  await run(client, { name: GUARDED });
  await client.apply(guard(GUARDED), { fieldManager: 'coppice-e2e' });
}

/**
 * Waits until the node with the guarded pod is to be drained, expects that the control plane is new by then, and lets the pod go.
 * @param servers pods of it; absent: those in the seed
 */
export async function letGo({ cluster, client }: Upgraded, servers = () => serversInSeed(cluster)): Promise<void> {
  const draining = new RegExp(`PodDisruptionBudget blocks the eviction of default/${GUARDED}-`);
  await until(
    cluster,
    (found) => draining.test(findCondition(found?.status?.conditions, 'Draining')?.message ?? ''),
    'to say that a PodDisruptionBudget blocks the eviction of a pod',
    MAKE_MS,
  );
  const all = await servers();
  expect(all.length).toBeGreaterThan(0);
  expect(all.filter((pod) => !isNew(pod)).map(({ metadata }) => metadata.name)).toEqual([]);
  await client.delete(PDBS, GUARDED, 'default');
}

const serversInSeed = async (cluster: Name): Promise<Pod[]> => (await seedPods(cluster)).filter(servesAPI);
const servesAPI = ({ metadata: { labels } }: Pod): boolean =>
  labels?.app === 'kube-apiserver' || labels?.[LABELS.role] === ROLES.controlPlaneMachine;
const isNew = ({ spec }: Pod): boolean => spec.containers.some(({ image }) => image?.endsWith(`:v${NEW}`));
