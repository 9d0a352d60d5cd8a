import { beforeAll, expect, it } from 'vitest';
import { findCondition } from '../../operator/api/conditions.ts';
import { COMPONENTS } from '../../operator/api/names.ts';
import type { Shoot } from '../../operator/api/shoot.ts';
import type { KubeClient } from '../../operator/kube/client.ts';
import { CONFIGMAPS, type ConfigMap, PODS, PVCS, SECRETS, type Secret } from '../../operator/kube/resources.ts';
import { notedVolumes } from '../../operator/shoot/etcd.ts';
import {
  changeCluster,
  clusterClient,
  e2e,
  gardenClient,
  makeCluster,
  type Name,
  seedNamespace,
  seedPods,
  untilReady,
  untilShoot,
} from '../kit/garden.ts';
import { Writer } from '../kit/writer.ts';

/** A control plane that changes its size may refuse for a moment, and must not stop: its parts are replaced one at a time. */
const LONGEST_PAUSE_MS = 60_000;

e2e('the number of control plane nodes', () => {
  let cluster: Name;
  let client: KubeClient;
  let writer: Writer;
  const namesInSeed = async (prefix: string) =>
    (await seedPods(cluster))
      .filter((pod) => !pod.metadata.deletionTimestamp)
      .map((pod) => pod.metadata.name)
      .filter((name) => name.startsWith(prefix))
      .sort();

  beforeAll(async () => {
    cluster = await makeCluster();
    await untilReady(cluster);
    client = await clusterClient(cluster);
    writer = new Writer(client);
    writer.start();
    return () => writer.stop();
  });

  it('grows from 1 to 3 during writes', async () => {
    const before = writer.acknowledged.length;
    await changeCluster(cluster, { controlPlaneNodes: 3 });
    const found = await untilReady(cluster);
    expect(found.status?.controlPlane).toEqual({ desired: 3, ready: 3 });
    expect(await namesInSeed(COMPONENTS.etcd)).toEqual(['etcd-main-0', 'etcd-main-1', 'etcd-main-2']);
    expect(await namesInSeed(COMPONENTS.apiServer)).toHaveLength(3);
    expect(writer.acknowledged.length).toBeGreaterThan(before);
  });

  it('is restored during writes after a member loses its volume', async () => {
    const before = writer.acknowledged.length;
    const pod = `${COMPONENTS.etcd}-1`;
    const namespace = seedNamespace(cluster);
    const uid = async (resource: typeof PVCS, name: string) =>
      (await gardenClient().getOrUndefined(resource, name, namespace))?.metadata.uid;
    const lost = await uid(PVCS, `data-${pod}`);
    const began = Date.now();
    await gardenClient().delete(PVCS, `data-${pod}`, namespace);
    await gardenClient().delete(PODS, pod, namespace);
    await untilShoot(
      cluster,
      (found) => found?.status?.controlPlane?.ready === 2 && found,
      'to say that a member is missing',
    );
    await untilShoot(
      cluster,
      ({ status } = {} as Shoot) =>
        status?.controlPlane?.ready === 3 && findCondition(status.conditions, 'Ready')?.status === 'True',
      'to be Ready with all members',
    );
    // What waits for its pod as it was does so for five minutes.
    expect(Date.now() - began).toBeLessThan(150_000);
    expect(await uid(PVCS, `data-${pod}`)).not.toBe(lost);
    const secret = await gardenClient().get<Secret>(SECRETS, COMPONENTS.etcd, namespace);
    expect(notedVolumes(secret)[1]).toBe(await uid(PVCS, `data-${pod}`));
    expect(await namesInSeed(COMPONENTS.etcd)).toEqual(['etcd-main-0', 'etcd-main-1', 'etcd-main-2']);
    expect(writer.acknowledged.length).toBeGreaterThan(before);
  });

  it('shrinks from 3 to 1 during writes', async () => {
    const before = writer.acknowledged.length;
    await changeCluster(cluster, { controlPlaneNodes: 1 });
    const found = await untilReady(cluster);
    expect(found.status?.controlPlane).toEqual({ desired: 1, ready: 1 });
    expect(await namesInSeed(COMPONENTS.etcd)).toEqual(['etcd-main-0']);
    const { items } = await gardenClient().list(PVCS, { namespace: seedNamespace(cluster) });
    expect(items.map((claim) => claim.metadata.name)).toEqual(['data-etcd-main-0']);
    expect(writer.acknowledged.length).toBeGreaterThan(before);
  });

  it('changes without loss of a confirmed key', async () => {
    await writer.stop();
    const { acknowledged, refused, longestPauseMs } = writer;
    console.log(
      `${acknowledged.length} writes confirmed, ${refused} not, ${Math.round(longestPauseMs)} ms between two at most`,
    );
    // Nothing is lost either of a cluster that takes no writes.
    expect(longestPauseMs).toBeLessThan(LONGEST_PAUSE_MS);
    expect(await writer.lost()).toEqual([]);
    const counter = await client.get<ConfigMap>(CONFIGMAPS, 'counter', 'default');
    expect(Number(counter.data?.value)).toBeGreaterThanOrEqual(writer.counter);
  });
});
