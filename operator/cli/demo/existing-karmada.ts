import { readFile } from 'node:fs/promises';
import { KubeClient } from '../../kube/client.ts';
import { selfContainedKubeconfig } from '../../kube/kubeconfig.ts';
import { decodeSecret, NAMESPACES, SECRETS, type Secret } from '../../kube/resources.ts';
import { CliError, EXIT } from '../errors.ts';
import { parseKubeconfig, writeKubeconfig } from '../kubeconfig/config.ts';
import { KARMADA_SECRET, KarmadaFleet } from './karmada-fleet.ts';

/** Context of Karmada's API server in the kubeconfig written by Karmada's installers; they add a second context for the host cluster. */
const CONTEXT = 'karmada-apiserver';

/** Connection to a Karmada. */
export interface ExistingKarmada {
  readonly fleet: KarmadaFleet;
  readonly close: () => Promise<void>;
}

/**
 * Connects to a person's Karmada. Throws CliError if the kubeconfig is missing, or has entries that a Secret may not have.
 * @param context absent: `karmada-apiserver` if it exists, else the current one
 * @param namespace the operator's
 */
export async function karmadaOf(
  garden: KubeClient,
  file: string,
  context: string | undefined,
  namespace: string,
  signal: AbortSignal,
): Promise<ExistingKarmada> {
  const text = await readFile(file, 'utf8').catch((error: Error) => {
    throw new CliError(`kubeconfig ${file} cannot be read: ${error.message}`, { exitCode: EXIT.notFound });
  });
  const document = parseKubeconfig(text, file);
  const has = (name: string) => document.contexts?.some((one) => one.name === name);
  const chosen = context ?? (has(CONTEXT) ? CONTEXT : document['current-context']);
  if (chosen === undefined || !has(chosen))
    throw new CliError(`kubeconfig ${file} has no context ${chosen ?? ''}`, { advice: 'choose one with --context' });
  let kubeconfig: string;
  try {
    kubeconfig = selfContainedKubeconfig(writeKubeconfig(only(document, chosen)), file);
  } catch (error) {
    throw new CliError(`the operator could not use it: ${(error as Error).message}`, { cause: error });
  }
  return open(garden, kubeconfig, namespace, signal);
}

/** Karmada of an interrupted demo. Undefined: the demo used none, or left nothing there. */
export async function karmadaLeft(
  garden: KubeClient,
  namespace: string,
  signal: AbortSignal,
): Promise<ExistingKarmada | undefined> {
  const secret = await garden.getOrUndefined<Secret>(SECRETS, KARMADA_SECRET, namespace, { signal });
  return secret && open(garden, decodeSecret(secret.data).value ?? '', namespace, signal);
}

async function open(
  garden: KubeClient,
  kubeconfig: string,
  namespace: string,
  signal: AbortSignal,
): Promise<ExistingKarmada> {
  const { metadata } = await garden.get(NAMESPACES, 'kube-system', undefined, { signal });
  const client = KubeClient.fromAdministratorsKubeconfig(kubeconfig, 'of the Karmada');
  const fleet = new KarmadaFleet(client, kubeconfig, namespace, metadata.uid ?? '');
  return { fleet, close: () => client.close() };
}

/** The kubeconfig with this context only: the operator must not learn of others. */
function only(document: ReturnType<typeof parseKubeconfig>, name: string): ReturnType<typeof parseKubeconfig> {
  const contexts = (document.contexts ?? []).filter((one) => one.name === name);
  const { cluster, user } = (contexts[0]?.context ?? {}) as { cluster?: string; user?: string };
  return {
    ...document,
    contexts,
    clusters: (document.clusters ?? []).filter((one) => one.name === cluster),
    users: (document.users ?? []).filter((one) => one.name === user),
    'current-context': name,
  };
}
