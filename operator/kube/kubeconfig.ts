import { readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { load } from 'js-yaml';
import type { TlsMaterial } from './transport.ts';

/** Where an API server is and how to prove who we are. */
export interface Connection extends TlsMaterial {
  /** Base URL, for example https://127.0.0.1:6443; may have a path. */
  server: string;
  /** Bearer token. */
  token?: string | undefined;
  /** File to read the bearer token from, again each minute: the kubelet rotates it. */
  tokenFile?: string | undefined;
  impersonate?: { user: string; groups?: string[] | undefined } | undefined;
  /** Asks a credential plugin. Called before the first request and after each 401. */
  credentials?: (() => Promise<Credentials>) | undefined;
}

export interface Credentials {
  token?: string | undefined;
  cert?: string | undefined;
  key?: string | undefined;
}

interface NamedEntry<T> {
  name: string;
  body: T;
}

interface Cluster {
  server?: string;
  'certificate-authority'?: string;
  'certificate-authority-data'?: string;
  'insecure-skip-tls-verify'?: boolean;
  'tls-server-name'?: string;
  'proxy-url'?: string;
}

interface User {
  'client-certificate'?: string;
  'client-certificate-data'?: string;
  'client-key'?: string;
  'client-key-data'?: string;
  token?: string;
  tokenFile?: string;
  username?: string;
  as?: string;
  'as-groups'?: string[];
  exec?: object;
  'auth-provider'?: object;
}

interface Context {
  cluster?: string;
  user?: string;
  namespace?: string;
}

function find<T>(entries: unknown, field: string, name: string): NamedEntry<T> | undefined {
  if (!Array.isArray(entries)) return undefined;
  const entry = entries.find((candidate: { name?: string }) => candidate?.name === name) as
    | Record<string, T>
    | undefined;
  return entry && { name, body: entry[field] ?? ({} as T) };
}

/**
 * Reads the parts of a kubeconfig that one context needs. Throws an error that names what is missing.
 * @param directory what relative file names in it are relative to; default the working directory
 */
export function parseKubeconfig(yaml: string, options: { context?: string; directory?: string } = {}): Connection {
  const config = parseYaml(yaml);
  const contextName = options.context ?? (config['current-context'] as string | undefined);
  if (!contextName) throw new Error('the kubeconfig has no current-context: name one');
  const context = find<Context>(config.contexts, 'context', contextName);
  if (!context) throw new Error(`the kubeconfig has no context "${contextName}"`);
  const cluster = find<Cluster>(config.clusters, 'cluster', context.body.cluster ?? '')?.body;
  if (!cluster?.server) throw new Error(`the kubeconfig has no cluster "${context.body.cluster}" with a server`);
  if (cluster['proxy-url']) throw new Error(`proxy-url of cluster "${context.body.cluster}" is not supported`);
  const userName = context.body.user ?? '';
  const user = find<User>(config.users, 'user', userName)?.body;
  if (!user && userName) throw new Error(`the kubeconfig has no user "${userName}"`);
  if (user?.username) throw new Error(`user "${userName}" has a password: API servers have not taken these since 1.19`);

  const pathTo = (file: string) => resolve(options.directory ?? '.', file);
  const pem = (data: string | undefined, file: string | undefined): string | undefined => {
    if (data) return Buffer.from(data, 'base64').toString('utf8');
    return file ? readFileSync(pathTo(file), 'utf8') : undefined;
  };
  const connection: Connection = {
    server: cluster.server,
    ca: pem(cluster['certificate-authority-data'], cluster['certificate-authority']),
    serverName: cluster['tls-server-name'],
    insecureSkipTlsVerify: cluster['insecure-skip-tls-verify'],
    cert: pem(user?.['client-certificate-data'], user?.['client-certificate']),
    key: pem(user?.['client-key-data'], user?.['client-key']),
    token: user?.token,
    tokenFile: user?.token || !user?.tokenFile ? undefined : pathTo(user.tokenFile),
  };
  if (user?.as) connection.impersonate = { user: user.as, groups: user['as-groups'] };
  if (user?.exec || user?.['auth-provider']) connection.credentials = pluginCredentials(yaml, contextName);
  return connection;
}

function parseYaml(yaml: string): Record<string, unknown> {
  let config: unknown;
  try {
    config = load(yaml);
  } catch (error) {
    throw new Error(`not a kubeconfig: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
  }
  if (typeof config !== 'object' || config === null || !('clusters' in config)) {
    throw new Error('not a kubeconfig: it has no clusters');
  }
  return config as Record<string, unknown>;
}

/** Reads KUBECONFIG's first file, or ~/.kube/config. */
export function defaultKubeconfig(context?: string, env: NodeJS.ProcessEnv = process.env): Connection {
  const file = env.KUBECONFIG?.split(':').find((part) => part !== '') ?? join(homedir(), '.kube', 'config');
  return parseKubeconfig(readFileSync(file, 'utf8'), { directory: dirname(file), ...(context ? { context } : {}) });
}

/** What a pod uses to reach its own cluster; undefined outside of a pod. */
export function inClusterConnection(env: NodeJS.ProcessEnv = process.env): Connection | undefined {
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port } = env;
  if (!host || !port) return undefined;
  const account = '/var/run/secrets/kubernetes.io/serviceaccount';
  return {
    server: `https://${host.includes(':') ? `[${host}]` : host}:${port}`,
    ca: readFileSync(`${account}/ca.crt`, 'utf8'),
    tokenFile: `${account}/token`,
  };
}

function pluginCredentials(yaml: string, context: string): () => Promise<Credentials> {
  return async () => {
    // 410 ms and 85 MB: loaded only for the people whose kubeconfig runs a plugin.
    const { KubeConfig } = await import('@kubernetes/client-node');
    const config = new KubeConfig();
    config.loadFromString(yaml);
    config.setCurrentContext(context);
    const options: { headers?: Record<string, string>; cert?: string | Buffer; key?: string | Buffer } = {};
    await config.applyToHTTPSOptions(options as Parameters<typeof config.applyToHTTPSOptions>[0]);
    const header = options.headers?.Authorization;
    return {
      token: header?.replace(/^Bearer /, ''),
      cert: options.cert?.toString(),
      key: options.key?.toString(),
    };
  };
}
