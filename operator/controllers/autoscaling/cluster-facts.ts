import type { WorkerPool } from '../../api/worker-pool.ts';
import type { DaemonSet } from '../../burst/fit/daemons.ts';
import { isBound } from '../../burst/fit/filters/volumes.ts';
import type { FitPod } from '../../burst/fit/model.ts';
import type { CSINode } from '../../burst/fit/node.ts';
import { fitPod } from '../../burst/fit/pod.ts';
import type { ClusterFacts } from '../../burst/fit/state.ts';
import {
  type CSIDriver,
  type StorageClass,
  type VolumeAttachment,
  type VolumeFacts,
  volumeFacts,
} from '../../burst/fit/volume-facts.ts';
import type { WhyBlocked } from '../../burst/nodes/pod-budgets.ts';
import type { KubeClient } from '../../kube/client.ts';
import { isMovable } from '../../kube/pods.ts';
import {
  CSIDRIVERS,
  CSINODES,
  type KubeObject,
  NAMESPACES,
  type Node,
  type PersistentVolume,
  type PersistentVolumeClaim,
  type Pod,
  PVCS,
  PVS,
  type Resource,
  STORAGECLASSES,
  VOLUMEATTACHMENTS,
} from '../../kube/resources.ts';
import { byPool } from './nodes-seen.ts';

/** Facts about a cluster besides nodes and pods. */
export interface KnownFacts {
  readonly facts: ClusterFacts;
  /**
   * Time of the next read, milliseconds since the epoch: a running pod has a volume newer than the facts. Absent: none.
   */
  readonly againAt?: number;
  /** Present PodDisruptionBudgets, by BudgetsReader. Absent: not needed. */
  readonly whyBlocked?: WhyBlocked | 'unknown';
  /** Absent: unknown. */
  readonly daemonSets?: readonly DaemonSet[];
  /** By node name. */
  readonly csiNodes: ReadonlyMap<string, CSINode>;
}

const NOTHING_KNOWN: KnownFacts = { facts: {}, csiNodes: new Map() };

/** Cache time of volumes: a claim is bound within seconds after scheduling, and each read lists all. */
const FRESH_MS = 10_000;
/** Cache time when no pod waits: volumes of running pods do not move, and attachments matter little. */
const FRESH_FOR_RUNNING_MS = 60_000;

type Client = Pick<KubeClient, 'list'>;

/** Pods on nodes of pools above their minimum: such a node may be removed, and its pods moved. Pure. */
export function podsThatMayMove(
  pools: readonly Pick<WorkerPool, 'name' | 'minimum'>[],
  nodes: readonly Node[],
  pods: readonly Pod[],
): Pod[] {
  const ofPool = byPool(nodes);
  const may = pools.flatMap(({ name, minimum = 0 }) => {
    const there = ofPool.get(name) ?? [];
    return there.length > minimum ? there.map(({ metadata }) => metadata.name) : [];
  });
  const on = new Set(may);
  return pods.filter((pod) => on.has(pod.spec.nodeName ?? '') && isMovable(pod) && !pod.metadata.deletionTimestamp);
}

/**
 * Volumes and namespaces of clusters, read only while they matter to a pending or movable pod: watching them would be
 * useless for most clusters.
 */
export class FactsReader {
  readonly #now: () => number;
  readonly #known = new Map<string, { at: number; client: Client; known: KnownFacts }>();

  /** @param now milliseconds */
  constructor(now: () => number) {
    this.#now = now;
  }

  /**
   * Reads what these pods need; if the cluster does not answer, facts are missing and the pods are not judged.
   * @param pods pending pods, with or without others
   * @param moving running pods that may have to move
   */
  async of(
    key: string,
    client: Client,
    { pods, moving }: { pods: readonly Pod[]; moving: readonly Pod[] },
    signal: AbortSignal,
  ): Promise<KnownFacts> {
    const waiting = pods.filter(({ spec, metadata }) => !spec.nodeName && !metadata.deletionTimestamp).map(fitPod);
    const running = moving.map(fitPod);
    const hasClaims = [...waiting, ...running].some((pod) => pod.claims.length > 0);
    const selectsNamespaces = [...waiting, ...running].some(looksUpNamespaces);
    if (!hasClaims && !selectsNamespaces) {
      this.#known.delete(key);
      return NOTHING_KNOWN;
    }
    const before = this.#known.get(key);
    const isPartlyUnknown = running.some((pod) => !areVolumesKnown(pod, before?.known.facts.volumes));
    const isUrgent = isPartlyUnknown || waiting.some((pod) => pod.claims.length > 0 || looksUpNamespaces(pod));
    const isEnough =
      before?.client === client &&
      this.#now() - before.at < (isUrgent ? FRESH_MS : FRESH_FOR_RUNNING_MS) &&
      (!hasClaims || before.known.facts.volumes) &&
      (!selectsNamespaces || before.known.facts.namespaces);
    if (isEnough) return isPartlyUnknown ? { ...before.known, againAt: before.at + FRESH_MS } : before.known;
    const [volumes, namespaces] = await Promise.all([
      hasClaims ? readVolumes(client, signal) : undefined,
      selectsNamespaces ? readNamespaces(client, signal) : undefined,
    ]);
    const known: KnownFacts = {
      facts: { volumes: volumes?.volumes, namespaces },
      csiNodes: volumes?.csiNodes ?? new Map(),
    };
    this.#known.set(key, { at: this.#now(), client, known });
    return known;
  }

  forget(key: string): void {
    this.#known.delete(key);
  }
}

const looksUpNamespaces = ({ affinity, antiAffinity }: FitPod): boolean =>
  [...affinity, ...antiAffinity].some(({ namespaceMatches }) => namespaceMatches !== undefined);

/** Whether all claims of a running pod are known with their volumes: one read before binding is not. */
const areVolumesKnown = ({ namespace, claims }: FitPod, facts: VolumeFacts | undefined): boolean =>
  claims.every(({ name }) => {
    const claim = facts?.claims.get(`${namespace}/${name}`);
    return claim !== undefined && isBound(claim) && facts!.volumes.has(claim.spec.volumeName!);
  });

async function readVolumes(client: Client, signal: AbortSignal) {
  const [claims, volumes, classes, drivers, attachments, csiNodes] = await Promise.all([
    listed<PersistentVolumeClaim>(client, PVCS, signal),
    listed<PersistentVolume>(client, PVS, signal),
    listed<StorageClass>(client, STORAGECLASSES, signal),
    listed<CSIDriver>(client, CSIDRIVERS, signal),
    listed<VolumeAttachment>(client, VOLUMEATTACHMENTS, signal),
    listed<KubeObject & CSINode>(client, CSINODES, signal),
  ]);
  return {
    volumes: volumeFacts({ claims, volumes, classes, drivers, attachments }),
    csiNodes: new Map(csiNodes.map((one) => [one.metadata.name, one])),
  };
}

const readNamespaces = async (client: Client, signal: AbortSignal) =>
  new Map(
    (await listed<KubeObject>(client, NAMESPACES, signal)).map(({ metadata }) => [
      metadata.name,
      metadata.labels ?? {},
    ]),
  );

const listed = async <T extends KubeObject>(client: Client, resource: Resource, signal: AbortSignal): Promise<T[]> =>
  (await client.list<T>(resource, { signal })).items;
