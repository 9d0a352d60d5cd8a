import { errorText } from '../../../api/errors.ts';
import type { KubeClient } from '../../../kube/client.ts';
import { sleep } from '../../../kube/clock.ts';
import { DEPLOYMENTS, type Deployment, type KubeObject } from '../../../kube/resources.ts';
import { webhookIn } from '../../problematic-webhook.ts';
import { withoutNumbers } from '../../without-numbers.ts';
import type { Operation } from '../operation.ts';
import type { BlockedPart } from '../state.ts';

/** How often it is looked whether a webhook is in the way. */
const LOOK_MS = 10_000;
/** What an API server says of a webhook that does not answer. */
const CANNOT_BE_ASKED = /\bcalling webhook "/;
/** Never made: the API server is only asked what would become of it. */
const TRIAL = 'coppice-trial';

/** For the end of a sentence that says what is waited for. */
export const because = (blocked: string | undefined): string => (blocked === undefined ? '' : `: ${blocked}`);

/** What the API server says of a webhook that keeps nodes from registering; undefined: none does, as far as can be told. */
export const nodesBlocked = (client: Pick<KubeClient, 'create'>, signal: AbortSignal): Promise<string | undefined> =>
  refusalOfTrial(client, { apiVersion: 'v1', kind: 'Node', metadata: { name: TRIAL }, spec: {} }, signal);

/** The same of a webhook that keeps controller manager and scheduler from leading, and so from being ready. */
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
    // A policy that denies the trial says nothing of real objects: only a webhook that cannot be asked keeps them all.
    return CANNOT_BE_ASKED.test(text) ? text : undefined;
  }
}

/**
 * What the API server says of a webhook that keeps a Deployment from having pods; undefined: none does. Where pods of nodes that have gone cannot be
 * deleted either, the Deployment misses none, so one is tried.
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

/** Waits, and looks meanwhile what is in the way; it is told in conditions until what was waited for has come. */
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
      // A look that fails says nothing of what it looks for.
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
