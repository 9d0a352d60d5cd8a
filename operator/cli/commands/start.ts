import { existsSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { KubeObject } from '../../api/meta.ts';
import type { WorkerCluster, WorkerClusterSpec } from '../../api/workercluster.ts';
import { seedPossible, wayToSeed } from '../../garden/host/capabilities.ts';
import { includesFields } from '../../kube/applier.ts';
import { KubeApiError } from '../../kube/errors.ts';
import { inNamespace, isShownAsleep } from '../clusterview.ts';
import { type CliConnection, connectGarden } from '../connect.ts';
import type { Context } from '../context.ts';
import { CliError, EXIT } from '../errors.ts';
import { stayWithGarden, withGarden } from '../foreground.ts';
import { gardenDirectory, openGarden } from '../garden.ts';
import {
  howToCallCoppice,
  howToCallKubectl,
  howToStart,
  personsFolder,
  projectFile,
  quote,
  shownPath,
} from '../invocation.ts';
import { WORKER_CLUSTER_KIND } from '../kinds.ts';
import { contextName } from '../kubeconfig/context-names.ts';
import { readManifests } from '../manifests.ts';
import { askWhetherServes } from '../serving.ts';
import { waitForCluster } from '../waiting.ts';
import { type Applied, applyObject } from './apply.ts';
import { tableOf } from './get.ts';

/** What the new garden can host. `simulated`: control planes, and simulated nodes. */
interface Hosting {
  kind: 'all' | 'simulated' | 'nothing';
  /** Why not `all`. */
  why: string;
}

/** What a garden on this machine can host, known before tools are compiled for minutes. */
async function hostingHere({ env, options }: Pick<Context, 'env' | 'options'>): Promise<Hosting> {
  if (options.text('seed-kubeconfig') !== undefined || existsSync(gardenDirectory(env).seedKubeconfig))
    return { kind: 'all', why: '' };
  const { why, rootless } = await seedPossible();
  return { kind: why ? 'nothing' : rootless ? 'simulated' : 'all', why: why ?? rootless ?? '' };
}

/** Throws CliError if one of `objects` can never become Ready here, so that nobody waits for it. */
function refuseImpossible({ kind, why }: Hosting, objects: readonly KubeObject[], env: Context['env']): void {
  const isImpossible = { all: () => false, simulated: isOfLocalMachines, nothing: isHosted }[kind];
  const first = objects.find((object) => object.kind === WORKER_CLUSTER_KIND.resource.kind && isImpossible(object));
  if (first === undefined) return;
  const what = kind === 'nothing' ? 'host' : 'create the nodes of';
  throw new CliError(`this garden cannot ${what} WorkerCluster ${first.metadata.name}: ${why}`, {
    advice: wayToSeed(`${howToCallCoppice(env)} start`),
  });
}

const specOf = (object: KubeObject) => (object.spec ?? {}) as Partial<WorkerClusterSpec>;
const isOfLocalMachines = (object: KubeObject): boolean => /^local\b/.test(specOf(object).cloudProvider ?? '');
/** True only if certain: the profile of a cloud decides whether its clusters are managed. */
const isHosted = (object: KubeObject): boolean =>
  specOf(object).mode === 'Hosted' || /^(local|simulated)/.test(specOf(object).cloudProvider ?? '');

/** Whether a cluster becomes Ready in a garden without a seed. Others are not waited for. */
const comesWithoutSeed = ({ spec }: { spec: Pick<WorkerClusterSpec, 'mode'> }): boolean => spec.mode === 'Attached';

const KINDS_PATIENCE_MS = 60_000;
const KINDS_RETRY_MS = 250;

/** `coppice start`, which is what `npm start` runs. */
export async function run(context: Context): Promise<number | undefined> {
  const { options, terminal, signal, env } = context;
  const files = options.list('filename');
  const hosting = await hostingHere(context);
  const example = projectFile('examples', hosting.kind === 'simulated' ? 'simulated.yaml' : 'local.yaml');
  const manifests = await readManifests(files.length > 0 ? files : [example]);
  // Apply a file that the person names. Keep the example cluster if it exists: the person may have scaled it.
  const keep = files.length === 0;
  refuseImpossible(
    hosting,
    manifests.map(({ object }) => object),
    env,
  );
  const garden = await openGarden(env, options);
  const coppice = howToCallCoppice(env);
  const next = { again: howToStart(env), coppice };
  const since = Date.now();

  const code = await withGarden(garden, context, next, async () => {
    const connection = await connectGarden(context);
    const clusters: WorkerCluster[] = [];
    // Print next steps only the first time.
    let isFirst = false;
    for (const { object } of manifests) {
      const { applied, action } = await applyWhenKnown(connection, object, { keep, signal });
      const what = `${object.kind} ${object.metadata.name}`;
      isFirst ||= action === 'created';
      if (action === 'kept' && !includesFields(applied.spec, object.spec)) {
        const apply = `${coppice} apply -f ${quote(shownPath(example, personsFolder(env)))}`;
        terminal.note(`${what} exists and is not changed; "${apply}" changes it to match the example.`);
      } else if (action !== 'kept') terminal.note(`${what} ${action}.`);
      if (applied.kind === WORKER_CLUSTER_KIND.resource.kind) clusters.push(applied as WorkerCluster);
    }
    const ready: WorkerCluster[] = [];
    for (const cluster of clusters) {
      const { metadata, spec } = cluster;
      if (hosting.kind === 'nothing' && !comesWithoutSeed({ spec })) {
        const { name, namespace } = metadata;
        const look = `${coppice} describe ${name}${inNamespace(namespace)}`;
        terminal.note(`WorkerCluster ${name} cannot become Ready, because this garden has no seed; see "${look}".`);
        continue;
      }
      const here: CliConnection = { ...connection, namespace: metadata.namespace ?? connection.namespace };
      const timeoutMs = options.number('timeout');
      const awaited = await waitForCluster(here, context, {
        name: metadata.name,
        goal: 'Ready',
        mayAppear: true,
        maySleep: true,
        serves: await askWhetherServes(here, context),
        timeoutMs,
        since,
      });
      if (awaited !== undefined && !isShownAsleep(awaited)) ready.push(awaited);
    }
    const table = { wide: false, everywhere: false, now: Date.now(), paint: terminal.paint };
    if (ready.length > 0) {
      const width = terminal.width === undefined ? {} : { width: terminal.width };
      terminal.print('', ...tableOf(WORKER_CLUSTER_KIND, ready, { ...table, ...width }));
      if (isFirst) await tellNextSteps(context, ready[0]!);
    }
    await connection.client.close();
  });
  if (code !== EXIT.ok) return code;

  if (options.flag('detach')) {
    terminal.note(
      '',
      `The garden keeps running in the background. To delete it and its clusters, run "${coppice} down".`,
    );
    return;
  }
  terminal.note('');
  await stayWithGarden(garden, context, next);
}

async function tellNextSteps({ terminal, env }: Context, cluster: WorkerCluster): Promise<void> {
  const { kubectl, isThere } = await howToCallKubectl(env);
  const example = quote(shownPath(projectFile('examples', 'demo-worker-cluster.yaml'), personsFolder(env)));
  terminal.print('', ...nextSteps({ cluster, coppice: howToCallCoppice(env), kubectl, example }));
  if (!isThere) terminal.note('There is no kubectl on PATH: the garden is getting one now, to the path above.');
}

/** Applies a manifest; retries while the operator has not installed the CRDs yet. */
async function applyWhenKnown(
  { client, namespace }: CliConnection,
  object: KubeObject,
  options: { keep: boolean; signal: AbortSignal },
): Promise<Applied> {
  const deadline = performance.now() + KINDS_PATIENCE_MS;
  for (;;) {
    try {
      return await applyObject(client, object, namespace, options);
    } catch (error) {
      // A missing namespace does not appear by waiting.
      const unknown = error instanceof KubeApiError && error.isNotFound && error.details?.kind !== 'namespaces';
      if (!unknown || performance.now() > deadline) throw error;
      await sleep(KINDS_RETRY_MS, undefined, { signal: options.signal });
    }
  }
}

interface NextSteps {
  cluster: WorkerCluster;
  /** How to call the programs, so that printed lines work. */
  coppice: string;
  kubectl: string;
  /** Path of the second example. */
  example: string;
}

/** Next steps once a cluster is Ready. Each line works as printed, in this order. */
export function nextSteps({ cluster, coppice, kubectl, example }: NextSteps): string[] {
  const { name, namespace = 'default' } = cluster.metadata;
  const where = inNamespace(namespace);
  const nodes = (cluster.spec.dataPlaneNodes ?? cluster.status?.nodes?.desired ?? 0) + 1;
  const context = contextName(namespace, name);
  const steps: [string, string][] = [
    [`${coppice} kubeconfig ${name}${where} --merge`, 'add it to your kubeconfig'],
    [`${kubectl} --context ${context} get nodes`, 'list its nodes'],
    [`${kubectl} --context ${context} get pods -A`, 'what runs on it'],
    [`${coppice} describe ${name}${where}`, 'its parts, and how each is'],
    [`${coppice} scale ${name}${where} --nodes ${nodes}`, 'one node more'],
    [`${coppice} apply -f ${example}`, 'a cluster of 3 + 20 nodes at a simulated cloud'],
    [`${coppice} kubeconfig --garden --merge`, 'the garden itself, for kubectl'],
    [`${kubectl} --context coppice/garden get workerclusters -A`, 'clusters are objects like any other'],
    [`${coppice} delete ${name}${where} --wait`, 'and it is gone'],
  ];
  const width = Math.max(...steps.map(([command]) => command.length));
  return ['What to do next:', ...steps.map(([command, why]) => `  ${command.padEnd(width)}  # ${why}`)];
}
