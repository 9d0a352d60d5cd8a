import type { ChildProcess } from 'node:child_process';
import { expect, it } from 'vitest';
import { isTrue } from '../../operator/api/conditions.ts';
import { ANNOTATIONS, LABELS } from '../../operator/api/group.ts';
import type { Membership } from '../../operator/api/membership.ts';
import type { WorkerCluster } from '../../operator/api/workercluster.ts';
import { demoWorkOf, FIT, POLICY, WORK } from '../../operator/cli/demo/burst-objects.ts';
import { startScheduler } from '../../operator/cli/demo/scheduler-process.ts';
import { CLUSTERPROFILES } from '../../operator/hubs/cluster-profile.ts';
import { memberName } from '../../operator/hubs/member-name.ts';
import { PLACEMENTDECISIONS } from '../../operator/hubs/placement-decisions.ts';
import {
  CLOUDPROFILES,
  conditionIsTrue,
  DEPLOYMENTS,
  HUBS,
  type KubeObject,
  NAMESPACES,
  PODS,
  type Pod,
  WORKERCLUSTERS,
} from '../../operator/kube/resources.ts';
import { BurstInGarden, fleetOf, makeFleet } from '../kit/burst-in-garden.ts';
import {
  clusterClient,
  coppice,
  e2e,
  follow,
  garden,
  gardenClient,
  killOperator,
  type Name,
  ok,
  until,
} from '../kit/garden.ts';
import { PROGRESS } from '../kit/transcripts/masks.ts';

const NAMESPACE = 'burst-demo';
const FLEET = fleetOf(NAMESPACE);
const PATIENCE_MS = 8 * 60_000;

/** Waits until the replicas that had no place run on it: two, or three while a pod of the system is on the second private node. */
async function filled(cluster: Name): Promise<void> {
  await until(cluster, (found) => isTrue(found?.status?.conditions, 'Ready'), 'to be Ready');
  const pods = await follow<Pod>(await clusterClient(cluster), PODS, { namespace: FLEET });
  const running = () => pods.list().filter((pod) => conditionIsTrue(pod, 'Ready') && pod.spec.nodeName);
  const what = () =>
    `two pods at least to run on ${cluster.name}: ${JSON.stringify(pods.list().map(({ status }) => status))}`;
  await pods.waitFor(() => running().length >= 2, { timeoutMs: PATIENCE_MS, what });
}

async function expectNothingLeft(): Promise<void> {
  for (const kind of [WORKERCLUSTERS, CLUSTERPROFILES, HUBS, CLOUDPROFILES, NAMESPACES]) {
    const { items } = await gardenClient().list(kind);
    expect(items.map(({ metadata }) => metadata.name).filter((name) => /burst-demo|peak/.test(name))).toEqual([]);
  }
  ok(await coppice(['hubs', 'audit']));
}

