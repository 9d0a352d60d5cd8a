import { beforeAll, describe, expect, it } from 'vitest';
import { findCondition } from '../../operator/api/conditions.ts';
import { CONTROL_PLANE_WORKER, controlPlaneMachineName } from '../../operator/api/names.ts';
import { CONFIGMAPS, type ConfigMap, EVENTS, PODS, type Pod } from '../../operator/kube/resources.ts';
import { SAID, SECRET_URL, writeForDisk } from '../kit/etcd-disk.ts';
import { changeCluster, deleteCluster, e2e, gardenClient, seedPods, until } from '../kit/garden.ts';
import {
  CONTROL_PLANE,
  hasOld,
  kubelets,
  letGo,
  MAKE_MS,
  makeOld,
  NEW,
  OLD,
  runGuarded,
  SERVERS,
  type Upgraded,
  upgrade,
  whenReady,
  why,
} from '../kit/upgrade.ts';
import { untilPods } from '../kit/workload.ts';

/** What a control plane on a single machine may be away for. */
const LONGEST_PAUSE_MS = 5_000;
/** Between two writes that are confirmed while another server answers: a busy machine, not an API that is away. Half a second was seen. */
const NOT_AWAY_MS = 2_000;
const machine = (ordinal: number) => controlPlaneMachineName(CONTROL_PLANE_WORKER, ordinal);

(hasOld ? e2e : e2e.skip)(`an upgrade of a control plane on machines${why}`, () => {
  const begin = (controlPlaneNodes: 1 | 3, dataPlaneNodes: number) =>
    makeOld({ mode: 'SelfManaged', controlPlaneNodes, dataPlaneNodes });
  const images = async ({ client }: Upgraded) => {
    const { items } = await client.list<Pod>(PODS, { namespace: 'kube-system', labelSelector: 'tier=control-plane' });
    return items
      .filter(({ metadata }) => metadata.labels?.component !== 'etcd')
      .map(({ spec }) => spec.containers[0]?.image?.split(':').at(-1));
  };
  const eventsOf = async ({ cluster }: Upgraded, reason: string) =>
    (await gardenClient().list(EVENTS, { namespace: cluster.namespace })).items.filter((event) => {
      const { involvedObject } = event as unknown as { involvedObject: { name: string } };
      return involvedObject.name === cluster.name && (event as { reason?: string }).reason === reason;
    });

  // One after the other: each is three machines at times, with an etcd that two cores must answer in time.
  it(
    'replaces a single machine while others take its place, and then drains and replaces nodes',
    async () => {
      const single = await whenReady(await begin(1, 1));
      await runGuarded(single);
      try {
        await upgrade(single, () => letGo(single));
      } finally {
        await single.writer.stop();
      }
      expect(single.writer.longestPauseMs).toBeLessThan(LONGEST_PAUSE_MS);
      expect(await kubelets(single)).toEqual(Array(2).fill(`v${NEW}`));
      expect(await kubelets(single, CONTROL_PLANE)).toHaveLength(1);
      const machines = (await seedPods(single.cluster)).map(({ metadata }) => metadata.name);
      expect(machines.filter((name) => name.startsWith(machine(0).slice(0, -1)))).toEqual([machine(0)]);
      await untilPods(single.client, 'guarded', ({ length }) => length === 1, 'to be Ready again');
      await deleteCluster(single.cluster);
    },
    MAKE_MS,
  );

  describe('of three machines', () => {
    let threefold: Upgraded;

    beforeAll(async () => {
      threefold = await whenReady(await begin(3, 0));
      await writeForDisk(threefold.client);
      return () => threefold.writer.stop();
    }, MAKE_MS);

    it('replaces them one by one, while others answer', async () => {
      expect(await kubelets(threefold)).toEqual(Array(3).fill(`v${OLD}`));
      await upgrade(threefold, async () => {
        await until(
          threefold.cluster,
          (found) =>
            /[12] of 3 machines of the control plane have Kubernetes/.test(
              findCondition(found?.status?.conditions, 'Rolling')?.message ?? '',
            ),
          'to say how far it is',
        );
      });
      expect(threefold.writer.mostRefusedInARow).toBeLessThan(2);
      expect(threefold.writer.longestPauseMs).toBeLessThan(NOT_AWAY_MS);
      expect(await kubelets(threefold)).toEqual(Array(3).fill(`v${NEW}`));
      expect(await images(threefold)).toEqual(Array(9).fill(`v${NEW}`));
      expect(await eventsOf(threefold, 'ControlPlaneMachineReplaced')).toHaveLength(3);
      const servers = await threefold.client.list<Pod>(PODS, SERVERS);
      for (const { spec } of servers.items)
        expect(spec.containers[0]).toMatchObject({
          command: expect.arrayContaining([expect.stringMatching(/^--encryption-provider-config=/)]),
        });
      expect(JSON.stringify(await threefold.client.request('GET', SECRET_URL))).toContain(SAID);
      const config = await threefold.client.get<ConfigMap>(CONFIGMAPS, 'kubeadm-config', 'kube-system');
      expect(config.data?.ClusterConfiguration).toContain(`kubernetesVersion: v${NEW}`);
    });

    it('cannot be reverted, and says so', async () => {
      await expect(changeCluster(threefold.cluster, { kubernetes: { version: OLD } })).rejects.toThrow('no downgrade');
      await deleteCluster(threefold.cluster);
    });
  });
});
