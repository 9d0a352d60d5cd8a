import { expect, it } from 'vitest';
import type { ClusterConnection } from '../../../operator/clusters/cluster-connection.ts';
import type { Operation } from '../../../operator/controllers/shoot/operation.ts';
import { newShootState } from '../../../operator/controllers/shoot/state.ts';
import { volumeTasks } from '../../../operator/controllers/shoot/tasks/volume-tasks.ts';
import { Flow, type Task } from '../../../operator/flow/graph.ts';
import { KubeApiError } from '../../../operator/kube/errors.ts';
import type { KubeObject } from '../../../operator/kube/resources.ts';
import type { Provider } from '../../../providers/contract.ts';
import { local } from '../../../providers/local/index.ts';
import { simulated } from '../../../providers/simulated/index.ts';
import { partOf } from '../../kit/builders/partial.ts';
import { pool } from '../providers/fixtures.ts';

/** A shoot with these nodes, and what was applied in it, in order. */
function shoot({
  provider = local,
  count = 1,
  refuses = '',
}: {
  provider?: Provider;
  count?: number;
  refuses?: string;
} = {}) {
  const applied: string[] = [];
  const connection = partOf<ClusterConnection>({
    client: { list: async () => ({ items: [] }) },
    applyAll: async (objects: KubeObject[]) => {
      for (const { kind, metadata } of objects) {
        if (kind === refuses)
          throw new KubeApiError('PATCH', 500, { message: 'Internal error occurred: failed calling webhook "a"' });
        applied.push(`${kind} ${metadata.name}`);
      }
    },
  });
  const op = partOf<Operation>({
    provider,
    pools: [{ ...pool(), count }],
    state: { ...newShootState(), connection },
    shoot: { metadata: { name: 'demo' }, status: { lastOperation: { type: 'Create', state: 'Succeeded' } } },
  });
  return { op, applied };
}

const task = (id: string, applied: string[]): Task => ({ id, title: id, run: async () => void applied.push(id) });
const run = ({ op, applied }: ReturnType<typeof shoot>) =>
  new Flow('reconcile', [task('machines', applied), task('system-ready', applied), ...volumeTasks(op)]).run({});

it('the StorageClass exists while machines boot; the provisioner waits for cluster DNS, and is applied once', async () => {
  const one = shoot();
  let serves = () => {};
  const dns: Task = { id: 'system-ready', title: 'dns', run: () => new Promise((resolve) => (serves = resolve)) };
  const running = new Flow('reconcile', [task('machines', one.applied), dns, ...volumeTasks(one.op)]).run({});
  await expect.poll(() => one.applied).toContain('StorageClass coppice-local');
  expect(one.applied).not.toContain('Deployment coppice-local-path');
  serves();
  await running;
  expect(one.applied.at(-1)).toBe('Deployment coppice-local-path');
  one.applied.splice(0);
  await run(one);
  expect(one.applied).toEqual(['machines', 'system-ready']);
});

it('no volume provisioner is applied without nodes, nor where nodes run no pods', async () => {
  for (const one of [shoot({ count: 0 }), shoot({ provider: simulated })]) {
    await run(one);
    expect(one.applied).toEqual(['machines', 'system-ready']);
  }
});

it("a volume provisioner rejected by the cluster's policy fails no operation, is reported, and retried", async () => {
  const one = shoot({ refuses: 'Deployment' });
  expect((await run(one)).failures).toEqual([]);
  expect(one.op.state.volumesRefused).toMatch(/^Deployment kube-system\/coppice-local-path: /);
  expect(one.op.state.volumesApplied).toBeUndefined();
});
