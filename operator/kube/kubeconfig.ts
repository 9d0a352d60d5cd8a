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

/** Where an API server is and how to prove who we are. */
export interface Connection extends TlsMaterial {
  /** Base URL, for example https://127.0.0.1:6443; may have a path. */
  server: string;
  /** Bearer token. */
  token?: string | undefined;
  /** File to read the bearer token from, again each minute: the kubelet rotates it. */
  tokenFile?: string | undefined;
  /** By which the server is reached; false: directly. Absent: by the proxy of the environment. */
  proxy?: HttpProxy | false | undefined;
  impersonate?: Impersonation | undefined;
  /** Asks a credential plugin. Called before the first request and after each 401. */
  credentials?: (() => Promise<Credentials>) | undefined;
}

/** As whom requests are made (headers Impersonate-*). */
export interface Impersonation {
  user: string;
  uid?: string | undefined;
  groups?: string[] | undefined;
  extra?: Record<string, string[]> | undefined;
}

export interface Credentials {
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
 * Reads a kubeconfig that came out of a Secret, from a cloud, or from anybody but the person who runs this program. Throws a
 * CoppiceError that names what is refused: file names, plugins, proxies and unverified servers, wherever in the text they are.
 * @param source for the error: "the kubeconfig of Secret shop/seed"
 */
export function parseUntrustedKubeconfig(yaml: string, source = 'the kubeconfig', context?: string): Connection {
  return connectionOf(untrustedDocument(yaml, source, HARMLESS), context);
}

/** The same for a cluster elsewhere that an administrator named (a seed, a hub), who may name a proxy to it (`proxy-url`). */
export function parseAdministratorsKubeconfig(yaml: string, source = 'the kubeconfig', context?: string): Connection {
  return connectionOf(untrustedDocument(yaml, source, ADMINISTRATORS), context);
}

/**
 * A kubeconfig for another program, for example kubectl, made of what parseUntrustedKubeconfig reads in every context of this one. Nothing
 * of the input is copied: another parser could find more in it than this one has checked. Throws as parseUntrustedKubeconfig does.
 */
export function rewriteUntrustedKubeconfig(yaml: string, source = 'the kubeconfig'): string {
  return rewritten(untrustedDocument(yaml, source, HARMLESS));
}

/** The same for a cluster elsewhere that an administrator named. It does not name the proxy: who uses it dials. */
export function rewriteAdministratorsKubeconfig(yaml: string, source = 'the kubeconfig'): string {
  return rewritten(untrustedDocument(yaml, source, ADMINISTRATORS));
}

function rewritten(document: KubeconfigDocument): string {
  const current = document['current-context'];
  // Throws where the current context is not complete; others like that do not count.
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
    // All text in quotes: which of it YAML 1.1 takes for numbers or truth values differs from this parser.
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
  // No aliases: nobody needs them there.
  const document = parseYaml(yaml, source, { maxAliases: 0 });
  refuseHarm(document, source, allowed);
  return document;
}

/**
 * Reads a kubeconfig of the person who runs this program: it may name files and run plugins, which reads these files and runs these
 * programs. Never for what lies in a Secret. Throws an error that names what is missing.
 * @param directory what relative file names in it are relative to; default the working directory
 */
export function parseOwnKubeconfig(yaml: string, options: { context?: string; directory?: string } = {}): Connection {
  const document = parseYaml(yaml);
  const file = join(options.directory ?? '.', 'kubeconfig');
  return connectionOf(combineKubeconfigs([{ document, file }]), options.context);
}

/**
 * Reads all files of KUBECONFIG as one, as kubectl does, or ~/.kube/config. Files that are not there do not count; throws when
 * there is none at all.
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
 * A person's own kubeconfig with the certificates and keys in it that it names as files, so that it can be put into a Secret.
 * Throws where it needs more than that.
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

/** The parts of a kubeconfig that one context needs. Relative file names in it are relative to the working directory. */
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

/** What a pod uses to reach its own cluster; undefined outside of a pod. */
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

function pluginCredentials(document: KubeconfigDocument, context: string): () => Promise<Credentials> {
  return async () => {
    // 410 ms and 85 MB: loaded only for the people whose kubeconfig runs a plugin.
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