e2e('a peak for which the private cluster has no room', () => {
  it('grows its pool, then buys, fills and returns one cluster, although the operator is killed meanwhile', async () => {
    const clusters = await follow<WorkerCluster>(gardenClient(), WORKERCLUSTERS);
    const made = new Map<string, string>();
    clusters.onChange(({ object: { metadata } }) => {
      if (metadata.namespace === NAMESPACE && metadata.labels?.[LABELS.burst]) made.set(metadata.uid!, metadata.name);
    });
    let playing: ChildProcess | undefined;
    const onStart = (child: ChildProcess) => {
      playing = child;
    };
    const demo = coppice(['demo', 'burst', '-v'], { timeoutMs: PATIENCE_MS, onStart });
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
    // While a busy machine loads the next command, a demo that goes on ends the peak and takes its policy away: there is nothing to plan then.
    playing?.kill('SIGSTOP');
    const plan = await coppice(['burst', 'plan', '-n', NAMESPACE]).finally(() => playing?.kill('SIGCONT'));
    expect(plan).toEqual({
      code: 0,
      stdout: expect.stringMatching(/nothing waits[\s\S]*Cost: 0\.086336 USD an hour now/),
      stderr: 'Nothing was done.\n',
    });

    const { stdout } = await demo.then((result) => ({ stdout: ok(result) }));
    const lines = stdout
      .trim()
      .split('\n')
      .map((line) => line.replace(PROGRESS, ''))
      // What a step of more than 20 s still waits for is told as well: a busy machine has such steps.
      .filter((line) => !line.startsWith('waiting for '));
    expect(lines).toEqual(
      [
        /^Hub burst-demo and CloudProfile burst-demo are created\. All machines are local and nothing is billed/,
        /^created the private cluster/,
        /^it is Ready and has joined Hub burst-demo/,
        /^Deployment web: 3 replicas of 500m CPU run on it, and it has no room for more/,
        /^demand rises: web needs 6 replicas, and the scheduler finds no cluster for 3 of them/,
        /^private gets a second node: 3 replicas .* have no place; 1 node more of pool own takes 3 of them/,
        /^6 replicas run on private, [\d.]+ s after they were requested; its pool is full/,
        /^the peak: web needs 9 replicas, and the scheduler finds no cluster for [23] of them/,
        /^peak-gcp-\w+ is bought: [23] replicas .* for 0\.086336 USD an hour; not aws for 0\.115: gcp was better/,
        /^it is Ready and has joined/,
        /^[23] replicas run on it, [\d.]+ s after they were requested; [67] run on private/,
        /^the peak is over/,
        /^peak-gcp-\w+ is being deleted: it has had no work since/,
        /^it is deleted: no WorkerCluster, no ClusterProfile and no Secret of it is left/,
        /^it would have cost 0\.\d*[1-9]\d* USD/,
        /^private has one node again, and 3 replicas run on it/,
        /^the private cluster has left the hub and is deleted; nothing of the demo is left/,
      ].map((line) => expect.stringMatching(line)),
    );
    expect([...made.values()]).toEqual([name]);
    await expectNothingLeft();
  });

  it('leaves nothing when the demo times out, and reports that in one line', async () => {
    const given = await coppice(['demo', 'burst', '--timeout', '8s'], { timeoutMs: PATIENCE_MS });
    expect(given.code).toBe(4);
    expect(given.stderr.trim().split('\n').slice(-1)).toEqual(['error: the demo did not finish within 8s']);
    expect(given.stdout).toContain('created the private cluster');
    await expectNothingLeft();
  });
});

/** A policy with a cluster that waits warm and one that sleeps, and work that anybody may change the size of. */
class Waiting extends BurstInGarden {
  static async make(): Promise<Waiting> {
    const testbed = new Waiting(NAMESPACE, await makeFleet(NAMESPACE), PATIENCE_MS);
    const work = demoWorkOf(WORK, 0);
    await gardenClient().create({ ...work, spec: { ...work.spec, paused: true } });
    const pools = [{ name: 'a', minimum: 1, maximum: 1 }];
    const template = { spec: { cloudProvider: 'local', controlPlaneNodes: 1, pools } };
    const short = { assumedHourly: '0.1', template };
    await testbed.makePolicy({
      namespaces: [FLEET],
      trigger: { pendingFor: '1ms' },
      candidates: [
        { name: 'awake', warmClusters: 1, ...short },
        { name: 'night', sleepingClusters: 1, ...short },
      ],
      maximumClusters: 2,
      budget: { hourly: '1' },
    });
    return testbed;
  }

  isOpen(name: string): boolean {
    const profile = this.profiles.get(`${FLEET}/${memberName(NAMESPACE, name, 63)}`);
    return profile !== undefined && isTrue(profile.status?.conditions, 'Joined');
  }

  async scale(replicas: number): Promise<void> {
    await gardenClient().mergePatch(DEPLOYMENTS, WORK, FLEET, { spec: { replicas } });
  }

