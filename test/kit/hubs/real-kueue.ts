import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { load, loadAll } from 'js-yaml';
import {
  CRDS,
  decodeSecret,
  type KubeObject,
  type Resource,
  SECRETS,
  type Secret,
} from '../../../operator/kube/resources.ts';
import { freePorts, type TestApiserver } from '../apiserver.ts';
import { Processes } from './processes.ts';
import { serveKinds } from './serve-kinds.ts';

const SYSTEM = 'kueue-system';
const SERVICE = 'kueue-webhook-service';
const CERTIFICATE = 'kueue-webhook-server-cert';
/** Of all that its webhooks look at, what these tests make. Others would stand in the way of pods. */
const LOOKED_AT = /-(kueue-x-k8s-io|batch)-/;
/** Kinds with two versions, of which Kueue's webhook makes one of the other. */
const CONVERTED = ['localqueues', 'clusterqueues', 'workloads', 'cohorts', 'multikueueclusters'];

interface Webhook {
  clientConfig: { service: { path: string } };
}

/** The real Kueue as processes on loopback, one for each API server. Its program, CRDs and webhooks were built and laid beside. */
export class RealKueue {
  readonly #processes: Processes;
  readonly #programs: string;
  readonly #logs = new Map<string, string>();

  private constructor(processes: Processes, programs: string) {
    this.#processes = processes;
    this.#programs = programs;
  }

  /** @param programs folder with kueue, kueue-crds and kueue-webhooks */
  static async begin(programs: string): Promise<RealKueue> {
    return new RealKueue(await Processes.begin('kueue'), programs);
  }

  async stop(): Promise<void> {
    await this.#processes.stop();
  }

  /** What this Kueue has logged up to now. */
  async log(name: string): Promise<string> {
    return await readFile(this.#logs.get(name)!, 'utf8');
  }

  /**
   * Installs Kueue, and waits until it serves.
   * @param name of its log
   * @param more of its configuration
   */
  async runIn(apiserver: TestApiserver, name: string, more: Readonly<Record<string, unknown>> = {}): Promise<void> {
    const { client, kubeconfig } = apiserver;
    const [port] = (await freePorts(1)) as [number];
    const certDir = join(this.#processes.directory, `certificates-${name}`);
    await mkdir(certDir);
    await this.#install(apiserver, port);
    const config = {
      apiVersion: 'config.kueue.x-k8s.io/v1beta2',
      kind: 'Configuration',
      namespace: SYSTEM,
      health: { healthProbeBindAddress: '0' },
      metrics: { bindAddress: '0' },
      webhook: { host: '127.0.0.1', port, certDir },
      leaderElection: { leaderElect: false },
      internalCertManagement: { enable: true, webhookServiceName: SERVICE, webhookSecretName: CERTIFICATE },
      integrations: { frameworks: ['batch/job'] },
      // It would be served by an address of its own.
      featureGates: { VisibilityOnDemand: false },
      ...more,
    };
    const args = [
      `--config=${await this.#processes.file(`${name}.yaml`, JSON.stringify(config))}`,
      `--kubeconfig=${await this.#processes.file(`${name}.kubeconfig`, kubeconfig)}`,
      '--zap-log-level=2',
    ];
    this.#processes.run(join(this.#programs, 'kueue'), `kueue-${name}`, args);
    this.#logs.set(name, join(this.#processes.directory, `kueue-${name}.log`));
    // A kubelet lays the Secret that Kueue has filled into its folder.
    const files = await this.#processes.wait('Kueue to make its certificate', async () => {
      const { data } = await client.get<Secret>(SECRETS, CERTIFICATE, SYSTEM);
      return data?.['tls.crt'] && decodeSecret(data);
    });
    for (const [key, text] of Object.entries(files)) await writeFile(join(certDir, key), text, { mode: 0o600 });
    const flavor = { apiVersion: 'kueue.x-k8s.io/v1beta2', kind: 'ResourceFlavor', metadata: { name: 'default' } };
    await this.#processes.wait(`Kueue of ${name} to serve`, () => client.apply(flavor, { resource: RESOURCEFLAVORS }));
  }

  async #install({ client }: TestApiserver, port: number): Promise<void> {
    await client.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: SYSTEM } });
    await client.apply({ apiVersion: 'v1', kind: 'Secret', metadata: { name: CERTIFICATE, namespace: SYSTEM } });
    await client.apply({
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: SERVICE, namespace: SYSTEM },
      spec: { type: 'ExternalName', externalName: 'localhost' },
    });
    const service = { name: SERVICE, namespace: SYSTEM, port };
    const crds = join(this.#programs, 'kueue-crds');
    for (const file of await readdir(crds)) {
      const crd = load(await readFile(join(crds, file), 'utf8')) as KubeObject & {
        spec: { names: { plural: string } };
      };
      const webhook = { clientConfig: { service: { ...service, path: '/convert' } }, conversionReviewVersions: ['v1'] };
      const conversion = { strategy: 'Webhook', webhook };
      const isConverted = CONVERTED.includes(crd.spec.names.plural);
      await client.apply(isConverted ? { ...crd, spec: { ...crd.spec, conversion } } : crd, { resource: CRDS });
    }
    await serveKinds(client, []);
    const webhooks = await readFile(join(this.#programs, 'kueue-webhooks', 'manifests.yaml'), 'utf8');
    for (const { apiVersion, kind, metadata, webhooks: all } of loadAll(webhooks) as KubeObject[]) {
      const [group = '', version = ''] = apiVersion.split('/');
      const resource = { group, version, plural: `${kind.toLowerCase()}s`, kind, namespaced: false };
      const kept = (all as Webhook[])
        .filter(({ clientConfig }) => LOOKED_AT.test(clientConfig.service.path))
        .map((one) => ({ ...one, clientConfig: { service: { ...one.clientConfig.service, ...service } } }));
      const named = { ...metadata, name: `kueue-${metadata.name}` };
      await client.apply({ apiVersion, kind, metadata: named, webhooks: kept }, { resource });
    }
  }
}

const RESOURCEFLAVORS: Resource = {
  group: 'kueue.x-k8s.io',
  version: 'v1beta2',
  plural: 'resourceflavors',
  kind: 'ResourceFlavor',
  namespaced: false,
};
