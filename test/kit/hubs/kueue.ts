import { errorText } from '../../../operator/api/errors.ts';
import { ORIGIN } from '../../../operator/hubs/kueue.ts';
import { LOCALQUEUES, MULTIKUEUECLUSTERS, MULTIKUEUECONFIGS, WORKLOADS } from '../../../operator/hubs/kueue-kinds.ts';
import { KubeClient } from '../../../operator/kube/client.ts';
import { parseUntrustedKubeconfig } from '../../../operator/kube/kubeconfig.ts';
import {
  decodeSecret,
  type KubeObject,
  keyOf,
  type Resource,
  SECRETS,
  type Secret,
} from '../../../operator/kube/resources.ts';
import { StandIn } from './stand-in.ts';

const NAMESPACE = 'kueue-system';
const JOBS: Resource = { group: 'batch', version: 'v1', plural: 'jobs', kind: 'Job', namespaced: true };

interface Condition {
  type: string;
  status: string;
  reason: string;
  message: string;
  lastTransitionTime: string;
}
type Workload = KubeObject & {
  spec: { queueName?: string };
  status?: { clusterName?: string; conditions?: Condition[] };
};

const condition = (type: string, status: boolean, reason: string, message = reason): Condition => ({
  type,
  status: status ? 'True' : 'False',
  reason,
  message,
  lastTransitionTime: '2026-11-22T12:00:00Z',
});
const is = ({ status }: KubeObject & { status?: { conditions?: Condition[] } }, type: string): boolean =>
  status?.conditions?.some((one) => one.type === type && one.status === 'True') ?? false;

/**
 * What of MultiKueue meets its worker clusters, as the sources of Kueue 0.20 say and 0.19.2 was seen to do; it dispatches to all at once.
 * In its place in tests only. Of note: what runs on a cluster that is not in the list counts as lost at once and is dispatched anew, while
 * its Workload and its job in that cluster stay as they are.
 */
export class KueueManager extends StandIn {
  /** False: the clusters are dead. */
  answers = true;

  constructor(client: KubeClient) {
    super(client, [SECRETS, MULTIKUEUECLUSTERS, MULTIKUEUECONFIGS, WORKLOADS]);
  }

  protected override async reconcile(): Promise<void> {
    const lines = new Map<string, KubeClient>();
    try {
      for (const cluster of await this.list(MULTIKUEUECLUSTERS)) await this.#connect(cluster, lines);
      const configs = await this.list(MULTIKUEUECONFIGS);
      const listed = configs.flatMap(({ spec }) => (spec as { clusters: string[] }).clusters);
      const remotes = new Map([...lines].filter(([name]) => listed.includes(name)));
      for (const workload of await this.list<Workload>(WORKLOADS)) await this.#dispatch(workload, listed, remotes);
    } finally {
      await Promise.all([...lines.values()].map((line) => line.close()));
    }
  }

  async #connect({ metadata: { name }, spec, status }: KubeObject, lines: Map<string, KubeClient>): Promise<void> {
    const { kubeConfig } = (spec as { clusterSource: { kubeConfig?: { location: string } } }).clusterSource;
    // It is one of a ClusterProfile.
    if (!kubeConfig) return;
    const { location } = kubeConfig;
    const secret = await this.client.getOrUndefined<Secret>(SECRETS, location, NAMESPACE);
    const { kubeconfig } = decodeSecret(secret?.data);
    let active = condition('Active', true, 'Active', 'Connected');
    if (!kubeconfig) {
      active = condition('Active', false, 'BadKubeConfig', `secrets "${location}" not found`);
    } else {
      const line = new KubeClient(parseUntrustedKubeconfig(kubeconfig));
      try {
        if (!this.answers) throw new Error('i/o timeout');
        // It watches what it has made, and the jobs: it does not connect where it may not, or where they are not served.
        for (const kind of [WORKLOADS, JOBS]) await line.list(kind, { labelSelector: `${ORIGIN}=multikueue` });
        lines.set(name, line);
      } catch (error) {
        await line.close();
        active = condition('Active', false, 'ClientConnectionFailed', errorText(error));
      }
    }
    const said = (status as { conditions?: Condition[] } | undefined)?.conditions?.[0];
    if (said?.status === active.status && said.reason === active.reason && said.message === active.message) return;
    const patch = { status: { conditions: [active] } };
    await this.client.mergePatch(MULTIKUEUECLUSTERS, name, undefined, patch, { subresource: 'status' });
  }

  async #dispatch(local: Workload, listed: string[], lines: ReadonlyMap<string, KubeClient>): Promise<void> {
    const { name, namespace } = local.metadata;
    const at = local.status?.clusterName;
    if (is(local, 'Finished')) {
      for (const line of lines.values()) await remove(line, local);
      return;
    }
    // It is waited for, for workerLostTimeout: 15 minutes.
    if (at && listed.includes(at) && !lines.has(at)) return;
    let chosen: string | undefined;
    for (const [cluster, line] of lines) {
      const remote = await line.getOrUndefined<Workload>(WORKLOADS, name, namespace);
      if (remote && is(remote, 'Evicted')) await remove(line, local);
      else if (!remote && !at) await line.create(cloneOf(local), { resource: WORKLOADS });
      else if (remote && is(remote, 'Admitted') && (at === cluster || !at)) chosen ??= cluster;
    }
    if (chosen) {
      for (const [cluster, line] of lines) if (cluster !== chosen) await remove(line, local);
      const line = lines.get(chosen)!;
      const job = jobOf(local);
      if (!(await line.getOrUndefined(JOBS, job.metadata.name, namespace))) {
        const { metadata } = await line.create(job, { resource: JOBS });
        // Kueue in the worker does it.
        const owner = { apiVersion: 'batch/v1', kind: 'Job', name: metadata.name, uid: metadata.uid, controller: true };
        const ownerReferences = [owner];
        await line.mergePatch(WORKLOADS, name, namespace, { metadata: { ownerReferences } });
      }
    }
    if (chosen === at) return;
    const patch = { status: { clusterName: chosen ?? null, nominatedClusterNames: null } };
    await this.client.mergePatch(WORKLOADS, name, namespace, patch, { subresource: 'status' });
  }
}

