import { chmod, mkdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { GROUP } from '../../api/group.ts';
import type { KubeClient } from '../../kube/client.ts';
import { type Controller, runController } from '../../kube/controller.ts';
import { Informer } from '../../kube/informer.ts';
import type { Log } from '../../kube/log.ts';
import {
  type KubeObject,
  keyOf,
  type PersistentVolume,
  type PersistentVolumeClaim,
  PVCS,
  PVS,
} from '../../kube/resources.ts';
import { WorkQueue } from '../../kube/workqueue.ts';

export const STORAGE_CLASS = 'local';
const PROVISIONER = `${GROUP}/local`;
const PROVISIONED_BY = 'pv.kubernetes.io/provisioned-by';

/** StorageClass of the local seed: volumes are folders of its only node. */
export const storageClass = (): KubeObject => ({
  apiVersion: 'storage.k8s.io/v1',
  kind: 'StorageClass',
  metadata: { name: STORAGE_CLASS, annotations: { 'storageclass.kubernetes.io/is-default-class': 'true' } },
  provisioner: PROVISIONER,
  reclaimPolicy: 'Delete',
  volumeBindingMode: 'Immediate',
});

/** The volume of a claim, named by the claim's UID so that it is never created twice. */
export function volumeFor(claim: PersistentVolumeClaim, folder: string): PersistentVolume {
  const { name, namespace = 'default', uid = '' } = claim.metadata;
  const path = join(folder, `pvc-${uid}`);
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name: `pvc-${uid}`, annotations: { [PROVISIONED_BY]: PROVISIONER } },
    spec: {
      storageClassName: STORAGE_CLASS,
      accessModes: claim.spec.accessModes ?? ['ReadWriteOnce'],
      capacity: { storage: claim.spec.resources?.requests?.storage ?? '1Gi' },
      persistentVolumeReclaimPolicy: 'Delete',
      claimRef: { namespace, name, uid },
      hostPath: { path, type: 'Directory' },
    },
  };
}

/** Whether a claim waits for one of Coppice's volumes. */
export const wantsVolume = (claim: PersistentVolumeClaim): boolean =>
  claim.spec.storageClassName === STORAGE_CLASS && !claim.spec.volumeName && !claim.metadata.deletionTimestamp;

/** Whether one of Coppice's volumes has lost its claim. */
export const isReleased = (volume: PersistentVolume): boolean =>
  volume.metadata.annotations?.[PROVISIONED_BY] === PROVISIONER && volume.status?.phase === 'Released';

/**
 * Creates a folder and a PersistentVolume for each claim of the storage class, and removes both when the claim is gone.
 */
export class LocalVolumes {
  readonly #client: KubeClient;
  readonly #folder: string;
  readonly #claims: Informer<PersistentVolumeClaim>;
  readonly #volumes: Informer<PersistentVolume>;
  readonly #queue = new WorkQueue({ maxDelayMs: 10_000 });
  #controller: Controller | undefined;

  constructor(client: KubeClient, folder: string, log: Log) {
    this.#client = client;
    this.#folder = folder;
    this.#claims = new Informer(client, PVCS, { log });
    this.#volumes = new Informer(client, PVS, { log });
    this.#claims.onChange(({ object }) => this.#queue.add(`claim/${keyOf(object)}`));
    this.#volumes.onChange(({ object }) => this.#queue.add(`volume/${keyOf(object)}`));
    this.#log = log;
  }

  readonly #log: Log;

  start(): void {
    this.#controller = runController({
      name: 'local-volumes',
      queue: this.#queue,
      log: this.#log,
      reconcile: async (key) => {
        const [kind, ...rest] = key.split('/');
        if (kind === 'claim') await this.#provide(rest.join('/'));
        else await this.#reclaim(rest.join('/'));
      },
    });
    this.#claims.start();
    this.#volumes.start();
  }

  async stop(): Promise<void> {
    await Promise.all([this.#controller?.stop(), this.#claims.stop(), this.#volumes.stop()]);
  }

  async #provide(key: string): Promise<void> {
    const claim = this.#claims.get(key);
    if (!claim || !wantsVolume(claim)) return;
    const volume = volumeFor(claim, this.#folder);
    if (this.#volumes.get(volume.metadata.name)) return;
    const path: string = volume.spec.hostPath.path;
    await mkdir(path, { recursive: true });
    // For pods of any user; the parent folder is closed to others.
    await chmod(path, 0o777);
    await this.#sayBound(claim, volume);
    await this.#client.apply(volume);
  }

  /**
   * Sets the claim's phase before the volume exists. Kubernetes binds in two writes: the claim's volume, by which the
   * scheduler places the pod, then the phase. A kubelet that reads the claim in between considers it unbound and
   * retries only after 10 to 15 s.
   */
  async #sayBound({ metadata, status }: PersistentVolumeClaim, { spec }: PersistentVolume): Promise<void> {
    if (status?.phase === 'Bound') return;
    const { name, namespace } = metadata;
    const bound = { phase: 'Bound', capacity: spec.capacity, accessModes: spec.accessModes };
    await this.#client.mergePatch(PVCS, name, namespace, { status: bound }, { subresource: 'status' });
  }

  async #reclaim(name: string): Promise<void> {
    const volume = this.#volumes.get(name);
    if (!volume || !isReleased(volume)) return;
    const path = join(this.#folder, name);
    const gone = `${path}.removed`;
    // Renamed first: writes of a terminating pod cannot delay the removal.
    await rename(path, gone).catch((error) => {
      if (error.code !== 'ENOENT') throw error;
    });
    await rm(gone, { recursive: true, force: true });
    await this.#client.delete(PVS, name, undefined, { preconditions: { uid: volume.metadata.uid } });
  }
}
