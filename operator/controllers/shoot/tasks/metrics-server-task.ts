import { wantsMetricsServer } from '../../../api/addons.ts';
import { hasServed } from '../../../api/shoot.ts';
import type { Task } from '../../../flow/graph.ts';
import type { KubeClient } from '../../../kube/client.ts';
import { sleep } from '../../../kube/clock.ts';
import { APISERVICES, conditionIsTrue, resourceOf, SERVICEACCOUNTS } from '../../../kube/resources.ts';
import {
  type APIService,
  foreignMetrics,
  METRICS_API,
  METRICS_SERVER_APP,
  metricsAPI,
  metricsServer,
  metricsServerParts,
} from '../../../shoot/metrics-server.ts';
import type { PKIParameters } from '../../../shoot/pki.ts';
import type { Operation } from '../operation.ts';
import { readyPodsOf } from '../status/addons-condition.ts';
import { applySystem, printOf, shootConnection } from './apply-inside.ts';
import { wantsNodes } from './machine-tasks.ts';

const LOOK_MS = 100;
const MOST_LOOKS = 50;

/** Requirements of enabled addons for the shoot's keys. */
export const certificatesOfAddons = ({ shoot }: Operation): Pick<PKIParameters, 'metricsServer'> =>
  wantsMetricsServer(shoot.spec) ? { metricsServer: true } : {};

/**
 * metrics-server, if enabled and pods run. Nothing waits for it: a change of its pods requeues the shoot, and the next
 * operation makes API servers query it. Without nodes it is removed, because an unserved API blocks the deletion of
 * namespaces.
 */
export const metricsServerTask = (op: Operation): Task => ({
  id: 'metrics-server',
  title: 'Applying metrics-server',
  after: ['access', 'system-ready'],
  expectedMs: 20,
  run: (signal) => (isWanted(op) ? applyIt(op, signal) : takeAway(op, signal)),
});

const isWanted = (op: Operation): boolean =>
  wantsMetricsServer(op.shoot.spec) && wantsNodes(op) && op.values.clusterNetwork !== 'none';

async function applyIt(op: Operation, signal: AbortSignal): Promise<void> {
  const { state, pki } = op;
  const objects = metricsServer(pki);
  const api = metricsAPI(pki);
  const print = printOf([...objects, api]);
  if (state.metricsServer.applied !== print) {
    const { client } = shootConnection(op);
    const foreign = foreignMetrics(
      await client.getOrUndefined<APIService>(APISERVICES, METRICS_API, undefined, { signal }),
    );
    if (foreign !== undefined) {
      state.metricsServer = { foreign };
      return;
    }
    const refused = await applySystem(op, objects, signal);
    const { served } = state.metricsServer;
    state.metricsServer = refused === undefined ? { applied: print, ...(served && { served }) } : { refused };
    if (refused !== undefined) return;
  }
  if (state.metricsServer.served === print || readyPodsOf(METRICS_SERVER_APP, shootConnection(op).pods.list()) === 0)
    return;
  const refused = await applySystem(op, [api], signal);
  if (refused === undefined) await untilAsked(shootConnection(op).client, signal);
  state.metricsServer = refused === undefined ? { applied: print, served: print } : { refused };
}

/**
 * Resolves when API servers got an answer from metrics-server, or after five seconds. Until then `kubectl top` fails
 * although AddonsReady would be True.
 */
async function untilAsked(client: KubeClient, signal: AbortSignal): Promise<void> {
  for (let looks = 0; looks < MOST_LOOKS; looks++) {
    const live = await client.getOrUndefined<APIService>(APISERVICES, METRICS_API, undefined, { signal });
    if (live && conditionIsTrue(live, 'Available')) return;
    await sleep(LOOK_MS, signal);
  }
}

async function takeAway(op: Operation, signal: AbortSignal): Promise<void> {
  const { shoot, state } = op;
  // A new cluster has none.
  if (state.metricsServer.gone || !hasServed(shoot)) return;
  const { client } = shootConnection(op);
  const parts = metricsServerParts();
  const [api] = parts;
  const account = await client.getOrUndefined(SERVICEACCOUNTS, METRICS_SERVER_APP, 'kube-system', { signal });
  if (account) {
    const live = await client.getOrUndefined<APIService>(APISERVICES, METRICS_API, undefined, { signal });
    for (const part of parts) {
      if (part === api && foreignMetrics(live) !== undefined) continue;
      await client.delete(resourceOf(part), part.metadata.name, part.metadata.namespace, { signal });
    }
  }
  state.metricsServer = { gone: true };
}
