import { setTimeout as delay } from 'node:timers/promises';
import type { KubeClient } from '../../../operator/kube/client.ts';
import { KubeApiError } from '../../../operator/kube/errors.ts';
import {
  CSIDRIVERS,
  CSINODES,
  type KubeObject,
  NODES,
  PODS,
  type Pod,
  PVCS,
  PVS,
  type Resource,
  resourceOf,
  STORAGECLASSES,
  VOLUMEATTACHMENTS,
} from '../../../operator/kube/resources.ts';
import { type FitCase, NAMESPACES_OF_CASES, OPEN, objectsOf, SUBJECT } from './case.ts';

/** Nothing tells that the scheduler has seen all that there is: its caches follow within milliseconds. */
const SETTLE_MS = 120;
const PATIENCE_MS = 120_000;
const HOLD = 'coppice.example.com/hold';
const GATE = 'coppice.example.com/not-yet';
const OF_ALL = [NODES, CSINODES, PVS, STORAGECLASSES, CSIDRIVERS, VOLUMEATTACHMENTS];

/** Shows cases to a kube-scheduler, one after the other, in a cluster that is empty in between. */
export class Recorder {
  readonly #client: KubeClient;

  constructor(client: KubeClient) {
    this.#client = client;
  }

  /** To be called once, before the first case. */
  async prepare(): Promise<void> {
    for (const [name, labels] of Object.entries(NAMESPACES_OF_CASES))
      await this.#client.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels } });
  }

  /**
   * What the scheduler says, asked so long after all else is there: null when it takes the open node, else its message. undefined: the API
   * server refuses an object of the case.
   */
  async verdict(of: FitCase, settleMs = SETTLE_MS): Promise<string | null | undefined> {
    const created: KubeObject[] = [];
    try {
      return await this.#ask(of, created, settleMs);
    } catch (error) {
      if (error instanceof KubeApiError && [400, 422].includes(error.status)) return undefined;
      throw error;
    } finally {
      await this.#clean(created);
    }
  }

  async #ask(of: FitCase, created: KubeObject[], settleMs: number): Promise<string | null> {
    const objects = objectsOf(of);
    const waitsForClaim = objects.claims.some(({ metadata }) => metadata.ownerReferences);
    // All are tried before any refusal is told, so that all that were made are known.
    const make = async (all: readonly KubeObject[]) => {
      const results = await Promise.allSettled(all.map((object) => this.#make(object, created)));
      return results.map((result) => {
        if (result.status === 'rejected') throw result.reason;
        return result.value;
      });
    };
    let subject = { ...objects.subject };
    if (waitsForClaim) {
      subject.spec = { ...subject.spec, schedulingGates: [{ name: GATE }] };
      [subject] = (await make([subject])) as [Pod];
    }
    const uid = subject.metadata.uid!;
    const claims = objects.claims.map((claim) =>
      claim.metadata.ownerReferences
        ? {
            ...claim,
            metadata: {
              ...claim.metadata,
              ownerReferences: claim.metadata.ownerReferences.map((one) => ({ ...one, uid })),
            },
          }
        : claim,
    );
    await make([
      ...objects.nodes,
      ...objects.csiNodes,
      ...objects.classes,
      ...objects.drivers,
      ...objects.volumes,
      ...claims,
      ...objects.attachments,
    ]);
    await make(objects.pods);
    await delay(settleMs);
    const { namespace } = objects.subject.metadata;
    if (waitsForClaim) await this.#client.mergePatch(PODS, SUBJECT, namespace, { spec: { schedulingGates: null } });
    else await make([subject]);
    return this.#heard(namespace!);
  }

  async #heard(namespace: string): Promise<string | null> {
    const deadline = Date.now() + PATIENCE_MS;
    for (;;) {
      const { spec, status } = await this.#client.get<Pod>(PODS, SUBJECT, namespace);
      const node = spec.nodeName ?? status?.nominatedNodeName;
      const scheduled = status?.conditions?.find(({ type }) => type === 'PodScheduled');
      const isFound = node !== undefined || scheduled?.message?.startsWith('running PreBind plugin "VolumeBinding"');
      if (isFound) {
        if (node && node !== OPEN) throw new Error(`the scheduler chose ${node}, which should be full`);
        return null;
      }
      if (scheduled?.status === 'False' && scheduled.reason !== 'SchedulingGated') return scheduled.message ?? '';
      if (Date.now() > deadline) throw new Error('kube-scheduler does not say anything');
      await delay(5);
    }
  }

  async #make(object: KubeObject, created: KubeObject[]): Promise<KubeObject> {
    const { uid: _, deletionTimestamp, ...metadata } = object.metadata;
    const { status } = object as { status?: object };
    const resource = resourceOf(object);
    const hasOwnStatus = resource === PODS || resource === PVCS;
    const made = await this.#client.create({
      ...object,
      metadata: { ...metadata, ...(deletionTimestamp && { finalizers: [HOLD] }) },
      ...(hasOwnStatus && { status: undefined }),
    } as KubeObject);
    created.push(deletionTimestamp ? { ...made, metadata: { ...made.metadata, deletionTimestamp } } : made);
    const { name, namespace } = made.metadata;
    if (hasOwnStatus && status)
      await this.#client.mergePatch(resource, name, namespace, { status }, { subresource: 'status' });
    // A pod without a grace period, and with none who stops it, would be gone at once.
    if (deletionTimestamp)
      await this.#client.delete(resource, name, namespace, { gracePeriodSeconds: resource === PODS ? 3600 : 0 });
    return made;
  }

  async #clean(created: readonly KubeObject[]): Promise<void> {
    const namespaced = created.filter(({ metadata }) => metadata.namespace);
    await Promise.all(
      namespaced.map(async (object) => {
        const { name, namespace, deletionTimestamp } = object.metadata;
        const resource = resourceOf(object);
        if (deletionTimestamp)
          await this.#client.mergePatch(resource, name, namespace, { metadata: { finalizers: null } });
        await this.#client.delete(resource, name, namespace, { gracePeriodSeconds: 0 });
      }),
    );
    const used = new Set<Resource>(created.map(resourceOf));
    await Promise.all(
      OF_ALL.filter((resource) => used.has(resource)).map((resource) => this.#client.deleteCollection(resource)),
    );
  }
}
