import { dump } from 'js-yaml';
import { KUBECONFIG_LISTS, type KubeconfigDocument, type NamedEntry } from '../../kube/kubeconfig-files.ts';
import { yamlDocument } from '../../kube/yaml.ts';
import { CliError } from '../errors.ts';

/** Parses a kubeconfig; `source` names it in errors. An empty text is an empty kubeconfig. */
export function parseKubeconfig(text: string, source: string): KubeconfigDocument {
  let value: unknown;
  try {
    value = text.trim() === '' ? {} : yamlDocument(text);
  } catch (error) {
    throw new CliError(`kubeconfig ${source} is not valid YAML: ${(error as Error).message}`, {
      advice: 'repair it or choose another file',
    });
  }
  const document = (value ?? {}) as KubeconfigDocument;
  const wellFormed =
    typeof document === 'object' &&
    !Array.isArray(document) &&
    KUBECONFIG_LISTS.every(
      (list) => document[list] === undefined || document[list] === null || Array.isArray(document[list]),
    );
  if (!wellFormed) throw new CliError(`${source} is not a kubeconfig`, { advice: 'choose another file' });
  return document;
}

/** Whether the text is a kubeconfig or empty. Throws CliError if it cannot be parsed. */
export function isKubeconfig(text: string, source: string): boolean {
  const document = parseKubeconfig(text, source);
  const isEmpty = Object.keys(document).length === 0;
  return isEmpty || document.kind === 'Config' || KUBECONFIG_LISTS.some((list) => list in document);
}

export function writeKubeconfig(document: KubeconfigDocument): string {
  return dump(document, { lineWidth: -1 });
}

/** One context with its cluster and user, under our name. */
interface ContextBundle {
  cluster: NamedEntry;
  user: NamedEntry;
  context: NamedEntry;
}

/** Extracts the current context of a kubeconfig; renames context, cluster and user to `name`. */
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

/** Adds the bundle to the document: replaces entries of the same name in place, appends new ones. */
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
 * The document without this context, and without the cluster and user of that name unless another context uses them.
 * Undefined if the document has no such entry.
 */
export function removeContext(document: KubeconfigDocument, name: string): KubeconfigDocument | undefined {
  const present = KUBECONFIG_LISTS.some((list) => find(document[list], name) !== undefined);
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

/** Namespace of a context (default: the current one). */
export function namespaceOf(document: KubeconfigDocument, context?: string): string | undefined {
  const entry = find(document.contexts, context ?? document['current-context']);
  return (entry?.context as { namespace?: string } | undefined)?.namespace || undefined;
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
