import { hasServed } from '../../../api/shoot.ts';
import type { Task } from '../../../flow/graph.ts';
import { sleep } from '../../../kube/clock.ts';
import { KubeApiError } from '../../../kube/errors.ts';
import { adminKubeconfig } from '../../../shoot/kubeconfigs.ts';
import { isUsable, refusedByAdmission } from '../../../shoot/readiness.ts';
import { adminAccess, adminRole } from '../../../shoot/system-components.ts';
import { clientOf, USABLE } from '../connect.ts';
import type { Operation } from '../operation.ts';
import { shootConnection } from './apply-inside.ts';

const MINUTE = 60_000;

/** Time for the admin access check in a cluster that served before. */
const ACCESS_AGAIN_MS = 5_000;

/**
 * Tasks of admin access. For a new cluster `access` ends once the admin's kubeconfig can write. A cluster that served
 * waits for nothing: `access-again` checks in parallel, and a condition reports a failure.
 * @param after the task after which the API server can be asked
 */
export const accessTasks = (op: Operation, after = 'api-server-serves'): Task[] => {
  const served = hasServed(op.shoot);
  return [
    {
      id: 'access',
      title: 'Granting access',
      after: [after],
      skip: served,
      expectedMs: 100,
      timeoutMs: 2 * MINUTE,
      run: (signal) => grantAccess(op, signal),
    },
    {
      id: 'access-again',
      title: 'Checking that the kubeconfig of the administrator works',
      after: ['access'],
      skip: !served,
      expectedMs: 100,
      // Longer than a write with a hanging webhook, whose error names the webhook.
      timeoutMs: MINUTE,
      run: (signal) => grantAccess(op, signal, ACCESS_AGAIN_MS),
    },
  ];
};

/** @param patienceMs time after which a failure is reported and checked again later; absent: wait */
async function grantAccess(op: Operation, signal: AbortSignal, patienceMs?: number): Promise<void> {
  const { state } = op;
  const admin = adminKubeconfig(op.values, op.pki);
  if (state.usable?.ok && state.usableFor === admin) return;
  if (!hasServed(op.shoot)) await makeAdminRole(op, signal);
  await shootConnection(op)
    .applyAll(adminAccess(), signal)
    .catch((error: unknown) => {
      if (patienceMs === undefined || !refusedByAdmission(error)) throw error;
    });
  const client = clientOf(op, admin);
  const began = performance.now();
  try {
    for (;;) {
      const verdict = await isUsable(client);
      if (verdict.usable) break;
      signal.throwIfAborted();
      if (patienceMs !== undefined && performance.now() - began > patienceMs) {
        state.usable = { ok: false, message: `the admin's kubeconfig does not work: ${verdict.reason}` };
        return;
      }
      await sleep(50, signal);
    }
  } finally {
    await client.close();
  }
  state.usable = USABLE;
  state.usableFor = admin;
}

/** Created only, never updated: it is Kubernetes' own role from then on. */
async function makeAdminRole(op: Operation, signal: AbortSignal): Promise<void> {
  try {
    await shootConnection(op).client.create(adminRole(), { signal });
  } catch (error) {
    if (!(error instanceof KubeApiError && error.isAlreadyExists)) throw error;
  }
}
