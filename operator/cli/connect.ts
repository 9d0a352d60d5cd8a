import { dirname } from 'node:path';
import { directToGardens } from '../garden/processes/child-environment.ts';
import type { KubeClient } from '../kube/client.ts';
import { hostOf, isLoopback } from '../kube/http/address-guard.ts';
import { combineKubeconfigs, type KubeconfigDocument, personalKubeconfigs } from '../kube/kubeconfig-files.ts';
import type { Context } from './context.ts';
import { CliError, EXIT } from './errors.ts';
import { type DeletedGarden, deletedGarden, forgetDeleted, gardenKubeconfigFile } from './garden.ts';
import { readOptional } from './kubeconfig/file.ts';

export interface CliConnection {
  client: KubeClient;
  /** Namespace by -n, else that of the context, else `default`. */
  namespace: string;
  /** Which kubeconfig is used, for messages. */
  source: string;
  /** Paths of the kubeconfig files. */
  files: readonly string[];
  /** Name of the context, also when it is the current one. */
  context: string | undefined;
  /** Certificate authority in the kubeconfig: distinguishes gardens at the same address. */
  authority: string;
}

/** `source` of a connection to the garden of this machine. */
export const EMBEDDED_GARDEN = 'the embedded garden';

/** A kubeconfig file that exists. */
interface FoundFile {
  readonly file: string;
  readonly text: string;
}

interface Source {
  files: string[];
  what: string;
  /** Whether the person named the file: then a missing file is an error. */
  named: boolean;
}

/** Places of kubeconfigs, in order of precedence. */
export function kubeconfigSources(flag: string | undefined, env: Record<string, string | undefined>): Source[] {
  if (flag !== undefined) return [{ files: [flag], what: flag, named: true }];
  if (env.COPPICE_KUBECONFIG) {
    return [{ files: [env.COPPICE_KUBECONFIG], what: '$COPPICE_KUBECONFIG', named: true }];
  }
  return [
    { files: [gardenKubeconfigFile(env)], what: EMBEDDED_GARDEN, named: false },
    { files: personalKubeconfigs(env), what: env.KUBECONFIG ? '$KUBECONFIG' : '~/.kube/config', named: false },
  ];
}

/** Client for the API server chosen by options and environment. Opens no connection yet. */
export async function connect({ options, env }: Pick<Context, 'options' | 'env'>): Promise<CliConnection> {
  const [named, namespace] = [options.text('context'), options.text('namespace')];
  for (const source of kubeconfigSources(options.text('kubeconfig'), env)) {
    const found = await foundFiles(source.files);
    const deleted = source.what === EMBEDDED_GARDEN || source.named ? undefined : await deletedGarden(env);
    const isChosen = deleted && (await isChosenSince(deleted, found, named));
    if (deleted && named === undefined && !isChosen) throw wasDeleted(deleted);
    if (found.length > 0) {
      const connection = await open(found, source.what, named, namespace);
      if (isChosen) await forgetDeleted(env);
      return connection;
    }
    if (source.named) {
      throw new CliError(`kubeconfig ${source.files[0]} does not exist`, {
        exitCode: EXIT.notFound,
        advice: 'give another with --kubeconfig',
      });
    }
  }
  throw new CliError('there is no garden on this machine, and no kubeconfig', {
    advice: 'run "coppice up", or choose an API server with --kubeconfig',
  });
}

/** Whether the person has chosen the current context since the garden was deleted: by switching to it, or by --context. */
async function isChosenSince(
  { currentContext }: DeletedGarden,
  found: FoundFile[],
  named: string | undefined,
): Promise<boolean> {
  const { 'current-context': current } = await combinedKubeconfig(found);
  if (!current) return false;
  return named === undefined ? currentContext !== undefined && currentContext !== current : named === current;
}

