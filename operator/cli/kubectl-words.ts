import { resolve } from 'node:path';
import { personalKubeconfigs } from '../kube/kubeconfig-files.ts';
import { EMBEDDED_GARDEN, kubeconfigSources } from './connect.ts';
import type { Context } from './context.ts';
import { type Explained, explain } from './errors.ts';
import { quote } from './invocation.ts';
import { GARDEN_CONTEXT } from './kubeconfig/context-names.ts';
import { readOptional } from './kubeconfig/file.ts';
import { gardenHere, hasContext } from './kubeconfig/garden-contexts.ts';

type Asked = Pick<Context, 'options' | 'env'>;

/**
 * `kubectl` with the options that select the API server of this command: the person's current context may be another.
 * Resolves with `kubectl` alone if the API server is unknown.
 */
export async function kubectlWords({ options, env }: Asked): Promise<string> {
  const context = options.text('context');
  const named = context === undefined ? '' : ` --context ${quote(context)}`;
  for (const { files, what, named: isNamed } of kubeconfigSources(options.text('kubeconfig'), env)) {
    if (what === EMBEDDED_GARDEN) {
      if ((await readOptional(files[0]!)) === undefined) continue;
      return named === '' && (await isMerged(env))
        ? `kubectl --context ${GARDEN_CONTEXT}`
        : `kubectl --kubeconfig ${quote(resolve(files[0]!))}${named}`;
    }
    return isNamed ? `kubectl --kubeconfig ${quote(resolve(files[0]!))}${named}` : `kubectl${named}`;
  }
  return 'kubectl';
}

/** Whether the person's kubeconfig has the context of this machine's garden. */
async function isMerged(env: Asked['env']): Promise<boolean> {
  const garden = await gardenHere(env);
  for (const file of personalKubeconfigs(env)) if (await hasContext(file, garden, GARDEN_CONTEXT)) return true;
  return false;
}

/** Like `explain`, with kubectl commands that select the API server of this command. */
export async function explainFor(asked: Asked, error: unknown): Promise<Explained> {
  const kubectl = await kubectlWords(asked).catch(() => 'kubectl');
  return explain(error, true, kubectl);
}
