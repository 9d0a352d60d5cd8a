import { KUBECONFIG_KEY, kubeconfigSecretName, NO_API_SERVER } from '../../api/names.ts';
import type { WorkerCluster } from '../../api/workercluster.ts';
import { rewriteUntrustedKubeconfig } from '../../kube/kubeconfig.ts';
import { personalKubeconfigs } from '../../kube/kubeconfig-files.ts';
import { SECRETS } from '../../kube/resources.ts';
import { inNamespace } from '../clusterview.ts';
import { type CliConnection, connect } from '../connect.ts';
import type { Context } from '../context.ts';
import { CliError, EXIT, UsageError } from '../errors.ts';
import { gardenKubeconfigFile } from '../garden.ts';
import { WORKER_CLUSTER_KIND } from '../kinds.ts';
import { addContext, bundleOf, namespaceOf, parseKubeconfig, removeContext } from '../kubeconfig/config.ts';
import { contextName, GARDEN_CONTEXT } from '../kubeconfig/context-names.ts';
import { changeKubeconfig, fileToChange, readOptional } from '../kubeconfig/file.ts';
import { missingError } from './get.ts';

/** Options of certificates on request. */
const ON_REQUEST = ['viewer', 'expires-in', 'exec'];
const OF_CLUSTERS = ['viewer', 'secret'];

/** `coppice kubeconfig NAME | --garden [--viewer] [--expires-in D] [--exec | --merge | --remove]`. */
export async function run(context: Context): Promise<undefined> {
  const { options, positionals, terminal, env, signal } = context;
  const [name] = positionals;
  const garden = options.flag('garden');
  if (garden === (name !== undefined))
    throw new UsageError(`kubeconfig needs the NAME of a cluster, or --garden${garden ? ', and not both' : ''}`);
  if (options.flag('merge') && options.flag('remove'))
    throw new UsageError('--merge and --remove cannot be used together');

  if (garden && OF_CLUSTERS.some((flag) => options.flag(flag)))
    throw new UsageError(
      `--garden cannot be used together with any of ${OF_CLUSTERS.map((flag) => `--${flag}`).join(', ')}`,
    );
  if (options.flag('credential')) {
    if (garden) {
      const { gardenCredential } = await import('../kubeconfig/of-garden.ts');
      terminal.print(await gardenCredential(context));
    } else {
      const { execCredential } = await import('../kubeconfig/personal.ts');
      terminal.print(await execCredential(context, name!));
    }
    return;
  }

  if (options.flag('remove')) {
    // No request: the cluster or the garden may be gone already.
    const ours = garden ? GARDEN_CONTEXT : contextName(await namespaceHere(context), name!);
    const file = await fileToChange(personalKubeconfigs(env), ours);
    const removed =
      (await readOptional(file)) !== undefined &&
      (await changeKubeconfig(file, (document) => removeContext(document, ours), signal));
    if (!removed) throw new CliError(`${file} has no context "${ours}"`, { exitCode: EXIT.notFound });
    terminal.print(`Removed context "${ours}" from ${file}.`);
    return;
  }

  const { text, ours } = garden ? await gardenKubeconfig(context) : await clusterKubeconfig(context, name!);
  if (text.includes(NO_API_SERVER)) {
    const none = `NO CONTROL PLANE: no API server answers at the kubeconfig of ${name}; the cluster exists only as objects, for scale tests.`;
    terminal.note(terminal.notePaint('loud', none));
  }
  if (!options.flag('merge')) {
    terminal.print(text.trimEnd());
    return;
  }
  const bundle = bundleOf(parseKubeconfig(text, ours), ours);
  const file = await fileToChange(personalKubeconfigs(env), ours);
  const changed = await changeKubeconfig(file, (document) => addContext(document, bundle), signal);
  terminal.print(
    changed ? `Added context "${ours}" to ${file}.` : `Context "${ours}" is in ${file} already.`,
    `Use it: kubectl --context ${ours} get ${garden ? 'workerclusters -A' : 'nodes'}`,
  );
}

async function gardenKubeconfig(context: Context): Promise<{ text: string; ours: string }> {
  const ofGarden = await import('../kubeconfig/of-garden.ts');
  return { text: await ofGarden.gardenKubeconfig(context), ours: GARDEN_CONTEXT };
}

