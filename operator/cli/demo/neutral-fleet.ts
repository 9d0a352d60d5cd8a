import { CLUSTERPROFILES } from '../../hubs/cluster-profile.ts';
import { PLACEMENTDECISIONS } from '../../hubs/placement-decisions.ts';
import type { KubeClient } from '../../kube/client.ts';
import { Informer } from '../../kube/informer.ts';
import { podSecurityLabels } from '../../kube/pod-security.ts';
import { DEPLOYMENTS, type KubeObject, SECRETS } from '../../kube/resources.ts';
import { demoWorkOf, FIT, FLEET, MARK, PEAK, RISEN, WORK } from './burst-objects.ts';
import type { Fleet } from './fleet.ts';
import { type SchedulerProcess, startScheduler } from './scheduler-process.ts';

const UNPLACED = /"replicas":(\d+)/;

/** The neutral hub (ClusterProfile) in the garden, with the example scheduler. */
export class NeutralFleet implements Fleet {
  readonly hub = { type: 'ClusterProfile', clusterProfile: { namespace: FLEET, rights: 'Manage' } } as const;
  readonly scheduler = 'the scheduler';
  readonly kinds = 'no ClusterProfile and no Secret';
  readonly objects: readonly KubeObject[];
  readonly #garden: KubeClient;
  readonly #start: () => SchedulerProcess;
  readonly #profiles: Informer;
  readonly #decisions: Informer;
  readonly #secrets: Informer;
  #process: SchedulerProcess | undefined;
  #wanted = 0;

  /** @param said gets each line that the scheduler prints */
  constructor(
    garden: KubeClient,
    kubeconfig: string,
    env: Record<string, string | undefined>,
    said: (line: string) => void,
  ) {
    this.#garden = garden;
    this.#start = () => startScheduler(kubeconfig, env, said);
    const work = demoWorkOf(WORK, 0);
    this.objects = [
      {
        apiVersion: 'v1',
        kind: 'Namespace',
        metadata: { name: FLEET, labels: { ...MARK, ...podSecurityLabels('baseline') } },
      },
      // Paused: in a garden that is its own seed, the Deployment controller would create pods.
      { ...work, spec: { ...work.spec, paused: true } },
    ];
    const namespace = FLEET;
    this.#profiles = new Informer(garden, CLUSTERPROFILES, { namespace });
    this.#decisions = new Informer(garden, PLACEMENTDECISIONS, { namespace });
    this.#secrets = new Informer(garden, SECRETS, { namespace });
  }

  async begin(): Promise<AbortSignal> {
    for (const cache of this.caches()) cache.start();
    this.#process = this.#start();
    return this.#process.ended;
  }

  readonly caches = () => [this.#profiles, this.#decisions, this.#secrets];
  readonly nameOf = (member: string) => `ClusterProfile ${FLEET}/${member}`;

  leftOf(member: string): string[] {
    return [
      ...(this.#profiles.get(`${FLEET}/${member}`) ? [`ClusterProfile ${member}`] : []),
      ...(this.#secrets.get(`${FLEET}/${member}`) ? [`Secret ${member}`] : []),
    ];
  }

  readonly fill = (signal: AbortSignal) => this.#scale(FIT, signal);
  // The example scheduler counts its own placements.
  readonly isFull = () => true;
  readonly rise = (signal: AbortSignal) => this.#scale(RISEN, signal);
  readonly peak = (signal: AbortSignal) => this.#scale(PEAK, signal);

  refusal(): string | undefined {
    const { annotations } = this.#decisions.get(`${FLEET}/${WORK}`)?.metadata ?? {};
    const waiting = UNPLACED.exec(annotations?.['multi-cluster.demo.io/unplaced'] ?? '')?.[1];
    // The scheduler also reports 0 waiting replicas.
    if (waiting === undefined || Number(waiting) === 0) return undefined;
    return `${WORK} needs ${this.#wanted} replicas, and the scheduler finds no cluster for ${waiting} of them`;
  }

  async ebb(signal: AbortSignal): Promise<string> {
    await this.#scale(FIT, signal);
    return `${WORK} needs only ${FIT} replicas`;
  }

  async end(): Promise<void> {
    await this.#process?.stop();
    await Promise.all(this.caches().map((cache) => cache.stop()));
  }

  async #scale(replicas: number, signal: AbortSignal): Promise<void> {
    this.#wanted = replicas;
    await this.#garden.mergePatch(DEPLOYMENTS, WORK, FLEET, { spec: { replicas } }, { signal });
  }
}
