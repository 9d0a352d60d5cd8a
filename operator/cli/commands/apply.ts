import { GROUP } from '../../api/group.ts';
import type { KubeObject } from '../../api/meta.ts';
import type { KubeClient } from '../../kube/client.ts';
import { type Resource, resourceOf } from '../../kube/resources.ts';
import { specRefusalOf } from '../acceptance.ts';
import { connect } from '../connect.ts';
import type { Context } from '../context.ts';
import { CliError, EXIT, UsageError } from '../errors.ts';
import { suggestFields } from '../field-suggestion.ts';
import { CLI_KINDS } from '../kinds.ts';
import { explainFor } from '../kubectl-words.ts';
import { type Manifest, readManifests } from '../manifests.ts';
import { didYouMean } from '../suggest.ts';

/** Field manager of changes that people make through the CLI. Distinct from the operator's. */
export const CLI_FIELD_MANAGER = 'coppice-cli';

/** `coppice apply -f FILE`. */
export async function run(context: Context): Promise<number | undefined> {
  const { options, positionals, terminal, signal } = context;
  const files = options.list('filename');
  if (files.length === 0)
    throw new UsageError('apply needs -f FILE', `for example: coppice apply -f ${positionals[0] ?? 'cluster.yaml'}`);
  const objects = await readManifests(files);
  const { client, namespace } = await connect(context);
  const dryRun = options.flag('dry-run');
  let worst: number = EXIT.ok;
  const tell = ({ object, source }: Manifest, message: string) =>
    terminal.note(
      `${terminal.notePaint('bad', 'error:')} ${source}: ${object.kind} ${object.metadata.name}: ${message}`,
    );
  const workloads: string[] = [];
  const stored: { manifest: Manifest; name: string; namespace: string }[] = [];
  for (const manifest of objects) {
    const { object } = manifest;
    try {
      const { action, applied } = await applyObject(client, object, namespace, { dryRun, signal });
      terminal.print(`${object.kind} ${object.metadata.name} ${action}${dryRun ? ' (dry run)' : ''}.`);
      if (isWorkload(applied)) workloads.push(`${object.kind} ${object.metadata.name}`);
      if (dryRun || !isWorkerCluster(applied)) continue;
      const { metadata } = applied;
      stored.push({ manifest, name: metadata.name, namespace: metadata.namespace ?? namespace });
    } catch (error) {
      signal.throwIfAborted();
      const { message, exitCode } = await explainFor(context, error);
      const meant = message.includes('field not declared')
        ? await suggestFields(object.kind, (error as Error).message)
        : undefined;
      tell(manifest, meant === undefined ? message : `${message.replace(LOOK_UP, '')}; ${meant}`);
      worst = exitCode;
    }
  }
  if (workloads.length > 0 && !isNamed(context)) tellWhere(context, workloads);
  const refusals = await Promise.all(stored.map((key) => specRefusalOf(client, key, signal)));
  stored.forEach(({ manifest }, index) => {
    if (refusals[index] === undefined) return;
    tell(manifest, `the operator refuses it: ${refusals[index]}`);
    worst = EXIT.failed;
  });
  return worst;
}

/** Advice that a suggestion replaces. */
const LOOK_UP = /; find the right name with "[^"]*"/;

/** Checks the group too: other groups may have a kind of this name. */
const isWorkerCluster = ({ kind, apiVersion }: KubeObject): boolean =>
  kind === 'WorkerCluster' && apiVersion.startsWith(`${GROUP}/`);

/** Kinds of workloads, which people mean for a cluster of the garden and hardly ever for the garden. */
const isWorkload = ({ kind, apiVersion }: KubeObject): boolean =>
  WORKLOAD_GROUPS.test(apiVersion) || (apiVersion === 'v1' && WORKLOAD_KINDS.has(kind));
const WORKLOAD_GROUPS = /^(apps|batch|networking\.k8s\.io)\//;
const WORKLOAD_KINDS = new Set(['Pod', 'Service', 'ReplicationController', 'PersistentVolumeClaim']);

