import { expect, it } from 'vitest';
import { isTrue } from '../../operator/api/conditions.ts';
import { LABELS } from '../../operator/api/group.ts';
import type { WorkerCluster } from '../../operator/api/workercluster.ts';
import { CLUSTERPROFILES } from '../../operator/hubs/cluster-profile.ts';
import {
  CLOUDPROFILES,
  conditionIsTrue,
  HUBS,
  NAMESPACES,
  PODS,
  type Pod,
  WORKERCLUSTERS,
} from '../../operator/kube/resources.ts';
import {
  clusterClient,
  coppice,
  e2e,
  follow,
  gardenClient,
  killOperator,
  type Name,
  ok,
  until,
} from '../kit/garden.ts';

const NAMESPACE = 'burst-demo';
const FLEET = 'burst-demo-fleet';
const PATIENCE_MS = 8 * 60_000;

/** Waits until both replicas that had no place run on it. */
async function filled(cluster: Name): Promise<void> {
  await until(cluster, (found) => isTrue(found?.status?.conditions, 'Ready'), 'to be Ready');
  const pods = await follow<Pod>(await clusterClient(cluster), PODS, { namespace: FLEET });
  const running = () => pods.list().filter((pod) => conditionIsTrue(pod, 'Ready') && pod.spec.nodeName);
  const what = () => `two pods to run on ${cluster.name}: ${JSON.stringify(pods.list().map(({ status }) => status))}`;
  await pods.waitFor(() => running().length === 2, { timeoutMs: PATIENCE_MS, what });
}

async function expectNothingLeft(): Promise<void> {
  for (const kind of [WORKERCLUSTERS, CLUSTERPROFILES, HUBS, CLOUDPROFILES, NAMESPACES]) {
    const { items } = await gardenClient().list(kind);
    expect(items.map(({ metadata }) => metadata.name).filter((name) => /burst-demo|peak/.test(name))).toEqual([]);
  }
  ok(await coppice(['hubs', 'audit']));
}

e2e('a peak that the private cluster has no room for', () => {
  it('has one cluster bought, filled and given back, although the operator is killed while it is made', async () => {
    const clusters = await follow<WorkerCluster>(gardenClient(), WORKERCLUSTERS);
    const made = new Map<string, string>();
    clusters.onChange(({ object: { metadata } }) => {
      if (metadata.namespace === NAMESPACE && metadata.labels?.[LABELS.burst]) made.set(metadata.uid!, metadata.name);
    });
    const demo = coppice(['demo', 'burst', '-v'], { timeoutMs: PATIENCE_MS });
    const failed = demo.then((result) => ok(result) && (undefined as never));

    const bought = clusters.waitFor(() => [...made.values()][0], {
      timeoutMs: PATIENCE_MS,
      what: 'a cluster to be bought',
    });
    const name = await Promise.race([bought, failed]);
    await killOperator();
    const cluster = { namespace: NAMESPACE, name };
    await Promise.race([filled(cluster), failed]);
    // It is paused there: the garden, which is the seed as well, makes no pods of it.
    expect((await gardenClient().list(PODS, { namespace: FLEET })).items).toEqual([]);
    const plan = await coppice(['burst', 'plan', '-n', NAMESPACE]);
    expect(ok(plan)).toMatch(/nothing waits[\s\S]*Cost: 0\.086336 USD an hour now/);
    expect(plan.stderr.trim()).toBe('Nothing was done.');

    const { stdout } = await demo.then((result) => ({ stdout: ok(result) }));
    const lines = stdout
      .trim()
      .split('\n')
      .map((line) => line.replace(/^\[ *(\d+m)?\d+s\] /, ''));
    expect(lines).toEqual(
      [
        /^Hub burst-demo and CloudProfile burst-demo are made\. All machines are local and nothing is billed/,
        /^the private cluster is applied/,
        /^it is Ready and has joined Hub burst-demo/,
        /^Deployment web: 3 replicas of 500m CPU run on it, and it is full/,
        /^the peak: .* no place for 2 of them/,
        /^peak-gcp-\w+ is bought: 2 replicas .* for 0\.086336 USD an hour; not aws for 0\.115: gcp was better/,
        /^it is Ready and has joined/,
        /^2 replicas run on it, [\d.]+ s after they were asked for; 3 still run on private/,
        /^the peak is over/,
        /^peak-gcp-\w+ is given back: it has had no work since/,
        /^it is gone: no WorkerCluster, no ClusterProfile and no Secret of it is left/,
        /^it would have cost 0\.\d*[1-9]\d* USD/,
        /^the private cluster has left and is gone; nothing of the demo is left/,
      ].map((line) => expect.stringMatching(line)),
    );
    expect([...made.values()]).toEqual([name]);
    await expectNothingLeft();
  });

  it('leaves nothing either when it is given up in the middle, and says so in one line', async () => {
    const given = await coppice(['demo', 'burst', '--timeout', '8s'], { timeoutMs: PATIENCE_MS });
    expect(given.code).toBe(4);
    expect(given.stderr.trim().split('\n').slice(-1)).toEqual(['error: the demo has not ended after 8s']);
    expect(given.stdout).toContain('the private cluster is applied');
    await expectNothingLeft();
  });
});
