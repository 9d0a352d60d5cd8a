import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { findGo } from '../../../operator/garden/toolchain/go-source.ts';
import { GO_MODULES } from '../../../operator/garden/toolchain/tools.ts';
import { APPLICATIONS } from '../../../operator/hubs/argo-cd.ts';
import type { KubeClient } from '../../../operator/kube/client.ts';
import { CRDS, type KubeObject, NAMESPACES, type Resource } from '../../../operator/kube/resources.ts';
import { freePorts } from '../apiserver.ts';
import { testTools } from '../tools.ts';
import { Processes } from './processes.ts';
import { serveKinds } from './serve-kinds.ts';

const run = promisify(execFile);
const NAMESPACE = 'argocd';
const MODULE = 'github.com/argoproj/argo-cd/v2';
const kind = (plural: string, name: string): Resource => ({ ...APPLICATIONS, plural, kind: name });
export const APPLICATIONSETS = kind('applicationsets', 'ApplicationSet');
const PROJECTS = kind('appprojects', 'AppProject');

/** The real Argo CD on loopback: its two controllers and its repo server as processes, with a redis and a git repository. */
export class RealArgoCD {
  /** URL of the repository. */
  readonly repository: string;
  readonly #client: KubeClient;
  readonly #processes: Processes;

  private constructor(client: KubeClient, processes: Processes, repository: string) {
    this.#client = client;
    this.#processes = processes;
    this.repository = repository;
  }

  /**
   * Has it work in namespace argocd of an API server, which then serves its kinds.
   * @param files of the repository: path and text
   */
  static async start(
    client: KubeClient,
    kubeconfig: string,
    files: Readonly<Record<string, string>>,
  ): Promise<RealArgoCD> {
    const tools = await testTools('argo-cd', 'redis-server', 'git');
    const processes = await Processes.begin('argo-cd');
    const [git, redis, repoServer, repoMetrics, metrics, setMetrics, probe, webhook] = await freePorts(8);
    const argo = new RealArgoCD(client, processes, `git://127.0.0.1:${git}/apps.git`);
    try {
      await argo.#install();
      await argo.#commit(tools.git, files);
      const repositories = join(processes.directory, 'git');
      const listen = ['--listen=127.0.0.1', `--port=${git}`, `--base-path=${repositories}`, '--export-all'];
      // Not by `git daemon`, which runs it as a child that would outlive it.
      const { stdout: programs } = await run(tools.git, ['--exec-path']);
      processes.run(join(programs.trim(), 'git-daemon'), 'git', listen);
      const memory = ['--save', '', '--appendonly', 'no'];
      processes.run(tools['redis-server'], 'redis', ['--bind', '127.0.0.1', '--port', `${redis}`, ...memory]);
      const env = {
        KUBECONFIG: await processes.file('kubeconfig', kubeconfig),
        TMPDIR: processes.directory,
        HOME: processes.directory,
        // It would keep a keyring of its own in /app.
        ARGOCD_GPG_ENABLED: 'false',
        ARGOCD_ASK_PASS_SOCK: join(processes.directory, 'ask-pass.sock'),
      };
      const program = (name: string, ...args: string[]) =>
        processes.run(tools['argo-cd'], name, args, { env: { ...env, ARGOCD_BINARY_NAME: `argocd-${name}` } });
      const cache = `--redis=127.0.0.1:${redis}`;
      const manifests = `127.0.0.1:${repoServer}`;
      program(
        'repo-server',
        cache,
        '--disable-tls',
        '--address=127.0.0.1',
        `--port=${repoServer}`,
        '--metrics-address=127.0.0.1',
        `--metrics-port=${repoMetrics}`,
      );
      program(
        'application-controller',
        cache,
        `--namespace=${NAMESPACE}`,
        `--repo-server=${manifests}`,
        '--repo-server-plaintext',
        `--metrics-port=${metrics}`,
      );
      program(
        'applicationset-controller',
        `--namespace=${NAMESPACE}`,
        `--argocd-repo-server=${manifests}`,
        '--repo-server-plaintext',
        `--metrics-addr=127.0.0.1:${setMetrics}`,
        `--probe-addr=127.0.0.1:${probe}`,
        `--webhook-addr=127.0.0.1:${webhook}`,
      );
      return argo;
    } catch (error) {
      await argo.stop();
      throw error;
    }
  }