/** Kueue in a worker: it admits, unless a Workload's queue is stopped, and evicts what runs where the queue is drained. */
export class KueueWorker extends StandIn {
  readonly #told: () => void;

  /** @param told called when something has changed that the manager watches */
  constructor(client: KubeClient, told: () => void) {
    super(client, [WORKLOADS, LOCALQUEUES]);
    this.#told = told;
  }

  protected override async reconcile(): Promise<void> {
    const queues = new Map((await this.list(LOCALQUEUES)).map((queue) => [keyOf(queue), queue]));
    for (const workload of await this.list<Workload>(WORKLOADS)) {
      const { name, namespace } = workload.metadata;
      const { stopPolicy } = (queues.get(`${namespace}/${workload.spec.queueName}`)?.spec ?? {}) as {
        stopPolicy?: string;
      };
      const runs = is(workload, 'Admitted');
      const conditions =
        !runs && !is(workload, 'Evicted') && stopPolicy === 'None'
          ? [condition('Admitted', true, 'Admitted')]
          : runs && stopPolicy === 'HoldAndDrain'
            ? [condition('Admitted', false, 'NoReservation'), condition('Evicted', true, 'LocalQueueStopped')]
            : undefined;
      const status = conditions && { conditions };
      if (status) await this.client.mergePatch(WORKLOADS, name, namespace, { status }, { subresource: 'status' });
    }
    this.#told();
  }
}

/** How Kueue names the Workload of a Job, but for the hash at its end. */
export const workloadName = (job: string): string => `job-${job}`;

/** What Kueue makes of a job of the hub, in LocalQueue `jobs`. */
export const workload = (job: string, namespace: string): KubeObject => ({
  apiVersion: 'kueue.x-k8s.io/v1beta2',
  kind: 'Workload',
  metadata: { name: workloadName(job), namespace },
  spec: { queueName: 'jobs', podSets: [{ name: 'main', count: 1, template: { spec: { containers: [CONTAINER] } } }] },
});

/** A LocalQueue `jobs`. */
export const localQueue = (namespace: string): KubeObject => ({
  apiVersion: 'kueue.x-k8s.io/v1beta2',
  kind: 'LocalQueue',
  metadata: { name: 'jobs', namespace },
  spec: { clusterQueue: 'all' },
});

const CONTAINER = { name: 'main', image: 'job' };

const cloneOf = ({ apiVersion, kind, metadata, spec }: Workload): KubeObject => ({
  apiVersion,
  kind,
  metadata: { name: metadata.name, namespace: metadata.namespace!, labels: { [ORIGIN]: 'multikueue' } },
  spec,
});

const jobOf = ({ metadata: { name, namespace } }: Workload): KubeObject => ({
  apiVersion: 'batch/v1',
  kind: 'Job',
  metadata: { name: name.replace(workloadName(''), ''), namespace: namespace!, labels: { [ORIGIN]: 'multikueue' } },
  spec: { template: { spec: { restartPolicy: 'Never', containers: [CONTAINER] } } },
});

async function remove(line: KubeClient, local: Workload): Promise<void> {
  const { name, namespace } = local.metadata;
  for (const [kind, one] of [
    [JOBS, jobOf(local).metadata.name],
    [WORKLOADS, name],
  ] as const)
    if (await line.getOrUndefined(kind, one, namespace))
      await line.delete(kind, one, namespace, { propagationPolicy: 'Background' });
}
