import { isNotFound } from '../../../operator/kube/errors.ts';
import { Informer } from '../../../operator/kube/informer.ts';
import { NODES, PODS, type Pod, SERVICEACCOUNTS } from '../../../operator/kube/resources.ts';
import type { TestApiserver } from '../apiserver.ts';
import { testTools } from '../tools.ts';
import { runControllers } from './controllers.ts';
import { addNode } from './hub-testbed.ts';
import type { Processes } from './processes.ts';

const PATIENCE_MS = 60_000;
/** What makes pods of Deployments and Jobs and takes them away, ends namespaces, and counts for PodDisruptionBudgets. */
const CONTROLLERS = [
  'namespace',
  'serviceaccount',
  'deployment',
  'replicaset',
  'job',
  'garbagecollector',
  'disruption',
];

/**
 * A member whose pods are made and placed by the real controllers and the real kube-scheduler. There is no kubelet: a pod that has a node
 * is said to run, and one that is deleted is gone at once.
 */
export class SchedulingMember {
  readonly #member: TestApiserver;
  readonly #cache: Informer<Pod>;
  #failure: unknown;
  /** All pods, as the operator sees them. */
  readonly pods: Pod[] = [];

  private constructor(member: TestApiserver) {
    this.#member = member;
    this.#cache = new Informer<Pod>(member.client, PODS);
    this.#cache.onChange(({ type, object }) => {
      this.pods.splice(0, this.pods.length, ...this.#cache.list());
      if (type !== 'deleted')
        this.#tend(object).catch((error: unknown) => {
          if (!isNotFound(error)) this.#failure = error;
        });
    });
  }

  /** @param name of its logs */
  static async start(processes: Processes, member: TestApiserver, name: string): Promise<SchedulingMember> {
    await runControllers(processes, member, name, CONTROLLERS);
    const { 'kube-scheduler': binary } = await testTools('kube-scheduler');
    const kubeconfig = await processes.file(`scheduler-${name}.kubeconfig`, member.kubeconfig);
    const args = [`--kubeconfig=${kubeconfig}`, '--leader-elect=false', '--secure-port=0'];
    processes.run(binary, `scheduler-${name}`, args);
    const started = new SchedulingMember(member);
    started.#cache.start();
    await started.#cache.whenSynced(AbortSignal.timeout(PATIENCE_MS));
    return started;
  }

  /** A node that takes pods: the taint of a new one, which its kubelet would have taken off, is off. */
  async addNode(name: string, cpu: string, memory: string, labels: Record<string, string> = {}): Promise<void> {
    const { client } = this.#member;
    await addNode(this.#member, name, cpu, memory);
    await client.mergePatch(NODES, name, undefined, { metadata: { labels }, spec: { taints: null } });
  }

  /** A pod of 100m on this node, as systems have. */
  async addSystemPod(nodeName: string): Promise<void> {
    const { client } = this.#member;
    const containers = [{ name: 'proxy', image: 'pause', resources: { requests: { cpu: '100m', memory: '64Mi' } } }];
    await this.#accountIn('kube-system');
    await client.create({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: `proxy-${nodeName}`, namespace: 'kube-system' },
      spec: { nodeName, containers },
    });
  }

  /** Pods of a namespace are refused before its controller has made their account. */
  async #accountIn(namespace: string): Promise<void> {
    const accounts = new Informer(this.#member.client, SERVICEACCOUNTS, { namespace });
    accounts.start();
    try {
      const found = () => accounts.get(`${namespace}/default`);
      await accounts.waitFor(found, { timeoutMs: PATIENCE_MS, what: `an account in ${namespace}` });
    } finally {
      await accounts.stop();
    }
  }

  /** Pods of Deployment shop/<app> that have a node, and those that have none. */
  podsOf(app: string): { running: number; pending: number } {
    if (this.#failure) throw this.#failure;
    const all = this.pods.filter(
      ({ metadata }) => metadata.labels?.app === app && metadata.deletionTimestamp === undefined,
    );
    const running = all.filter(({ status }) => status?.phase === 'Running').length;
    return { running, pending: all.length - running };
  }

  /** Has the pods of this name succeed that run: those of a Job end so, and the Job with them. */
  async finish(app: string): Promise<void> {
    const conditions = [{ type: 'Ready', status: 'False', reason: 'PodCompleted' }];
    const state = { terminated: { exitCode: 0, reason: 'Completed' } };
    for (const { metadata, status } of this.#cache.list()) {
      if (metadata.labels?.app !== app || status?.phase !== 'Running') continue;
      const done = {
        phase: 'Succeeded',
        conditions,
        containerStatuses: [{ name: 'main', ready: false, restartCount: 0, image: 'job', imageID: 'job', state }],
      };
      const { client } = this.#member;
      await client.mergePatch(PODS, metadata.name, metadata.namespace, { status: done }, { subresource: 'status' });
    }
  }

  async stop(): Promise<void> {
    await this.#cache.stop();
  }

  async #tend({ metadata: { namespace, name, deletionTimestamp, uid }, spec, status }: Pod): Promise<void> {
    const { client } = this.#member;
    if (deletionTimestamp) {
      const preconditions = { ...(uid && { uid }) };
      await client.delete(PODS, name, namespace, { gracePeriodSeconds: 0, preconditions });
    } else if (spec.nodeName && (status?.phase ?? 'Pending') === 'Pending') {
      const conditions = ['Initialized', 'ContainersReady', 'Ready'].map((type) => ({ type, status: 'True' }));
      const running = { phase: 'Running', conditions };
      await client.mergePatch(PODS, name, namespace, { status: running }, { subresource: 'status' });
    }
  }
}