async function clusterKubeconfig(context: Context, name: string): Promise<{ text: string; ours: string }> {
  const connection = await connect(context);
  const { client, namespace } = connection;
  const { options, signal } = context;
  const cluster = await client.getOrUndefined<WorkerCluster>(WORKER_CLUSTER_KIND.resource, name, namespace, { signal });
  if (cluster === undefined) throw await missingError(client, WORKER_CLUSTER_KIND, name, namespace, signal);
  if (cluster.spec.attached?.garden)
    throw new CliError(`WorkerCluster "${name}" is the garden itself`, {
      exitCode: EXIT.notFound,
      advice: 'run "coppice kubeconfig --garden"',
    });
  const ours = contextName(namespace, name);
  const none = whyOnlySecret(cluster);
  const asked = ON_REQUEST.filter((flag) => options.flag(flag) || options.number(flag) !== undefined);
  if (asked.length > 0 && (none !== undefined || options.flag('secret'))) {
    if (none === undefined) throw new UsageError(`--secret and --${asked[0]} cannot be used together`);
    throw new CliError(`--${asked[0]} is not possible for WorkerCluster "${name}": ${none}`, {
      advice: `leave it out to get the kubeconfig in Secret ${kubeconfigSecretName(name)}`,
    });
  }
  if (none !== undefined || options.flag('secret'))
    return { text: await storedKubeconfig(connection, cluster, signal), ours };
  const server = cluster.status?.endpoint;
  if (server === undefined) throw notYet(cluster);
  const { endingKubeconfig, renewingKubeconfig, wantedBy } = await import('../kubeconfig/personal.ts');
  const wanted = wantedBy(options, namespace, name);
  const renews = options.flag('exec') || options.flag('merge');
  const text = renews
    ? await renewingKubeconfig(context, connection, wanted, server)
    : await endingKubeconfig(connection, wanted, server, signal);
  return { text, ours };
}

/** Reason why the operator signs no certificates for the cluster, as a clause. Undefined: it signs. */
function whyOnlySecret({ spec, status }: WorkerCluster): string | undefined {
  const mode = status?.mode ?? spec.mode;
  if (mode === 'Managed') return 'the cloud has the keys of its certificate authority';
  if (mode === 'Attached') return 'whoever made it has the keys of its certificate authority';
  return status?.endpoint?.includes(NO_API_SERVER) ? 'it exists only as objects, without an API server' : undefined;
}

async function storedKubeconfig(
  { client, namespace }: CliConnection,
  cluster: WorkerCluster,
  signal: AbortSignal,
): Promise<string> {
  const { metadata, spec } = cluster;
  const ref = spec.attached?.kubeconfigSecretRef;
  const secretName = ref?.name ?? kubeconfigSecretName(metadata.name);
  const secret = await client.getOrUndefined(SECRETS, secretName, namespace, { signal });
  const value = (secret?.data as Record<string, string> | undefined)?.[ref?.key ?? KUBECONFIG_KEY];
  if (value === undefined) throw notYet(cluster);
  const text = Buffer.from(value, 'base64').toString('utf8');
  // Otherwise a person with write access to the namespace's Secrets could make another person's kubectl run a program.
  return rewriteUntrustedKubeconfig(text, `the kubeconfig in Secret ${namespace}/${secretName}`);
}

const notYet = ({ metadata: { name, namespace } }: WorkerCluster): CliError =>
  new CliError(`WorkerCluster "${name}" has no kubeconfig yet`, {
    exitCode: EXIT.notFound,
    advice: `wait for it: "coppice wait ${name}${inNamespace(namespace)}"`,
  });

async function namespaceHere({ options, env }: Context): Promise<string> {
  const named = options.text('namespace');
  if (named !== undefined) return named;
  const file = options.text('kubeconfig') ?? env.COPPICE_KUBECONFIG ?? gardenKubeconfigFile(env);
  const text = await readOptional(file);
  return (
    (text === undefined ? undefined : namespaceOf(parseKubeconfig(text, file), options.text('context'))) ?? 'default'
  );
}
