import { dirname, isAbsolute, join } from 'node:path';
import { dump, load } from 'js-yaml';
import { CliError } from '../errors.ts';

export interface NamedEntry {
  name: string;
  [field: string]: unknown;
}

/** A kubeconfig as it is written; unknown fields are kept. */
export interface KubeconfigDocument {
  apiVersion?: string;
  kind?: string;
  clusters?: NamedEntry[] | null;
  users?: NamedEntry[] | null;
  contexts?: NamedEntry[] | null;
  'current-context'?: string;
  [field: string]: unknown;
}

const LISTS = ['clusters', 'users', 'contexts'] as const;

/** Reads a kubeconfig; `source` names it in errors. An empty text is an empty kubeconfig. */
export function parseKubeconfig(text: string, source: string): KubeconfigDocument {
  let value: unknown;
  try {
    value = text.trim() === '' ? {} : load(text);
  } catch (error) {
    const reason = error instanceof Error ? error.message.split('\n')[0] : String(error);
    throw new CliError(`kubeconfig ${source} is not valid YAML: ${reason}`, {
      advice: 'repair it or choose another file',
    });
  }
  const document = (value ?? {}) as KubeconfigDocument;
  const wellFormed =
    typeof document === 'object' &&
    !Array.isArray(document) &&
    LISTS.every((list) => document[list] === undefined || document[list] === null || Array.isArray(document[list]));
  if (!wellFormed) throw new CliError(`${source} is not a kubeconfig`, { advice: 'choose another file' });
  return document;
}

export function writeKubeconfig(document: KubeconfigDocument): string {
  return dump(document, { lineWidth: -1 });
}

/** What one context says, made to stand alone under a name of ours. */
export interface ContextBundle {
  cluster: NamedEntry;
  user: NamedEntry;
  context: NamedEntry;
}

/** Takes the current context out of a kubeconfig, with cluster, user and context renamed to `name`. */
export function bundleOf(document: KubeconfigDocument, name: string): ContextBundle {
  const context = find(document.contexts, document['current-context']) ?? document.contexts?.[0];
  const body = context?.context as { cluster?: string; user?: string } | undefined;
  const cluster = find(document.clusters, body?.cluster);
  const user = find(document.users, body?.user);
  if (context === undefined || cluster === undefined || user === undefined) {
    throw new CliError('this kubeconfig has no complete context');
  }
  return {
    cluster: { ...cluster, name },
    user: { ...user, name },
    context: { ...context, name, context: { ...body, cluster: name, user: name } },
  };
}

/** The document with the bundle in it: entries of the same name are replaced where they stand, new ones come last. */
export function addContext(document: KubeconfigDocument, bundle: ContextBundle): KubeconfigDocument {
  return {
    ...(document.apiVersion === undefined && { apiVersion: 'v1' }),
    ...(document.kind === undefined && { kind: 'Config' }),
    ...document,
    clusters: put(document.clusters, bundle.cluster),
    users: put(document.users, bundle.user),
    contexts: put(document.contexts, bundle.context),
    'current-context': document['current-context'] || bundle.context.name,
  };
}

/**
 * The document without the context of that name, and without the cluster and user of that name unless another context
 * uses them. Undefined when there is nothing to take away.
 */
export function removeContext(document: KubeconfigDocument, name: string): KubeconfigDocument | undefined {
  const present = LISTS.some((list) => find(document[list], name) !== undefined);
  if (!present) return undefined;
  const contexts = without(document.contexts, name);
  const used = (field: 'cluster' | 'user') =>
    contexts.some((entry) => (entry.context as Record<string, unknown> | undefined)?.[field] === name);
  return {
    ...document,
    clusters: used('cluster') ? document.clusters : without(document.clusters, name),
    users: used('user') ? document.users : without(document.users, name),
    contexts,
    ...(document['current-context'] === name && { 'current-context': '' }),
  };
}

/** Several kubeconfigs as one, as kubectl reads $KUBECONFIG: the first file that names something wins. */
export function combine(parts: readonly { document: KubeconfigDocument; file: string }[]): KubeconfigDocument {
  const combined: KubeconfigDocument = { apiVersion: 'v1', kind: 'Config', clusters: [], users: [], contexts: [] };
  for (const { document, file } of parts) {
    const absolute = absolutePaths(document, dirname(file));
    for (const list of LISTS) {
      const known = new Set(combined[list]!.map((entry) => entry.name));
      combined[list] = [...combined[list]!, ...(absolute[list] ?? []).filter((entry) => !known.has(entry.name))];
    }
    if (!combined['current-context'] && document['current-context']) {
      combined['current-context'] = document['current-context'];
    }
  }
  return combined;
}

/** The namespace that a context (default: the current one) asks for. */
export function namespaceOf(document: KubeconfigDocument, context?: string): string | undefined {
  const entry = find(document.contexts, context ?? document['current-context']);
  return (entry?.context as { namespace?: string } | undefined)?.namespace || undefined;
}

// File names in a kubeconfig are relative to the folder it lies in.
const PATHS = {
  clusters: ['cluster', 'certificate-authority'],
  users: ['user', 'client-certificate', 'client-key', 'tokenFile'],
};

function absolutePaths(document: KubeconfigDocument, folder: string): KubeconfigDocument {
  const result: KubeconfigDocument = { ...document };
  for (const list of ['clusters', 'users'] as const) {
    const [body, ...fields] = PATHS[list];
    result[list] = (document[list] ?? []).map((entry) => {
      const values = { ...(entry[body!] as Record<string, unknown> | undefined) };
      for (const field of fields) {
        const value = values[field];
        if (typeof value === 'string' && value !== '' && !isAbsolute(value)) values[field] = join(folder, value);
      }
      return { ...entry, [body!]: values };
    });
  }
  return result;
}

function find(list: NamedEntry[] | null | undefined, name: string | undefined): NamedEntry | undefined {
  return name === undefined ? undefined : list?.find((entry) => entry?.name === name);
}

function put(list: NamedEntry[] | null | undefined, entry: NamedEntry): NamedEntry[] {
  const existing = list ?? [];
  return find(existing, entry.name) === undefined
    ? [...existing, entry]
    : existing.map((old) => (old?.name === entry.name ? entry : old));
}

function without(list: NamedEntry[] | null | undefined, name: string): NamedEntry[] {
  return (list ?? []).filter((entry) => entry?.name !== name);
}