  /** Until so many replicas run on a cluster, and how long each step takes from the moment at which the scheduler has no place for them. */
  async serve(replicas: number, on: string, running: number): Promise<void> {
    const decisions = await follow(gardenClient(), PLACEMENTDECISIONS, { namespace: FLEET });
    const told = decisions.waitFor(
      () => decisions.get(`${FLEET}/${WORK}`)?.metadata.annotations?.[ANNOTATIONS.unplaced],
      {
        timeoutMs: PATIENCE_MS,
        what: 'work to have no place',
      },
    );
    await this.scale(replicas);
    await told;
    const began = performance.now();
    const since = () => `${((performance.now() - began) / 1000).toFixed(1)} s`;
    const { metadata } = this.of(on)!;
    await this.until(`${on} to be chosen`, () => this.of(on)!.metadata.labels?.[LABELS.burstWarm] === undefined);
    const decided = since();
    await this.until(`${on} to be open`, () => this.isOpen(metadata.name));
    const open = since();
    const pods = await follow<Pod>(await clusterClient({ name: metadata.name, namespace: NAMESPACE }), PODS, {
      namespace: FLEET,
    });
    await pods.waitFor(() => pods.list().filter((pod) => conditionIsTrue(pod, 'Ready')).length === running, {
      timeoutMs: PATIENCE_MS,
      what: () => `${running} pods to run on ${on}: ${JSON.stringify(pods.list().map(({ status }) => status))}`,
    });
    console.info(
      `work has no place; ${on} is chosen after ${decided}, open after ${open}, and the work runs after ${since()}`,
    );
    expect(this.of(on)!.metadata.uid).toBe(metadata.uid);
  }
}

e2e('a policy with a cluster that waits warm and one that sleeps', () => {
  it('runs work on the warm one at once, wakes the sleeping one for more, and lets it sleep again', async () => {
    const testbed = await Waiting.make();
    const scheduler = startScheduler(garden.kubeconfig, process.env, () => {});
    const isAsleep = () => testbed.of('night')?.status?.phase === 'Hibernated';
    try {
      await testbed.until('one to sleep', isAsleep);
      const { spec, status } = testbed.of('night')!;
      // Its spec is as it was made: that it sleeps is the policy's order.
      expect(spec.hibernation).toBeUndefined();
      expect(status!.hibernation).toMatchObject({ asleep: true, order: { by: `BurstPolicy ${NAMESPACE}/${POLICY}` } });
      const isWarm = ({ spec: { cluster }, status: said }: Membership) =>
        cluster === testbed.of('awake')?.metadata.name && isTrue(said?.conditions, 'Warm');
      await testbed.until('one to wait warm', () => testbed.memberships.list().some(isWarm));

      await testbed.serve(FIT, 'awake', FIT);
      expect(isAsleep()).toBe(true);
      await testbed.serve(FIT + 1, 'night', 1);

      await testbed.scale(FIT);
      await testbed.until('it to sleep again', isAsleep);
      const explained = ok(await coppice(['burst', 'explain', POLICY, '-n', NAMESPACE]));
      for (const [action, candidate] of [
        ['Open', 'awake'],
        ['Wake', 'night'],
        ['Sleep', 'night'],
      ])
        expect(explained).toMatch(new RegExp(` ${action} ${POLICY}-${candidate}-`));

      await testbed.scale(0);
      const decisions = await follow<KubeObject & { decisions?: unknown[] }>(gardenClient(), PLACEMENTDECISIONS, {
        namespace: FLEET,
      });
      await decisions.waitFor(() => decisions.get(`${FLEET}/${WORK}`)?.decisions?.length === 0, {
        timeoutMs: PATIENCE_MS,
        what: 'nothing to be placed',
      });
    } finally {
      await scheduler.stop();
    }
    await testbed.end();
    await expectNothingLeft();
  });
});