  /** How it is, and where its logs are while it runs. */
  get state(): string {
    const { ended, directory } = this.#processes;
    return `${ended ? `${ended} has ended; ` : ''}logs are in ${directory}`;
  }

  /** Ends it, and takes away its kinds, its namespace and all that is in there. */
  async stop(): Promise<void> {
    await this.#processes.stop();
    const { items } = await this.#client.list(APPLICATIONS).catch(() => ({ items: [] as KubeObject[] }));
    // Nobody else would, and its kind would never go.
    for (const { metadata } of items)
      await this.#client.mergePatch(APPLICATIONS, metadata.name, metadata.namespace, {
        metadata: { finalizers: null },
      });
    for (const { plural, group } of [APPLICATIONS, APPLICATIONSETS, PROJECTS])
      await this.#client.delete(CRDS, `${plural}.${group}`);
    await this.#client.delete(NAMESPACES, NAMESPACE);
  }

  async #install(): Promise<void> {
    await serveKinds(this.#client, [join(await moduleFolder(), 'manifests/crds')]);
    await this.#client.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: NAMESPACE } });
    const labels = { 'app.kubernetes.io/part-of': 'argocd' };
    const its = (name: string) => ({ apiVersion: 'v1', metadata: { name, namespace: NAMESPACE, labels } });
    await this.#client.apply({ ...its('argocd-cm'), kind: 'ConfigMap' });
    // Its API server, which does not run here, would make these two.
    const stringData = { 'server.secretkey': randomBytes(32).toString('base64') };
    await this.#client.apply({ ...its('argocd-secret'), kind: 'Secret', stringData });
    const everything = [{ group: '*', kind: '*' }];
    await this.#client.apply(
      {
        ...its('default'),
        apiVersion: 'argoproj.io/v1alpha1',
        kind: 'AppProject',
        spec: {
          sourceRepos: ['*'],
          destinations: [{ server: '*', namespace: '*' }],
          clusterResourceWhitelist: everything,
        },
      },
      { resource: PROJECTS },
    );
  }

  /** A bare repository with one commit. */
  async #commit(git: string, files: Readonly<Record<string, string>>): Promise<void> {
    const work = join(this.#processes.directory, 'work');
    for (const [path, text] of Object.entries(files)) {
      await mkdir(join(work, path, '..'), { recursive: true });
      await writeFile(join(work, path), text);
    }
    const as = ['-c', 'user.name=test', '-c', 'user.email=test@coppice.test', '-c', 'init.defaultBranch=main'];
    for (const args of [
      ['init', '--quiet'],
      ['add', '.'],
      ['commit', '--quiet', '--message=Apps'],
    ])
      await run(git, [...as, ...args], { cwd: work });
    await run(git, ['clone', '--quiet', '--bare', work, join(this.#processes.directory, 'git', 'apps.git')]);
  }
}

/** Where the Go command keeps the sources that the tool is made of: they have its CustomResourceDefinitions. */
async function moduleFolder(): Promise<string> {
  const go = await findGo();
  if (!go) throw new Error(`Go is not installed, which fetches the CustomResourceDefinitions of ${MODULE}`);
  const { stdout } = await run(go, ['mod', 'download', '-json', MODULE], {
    cwd: join(GO_MODULES, 'argo-cd'),
    env: { ...process.env, GOWORK: 'off', GOFLAGS: '-mod=readonly' },
  });
  return (JSON.parse(stdout) as { Dir: string }).Dir;
}
