import type { ChildProcess } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { requestToken } from '../../../operator/clusters/service-account-token.ts';
import type { KubeObject } from '../../../operator/kube/resources.ts';
import { createCA, issue } from '../../../operator/pki/certificates.ts';
import { writeKubeconfigText } from '../../../operator/pki/kubeconfig.ts';
import { freePorts, startApiserver, type TestApiserver } from '../apiserver.ts';
import { runControllers } from './controllers.ts';
import { agentRun } from './karmada-agent.ts';
import { Processes } from './processes.ts';
import { serveKinds } from './serve-kinds.ts';

const PATIENCE_MS = 120_000;
const SYSTEM = 'karmada-system';
const AGGREGATED = 'karmada-aggregated-apiserver';
/** Karmada's own default: the one webhook that it cannot do without schedules nothing while it is away. */
const WEBHOOK_SECONDS = 10;
const DAY = 24 * 3600;

/** What of Karmada's webhook a binding needs to be scheduled: without it no policy has a scheduler, and no binding an id. */
const WEBHOOKS: readonly { group: string; plural: string; operations: string[]; path: string }[] = [
  {
    group: 'policy',
    plural: 'propagationpolicies',
    operations: ['CREATE', 'UPDATE'],
    path: 'mutate-propagationpolicy',
  },
  { group: 'work', plural: 'resourcebindings', operations: ['CREATE'], path: 'mutate-resourcebinding' },
  { group: 'work', plural: 'clusterresourcebindings', operations: ['CREATE'], path: 'mutate-clusterresourcebinding' },
  { group: 'work', plural: 'works', operations: ['CREATE', 'UPDATE'], path: 'mutate-work' },
];

/** The real Karmada as processes on loopback. Its programs, and its CRDs in a folder `karmada-crds`, were built and laid beside. */
export class RealKarmada {
  /** Its API server; stopped by whoever has it. */
  readonly apiserver: TestApiserver;
  readonly #processes: Processes;
  readonly #programs: string;

  private constructor(apiserver: TestApiserver, processes: Processes, programs: string) {
    this.apiserver = apiserver;
    this.#processes = processes;
    this.#programs = programs;
  }