/** Whether the person has named the API server. */
const isNamed = ({ options, env }: Context): boolean =>
  Boolean(options.text('kubeconfig') ?? options.text('context') ?? env.COPPICE_KUBECONFIG);

function tellWhere({ terminal }: Context, workloads: readonly string[]): void {
  const are = workloads.length === 1 ? 'is' : 'are';
  const few = workloads.slice(0, MOST_NAMED).join(', ');
  const more = workloads.length > MOST_NAMED ? ` and ${workloads.length - MOST_NAMED} more` : '';
  terminal.note(
    `${few}${more} ${are} in the garden itself, and in none of its clusters. For a cluster, run "coppice kubeconfig NAME --merge" once, then "kubectl --context coppice/NAMESPACE/NAME apply -f FILE".`,
  );
}

/** Most objects named in a note. */
const MOST_NAMED = 3;

export interface Applied {
  applied: KubeObject;
  /** `kept`: the object exists and was not to be changed. */
  action: 'created' | 'changed' | 'unchanged' | 'kept';
}

/**
 * Applies one object by server-side apply, in `namespace` if the object names none.
 * With `keep`, an existing object stays as it is.
 */
export async function applyObject(
  client: KubeClient,
  object: KubeObject,
  namespace: string,
  { dryRun = false, keep = false, signal }: { dryRun?: boolean; keep?: boolean; signal?: AbortSignal } = {},
): Promise<Applied> {
  const resource = await resourceFor(client, object, signal);
  const metadata = { ...object.metadata };
  if (resource.namespaced) metadata.namespace ??= namespace;
  // An invalid name must not change the meaning of the URL; the API server would refuse it anyway.
  const old = await client.getOrUndefined(resource, metadata.name, metadata.namespace, { signal });
  if (old !== undefined && keep) return { applied: old, action: 'kept' };
  const applied = await client.apply(
    { ...object, metadata },
    { resource, fieldManager: CLI_FIELD_MANAGER, dryRun, signal },
  );
  const same = old !== undefined && old.metadata.resourceVersion === applied.metadata.resourceVersion;
  const sameSpec =
    old !== undefined &&
    old.metadata.generation !== undefined &&
    old.metadata.generation === applied.metadata.generation;
  return { applied, action: old === undefined ? 'created' : same || (sameSpec && dryRun) ? 'unchanged' : 'changed' };
}

async function resourceFor(client: KubeClient, object: KubeObject, signal: AbortSignal | undefined): Promise<Resource> {
  try {
    return resourceOf(object);
  } catch {
    // A kind of another project: leave it to the API server.
  }
  const [group, version] = object.apiVersion.includes('/') ? object.apiVersion.split('/') : ['', object.apiVersion];
  const path = group === '' ? `/api/${version}` : `/apis/${group}/${version}`;
  type Discovered = { resources?: { name: string; kind: string; namespaced: boolean }[] };
  const known = await client.request<Discovered>('GET', path, { signal }).catch((error: { status?: number }) => {
    if (error.status === 404) return undefined;
    throw error;
  });
  const match = known?.resources?.find(({ kind, name }) => kind === object.kind && !name.includes('/'));
  if (match === undefined) {
    const advice = kindAdvice(object);
    throw new CliError(`this API server has no kind ${object.kind} in ${object.apiVersion}`, {
      exitCode: EXIT.notFound,
      ...(advice !== undefined && { advice }),
    });
  }
  return { group: group!, version: version!, plural: match.name, kind: match.kind, namespaced: match.namespaced };
}

/** Advice for an unknown kind: its right apiVersion, or the kind of ours with a similar name. */
function kindAdvice({ kind, apiVersion }: KubeObject): string | undefined {
  if (!apiVersion.startsWith(`${GROUP}/`)) return undefined;
  const same = CLI_KINDS.find(({ resource }) => resource.kind === kind)?.resource;
  if (same) return `it is of apiVersion ${same.group}/${same.version}`;
  return didYouMean(
    kind,
    CLI_KINDS.map(({ resource }) => resource.kind),
  );
}
