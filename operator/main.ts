import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { dirname } from 'node:path';
import { type Logger, pino } from 'pino';
import { openProviders, providerFor } from '../providers/index.ts';
import { addressList } from './api/address-range.ts';
import type { CloudProfile } from './api/cloudprofile.ts';
import { ANNOTATIONS } from './api/group.ts';
import { OPERATOR_LEASE } from './api/names.ts';
import { dataDirectory, pulumiEngine, pulumiHome } from './garden/toolchain/pulumi-engine.ts';
import { KubeClient } from './kube/client.ts';
import { gonePods } from './kube/gone-pods.ts';
import { serveHealth } from './kube/health.ts';
import { setFence } from './kube/http/fence.ts';
import { selfContainedKubeconfig } from './kube/kubeconfig.ts';
import { LeaderThread } from './kube/leader-thread.ts';
import type { Log } from './kube/log.ts';
import { steadyOutput } from './kube/log-output.ts';
import { processMetrics, Registry } from './kube/metrics.ts';
import { podDialer } from './kube/pod-tunnel.ts';
import { replicaCheck } from './kube/replica-check.ts';
import type { KubeClientOptions } from './kube/requests/api-requests.ts';
import {
  BURSTPOLICIES,
  CLOUDPROFILES,
  CREDENTIALSBINDINGS,
  HUBS,
  MEMBERSHIPS,
  QUOTAS,
  SECRETS,
  SEEDS,
  SHOOTS,
  WORKERCLUSTERS,
  WORKLOADIDENTITIES,
} from './kube/resources.ts';
import { type Operator, startOperator } from './operator.ts';

/** CRDs without which the operator cannot start. */
const FOLLOWED = [
  WORKERCLUSTERS,
  SHOOTS,
  SEEDS,
  CLOUDPROFILES,
  QUOTAS,
  CREDENTIALSBINDINGS,
  WORKLOADIDENTITIES,
  HUBS,
  MEMBERSHIPS,
  BURSTPOLICIES,
  SECRETS,
];

/** Time for running programs to finish when the operator stops; the next operator resumes what remains. */
const CLOSING_MS = 5_000;

/**
 * The operator's process. Environment: COPPICE_GARDEN_KUBECONFIG (file; absent: in-cluster or the person's own),
 * COPPICE_SIMULATE_CLOUDS=true (clouds are simulated for clusters without credentials), COPPICE_LOCAL_MACHINES=allowed
 * (permits clusters whose machines are privileged pods of the seed), COPPICE_PULUMI (path of Pulumi's engine; absent:
 * found or installed when needed), COPPICE_DATA (directory that outlives the process), COPPICE_HEALTH_PORT (default
 * any), COPPICE_HEALTH_HOST (default loopback), COPPICE_ATTACHED_NETWORKS (comma-separated internal networks whose
 * clusters tenants may attach; default none), COPPICE_ATTACH_CLUSTER_API (label selector of Cluster API's Clusters to
 * attach; default none), COPPICE_IDENTITY (in the leader Lease), COPPICE_NAMESPACE (of the Lease), COPPICE_LOG_LEVEL.
 */
