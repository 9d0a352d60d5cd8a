import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, expect, it } from 'vitest';
import { readStatus } from '../../operator/garden/daemon/status.ts';
import { StateDirectory } from '../../operator/garden/state/state.ts';
import type { KubeClient } from '../../operator/kube/client.ts';
import { CSRS } from '../../operator/kube/resources.ts';
import {
  clusterClient,
  e2e,
  garden,
  gardenClient,
  makeCluster,
  type Name,
  networkTried,
  untilReady,
} from '../kit/garden.ts';
import { beyondHeartbeats, eventsSince, quiet, SETTLING_MS } from '../kit/idle.ts';
import { difference, givenPriorityBy, operatorMetrics, sumOf, writes, writesOfOperator } from '../kit/metrics.ts';

const IDLE_MS = 60_000;

e2e('an idle garden with a Ready cluster', () => {
  const directory = new StateDirectory(garden.home);
  let cluster: Name;
  let inside: KubeClient;

  beforeAll(async () => {
    cluster = await makeCluster({ dataPlaneNodes: 1 });
    await untilReady(cluster);
    await networkTried();
    inside = await clusterClient(cluster);
    // The operator deletes requests for kubeconfigs after ten minutes, those of earlier files perhaps within the minute that is looked at.
    for (const { metadata } of (await gardenClient().list(CSRS)).items)
      await gardenClient().delete(CSRS, metadata.name);
    await Promise.all([quiet(inside), quiet(gardenClient())]);
  });

  it('writes nothing but Leases and node statuses', async () => {
    const [before, insideBefore] = await Promise.all([writes(gardenClient()), writes(inside)]);
    const own = await writesOfOperator(garden.home);
    const first = await givenPriorityBy(gardenClient(), 'coppice-leader-election');
    const since = Date.now();
    await sleep(IDLE_MS);
    const ownAfter = await writesOfOperator(garden.home);
    const [after, insideAfter] = await Promise.all([writes(gardenClient()), writes(inside)]);
    expect(beyondHeartbeats(difference(before, after))).toEqual({});
    expect(beyondHeartbeats(difference(insideBefore, insideAfter))).toEqual({});
    expect(await eventsSince(gardenClient(), since)).toEqual([]);
    expect(await eventsSince(inside, since)).toEqual([]);
    // Renewals of the operator's own Lease, every few seconds; all writes that it counted itself are among those.
    const leases = Object.entries(difference(before, after)).filter(([what]) => what.endsWith('leases'));
    expect(ownAfter - own).toBeLessThanOrEqual(sumOf(leases));
    expect(ownAfter - own).toBeGreaterThan(0);
    // An operator that loses its Lease to its own requests starts anew, and asks for more.
    expect((await givenPriorityBy(gardenClient(), 'coppice-leader-election')) - first).toBeGreaterThan(5);
  });

  it('is unchanged by a restart of the operator', async () => {
    const before = await writes(gardenClient());
    const insideBefore = await writes(inside);
    const since = Date.now();
    const pid = await operatorPid();
    expect(pid).toBeGreaterThan(1);
    const log = await said();
    process.kill(pid!, 'SIGKILL');
    await restarted(log);
    // Its own words for it: every key was looked at, and none is waiting or worked on.
    await settled();
    await sleep(SETTLING_MS);
    expect(beyondHeartbeats(difference(before, await writes(gardenClient())))).toEqual({});
    expect(beyondHeartbeats(difference(insideBefore, await writes(inside)))).toEqual({});
    expect(await eventsSince(gardenClient(), since)).toEqual([]);
    expect(await eventsSince(inside, since)).toEqual([]);
    expect(await writesOfOperator(garden.home, 'POST')).toBe(0);
    const told = await operatorMetrics(garden.home);
    const value = expect.any(Number);
    expect(told).toContainEqual({ name: 'coppice_clusters', labels: { phase: 'Ready' }, value });
    expect(told).toContainEqual({ name: 'coppice_seeds', labels: { ready: 'True' }, value });
  });

  const operatorPid = async (): Promise<number | undefined> =>
    (await readStatus(directory.statusFile))?.processes.find(({ name }) => name === 'operator')?.pid;

  const said = () => readFile(directory.logFile('operator'), 'utf8');

  /** Resolves when an operator runs that has begun to talk after `before`. */
  async function restarted(before: string): Promise<void> {
    while (!(await said()).slice(before.length).includes('the operator runs')) await sleep(300);
  }

  async function settled(): Promise<void> {
    for (;;) {
      const metrics = await operatorMetrics(garden.home);
      const runs = metrics.filter(
        ({ name, labels }) => name === 'coppice_reconcile_total' && labels.controller === 'shoot',
      );
      const busy = metrics.filter(({ name }) => /^coppice_queue_(depth|processing)$/.test(name));
      if (runs.length > 0 && busy.every(({ value }) => value === 0)) return;
      await sleep(300);
    }
  }
});