  /** @param programs folder with karmada-controller-manager, -scheduler, -webhook, -aggregated-apiserver and karmada-crds */
  static async start(programs: string): Promise<RealKarmada> {
    const processes = await Processes.begin('karmada');
    const file = (name: string, text: string) => processes.file(name, text);
    const ca = await createCA({ commonName: 'karmada-test', days: 2 });
    const proxy = await issue(ca, { commonName: 'front-proxy-client', usages: ['client'], days: 1 });
    const serving = await issue(ca, {
      commonName: 'karmada',
      dnsNames: ['localhost', `${AGGREGATED}.${SYSTEM}.svc`],
      ipAddresses: ['127.0.0.1'],
      usages: ['server'],
      days: 1,
    });
    const apiserver = await startApiserver({
      flags: [
        `--proxy-client-cert-file=${await file('proxy.crt', proxy.cert)}`,
        `--proxy-client-key-file=${await file('proxy.key', proxy.key)}`,
        `--requestheader-client-ca-file=${await file('ca.crt', ca.cert)}`,
        '--requestheader-allowed-names=front-proxy-client',
        '--requestheader-extra-headers-prefix=X-Remote-Extra-',
        '--requestheader-group-headers=X-Remote-Group',
        '--requestheader-username-headers=X-Remote-User',
        '--disable-admission-plugins=ServiceAccount',
      ],
    });
    const karmada = new RealKarmada(apiserver, processes, programs);
    try {
      const kubeconfig = await file('kubeconfig', apiserver.kubeconfig);
      const [aggregated, webhook] = (await freePorts(2)) as [number, number];
      await karmada.#install(aggregated, webhook, ca.cert);
      const tls = [await file('tls.crt', serving.cert), await file('tls.key', serving.key)];
      const quiet = ['--metrics-bind-address=0', '--health-probe-bind-address=0', '--leader-elect=false'];
      await runControllers(processes, apiserver, 'karmada', [
        'namespace',
        'garbagecollector',
        'clusterrole-aggregation',
      ]);
      karmada.#program(AGGREGATED, [
        `--kubeconfig=${kubeconfig}`,
        `--authentication-kubeconfig=${kubeconfig}`,
        `--authorization-kubeconfig=${kubeconfig}`,
        `--etcd-servers=${apiserver.etcdUrl}`,
        '--bind-address=127.0.0.1',
        `--secure-port=${aggregated}`,
        `--tls-cert-file=${tls[0]}`,
        `--tls-private-key-file=${tls[1]}`,
      ]);
      karmada.#program('karmada-webhook', [
        `--kubeconfig=${kubeconfig}`,
        '--bind-address=127.0.0.1',
        `--secure-port=${webhook}`,
        `--cert-dir=${processes.directory}`,
        ...quiet.slice(0, 2),
      ]);
      await karmada.#until('Cluster to be served', async () => {
        const { resources } = await apiserver.client.request<{ resources: unknown[] }>(
          'GET',
          '/apis/cluster.karmada.io/v1alpha1',
        );
        return resources.length > 0;
      });
      karmada.#program('karmada-controller-manager', [
        `--kubeconfig=${kubeconfig}`,
        ...quiet,
        // Without the gate there is no taint manager, and nothing is evicted whatever the flag says.
        '--feature-gates=Failover=true',
        '--enable-no-execute-taint-eviction=true',
        '--resource-eviction-rate=10',
        '--graceful-eviction-timeout=30s',
        '--cluster-success-threshold=2s',
        '--cluster-failure-threshold=2s',
        '--cluster-status-update-frequency=2s',
      ]);
      karmada.#program('karmada-scheduler', [`--kubeconfig=${kubeconfig}`, ...quiet]);
      return karmada;
    } catch (error) {
      await karmada.stop();
      await apiserver.stop();
      throw error;
    }
  }

  /** Ends all but the API server. */
  async stop(): Promise<void> {
    await this.#processes.stop();
  }

  /** Karmada deletes the namespaces that it has made in a member when the member leaves: they are to end, as in any cluster. */
  async controllersOf(member: TestApiserver, name: string): Promise<void> {
    await runControllers(this.#processes, member, name, ['namespace']);
  }

  /**
   * Runs what a kubelet of the member would: the agent of its Deployment, with the files of its Secret and the rights of its account.
   * @returns ends it
   */
  async startAgent(name: string, member: TestApiserver): Promise<() => void> {
    const run = await this.#processes.wait(`an agent in ${name}`, () => agentRun(member.client));
    const directory = join(this.#processes.directory, `agent-${name}`);
    await mkdir(directory);
    const file = (key: string, text: string) => writeFile(join(directory, key), text, { mode: 0o600 });
    for (const [key, text] of Object.entries(run.files)) await file(key, text.replaceAll(run.mountPath, directory));
    const { client, url, ca } = member;
    const { token } = await requestToken(client, run.account, DAY, AbortSignal.timeout(PATIENCE_MS));
    await file('member', writeKubeconfigText({ server: url, ca, token, name, user: run.account.name }));
    const child = this.#program(
      'karmada-agent',
      [
        ...run.args.map((arg) => arg.replace(run.mountPath, directory)),
        `--kubeconfig=${join(directory, 'member')}`,
        // A member on the same machine as another one.
        '--health-probe-bind-address=0',
        '--cluster-success-threshold=2s',
        '--cluster-failure-threshold=2s',
        '--cluster-status-update-frequency=2s',
      ],
      `karmada-agent-${name}`,
    );
    return () => void child.kill('SIGKILL');
  }

  #program(program: string, args: string[], name = program): ChildProcess {
    return this.#processes.run(join(this.#programs, program), name, args);
  }

  async #install(aggregated: number, webhook: number, ca: string): Promise<void> {
    const { client } = this.apiserver;
    const caBundle = Buffer.from(ca).toString('base64');
    for (const name of [SYSTEM, 'karmada-cluster'])
      await client.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
    await serveKinds(client, [join(this.#programs, 'karmada-crds')]);
    const service = { name: AGGREGATED, namespace: SYSTEM, port: aggregated };
    await client.apply({
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: AGGREGATED, namespace: SYSTEM },
      spec: { type: 'ExternalName', externalName: 'localhost' },
    });
    await client.apply({
      apiVersion: 'apiregistration.k8s.io/v1',
      kind: 'APIService',
      metadata: { name: 'v1alpha1.cluster.karmada.io' },
      spec: {
        group: 'cluster.karmada.io',
        version: 'v1alpha1',
        groupPriorityMinimum: 2000,
        versionPriority: 10,
        caBundle,
        service,
      },
    });
    const resource = {
      group: 'admissionregistration.k8s.io',
      version: 'v1',
      plural: 'mutatingwebhookconfigurations',
      kind: 'MutatingWebhookConfiguration',
      namespaced: false,
    };
    const configuration: KubeObject = {
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind: resource.kind,
      metadata: { name: 'karmada' },
      webhooks: WEBHOOKS.map(({ group, plural, operations, path }) => ({
        name: `${plural}.karmada.io`,
        rules: [{ operations, apiGroups: [`${group}.karmada.io`], apiVersions: ['*'], resources: [plural] }],
        clientConfig: { url: `https://localhost:${webhook}/${path}`, caBundle },
        failurePolicy: 'Fail',
        sideEffects: 'None',
        admissionReviewVersions: ['v1'],
        timeoutSeconds: WEBHOOK_SECONDS,
      })),
    };
    await client.apply(configuration, { resource });
  }

  async #until(what: string, holds: () => Promise<boolean>): Promise<void> {
    await this.#processes.wait(what, async () => (await holds()) || undefined);
  }
}
