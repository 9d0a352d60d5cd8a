import { homedir } from 'node:os';
import { delimiter, dirname, isAbsolute, join, resolve } from 'node:path';

export interface NamedEntry {
  name: string;
  [field: string]: unknown;
}

/** A kubeconfig as parsed from YAML; unknown fields are kept. */
export interface KubeconfigDocument {
  apiVersion?: string;
  kind?: string;
  clusters?: NamedEntry[] | null;
  users?: NamedEntry[] | null;
  contexts?: NamedEntry[] | null;
  'current-context'?: string;
  [field: string]: unknown;
}

export const KUBECONFIG_LISTS = ['clusters', 'users', 'contexts'] as const;

/** Files that kubectl would read, in order. */
export function personalKubeconfigs(env: Record<string, string | undefined>): string[] {
  const listed = (env.KUBECONFIG ?? '').split(delimiter).filter((file) => file !== '');
  return listed.length > 0 ? [...new Set(listed)] : [join(env.HOME || homedir(), '.kube', 'config')];
}

/** Merges kubeconfigs as kubectl merges $KUBECONFIG: the first file that names an entry wins. */
export function combineKubeconfigs(
  parts: readonly { document: KubeconfigDocument; file: string }[],
): KubeconfigDocument {
  const combined: KubeconfigDocument = { apiVersion: 'v1', kind: 'Config', clusters: [], users: [], contexts: [] };
  for (const { document, file } of parts) {
    const absolute = absolutePaths(document, dirname(file));
    for (const list of KUBECONFIG_LISTS) {
      const known = new Set(combined[list]!.map((entry) => entry.name));
      combined[list] = [...combined[list]!, ...(absolute[list] ?? []).filter((entry) => !known.has(entry.name))];
    }
    if (!combined['current-context'] && document['current-context']) {
      combined['current-context'] = document['current-context'];
    }
  }
  return combined;
}

// Relative file names in a kubeconfig are relative to its folder.
const PATHS = {
  clusters: ['cluster', 'certificate-authority'],
  users: ['user', 'client-certificate', 'client-key', 'tokenFile'],
};

/** The document with absolute file names. */
function absolutePaths(document: KubeconfigDocument, folder: string): KubeconfigDocument {
  const result: KubeconfigDocument = { ...document };
  const isRelative = (value: unknown): value is string =>
    typeof value === 'string' && value !== '' && !isAbsolute(value);
  for (const list of ['clusters', 'users'] as const) {
    const [body, ...fields] = PATHS[list];
    result[list] = (document[list] ?? []).map((entry) => {
      const values = { ...(entry[body!] as Record<string, unknown> | undefined) };
      for (const field of fields) {
        const value = values[field];
        if (isRelative(value)) values[field] = resolve(folder, value);
      }
      const exec = values.exec as { command?: unknown } | undefined;
      // As in kubectl: a bare command name is looked up in PATH, a path is relative to the kubeconfig.
      if (isRelative(exec?.command) && exec.command.includes('/'))
        values.exec = { ...exec, command: resolve(folder, exec.command) };
      return { ...entry, [body!]: values };
    });
  }
  return result;
}
