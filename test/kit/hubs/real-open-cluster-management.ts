import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { KubeObject } from '../../../operator/kube/resources.ts';
import { createCA, issue } from '../../../operator/pki/certificates.ts';
import { freePorts, startApiserver, type TestApiserver } from '../apiserver.ts';
import { runControllers } from './controllers.ts';
import { HostedAgents } from './hosted-agents.ts';
import { Processes } from './processes.ts';
import { serveKinds } from './serve-kinds.ts';

const WEBHOOK_SECONDS = 10;

/** The real Open Cluster Management as processes on loopback. Its programs, and its CRDs in a folder `ocm-crds`, were built and laid beside. */
export class RealOpenClusterManagement {
  /** Of the hub; stopped by whoever has it. */
  readonly apiserver: TestApiserver;
  readonly #processes: Processes;
  readonly #programs: string;
  readonly #agents: HostedAgents;

  private constructor(apiserver: TestApiserver, processes: Processes, programs: string) {
    this.apiserver = apiserver;
    this.#processes = processes;
    this.#programs = programs;
    this.#agents = new HostedAgents(apiserver, processes, join(programs, 'ocm-registration-operator'));
  }

  /** @param programs folder with ocm-registration, ocm-work, ocm-placement, ocm-registration-operator and ocm-crds */
  static async start(programs: string): Promise<RealOpenClusterManagement> {
    const processes = await Processes.begin('ocm');
    const apiserver = await startApiserver();
    const hub = new RealOpenClusterManagement(apiserver, processes, programs);
    try {
      await hub.#install();
      return hub;
    } catch (error) {
      await hub.stop();
      await apiserver.stop();
      throw error;
    }
  }

  /** Ends all but the API server. */
  async stop(): Promise<void> {
    await this.#agents.stop();
    await this.#processes.stop();
  }

  /** What of kube-controller-manager a member has that is left: its namespaces end. */
  async controllersOf(member: TestApiserver, name: string): Promise<void> {
    await runControllers(this.#processes, member, name, ['namespace', 'clusterrole-aggregation']);
  }

  async #install(): Promise<void> {
    const { client, keys, kubeconfig: access } = this.apiserver;
    for (const name of ['open-cluster-management', 'open-cluster-management-hub'])
      await client.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
    await serveKinds(client, [join(this.#programs, 'ocm-crds')]);
    const signing = [
      `--cluster-signing-cert-file=${await this.#processes.file('ca.crt', keys.ca.cert)}`,
      `--cluster-signing-key-file=${await this.#processes.file('ca.key', keys.ca.key)}`,
    ];
    const controllers = ['namespace', 'garbagecollector', 'csrsigning'];
    await runControllers(this.#processes, this.apiserver, 'hub', controllers, signing);
    const kubeconfig = await this.#processes.file('kubeconfig', access);
    await this.#webhook(kubeconfig);
    await this.#controller('ocm-registration', ['controller'], kubeconfig);
    await this.#controller('ocm-placement', ['controller'], kubeconfig);
    await this.#controller('ocm-work', ['manager', '--feature-gates=ManifestWorkReplicaSet=true'], kubeconfig);
    await this.#controller('ocm-registration-operator', ['klusterlet'], kubeconfig);
    await this.#agents.start();
  }

  async #controller(program: string, args: string[], kubeconfig: string): Promise<void> {
    const [port] = await freePorts(1);
    this.#processes.run(join(this.#programs, program), program, [
      ...args,
      `--kubeconfig=${kubeconfig}`,
      `--listen=127.0.0.1:${port}`,
      '--namespace=open-cluster-management-hub',
      '--disable-leader-election',
    ]);
  }

  /** By it taints get their times, and clusters their set. */
  async #webhook(kubeconfig: string): Promise<void> {
    const [port, metrics, health] = await freePorts(3);
    const ca = await createCA({ commonName: 'ocm-test', days: 2 });
    const serving = await issue(ca, { commonName: 'ocm', dnsNames: ['localhost'], usages: ['server'], days: 1 });
    const directory = join(this.#processes.directory, 'webhook');
    await mkdir(directory);
    await this.#processes.file('webhook/tls.crt', serving.cert);
    await this.#processes.file('webhook/tls.key', serving.key);
    const ports = [`--port=${port}`, `--metrics-port=${metrics}`, `--health-probe-port=${health}`];
    const args = ['webhook-server', `--certdir=${directory}`, ...ports, '--feature-gates=DefaultClusterSet=true'];
    this.#processes.run(join(this.#programs, 'ocm-registration'), 'webhook', args, { env: { KUBECONFIG: kubeconfig } });
    const caBundle = Buffer.from(ca.cert).toString('base64');
    for (const [kind, verb] of [
      ['MutatingWebhookConfiguration', 'mutate'],
      ['ValidatingWebhookConfiguration', 'validate'],
    ] as const) {
      const resource = {
        group: 'admissionregistration.k8s.io',
        version: 'v1',
        plural: `${kind.toLowerCase()}s`,
        kind,
        namespaced: false,
      };
      const rule = {
        operations: ['CREATE', 'UPDATE'],
        apiGroups: ['cluster.open-cluster-management.io'],
        apiVersions: ['*'],
        resources: ['managedclusters'],
      };
      const path = `${verb}-cluster-open-cluster-management-io-v1-managedcluster`;
      const configuration: KubeObject = {
        apiVersion: 'admissionregistration.k8s.io/v1',
        kind,
        metadata: { name: 'managedclusters' },
        webhooks: [
          {
            name: 'managedclusters.admission.cluster.open-cluster-management.io',
            rules: [rule],
            clientConfig: { url: `https://localhost:${port}/${path}`, caBundle },
            failurePolicy: 'Fail',
            sideEffects: 'None',
            admissionReviewVersions: ['v1'],
            timeoutSeconds: WEBHOOK_SECONDS,
          },
        ],
      };
      await this.apiserver.client.apply(configuration, { resource });
    }
  }
}
