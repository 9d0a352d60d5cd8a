import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { dump } from 'js-yaml';
import { type HttpProxy, parseProxy } from './http/http-proxy.ts';
import type { TlsMaterial } from './http/transport.ts';
import { ADMINISTRATORS, type Allowed, HARMLESS, refuseHarm } from './kubeconfig-fields.ts';
import {
  combineKubeconfigs,
  KUBECONFIG_LISTS,
  type KubeconfigDocument,
  type NamedEntry,
  personalKubeconfigs,
} from './kubeconfig-files.ts';
import { yamlDocument } from './yaml.ts';

/** Address of an API server and the client's credentials. */
export interface Connection extends TlsMaterial {
  /** Base URL, for example https://127.0.0.1:6443; may have a path. */
  server: string;
  token?: string | undefined;
  /** File with the bearer token, read again each minute: kubelet rotates the token. */
  tokenFile?: string | undefined;
  /** Proxy to the server; false: none. Absent: the proxy of the environment. */
  proxy?: HttpProxy | false | undefined;
  impersonate?: Impersonation | undefined;
  /** Runs the credential plugin. Called before the first request and after each 401. */
  credentials?: (() => Promise<KubeCredentials>) | undefined;
}

/** User that requests impersonate (headers Impersonate-*). */
interface Impersonation {
  user: string;
  uid?: string | undefined;
  groups?: string[] | undefined;
  extra?: Record<string, string[]> | undefined;
}

export interface KubeCredentials {
  token?: string | undefined;
  cert?: string | undefined;
  key?: string | undefined;
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
  'as-uid'?: string;
  'as-groups'?: string[];
  'as-user-extra'?: Record<string, string[]>;
  exec?: object;
  'auth-provider'?: object;
}

interface Context {
  cluster?: string;
  user?: string;
  namespace?: string;
}

/**
 * Parses a kubeconfig from a Secret, a cloud, or anybody except the person who runs this program. Throws a CoppiceError
 * that names the refused field: file names, plugins, proxies and unverified servers, anywhere in the text.
 * @param source for the error: "the kubeconfig of Secret shop/seed"
 */
export function parseUntrustedKubeconfig(yaml: string, source = 'the kubeconfig', context?: string): Connection {
  return connectionOf(untrustedDocument(yaml, source, HARMLESS), context);
}

/**
 * Like parseUntrustedKubeconfig, for a remote cluster that an administrator configured (a seed, a hub): `proxy-url` is
 * allowed.
 */
export function parseAdministratorsKubeconfig(yaml: string, source = 'the kubeconfig', context?: string): Connection {
  return connectionOf(untrustedDocument(yaml, source, ADMINISTRATORS), context);
}

/**
 * Rewrites an untrusted kubeconfig for another program, for example kubectl, with every context that
 * parseUntrustedKubeconfig reads. No text of the input is copied: another parser could find more in it. Throws as
 * parseUntrustedKubeconfig does.
 */
export function rewriteUntrustedKubeconfig(yaml: string, source = 'the kubeconfig'): string {
  return rewritten(untrustedDocument(yaml, source, HARMLESS));
}

/**
 * Like rewriteUntrustedKubeconfig, for a remote cluster that an administrator configured. The result has no proxy: the
 * caller of the other program dials.
 */
export function rewriteAdministratorsKubeconfig(yaml: string, source = 'the kubeconfig'): string {
  return rewritten(untrustedDocument(yaml, source, ADMINISTRATORS));
}

