import { errorText } from '../../../api/errors.ts';
import type { KubeClient } from '../../../kube/client.ts';
import { sleep } from '../../../kube/clock.ts';
import { DEPLOYMENTS, type Deployment, type KubeObject } from '../../../kube/resources.ts';
import { webhookIn } from '../../problematic-webhook.ts';
import { withoutNumbers } from '../../without-numbers.ts';
import type { Operation } from '../operation.ts';
import type { BlockedPart } from '../state.ts';

/** Interval of checks for blocking webhooks. */
const LOOK_MS = 10_000;
/** The API server's error about a webhook that does not answer. */
const CANNOT_BE_ASKED = /\bcalling webhook "/;
/** Name for dry-run objects. */
const TRIAL = 'coppice-trial';

/** Suffix of a sentence about something awaited. */
export const because = (blocked: string | undefined): string => (blocked === undefined ? '' : `: ${blocked}`);

/** The API server's error about a webhook that blocks the registration of nodes; undefined: none known. */
export const nodesBlocked = (client: Pick<KubeClient, 'create'>, signal: AbortSignal): Promise<string | undefined> =>
  refusalOfTrial(client, { apiVersion: 'v1', kind: 'Node', metadata: { name: TRIAL }, spec: {} }, signal);

/**
 * The API server's error about a webhook that blocks leader election of controller manager and scheduler; undefined:
 * none known.
 */
export const leasesBlocked = (client: Pick<KubeClient, 'create'>, signal: AbortSignal): Promise<string | undefined> => {
  const metadata = { name: TRIAL, namespace: 'kube-system' };
  return refusalOfTrial(client, { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata, spec: {} }, signal);
};

async function refusalOfTrial(
  client: Pick<KubeClient, 'create'>,
  object: KubeObject,
  signal: AbortSignal,
): Promise<string | undefined> {
  try {
    await client.create(object, { dryRun: true, signal });
    return undefined;
  } catch (error) {
    const text = errorText(error);
    // A policy that denies the trial says nothing about real objects: only an unreachable webhook blocks all.
    return CANNOT_BE_ASKED.test(text) ? text : undefined;
  }
}

/**
 * The API server's error about a webhook that blocks pods of a Deployment; undefined: none. If pods of deleted nodes
 * cannot be deleted either, the Deployment looks complete, so a dry run tries one.
 */
export async function podsBlocked(
  client: Pick<KubeClient, 'create' | 'getOrUndefined'>,
  name: string,
  namespace: string,
  signal: AbortSignal,
): Promise<string | undefined> {
  const found = await client.getOrUndefined<Deployment>(DEPLOYMENTS, name, namespace, { signal });
  const failure = found?.status?.conditions?.find(({ type, status }) => type === 'ReplicaFailure' && status === 'True');
  if (failure?.message !== undefined && webhookIn(failure.message) !== undefined) return failure.message;
  const spec = { containers: [{ name: TRIAL, image: TRIAL }] };
  return refusalOfTrial(client, { apiVersion: 'v1', kind: 'Pod', metadata: { name: TRIAL, namespace }, spec }, signal);
}

/** Waits, and meanwhile checks for blocking webhooks, which conditions report until the wait ends. */
export async function whileLooking(
  op: Pick<Operation, 'state' | 'notice'>,
  what: BlockedPart,
  look: (signal: AbortSignal) => Promise<string | undefined>,
  wait: () => Promise<unknown>,
  signal: AbortSignal,
): Promise<void> {
  const { blocked } = op.state;
  const over = new AbortController();
  const until = AbortSignal.any([signal, over.signal]);
  const note = (said: string | undefined) => {
    const before = blocked.get(what);
    if (before === said || (before && said && withoutNumbers(before) === withoutNumbers(said))) return;
    if (said === undefined) blocked.delete(what);
    else blocked.set(what, said);
    op.notice();
  };
  const looks = async () => {
    for (;;) {
      await sleep(LOOK_MS, until);
      if (until.aborted) return;
      // A failed check keeps the last result.
      const said = await look(until).catch(() => blocked.get(what));
      if (!until.aborted) note(said);
    }
  };
  const looking = looks();
  try {
    await wait();
    note(undefined);
  } finally {
    over.abort();
    await looking;
  }
}
