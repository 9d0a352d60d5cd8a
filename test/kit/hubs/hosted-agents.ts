import type { ChildProcess } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { requestToken } from '../../../operator/clusters/service-account-token.ts';
import { Informer } from '../../../operator/kube/informer.ts';
import { DEPLOYMENTS, decodeSecret, type KubeObject, SECRETS } from '../../../operator/kube/resources.ts';
import { freePorts, type TestApiserver } from '../apiserver.ts';
import type { Processes } from './processes.ts';

const LABEL = `open-cluster-management.io/created-by-klusterlet`;
/** Where an agent's Deployment mounts its Secrets. */
const MOUNTS = '/spoke';
const PATIENCE_MS = 120_000;
const AGAIN_MS = 1_000;

interface Deployment extends KubeObject {
  spec: {
    template: {
      spec: {
        serviceAccountName: string;
        containers: { args: string[]; volumeMounts: { name: string; mountPath: string }[] }[];
        volumes: { name: string; secret?: { secretName: string } }[];
      };
    };
  };
}

/**
 * What kubelets do with the Deployments of Open Cluster Management's agents: one process for each, with its Secrets as files, its
 * ServiceAccount's token, and a new start when it ends.
 */
export class HostedAgents {
  readonly #hub: TestApiserver;
  readonly #processes: Processes;
  readonly #binary: string;
  readonly #deployments: Informer<Deployment>;
  readonly #running = new Map<string, ChildProcess | undefined>();
  #stopped = false;

  constructor(hub: TestApiserver, processes: Processes, binary: string) {
    this.#hub = hub;
    this.#processes = processes;
    this.#binary = binary;
    this.#deployments = new Informer<Deployment>(hub.client, DEPLOYMENTS, { labelSelector: LABEL });
    this.#deployments.onChange(({ object }) => this.#look(object));
  }

  async start(): Promise<void> {
    this.#deployments.start();
    await this.#deployments.whenSynced(AbortSignal.timeout(PATIENCE_MS));
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#deployments.stop();
  }

  #look({ metadata: { namespace = '', name } }: Deployment): void {
    const key = `${namespace}/${name}`;
    const wanted = this.#deployments.get(key);
    if (!wanted) this.#running.get(key)?.kill('SIGKILL');
    else if (!this.#running.has(key)) void this.#run(key, wanted);
  }

  async #run(key: string, deployment: Deployment): Promise<void> {
    this.#running.set(key, undefined);
    const again = () => {
      this.#running.delete(key);
      const wanted = this.#deployments.get(key);
      if (wanted && !this.#stopped) setTimeout(() => this.#look(wanted), AGAIN_MS).unref();
    };
    try {
      const { namespace = '', name } = deployment.metadata;
      const pod = deployment.spec.template.spec;
      const directory = join(this.#processes.directory, namespace);
      const [{ args, volumeMounts }] = pod.containers as [(typeof pod.containers)[number]];
      for (const { name: volume, secret } of pod.volumes) {
        const path = volumeMounts.find((mount) => mount.name === volume)!.mountPath;
        if (!path.startsWith(MOUNTS)) continue;
        const data = secret && decodeSecret((await this.#hub.client.get(SECRETS, secret.secretName, namespace)).data);
        await mount(directory, path, data ?? {});
      }
      const identity = '/run/secrets/kubernetes.io/serviceaccount';
      const account = { namespace, name: pod.serviceAccountName };
      const { token } = await requestToken(this.#hub.client, account, 3600, AbortSignal.timeout(PATIENCE_MS));
      await mount(directory, identity, { token, namespace, 'ca.crt': this.#hub.ca });
      const [port] = await freePorts(1);
      const { hostname, port: hubPort } = new URL(this.#hub.url);
      // It looks for who it is at a path that cannot be changed: that is there in its own view of the files only.
      const script = 'mount --bind "$1" /run; shift; exec "$@"';
      const command = args.slice(1).map((arg) => arg.replaceAll(`${MOUNTS}/`, `${directory}${MOUNTS}/`));
      const more = [
        `--hub-kubeconfig-dir=${directory}${MOUNTS}/hub-kubeconfig`,
        `--listen=127.0.0.1:${port}`,
        '--disable-leader-election',
      ];
      const all = ['-m', 'sh', '-c', script, 'sh', join(directory, 'run'), this.#binary, ...command, ...more];
      const env = { KUBERNETES_SERVICE_HOST: hostname, KUBERNETES_SERVICE_PORT: hubPort, POD_NAME: `${name}-0` };
      this.#running.set(key, this.#processes.run('unshare', `agent-${namespace}`, all, { env, onExit: again }));
      if (!this.#deployments.get(key)) this.#running.get(key)?.kill('SIGKILL');
    } catch {
      // Its Secrets are not there yet.
      again();
    }
  }
}

async function mount(directory: string, path: string, files: Record<string, string>): Promise<void> {
  await mkdir(join(directory, path), { recursive: true });
  for (const [name, text] of Object.entries(files)) {
    const rooted = text.replaceAll(`${MOUNTS}/`, `${directory}${MOUNTS}/`);
    await writeFile(join(directory, path, name), rooted, { mode: 0o600 });
  }
}