function rewritten(document: KubeconfigDocument): string {
  const current = document['current-context'];
  // Throws when the current context is incomplete; other incomplete contexts are left out.
  connectionOf(document);
  const [clusters, users, contexts] = [new Map<string, object>(), new Map<string, object>(), new Map<string, object>()];
  for (const { name, context } of document.contexts ?? []) {
    const { cluster = '', user, namespace } = (context ?? {}) as Context;
    const isComplete =
      find<Cluster>(document.clusters, 'cluster', cluster)?.server && (!user || find(document.users, 'user', user));
    if (!isComplete || contexts.has(name)) continue;
    const connection = connectionOf(document, name);
    clusters.set(cluster, clusterFields(connection));
    if (user) users.set(user, userFields(connection));
    contexts.set(name, { cluster, ...(user && { user }), ...(namespace && { namespace }) });
  }
  const entries = (bodies: Map<string, object>, field: string) =>
    [...bodies].map(([name, body]) => ({ name, [field]: body }));
  return dump(
    {
      apiVersion: 'v1',
      kind: 'Config',
      clusters: entries(clusters, 'cluster'),
      users: entries(users, 'user'),
      contexts: entries(contexts, 'context'),
      'current-context': current,
    },
    // Quote all strings: YAML 1.1 reads some unquoted ones as numbers or booleans.
    { lineWidth: -1, noRefs: true, forceQuotes: true, quoteStyle: 'double' },
  );
}

const base64 = (text: string): string => Buffer.from(text).toString('base64');

const clusterFields = ({ server, ca, serverName }: Connection): object => ({
  server,
  ...(ca && { 'certificate-authority-data': base64(ca) }),
  ...(serverName && { 'tls-server-name': serverName }),
});

const userFields = ({ cert, key, token, impersonate }: Connection): object => ({
  ...(cert && { 'client-certificate-data': base64(cert) }),
  ...(key && { 'client-key-data': base64(key) }),
  ...(token && { token }),
  ...(impersonate && {
    as: impersonate.user,
    ...(impersonate.uid && { 'as-uid': impersonate.uid }),
    ...(impersonate.groups && { 'as-groups': impersonate.groups }),
    ...(impersonate.extra && { 'as-user-extra': impersonate.extra }),
  }),
});

function untrustedDocument(yaml: string, source: string, allowed: Allowed): KubeconfigDocument {
  // Refuse aliases: no kubeconfig needs them.
  const document = parseYaml(yaml, source, { maxAliases: 0 });
  refuseHarm(document, source, allowed);
  return document;
}

/**
 * Parses a kubeconfig of the person who runs this program. The kubeconfig may name files and plugins, which are read
 * and run: never use this for a kubeconfig from a Secret. Throws an error that names what is missing.
 * @param directory base of relative file names; default the working directory
 */
export function parseOwnKubeconfig(yaml: string, options: { context?: string; directory?: string } = {}): Connection {
  const document = parseYaml(yaml);
  const file = join(options.directory ?? '.', 'kubeconfig');
  return connectionOf(combineKubeconfigs([{ document, file }]), options.context);
}

/**
 * Loads and merges all files of KUBECONFIG as kubectl does, or ~/.kube/config. Missing files are skipped; throws when
 * none exists.
 */
export function loadOwnKubeconfig(context?: string, env: NodeJS.ProcessEnv = process.env): Connection {
  const files = personalKubeconfigs(env);
  const parts: { document: KubeconfigDocument; file: string }[] = [];
  for (const file of files) {
    const text = readIfThere(file);
    if (text?.trim()) parts.push({ file: resolve(file), document: parseYaml(text, file) });
  }
  if (parts.length === 0) throw new Error(`there is no kubeconfig: ${files.join(', ')} is missing or empty`);
  return connectionOf(combineKubeconfigs(parts), context);
}

/**
 * A person's own kubeconfig with its certificate and key files inlined, to be stored in a Secret. Throws for plugins
 * and other fields that cannot be inlined.
 * @param file where the text was read
 */
export function selfContainedKubeconfig(yaml: string, file: string): string {
  const document = combineKubeconfigs([{ document: parseYaml(yaml, file), file: resolve(file) }]);
  for (const [list, body] of [
    ['clusters', 'cluster'],
    ['users', 'user'],
  ] as const) {
    for (const entry of document[list]!) {
      const values = entry[body] as Record<string, unknown>;
      for (const field of ['certificate-authority', 'client-certificate', 'client-key']) {
        const named = values[field];
        if (typeof named !== 'string' || named === '') continue;
        values[`${field}-data`] ||= readFileSync(named).toString('base64');
        delete values[field];
      }
    }
  }
  refuseHarm(document, file, ADMINISTRATORS);
  return dump(document, { lineWidth: -1, noRefs: true });
}