async function main(): Promise<void> {
  const env = process.env;
  const log = openLog(env);
  endOnFault(log);
  const stopping = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM'] as const)
    process.once(name, () => stopping.abort(new Error(`received ${name}`)));

  const registry = new Registry();
  processMetrics(registry);
  const file = env.COPPICE_GARDEN_KUBECONFIG;
  const onRequest = countedRequests(registry);
  const garden = gardenClient(file, { onRequest, onUndeclared: toldOnce(log) });
  const simulate = env.COPPICE_SIMULATE_CLOUDS === 'true';
  const namespace = env.COPPICE_NAMESPACE ?? 'kube-system';
  const attachable = addressList(env.COPPICE_ATTACHED_NETWORKS?.split(',').filter(Boolean) ?? []);
  const data = dataDirectory(env);
  const localMachines = env.COPPICE_LOCAL_MACHINES === 'allowed';
  const providers = openProviders({
    engine: pulumiEngine(env, log),
    home: pulumiHome(env),
    log,
    localMachines,
    // An identity equal to the host name means a pod. Otherwise all earlier engines ran on this machine.
    ...(env.COPPICE_IDENTITY === hostname() && {
      isGoneHost: gonePods({ client: garden, namespace, ours: () => elector.earlierLeaders, log }),
    }),
  });
  const provider = (profile: CloudProfile, withAccount = false) =>
    providerFor(profile, providers, { simulate, withAccount });

  let operator: Operator | undefined;
  const health = await serveHealth({
    port: Number(env.COPPICE_HEALTH_PORT ?? 0),
    host: env.COPPICE_HEALTH_HOST ?? '127.0.0.1',
    registry,
    checks: {
      replica: replicaCheck({
        client: garden,
        kinds: FOLLOWED,
        leaseProblem: () => elector.problem,
        working: () => (elector.leading ? operator?.ready() === true : undefined),
      }),
    },
  });
  log.info({ health: health.url }, 'health and metrics are served');

  const elector: LeaderThread = new LeaderThread({
    kubeconfig: file,
    namespace,
    name: OPERATOR_LEASE,
    rememberIn: ANNOTATIONS.leaders,
    identity: env.COPPICE_IDENTITY ?? `${hostname()}-${process.pid}`,
    log,
    onRequest,
    onStarted: async (signal) => {
      operator = await startOperator(
        {
          garden,
          log,
          metrics: registry,
          provider,
          dns: (name) => providers.named(name)?.dns,
          dialPod: file ? podDialer(() => selfContainedKubeconfig(readFileSync(file, 'utf8'), file)) : undefined,
          state: { namespace, directory: data },
          localMachines,
          attachable,
          clusterAPI: env.COPPICE_ATTACH_CLUSTER_API ?? '',
        },
        signal,
      );
      await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
      await operator.stop();
      await providers.close(CLOSING_MS);
      operator = undefined;
    },
    // Another replica leads now: exiting is the quickest way to stop writing; the supervisor restarts the process.
    onLost: () => process.exit(3),
  });
  setFence(elector.fence);
  await elector.run(stopping.signal);
  await garden.close();
  await health.close();
}

function openLog(env: NodeJS.ProcessEnv): Logger {
  return pino(
    {
      level: env.COPPICE_LOG_LEVEL ?? 'info',
      base: {},
      timestamp: pino.stdTimeFunctions.isoTime,
      // Keys and tokens inside logged objects are removed.
      redact: { paths: ['*.data', '*.stringData', '*.token', '*.key', '*.kubeconfig'], remove: true },
      serializers: {
        err: (error: unknown) => (error instanceof Error ? `${error.name}: ${error.message}` : String(error)),
      },
    },
    steadyOutput(),
  );
}

/** A fault leaves unknown state: the process exits, and the next one observes anew. */
function endOnFault(log: Logger): void {
  process.once('uncaughtException', (error: unknown) => {
    const where =
      error instanceof Error
        ? error.stack
            ?.split('\n')
            .slice(1, 6)
            .map((frame) => frame.trim())
        : undefined;
    log.fatal({ err: error, where }, 'a fault of Coppice itself');
    process.exit(1);
  });
}

type OnRequest = (request: { method: string; status: number }) => void;

function countedRequests(registry: Registry): OnRequest {
  const requests = registry.counter('coppice_api_requests_total', 'Requests to the garden by method and answer.', [
    'method',
    'code',
  ]);
  return ({ method, status }) => requests.inc({ method, code: String(status) });
}

/** Logs each field that the garden's CRDs lack once. */
function toldOnce(log: Log): NonNullable<KubeClientOptions['onUndeclared']> {
  const told = new Set<string>();
  return (kind, fields) => {
    const fresh = fields.filter((field) => !told.has(`${kind}.${field}`));
    for (const field of fresh) told.add(`${kind}.${field}`);
    if (fresh.length > 0) log.warn({ kind, fields: fresh }, 'CRDs are older than the operator: fields are not written');
  };
}

/** A client of the garden. @param file kubeconfig; absent: in-cluster or the person's own */
const gardenClient = (
  file: string | undefined,
  options: Pick<KubeClientOptions, 'onRequest' | 'onUndeclared'>,
): KubeClient =>
  file
    ? KubeClient.fromOwnKubeconfig(readFileSync(file, 'utf8'), { directory: dirname(file) }, options)
    : KubeClient.fromEnvironment(undefined, options);

await main().catch((error: unknown) => {
  process.stderr.write(`coppice operator: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exit(1);
});
