import { notYetConfigured } from '../api/errors.ts';
import type { KubeconfigDocument, NamedEntry } from './kubeconfig-files.ts';

type Body = 'cluster' | 'user' | 'context';

/** Fields of kubectl's kubeconfig by place (client-go, tools/clientcmd/api/v1/types.go). */
const KNOWN = {
  top: new Set(['apiVersion', 'kind', 'preferences', 'clusters', 'users', 'contexts', 'current-context', 'extensions']),
  preferences: new Set(['colors', 'extensions']),
  cluster: new Set([
    'server',
    'tls-server-name',
    'insecure-skip-tls-verify',
    'certificate-authority',
    'certificate-authority-data',
    'proxy-url',
    'disable-compression',
    'extensions',
  ]),
  user: new Set([
    'client-certificate',
    'client-certificate-data',
    'client-key',
    'client-key-data',
    'token',
    'tokenFile',
    'as',
    'as-uid',
    'as-groups',
    'as-user-extra',
    'username',
    'password',
    'auth-provider',
    'exec',
    'extensions',
  ]),
  context: new Set(['cluster', 'user', 'namespace', 'extensions']),
  extension: new Set(['name', 'extension']),
} as const;

/** Fields that a kubeconfig may set, among those that can do harm. */
export type Allowed = Readonly<Record<Body, ReadonlySet<string>>>;

/**
 * Allowed fields of an untrusted kubeconfig: none reads a file, runs a program or disables verification of the server.
 */
export const HARMLESS: Allowed = {
  cluster: new Set(['server', 'certificate-authority-data', 'tls-server-name', 'disable-compression', 'extensions']),
  user: new Set([
    'client-certificate-data',
    'client-key-data',
    'token',
    'as',
    'as-uid',
    'as-groups',
    'as-user-extra',
    'extensions',
  ]),
  context: KNOWN.context,
};

/** Allowed fields of an administrator's kubeconfig. Administrators name the server, so they may name a proxy too. */
export const ADMINISTRATORS: Allowed = { ...HARMLESS, cluster: new Set([...HARMLESS.cluster, 'proxy-url']) };

const TEXTS: ReadonlySet<string> = new Set([
  'name',
  'server',
  'certificate-authority-data',
  'tls-server-name',
  'proxy-url',
  'client-certificate-data',
  'client-key-data',
  'token',
  'as',
  'as-uid',
  'cluster',
  'user',
  'namespace',
]);

const BODIES = [
  ['clusters', 'cluster'],
  ['users', 'user'],
  ['contexts', 'context'],
] as const;

const ADVICE =
  'Put a kubeconfig there that has an https server, certificate-authority-data, and a token or a client certificate as data.';
/** Names and keys in errors come from the author of the kubeconfig. */
const LONGEST_NAME = 80;
const MOST_FIELDS = 10;

/**
 * Throws a CoppiceError that names the first forbidden field of an untrusted kubeconfig: a field that is not allowed,
 * unknown at this place, or of the wrong type. Unknown fields are refused because another parser may read them: YAML
 * 1.1 merges `<<`, and Go's JSON reads `Exec` as `exec`.
 * @param source for the error: "the kubeconfig of Secret shop/seed"
 */
export function refuseHarm(config: KubeconfigDocument, source: string, allowed: Allowed): void {
  const fault = faultIn(config, allowed);
  if (fault !== undefined) throw notYetConfigured(`${source} is refused: ${fault}`, ADVICE);
}

function faultIn(config: KubeconfigDocument, allowed: Allowed): string | undefined {
  const outside =
    fault('it', config, KNOWN.top) ?? fault('field preferences', config.preferences ?? {}, KNOWN.preferences);
  if (outside !== undefined) return outside;
  for (const [list, kind] of BODIES)
    for (const entry of config[list] ?? []) {
      const found = entryFault(entry, kind, allowed[kind]);
      if (found !== undefined) return `${whose(config, kind, entry?.name)} ${found}`;
    }
  return undefined;
}

function fault(where: string, value: unknown, known: ReadonlySet<string>): string | undefined {
  const found = fieldFault(value, known);
  return found && `${where} ${found}`;
}

/** Fault of one cluster, user or context entry, as a clause. */
function entryFault(entry: unknown, kind: Body, allowed: ReadonlySet<string>): string | undefined {
  const outside = fieldFault(entry, new Set(['name', kind]));
  if (outside !== undefined) return outside;
  const { name, [kind]: said } = entry as NamedEntry;
  const body = (said ?? {}) as Record<string, unknown>;
  const inside = fieldFault(body, KNOWN[kind], allowed);
  if (inside !== undefined) return inside;
  const texts = Object.entries({ name, ...body }).filter(([field]) => TEXTS.has(field));
  const other = texts.find(([, value]) => value !== undefined && value !== null && typeof value !== 'string');
  if (other) return `has a ${other[0]} that is not text`;
  if (body.server && !String(body.server).startsWith('https://')) return 'has a server without https';
  const { 'as-groups': groups, 'as-user-extra': extra } = body;
  if (groups && !areTexts(groups)) return 'has as-groups that are not a list of texts';
  if (extra && !Object.values(extra).every(areTexts)) return 'has as-user-extra that is not lists of texts';
  return undefined;
}

/** Fault of fields that are unknown or not allowed, extensions included. */
function fieldFault(value: unknown, known: ReadonlySet<string>, allowed = known): string | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return 'has no fields';
  const refused = Object.entries(value)
    .filter(([field, said]) => !known.has(field) || (Boolean(said) && !allowed.has(field)))
    .map(([field]) => short(field));
  if (refused.length > 0) return `has ${refused.slice(0, MOST_FIELDS).join(', ')}`;
  const { extensions } = value as { extensions?: unknown };
  if (!extensions) return undefined;
  if (!Array.isArray(extensions)) return 'has extensions that are not a list';
  for (const extension of extensions) {
    const found = fieldFault(extension, KNOWN.extension);
    if (found !== undefined) return `has an extension that ${found}`;
  }
  return undefined;
}

function whose(config: KubeconfigDocument, kind: Body, name: unknown): string {
  const of =
    kind !== 'context' &&
    config.contexts?.find(
      (context) => (context?.context as Partial<Record<Body, unknown>> | undefined)?.[kind] === name,
    );
  return `${kind} "${short(name)}"${of ? ` of context "${short(of.name)}"` : ''}`;
}

const areTexts = (values: unknown): boolean =>
  Array.isArray(values) && values.every((value) => typeof value === 'string');

const short = (text: unknown): string => String(text).slice(0, LONGEST_NAME);
