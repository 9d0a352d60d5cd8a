import { hasServed } from '../../../api/shoot.ts';
import type { Task } from '../../../flow/graph.ts';
import { sleep } from '../../../kube/clock.ts';
import { KubeApiError } from '../../../kube/errors.ts';
import { adminKubeconfig } from '../../../shoot/kubeconfigs.ts';
import { refusedByAdmission, usable } from '../../../shoot/readiness.ts';
import { adminAccess, adminRole } from '../../../shoot/system-components.ts';
import { clientOf, USABLE } from '../connect.ts';
import type { Operation } from '../operation.ts';
import { inside } from './apply-inside.ts';

const MINUTE = 60_000;

/** How long a cluster that has served before is asked whether its admin may write. */
const ACCESS_AGAIN_MS = 5_000;

/**
 * `access` ends, the first time, only when the admin's own kubeconfig was seen to be able to write. In a cluster that has served, nothing
 * waits for that: `access-again` looks beside the rest, and where the admin cannot write, a condition says so.
 * @param after the task from which on the API server can be asked
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
      // Longer than a write whose webhook hangs: its answer names the webhook.
      timeoutMs: MINUTE,
      run: (signal) => grantAccess(op, signal, ACCESS_AGAIN_MS),
    },
  ];
};

/** @param patienceMs after which it is said that the admin cannot write, and looked at again later; absent: it is waited for */
async function grantAccess(op: Operation, signal: AbortSignal, patienceMs?: number): Promise<void> {
  const { state } = op;
  const admin = adminKubeconfig(op.values, op.pki);
  if (state.usable?.ok && state.usableFor === admin) return;
  if (!hasServed(op.shoot)) await makeAdminRole(op, signal);
  await inside(op)
    .applyAll(adminAccess(), signal)
    .catch((error: unknown) => {
      if (patienceMs === undefined || !refusedByAdmission(error)) throw error;
    });
  const client = clientOf(op, admin);
  const began = performance.now();
  try {
    for (;;) {
      const verdict = await usable(client);
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

/** Made, never applied: from then on it is Kubernetes' own, as it is where the API server was first. */
async function makeAdminRole(op: Operation, signal: AbortSignal): Promise<void> {
  try {
    await inside(op).client.create(adminRole(), { signal });
  } catch (error) {
    if (!(error instanceof KubeApiError && error.isAlreadyExists)) throw error;
  }
}
