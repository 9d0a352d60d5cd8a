import { resolve } from 'node:path';
import { type AddressList, addressList } from '../../api/address-range.ts';
import { coppiceHome } from '../../garden/toolchain/cache.ts';
import { hostOf } from '../../kube/http/address-guard.ts';
import { type KubeconfigDocument, type NamedEntry, personalKubeconfigs } from '../../kube/kubeconfig-files.ts';
import { gardenDirectory, gardenKubeconfigFile } from '../garden.ts';
import { parseKubeconfig, removeContext } from './config.ts';
import { isOurName } from './context-names.ts';
import { changeKubeconfig, readOptional } from './file.ts';

type Env = Record<string, string | undefined>;

/** Properties by which contexts of this machine's garden are recognized. */
interface GardenHere {
  /** Absolute path of Coppice's home, and whether it is the default one. */
  readonly home: string;
  readonly isUsualHome: boolean;
  /** Absolute path. */
  readonly kubeconfigFile: string;
  /** Certificate authority of the garden's API server, PEM in base64. */
  readonly authority: string | undefined;
  /** Addresses of API servers of the garden's clusters; nothing else on this machine uses them. */
  readonly ranges: AddressList;
}

/** Properties of this machine's garden, running or stopped. */
export async function gardenHere(env: Env): Promise<GardenHere> {
  const directory = gardenDirectory(env);
  const file = gardenKubeconfigFile(env);
  const text = await readOptional(file);
  const [cluster] = text === undefined ? [] : (parseKubeconfig(text, file).clusters ?? []);
  const ranges = (await directory.read().catch(() => undefined))?.ranges;
  return {
    home: resolve(directory.home),
    isUsualHome: resolve(directory.home) === resolve(coppiceHome({ ...env, COPPICE_HOME: undefined })),
    kubeconfigFile: resolve(file),
    authority: (cluster?.cluster as Record<string, string> | undefined)?.['certificate-authority-data'],
    ranges: addressList(ranges ? [ranges.pods, ranges.services, ranges.nodes] : []),
  };
}

/**
 * Names of the contexts that `coppice kubeconfig --merge` added for this garden and its clusters. Ignores contexts of other gardens and
 * those with other names. Pure.
 */
function contextsOf(document: KubeconfigDocument, garden: GardenHere): string[] {
  return (document.contexts ?? [])
    .filter((entry) => isOurName(entry?.name) && isOf(document, entry, garden))
    .map(({ name }) => name);
}

function isOf(document: KubeconfigDocument, { context }: NamedEntry, garden: GardenHere): boolean {
  const { cluster, user } = (context ?? {}) as { cluster?: string; user?: string };
  const exec = bodyOf(document.users, user, 'user').exec as Plugin | undefined;
  if (exec) return asksGarden(exec, garden);
  const { server, ...fields } = bodyOf(document.clusters, cluster, 'cluster') as Record<string, unknown>;
  if (garden.authority !== undefined && fields['certificate-authority-data'] === garden.authority) return true;
  return typeof server === 'string' && URL.canParse(server) && garden.ranges.has(hostOf(new URL(server)));
}

interface Plugin {
  args?: unknown[] | null;
  env?: { name?: string; value?: string }[] | null;
}

/** Whether the credential plugin is Coppice asking this garden. */
function asksGarden({ args, env }: Plugin, garden: GardenHere): boolean {
  if (!args?.includes('--credential')) return false;
  if (args.includes(`--kubeconfig=${garden.kubeconfigFile}`)) return true;
  if (!args.includes('--garden')) return false;
  const home = env?.find(({ name }) => name === 'COPPICE_HOME')?.value;
  return home === undefined ? garden.isUsualHome : resolve(home) === garden.home;
}

const bodyOf = (list: NamedEntry[] | null | undefined, name: string | undefined, field: string) =>
  (list?.find((entry) => entry?.name === name)?.[field] ?? {}) as Record<string, unknown>;

/** Whether the kubeconfig has this context of the garden. */
export async function hasContext(file: string, garden: GardenHere, name: string): Promise<boolean> {
  const text = await readOptional(file);
  return text !== undefined && contextsOf(parseKubeconfig(text, file), garden).includes(name);
}

/** Removes all contexts of a garden from the person's kubeconfigs. Resolves with one line per file about what was done or failed. */
export async function removeContextsOf(garden: GardenHere, env: Env, signal: AbortSignal): Promise<string[]> {
  const said: string[] = [];
  for (const file of personalKubeconfigs(env)) {
    try {
      if ((await readOptional(file)) === undefined) continue;
      let [contexts, wasCurrent]: [string[], boolean] = [[], false];
      await changeKubeconfig(
        file,
        (document) => {
          contexts = contextsOf(document, garden);
          wasCurrent = contexts.includes(document['current-context'] ?? '');
          let rest: KubeconfigDocument | undefined;
          for (const name of contexts) rest = removeContext(rest ?? document, name) ?? rest;
          return rest;
        },
        signal,
      );
      if (contexts.length === 0) continue;
      const none = wasCurrent ? ', which has no current context now' : '';
      said.push(`Removed ${contexts.map((name) => `"${name}"`).join(', ')} from ${file}${none}.`);
    } catch (error) {
      signal.throwIfAborted();
      said.push(`The garden's contexts are still in ${file}: ${(error as Error).message}`);
    }
  }
  return said;
}
