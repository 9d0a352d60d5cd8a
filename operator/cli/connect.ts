import { dirname } from 'node:path';
import { directToGardens } from '../garden/processes/child-environment.ts';
import type { KubeClient } from '../kube/client.ts';
import { hostOf, isLoopback } from '../kube/http/address-guard.ts';
import { combineKubeconfigs, type KubeconfigDocument, personalKubeconfigs } from '../kube/kubeconfig-files.ts';
import type { Context } from './context.ts';
import { CliError, EXIT } from './errors.ts';
import { gardenKubeconfigFile, wasDeleted } from './garden.ts';
import { readOptional } from './kubeconfig/file.ts';

export interface Connection {
  client: KubeClient;
  /** From -n, else from the context, else `default`. */
  namespace: string;
  /** Which kubeconfig was taken, for messages. */
  source: string;
  /** Its files. */
  files: readonly string[];
  /** Name of the context that was taken, named by the person or not. */
  context: string | undefined;
  /** Who vouches for the API server, as the kubeconfig says: another garden at the same address is another one. */
  authority: string;
}

/** Source of a connection to the garden of this machine. */
export const EMBEDDED_GARDEN = 'the embedded garden';

interface Source {
  files: string[];
  what: string;
  /** The person named it, so it must exist. */
  named: boolean;
}

/** Where to look for a kubeconfig, best first. */
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

/** A client for the API server that the options and the environment mean. Connects to nothing yet. */
export async function connect({ options, env }: Pick<Context, 'options' | 'env'>): Promise<Connection> {
  for (const source of kubeconfigSources(options.text('kubeconfig'), env)) {
    if (source.what !== EMBEDDED_GARDEN && !source.named && options.text('context') === undefined && wasDeleted(env))
      throw new CliError('the garden of this machine was deleted ("coppice down")', {
        exitCode: EXIT.notFound,
        advice: 'run "coppice up", or choose another API server with --kubeconfig or --context',
      });
    const found: { file: string; text: string }[] = [];
    for (const file of source.files) {
      const text = await readOptional(file);
      if (text !== undefined) found.push({ file, text });
    }
    if (found.length > 0) return open(found, source.what, options.text('context'), options.text('namespace'));
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

/** A client for the embedded garden itself, whatever kubeconfig other commands would take. */
export async function connectGarden({ options, env }: Pick<Context, 'options' | 'env'>): Promise<Connection> {
  const file = gardenKubeconfigFile(env);
  const text = await readOptional(file);
  if (text === undefined)
    throw new CliError('there is no garden here', { exitCode: EXIT.notFound, advice: 'run "coppice up"' });
  return open([{ file, text }], EMBEDDED_GARDEN, undefined, options.text('namespace'));
}

async function open(
  found: { file: string; text: string }[],
  source: string,
  context: string | undefined,
  namespace: string | undefined,
): Promise<Connection> {
  const { namespaceOf, parseKubeconfig, writeKubeconfig } = await import('./kubeconfig/config.ts');
  const documents = found.map(({ file, text }) => ({ file, document: parseKubeconfig(text, file) }));
  const document = combineKubeconfigs(documents);
  const { KubeClient } = await import('../kube/client.ts');
  try {
    const client = KubeClient.fromOwnKubeconfig(writeKubeconfig(document), { context }, { userAgent: 'coppice-cli' });
    // A garden on this machine has its clusters here, too, for all that this process connects to and all programs that it starts.
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
    const where = found.length === 1 ? found[0]!.file : `${source} (${dirname(found[0]!.file)}, ...)`;
    throw new CliError(`${where}: ${(error as Error).message}`, { cause: error });
  }
}

function authorityOf({ clusters, contexts, ...document }: KubeconfigDocument, context?: string): string {
  const named = contexts?.find(({ name }) => name === (context ?? document['current-context']));
  const { cluster } = (named?.context ?? {}) as { cluster?: string };
  const said = clusters?.find(({ name }) => name === cluster)?.cluster as Record<string, unknown> | undefined;
  return String(said?.['certificate-authority-data'] ?? said?.['certificate-authority'] ?? '');
}
