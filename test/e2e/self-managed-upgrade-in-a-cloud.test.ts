import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { findCondition } from '../../operator/api/conditions.ts';
import { API_VERSION } from '../../operator/api/group.ts';
import {
  CONFIGMAPS,
  type ConfigMap,
  NODES,
  type Node,
  PODS,
  type Pod,
  SECRETS,
} from '../../operator/kube/resources.ts';
import type { FakeCloud } from '../kit/cloud/index.ts';
import { e2e, endAll, giveUp, kubectl, type Name, ok, PATIENCE_MS, until } from '../kit/garden.ts';
import { apply, selfManagedTestbed } from '../kit/machines/cloud-testbed.ts';
import { COLD_MS, whyNoMachineImage } from '../kit/machines/image.ts';
import { machinesCache, type RealMachines } from '../kit/machines/real-machines.ts';
import {
  CONTROL_PLANE,
  hasOld,
  kubelets,
  letGo,
  MAKE_MS,
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

const own: Name = { name: 'own', namespace: 'own-upgraded' };

const whyNone = await whyNoMachineImage(machinesCache());
const canRun = hasOld && whyNone === undefined ? e2e : e2e.skip;

canRun(`an upgrade of a control plane on machines of a cloud, which boot${why}`, () => {
  let cloud: FakeCloud;
  let machines: RealMachines;
  let upgraded: Upgraded;
  const atEnd: (() => Promise<unknown>)[] = [];

  beforeAll(async () => {
    ({ cloud, machines } = await selfManagedTestbed(atEnd, { name: 'aws', region: 'eu-central-1', cluster: own }));
    await apply({
      apiVersion: API_VERSION,
      kind: 'WorkerCluster',
      metadata: own,
      spec: {
        cloudProvider: 'aws',
        mode: 'SelfManaged',
        credentialsRef: { name: 'keys' },
        controlPlaneNodes: 1,
        dataPlaneNodes: 1,
        kubernetes: { version: OLD },
      },
    });
    upgraded = await whenReady(own);
    return () => upgraded.writer.stop();
  }, COLD_MS + MAKE_MS);

  afterAll(async () => {
    atEnd.push(() => giveUp(own));
    await endAll(atEnd);
  });

  afterEach(async ({ task }) => {
    if (task.result?.state === 'fail' && machines) console.warn(await machines.journals());
  });

  const names = async (labelSelector: string) =>
    (await upgraded.client.list<Node>(NODES, { labelSelector })).items.map(({ metadata }) => metadata.name);
  const servers = async () => (await upgraded.client.list<Pod>(PODS, SERVERS)).items;

  it(
    'adds a machine with the newer kubeadm, ends the earlier one, and only then replaces workload nodes',
    async () => {
      const [before] = await names(CONTROL_PLANE);
      expect(await kubelets(upgraded)).toEqual(Array(2).fill(`v${OLD}`));
      await runGuarded(upgraded);
      await upgrade(upgraded, async () => {
        await until(
          own,
          (found) =>
            findCondition(found?.status?.conditions, 'Rolling')?.message?.includes(
              `have Kubernetes ${NEW}, 1 of them only meanwhile; still to be replaced: ${before}`,
            ) === true,
          'to say how far it is',
          MAKE_MS,
        );
        await letGo(upgraded, servers);
      });
      expect(await kubelets(upgraded)).toEqual(Array(2).fill(`v${NEW}`));
      const after = await names(CONTROL_PLANE);
      expect(after).toHaveLength(1);
      expect(after).not.toContain(before);
      expect((await servers()).map(({ spec }) => spec.containers[0]?.image?.split(':').at(-1))).toEqual([`v${NEW}`]);
      const config = await upgraded.client.get<ConfigMap>(CONFIGMAPS, 'kubeadm-config', 'kube-system');
      expect(config.data?.ClusterConfiguration).toContain(`kubernetesVersion: v${NEW}`);
      expect(await upgraded.client.getOrUndefined(SECRETS, 'kubeadm-certs', 'kube-system')).toBeUndefined();
      await untilPods(upgraded.client, 'guarded', ({ length }) => length === 1, 'to be Ready again');
    },
    MAKE_MS,
  );

  it(
    "leaves nothing in the cloud after the cluster's deletion",
    async () => {
      ok(await kubectl(['delete', 'workercluster', own.name, '-n', own.namespace], { timeoutMs: MAKE_MS }));
      expect(cloud.resources().map(({ type, name }) => `${type} ${name}`)).toEqual([]);
      await expect.poll(() => machines.names(), { timeout: PATIENCE_MS }).toEqual([]);
    },
    MAKE_MS,
  );
});