function find<T>(entries: NamedEntry[] | null | undefined, field: string, name: string): T | undefined {
  const entry = entries?.find((candidate) => candidate?.name === name);
  return entry && ((entry[field] ?? {}) as T);
}

/** Connection of one context. Relative file names are relative to the working directory. */
function connectionOf(config: KubeconfigDocument, wanted?: string): Connection {
  const contextName = wanted ?? config['current-context'];
  if (!contextName) throw new Error('the kubeconfig has no current-context: name one');
  const context = find<Context>(config.contexts, 'context', contextName);
  if (!context) throw new Error(`the kubeconfig has no context "${contextName}"`);
  const cluster = find<Cluster>(config.clusters, 'cluster', context.cluster ?? '');
  if (!cluster?.server) throw new Error(`the kubeconfig has no cluster "${context.cluster}" with a server`);
  const proxy = cluster['proxy-url'];
  if (proxy && !String(cluster.server).startsWith('https://'))
    throw new Error(`proxy-url of cluster "${context.cluster}" is not used for a server without https`);
  const userName = context.user ?? '';
  const user = find<User>(config.users, 'user', userName);
  if (!user && userName) throw new Error(`the kubeconfig has no user "${userName}"`);
  if (user?.username) throw new Error(`user "${userName}" has a password: API servers have not taken these since 1.19`);

  const pem = (data: string | undefined, file: string | undefined): string | undefined => {
    if (data) return Buffer.from(data, 'base64').toString('utf8');
    return file ? readFileSync(file, 'utf8') : undefined;
  };
  const connection: Connection = {
    server: cluster.server,
    ca: pem(cluster['certificate-authority-data'], cluster['certificate-authority']),
    serverName: cluster['tls-server-name'],
    insecureSkipTlsVerify: cluster['insecure-skip-tls-verify'] || undefined,
    cert: pem(user?.['client-certificate-data'], user?.['client-certificate']),
    key: pem(user?.['client-key-data'], user?.['client-key']),
    token: user?.token,
    tokenFile: user?.token ? undefined : user?.tokenFile,
  };
  if (proxy) connection.proxy = parseProxy(proxy, `proxy-url of cluster "${context.cluster}"`);
  if (user?.as) {
    connection.impersonate = {
      user: user.as,
      uid: user['as-uid'],
      groups: user['as-groups'],
      extra: user['as-user-extra'],
    };
  }
  if (user?.exec || user?.['auth-provider']) connection.credentials = pluginCredentials(config, contextName);
  return connection;
}

function parseYaml(yaml: string, source?: string, limits: { maxAliases?: number } = {}): KubeconfigDocument {
  const where = source === undefined ? '' : `${source} is `;
  let config: unknown;
  try {
    config = yamlDocument(yaml, limits);
  } catch (error) {
    throw new Error(`${where}not a kubeconfig: ${(error as Error).message}`);
  }
  if (typeof config !== 'object' || config === null || !KUBECONFIG_LISTS.some((list) => list in config)) {
    throw new Error(`${where}not a kubeconfig: it has no clusters`);
  }
  for (const list of KUBECONFIG_LISTS) {
    const entries = (config as Record<string, unknown>)[list] ?? [];
    if (!Array.isArray(entries)) throw new Error(`${where}not a kubeconfig: its ${list} are no list`);
  }
  return config as KubeconfigDocument;
}

function readIfThere(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

/** Connection of a pod to its own cluster; undefined outside of a pod. */
export function inClusterConnection(env: NodeJS.ProcessEnv = process.env): Connection | undefined {
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port } = env;
  if (!host || !port) return undefined;
  const account = '/var/run/secrets/kubernetes.io/serviceaccount';
  return {
    server: `https://${host.includes(':') ? `[${host}]` : host}:${port}`,
    ca: readFileSync(`${account}/ca.crt`, 'utf8'),
    tokenFile: `${account}/token`,
    proxy: false,
  };
}

function pluginCredentials(document: KubeconfigDocument, context: string): () => Promise<KubeCredentials> {
  return async () => {
    // The import takes 410 ms and 85 MB: load it only for a kubeconfig with a plugin.
    const { KubeConfig } = await import('@kubernetes/client-node');
    const config = new KubeConfig();
    config.loadFromString(dump(document));
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
