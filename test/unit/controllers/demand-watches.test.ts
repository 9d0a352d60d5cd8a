import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { DemandWatches } from '../../../operator/controllers/burst/demand-watches.ts';
import { clusterProfileHub } from '../../../operator/hubs/cluster-profile.ts';
import { karmadaHub } from '../../../operator/hubs/karmada/karmada.ts';
import { kueueHub } from '../../../operator/hubs/kueue.ts';
import { KubeClient } from '../../../operator/kube/client.ts';
import { silent } from '../../../operator/kube/log.ts';
import { SmallApiServer } from '../../kit/small-api-server.ts';

const PATH = '/apis/multicluster.x-k8s.io/v1alpha1/namespaces/fleet/placementdecisions/web';
const watch = clusterProfileHub.demandWatch!;
let hub: SmallApiServer;
let client: KubeClient;
let watches: DemandWatches;
let news = 0;
/** Each is told that is waited for. */
const AT_ONCE = { settleMs: 0, intervalMs: 0 };

const decide = (unplaced: string | undefined, chosen: string) =>
  hub.put(PATH, {
    kind: 'PlacementDecision',
    metadata: {
      name: 'web',
      namespace: 'fleet',
      ...(unplaced && { annotations: { 'multi-cluster.demo.io/unplaced': unplaced } }),
    },
    decisions: [{ clusterProfileRef: { name: chosen } }],
  } as never);
const heard = (times: number) => expect.poll(() => news, { timeout: 5000 }).toBe(times);

beforeAll(async () => {
  hub = await SmallApiServer.start('hub');
  client = KubeClient.fromKubeconfig(hub.kubeconfig);
  watches = new DemandWatches(silent, () => news++, AT_ONCE);
});
afterAll(async () => {
  await watches.close();
  await client.close();
  await hub.stop();
});

it("demand watches report at once when a scheduler's unplaced work changes, and nothing else", async () => {
  watches.follow('fleet', client, watch);
  decide('{"replicas":2}', 'a');
  await heard(1);
  decide('{"replicas":2}', 'b');
  decide('{"replicas":3}', 'b');
  await heard(2);
  decide(undefined, 'b');
  await heard(3);
});

it('demand watches report bindings of Karmada whose unplaced replicas change, and no others', async () => {
  const path = '/apis/work.karmada.io/v1alpha2/namespaces/shop/resourcebindings/web-deployment';
  const bind = (replicas: number, reason: string) =>
    hub.put(path, {
      apiVersion: 'work.karmada.io/v1alpha2',
      kind: 'ResourceBinding',
      metadata: { name: 'web-deployment', namespace: 'shop' },
      spec: { replicas, replicaRequirements: { resourceRequest: { cpu: '1' } } },
      status: { conditions: [{ type: 'Scheduled', status: reason === 'Success' ? 'True' : 'False', reason }] },
    } as never);
  let heardOf = 0;
  const karmada = new DemandWatches(silent, () => heardOf++, AT_ONCE);
  const times = (count: number) => expect.poll(() => heardOf, { timeout: 5000 }).toBe(count);
  karmada.follow('karmada', client, karmadaHub.demandWatch!);
  try {
    bind(2, 'Success');
    bind(3, 'Unschedulable');
    await times(1);
    bind(3, 'Unschedulable');
    bind(4, 'Unschedulable');
    await times(2);
    bind(4, 'NoClusterFit');
    await times(3);
    bind(5, 'NoClusterFit');
    bind(5, 'Unschedulable');
    await times(4);
  } finally {
    await karmada.close();
  }
});

it('demand watches report jobs that Kueue offers or cannot reserve quota for, and inactive queues', async () => {
  const kueue = (kind: string, path: string, status: object) =>
    hub.put(`/apis/kueue.x-k8s.io/v1beta2/${path}`, {
      apiVersion: 'kueue.x-k8s.io/v1beta2',
      kind,
      metadata: { name: path.split('/').at(-1)! },
      status,
    } as never);
  const condition = (type: string, status: string, reason = type) => ({ type, status, reason });
  const train = (status: object) => kueue('Workload', 'namespaces/shop/workloads/train', status);
  const queue = (...conditions: object[]) => kueue('ClusterQueue', 'clusterqueues/all', { conditions });
  const reserved = [condition('QuotaReserved', 'True')];
  const offered = { conditions: reserved, admissionChecks: [{ name: 'fleet', state: 'Pending' }] };
  let heardOf = 0;
  const jobs = new DemandWatches(silent, () => heardOf++, AT_ONCE);
  const times = (count: number) => expect.poll(() => heardOf, { timeout: 5000 }).toBe(count);
  jobs.follow('kueue', client, kueueHub.demandWatch!);
  try {
    train({});
    train({ conditions: [condition('QuotaReserved', 'False', 'Pending')] });
    await times(1);
    train(offered);
    await times(2);
    train({ ...offered, nominatedClusterNames: ['a'] });
    await times(3);
    train({ ...offered, nominatedClusterNames: ['a'], requeueState: { count: 1 } });
    train({ conditions: reserved, clusterName: 'a' });
    train({ conditions: [...reserved, condition('Finished', 'True')], clusterName: 'a' });
    await times(4);
    queue(condition('Active', 'True', 'Ready'));
    queue(condition('Active', 'False', 'AdmissionCheckInactive'));
    await times(5);
    queue(condition('Active', 'False', 'Stopped'));
    await times(6);
  } finally {
    await jobs.close();
  }
});

it('demand watches follow a hub once, and stop when it is forgotten', async () => {
  watches.follow('fleet', client, watch);
  expect(hub.requests.filter((one) => one.includes('placementdecisions'))).toHaveLength(1);
  await watches.forget('fleet');
  decide('{"replicas":9}', 'b');
  await delay(100);
  expect(news).toBe(3);
});

it('demand watches report simultaneous changes once, and nothing when the hub is forgotten', async () => {
  const told: string[] = [];
  const paced = new DemandWatches(silent, (one) => told.push(one), { settleMs: 300, intervalMs: 60_000 });
  paced.follow('paced', client, watch);
  try {
    for (const replicas of [11, 12, 13]) decide(`{"replicas":${replicas}}`, 'b');
    await expect.poll(() => told, { timeout: 5000 }).toEqual(['paced']);
  } finally {
    await paced.close();
  }
  expect(told).toEqual(['paced']);
});
