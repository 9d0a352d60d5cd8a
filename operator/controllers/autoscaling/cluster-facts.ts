import type { CSINode } from '../../burst/fit/node.ts';
import { fitPod } from '../../burst/fit/pod.ts';
import type { ClusterFacts } from '../../burst/fit/state.ts';
import { type CSIDriver, type StorageClass, type VolumeAttachment, volumeFacts } from '../../burst/fit/volume-facts.ts';
import type { KubeClient } from '../../kube/client.ts';
import {
  CSIDRIVERS,
  CSINODES,
  type KubeObject,
  NAMESPACES,
  type PersistentVolume,
  type PersistentVolumeClaim,
  type Pod,
  PVCS,
  PVS,
  type Resource,
  STORAGECLASSES,
  VOLUMEATTACHMENTS,
} from '../../kube/resources.ts';

/** What is known of a cluster besides nodes and pods. */
export interface KnownFacts {
  readonly facts: ClusterFacts;
  /** By the name of the node. */
  readonly csiNodes: ReadonlyMap<string, CSINode>;
}

export const NOTHING_KNOWN: KnownFacts = { facts: {}, csiNodes: new Map() };

/** So old may be what is known of volumes: a claim is bound within seconds of its pod's being placed, and each look asks for all of them. */
const FRESH_MS = 10_000;

type Client = Pick<KubeClient, 'list'>;

/**
 * Volumes and namespaces of clusters, asked for only while a pod waits to which they matter: nobody follows them, since most clusters
 * would be followed for nothing.
 */
export class FactsReader {
  readonly #now: () => number;
  readonly #known = new Map<string, { at: number; client: Client; known: KnownFacts }>();

  /** @param now milliseconds */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** What pods that wait make worth asking; where the cluster does not say, nothing is known, and these pods are not judged. */
  async of(key: string, client: Client, pods: readonly Pod[], signal: AbortSignal): Promise<KnownFacts> {
    const waiting = pods.filter(({ spec, metadata }) => !spec.nodeName && !metadata.deletionTimestamp).map(fitPod);
    const hasClaims = waiting.some(({ claims }) => claims.length > 0);
    const selectsNamespaces = waiting.some(({ affinity, antiAffinity }) =>
      [...affinity, ...antiAffinity].some(({ namespaceMatches }) => namespaceMatches),
    );
    if (!hasClaims && !selectsNamespaces) {
      this.#known.delete(key);
      return NOTHING_KNOWN;
    }
    const before = this.#known.get(key);
    const isEnough =
      before?.client === client &&
      this.#now() - before.at < FRESH_MS &&
      (!hasClaims || before.known.facts.volumes) &&
      (!selectsNamespaces || before.known.facts.namespaces);
    if (isEnough) return before.known;
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
