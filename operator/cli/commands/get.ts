import type { KubeObject } from '../../api/meta.ts';
import type { KubeClient } from '../../kube/client.ts';
import { silent } from '../../kube/log.ts';
import { reflect } from '../../kube/reflector.ts';
import { keyOf } from '../../kube/resources.ts';
import { columnsOf, isSimulated, showsNoControlPlane } from '../clusterview.ts';
import { type CliConnection, connect } from '../connect.ts';
import type { Context } from '../context.ts';
import { CliError, EXIT, explain, UsageError } from '../errors.ts';
import { CLI_API_VERSION, CLI_KINDS, type CliKind, kindOf, kindWords, WORKER_CLUSTER_KIND } from '../kinds.ts';
import { printObject } from '../output.ts';
import { renderTable, type TableOptions } from '../render/table.ts';
import { didYouMean } from '../suggest.ts';

/** `coppice get [KIND] [NAME]`. */
export async function run(context: Context): Promise<number | undefined> {
  const { options, terminal, signal } = context;
  const { kinds, name } = target(context.positionals);
  const format = options.text('output');
  const everywhere = options.flag('all-namespaces');
  if (name !== undefined && everywhere) throw new UsageError('a NAME and --all-namespaces cannot be used together');
  if (name !== undefined && options.text('selector') !== undefined) {
    throw new UsageError('a NAME and --selector cannot be used together');
  }

  if (options.flag('watch') && (kinds.length > 1 || format === 'json' || format === 'yaml'))
    throw new UsageError('--watch prints a table of one kind', 'for example: coppice get workerclusters --watch');

  const connection = await connect(context);
  const { client, namespace } = connection;
  if (options.flag('watch')) {
    await watch(context, connection, kinds[0]!, name);
    return undefined;
  }
  if (name !== undefined) {
    const kind = kinds[0]!;
    const inNamespace = kind.resource.namespaced ? namespace : undefined;
    const object = await client.getOrUndefined(kind.resource, name, inNamespace, { signal });
    if (object === undefined) throw await missingError(client, kind, name, inNamespace, signal);
    if (format === 'json' || format === 'yaml') await printObject(terminal, format, object);
    else show([{ kind, objects: [object] }], context, false);
    return undefined;
  }

  const groups = await Promise.all(
    kinds.map(async (kind) => {
      const list = await client.list(kind.resource, {
        namespace: kind.resource.namespaced && !everywhere ? namespace : undefined,
        labelSelector: options.text('selector'),
        signal,
      });
      return { kind, objects: list.items };
    }),
  );
  if (format === 'json' || format === 'yaml') {
    await printObject(terminal, format, listOf(groups.flatMap((group) => group.objects)));
    return undefined;
  }
  if (groups.every((group) => group.objects.length === 0)) {
    const what = kinds.length === 1 ? kinds[0]!.resource.plural : 'objects';
    const namespaced = kinds.some((kind) => kind.resource.namespaced);
    terminal.note(`No ${what} found${everywhere || !namespaced ? '' : ` in namespace ${namespace}`}.`);
    return undefined;
  }
  show(groups, context, everywhere);
  return undefined;
}

/** Prints the table, then a row for each change, until the signal is aborted. */
async function watch(
  context: Context,
  { client, namespace }: CliConnection,
  kind: CliKind,
  name?: string,
): Promise<void> {
  const { options, terminal, signal } = context;
  const everywhere = options.flag('all-namespaces');
  const seen = new Map<string, string | undefined>();
  const print = (objects: readonly KubeObject[]) => {
    const news = objects.filter((object) => seen.get(keyOf(object)) !== object.metadata.resourceVersion);
    if (news.length === 0) return;
    const header = seen.size === 0 && !options.flag('no-headers');
    for (const object of news) seen.set(keyOf(object), object.metadata.resourceVersion);
    const wide = options.text('output') === 'wide';
    terminal.print(
      ...tableOf(kind, news, {
        wide,
        everywhere,
        now: Date.now(),
        header,
        ...(terminal.width !== undefined && { width: terminal.width }),
        paint: terminal.paint,
      }),
    );
  };
  const labelSelector = options.text('selector');
  await reflect<KubeObject>(
    client,
    kind.resource,
    {
      ...(kind.resource.namespaced && !everywhere && { namespace }),
      ...(labelSelector !== undefined && { labelSelector }),
      ...(name !== undefined && { fieldSelector: `metadata.name=${name}` }),
      log: silent,
    },
    {
      replace: print,
      event: (_type, object) => print([object]),
      failed: (error) => terminal.note(explain(error).message),
    },
    signal,
  );
}

/** A Kubernetes List. */
export function listOf(items: KubeObject[]): object {
  return { apiVersion: 'v1', kind: 'List', metadata: { resourceVersion: '' }, items };
}

/**
 * Error for a name that does not exist (exit code 3).
 * @param existing names that exist; absent: unknown
 */
export function notFound(
  kind: CliKind,
  name: string,
  namespace: string | undefined,
  existing: readonly string[] = [],
): CliError {
  const where = namespace === undefined ? '' : ` in namespace ${namespace}`;
  const lists = `"coppice get ${kind.resource.plural}${namespace === undefined ? '' : ' -A'}" lists all that exist`;
  const isFew = existing.length > 0 && existing.length <= MOST_NAMED;
  return new CliError(`there is no ${kind.resource.kind} "${name}"${where}`, {
    exitCode: EXIT.notFound,
    advice: didYouMean(name, existing) ?? (isFew ? `there are: ${[...existing].sort().join(', ')}` : lists),
  });
}

