import type { CloudKubeconfig } from '../../../providers/cloud.ts';
import { rfc3339 } from '../../api/conditions.ts';
import { dependencyNotReady, errorText } from '../../api/errors.ts';
import type { ConnectionListener, KubeconfigConnection } from '../../clusters/kubeconfig-cluster.ts';
import { KubeApiError } from '../../kube/errors.ts';
import { parseUntrustedKubeconfig } from '../../kube/kubeconfig.ts';
import type { StoredKubeconfig } from './dependencies.ts';
import { cloudsOf, contextOf, type ManagedOperation } from './operation.ts';

/** Interval of checking a reachable API server: watches notice a loss earlier. */
const LOOK_AGAIN_MS = 5 * 60_000;
/** Shortest interval of requesting tokens, however short their life or wrong a clock. */
const SHORTEST_MS = 30_000;
/** Share of a token's life after which it is replaced, as kubelet does with projected tokens. */
const RENEW_AFTER = 0.8;
const CONNECT_MS = 60_000;
const WORKS = 'the kubeconfig works';

/** When to replace a new kubeconfig; undefined: never. */
export function renewalOf({ expiresAt }: CloudKubeconfig, now: Date): Date | undefined {
  return expiresAt === undefined ? undefined : new Date(+now + (Date.parse(expiresAt) - +now) * RENEW_AFTER);
}

/** Verdict on a stored kubeconfig. Pure. `cannot`: expired, or for another endpoint. */
export function judgeKubeconfig(
  stored: StoredKubeconfig | undefined,
  endpoint: string,
  now: Date,
): 'good' | 'due' | 'cannot' {
  if (!stored || serverOf(stored.kubeconfig) !== endpoint.replace(/\/+$/, '')) return 'cannot';
  if (stored.expiresAt !== undefined && Date.parse(stored.expiresAt) <= +now) return 'cannot';
  return stored.renewAt !== undefined && Date.parse(stored.renewAt) <= +now ? 'due' : 'good';
}

function serverOf(kubeconfig: string): string | undefined {
  try {
    return parseUntrustedKubeconfig(kubeconfig).server.replace(/\/+$/, '');
  } catch {
    return undefined;
  }
}

/**
 * Maintains a working kubeconfig in the cluster's Secret, and an open connection. The cloud's token is only for the
 * first contact, and when ours has expired (docs/decisions/0006).
 */
export async function openAccess(op: ManagedOperation): Promise<void> {
  const { deps, state, signal } = op;
  try {
    const stored = await freshKubeconfig(op);
    state.connection ??= await connect(op, stored.kubeconfig);
    if (!(await state.connection.ready(signal)))
      throw dependencyNotReady(`${op.receipt!.outputs!.endpoint} does not answer`);
    state.access = { ok: true, message: WORKS };
    const now = +deps.now();
    const renewAt = stored.renewAt === undefined ? Number.POSITIVE_INFINITY : Date.parse(stored.renewAt);
    state.accessDueAt = new Date(Math.min(now + LOOK_AGAIN_MS, Math.max(now + SHORTEST_MS, renewAt)));
  } catch (error) {
    if (!signal.aborted) state.access = { ok: false, message: errorText(error) };
    throw error;
  }
}

async function freshKubeconfig(op: ManagedOperation): Promise<StoredKubeconfig> {
  const { deps, key, state, wish, receipt, signal } = op;
  const outputs = receipt!.outputs!;
  const stored = deps.kubeconfigs.get(key);
  // After two failures an unexpired kubeconfig may have been revoked: start again while possible.
  const distrusted = (state.failures.get('access')?.count ?? 0) >= 2 && !(op.credentials instanceof Error);
  const verdict = distrusted ? 'cannot' : judgeKubeconfig(stored, outputs.endpoint, deps.now());
  if (verdict === 'good') return stored!;
  let next: CloudKubeconfig | undefined;
  if (verdict === 'due') {
    state.connection ??= await connect(op, stored!.kubeconfig);
    next = await own(state.connection, signal);
  }
  if (!next) {
    // The account's token must not be sent to an unconfirmed endpoint.
    if (receipt!.unconfirmed)
      throw dependencyNotReady(`the cloud has yet to say that the API server is at ${outputs.endpoint}`);
    const first = await cloudsOf(op).clouds.kubeconfig(await contextOf(op), outputs);
    if (verdict === 'cannot') await disconnect(op);
    state.connection?.use(first.kubeconfig);
    state.connection ??= await connect(op, first.kubeconfig);
    next = (await own(state.connection, signal)) ?? first;
  }
  const renewAt = renewalOf(next, deps.now());
  const kept: StoredKubeconfig = { ...next, ...(renewAt && { renewAt: rfc3339(renewAt) }) };
  await deps.kubeconfigs.save(wish.cluster, kept, signal);
  state.connection?.use(kept.kubeconfig);
  return kept;
}

/** A kubeconfig of our own identity; undefined when the present identity may not create one, or is revoked. */
async function own(connection: KubeconfigConnection, signal: AbortSignal): Promise<CloudKubeconfig | undefined> {
  try {
    return await connection.ownKubeconfig(signal);
  } catch (error) {
    if (error instanceof KubeApiError && (error.isUnauthorized || error.isForbidden)) return undefined;
    throw error;
  }
}

async function connect(op: ManagedOperation, kubeconfig: string): Promise<KubeconfigConnection> {
  const { deps, key, signal } = op;
  const deadline = AbortSignal.any([signal, AbortSignal.timeout(CONNECT_MS)]);
  let connection: KubeconfigConnection | undefined;
  const news: ConnectionListener = {
    changed: () => deps.changed(key, 'inside'),
    answers: (now) => {
      if (connection && op.state.connection === connection) connectionChanged(op, now);
    },
  };
  try {
    connection = await deps.connect(key, kubeconfig, news, deadline);
    return connection;
  } catch (error) {
    if (signal.aborted) throw error;
    throw dependencyNotReady(`no connection to the API server: ${errorText(error)}`, error);
  }
}

/** Updates the status at once, even during a long step; step `access` acts on it. */
function connectionChanged({ deps, key, state, receipt }: ManagedOperation, answers: boolean): void {
  state.access = answers
    ? { ok: true, message: WORKS }
    : { ok: false, message: `${receipt?.outputs?.endpoint ?? 'the API server'} does not answer` };
  state.accessDueAt = deps.now();
  if (answers) state.failures.delete('access');
  deps.enqueue(key);
  deps.changed(key);
}

async function disconnect({ state }: ManagedOperation): Promise<void> {
  const connection = state.connection;
  state.connection = undefined;
  await connection?.close();
}