function wasDeleted({ currentContext }: DeletedGarden): CliError {
  const ways = 'run "coppice up", or name another API server with --kubeconfig or --context';
  const again = currentContext ? `; "--context ${currentContext}" once makes it the default again` : '';
  return new CliError('the garden of this machine was deleted ("coppice down")', {
    exitCode: EXIT.notFound,
    advice: ways + again,
  });
}

/** Reads the files that exist. */
export async function foundFiles(files: readonly string[]): Promise<FoundFile[]> {
  const found: FoundFile[] = [];
  for (const file of files) {
    const text = await readOptional(file);
    if (text !== undefined) found.push({ file, text });
  }
  return found;
}

/** Merges the files into one kubeconfig. Throws CliError if a file cannot be parsed. */
export async function combinedKubeconfig(found: FoundFile[]): Promise<KubeconfigDocument> {
  const { parseKubeconfig } = await import('./kubeconfig/config.ts');
  return combineKubeconfigs(found.map(({ file, text }) => ({ file, document: parseKubeconfig(text, file) })));
}

/** Client for the embedded garden, whichever kubeconfig other commands would use. */
export async function connectGarden({ options, env }: Pick<Context, 'options' | 'env'>): Promise<CliConnection> {
  const file = gardenKubeconfigFile(env);
  const text = await readOptional(file);
  if (text === undefined)
    throw new CliError('there is no garden here', { exitCode: EXIT.notFound, advice: 'run "coppice up"' });
  return open([{ file, text }], EMBEDDED_GARDEN, undefined, options.text('namespace'));
}

async function open(
  found: FoundFile[],
  source: string,
  context: string | undefined,
  namespace: string | undefined,
): Promise<CliConnection> {
  const { namespaceOf, writeKubeconfig } = await import('./kubeconfig/config.ts');
  const document = await combinedKubeconfig(found);
  const where = found.length === 1 ? found[0]!.file : `${source} (${dirname(found[0]!.file)}, ...)`;
  if (!context && !document['current-context']) throw await contextMissing(where, document, found);
  const { KubeClient } = await import('../kube/client.ts');
  try {
    const client = KubeClient.fromOwnKubeconfig(writeKubeconfig(document), { context }, { userAgent: 'coppice-cli' });
    // The clusters of a local garden are on this machine too: this process and its children bypass the proxy for them.
    if (isLoopback(hostOf(new URL(client.server)))) Object.assign(process.env, directToGardens(process.env));
    return {
      client,
      namespace: namespace ?? namespaceOf(document, context) ?? 'default',
      source,
      files: found.map(({ file }) => file),
      context: context ?? document['current-context'],
      authority: authorityOf(document, context),
    };
  } catch (error) {
    throw new CliError(`${where}: ${(error as Error).message}`, { cause: error });
  }
}

async function contextMissing(where: string, { contexts }: KubeconfigDocument, found: FoundFile[]): Promise<CliError> {
  const names = (contexts ?? []).map(({ name }) => name);
  if (names.length === 0) {
    const { isKubeconfig } = await import('./kubeconfig/config.ts');
    const isOne = found.every(({ file, text }) => isKubeconfig(text, file));
    return new CliError(`${where} ${isOne ? 'has no contexts' : 'is not a kubeconfig'}`, {
      advice: 'run "coppice up", or choose another file with --kubeconfig',
    });
  }
  return new CliError(`${where} has no current context`, {
    advice: `choose one with --context: ${names.slice(0, MOST_NAMED).join(', ')}`,
  });
}

/** Most names listed in a message. */
const MOST_NAMED = 12;

function authorityOf({ clusters, contexts, ...document }: KubeconfigDocument, context?: string): string {
  const named = contexts?.find(({ name }) => name === (context ?? document['current-context']));
  const { cluster } = (named?.context ?? {}) as { cluster?: string };
  const said = clusters?.find(({ name }) => name === cluster)?.cluster as Record<string, unknown> | undefined;
  return String(said?.['certificate-authority-data'] ?? said?.['certificate-authority'] ?? '');
}