/** Most names listed in a message. */
const MOST_NAMED = 12;

/** Error for an object that the API server does not have, with the most similar name or all existing names. */
export async function missingError(
  client: Pick<KubeClient, 'list'>,
  kind: CliKind,
  name: string,
  namespace: string | undefined,
  signal: AbortSignal,
): Promise<CliError> {
  const existing = await client
    .list(kind.resource, { namespace, signal: AbortSignal.any([signal, AbortSignal.timeout(PATIENCE_MS)]) })
    .then(({ items }) => namesOf(items))
    // A person without the right to list gets the error without names.
    .catch(() => []);
  return notFound(kind, name, namespace, existing);
}

/** Names of objects, for `notFound`. */
export const namesOf = (objects: readonly KubeObject[]): string[] => objects.map(({ metadata }) => metadata.name);

/** Time limit for listing names after a typing error. */
const PATIENCE_MS = 2000;

function target(positionals: readonly string[]): { kinds: readonly CliKind[]; name?: string } {
  let [word, name] = positionals;
  if (word === undefined) return { kinds: [WORKER_CLUSTER_KIND] };
  if (name === undefined && word.includes('/')) {
    const slash = word.indexOf('/');
    name = word.slice(slash + 1);
    word = word.slice(0, slash);
  }
  if (word === 'all') {
    if (name !== undefined) throw new UsageError('"get all" takes no NAME');
    return { kinds: CLI_KINDS };
  }
  const kind = kindOf(word);
  if (kind === undefined) {
    const hint = OF_KUBERNETES.test(word)
      ? `"coppice get" lists kinds of Coppice; run "kubectl --context coppice/NAMESPACE/NAME get ${word}" for those of a cluster`
      : (didYouMean(word, [...kindWords(), 'all']) ?? `for a cluster of that name: coppice get workerclusters ${word}`);
    throw new UsageError(`get: unknown kind "${word}"`, hint);
  }
  return name === undefined ? { kinds: [kind] } : { kinds: [kind], name };
}

/** Kinds that live in clusters, not in the garden. */
const OF_KUBERNETES =
  /^(no|nodes?|po|pods?|svc|services?|deploy|deployments?|ds|daemonsets?|sts|statefulsets?|jobs?|cronjobs?|ns|namespaces?|secrets?|cm|configmaps?|events?|pvc?|persistentvolumes?|persistentvolumeclaims?|ing|ingress|ingresses)$/;

interface Group {
  kind: CliKind;
  objects: KubeObject[];
}

function show(groups: readonly Group[], { options, terminal }: Context, everywhere: boolean): void {
  const shown = groups.filter((group) => group.objects.length > 0);
  if (options.text('output') === 'name') {
    for (const { kind, objects } of shown) {
      terminal.print(
        ...objects.map(
          (object) => `${kind.resource.kind.toLowerCase()}.${CLI_API_VERSION.split('/')[0]}/${object.metadata.name}`,
        ),
      );
    }
    return;
  }
  shown.forEach((group, index) => {
    const lines = tableOf(group.kind, group.objects, {
      wide: options.text('output') === 'wide',
      everywhere,
      now: Date.now(),
      prefix: groups.length > 1,
      header: !options.flag('no-headers'),
      ...(terminal.width === undefined ? {} : { width: terminal.width }),
      paint: terminal.paint,
    });
    terminal.print(...(index > 0 ? [''] : []), ...lines);
  });
  const simulated = shown
    .flatMap((group) => group.objects)
    .filter((object) => object.kind === 'WorkerCluster' && isSimulated(object));
  if (simulated.length > 0) {
    const names = simulated.map((object) => object.metadata.name).join(', ');
    const text = `SIMULATED: ${names} ${simulated.length === 1 ? 'has' : 'have'} simulated nodes; nothing exists in a cloud.`;
    terminal.note(terminal.notePaint('loud', text));
    const empty = simulated.filter(showsNoControlPlane).map((object) => object.metadata.name);
    if (empty.length > 0) {
      const none = `NO CONTROL PLANE: no API server answers at the kubeconfig of ${empty.join(', ')}.`;
      terminal.note(terminal.notePaint('loud', none));
    }
  }
}

interface ListOptions extends TableOptions {
  wide: boolean;
  everywhere: boolean;
  /** Milliseconds since the epoch. */
  now: number;
  /** Shows names as `kind/name`, when several tables follow each other. */
  prefix?: boolean;
}

/** The table of objects of one kind, sorted by namespace and name. */
export function tableOf(kind: CliKind, objects: readonly KubeObject[], options: ListOptions): string[] {
  const columns = columnsOf(kind.resource.kind, options.wide);
  const withNamespace = options.everywhere && kind.resource.namespaced;
  const key = (object: KubeObject) => [object.metadata.namespace ?? '', object.metadata.name] as const;
  const sorted = [...objects].sort((a, b) => {
    const [aNamespace, aName] = key(a);
    const [bNamespace, bName] = key(b);
    return compare(aNamespace, bNamespace) || compare(aName, bName);
  });
  const rows = sorted.map((object) => {
    const [name, ...rest] = columns.row(object, options.now);
    const shownName = options.prefix ? `${kind.resource.kind.toLowerCase()}/${object.metadata.name}` : name!;
    return [...(withNamespace ? [object.metadata.namespace ?? ''] : []), shownName, ...rest];
  });
  return renderTable([...(withNamespace ? ['NAMESPACE'] : []), ...columns.header], rows, options);
}

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
