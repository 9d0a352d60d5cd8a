import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { BurstPolicy } from '../../operator/api/burstpolicy.ts';
import { isTrue } from '../../operator/api/conditions.ts';
import { ALPHA_API_VERSION, LABELS } from '../../operator/api/group.ts';
import type { Membership } from '../../operator/api/membership.ts';
import type { WorkerCluster } from '../../operator/api/workercluster.ts';
import { whyNoNodes } from '../../operator/garden/host/capabilities.ts';
import { IMAGES } from '../../operator/garden/images/catalog.ts';
import { toolsDirectory } from '../../operator/garden/toolchain/cache.ts';
import { CLUSTERS, type KarmadaCluster } from '../../operator/hubs/karmada/cluster.ts';
import { Informer, waitFor } from '../../operator/kube/informer.ts';
import {
  BURSTPOLICIES,
  DEPLOYMENTS,
  HUBS,
  MEMBERSHIPS,
  SECRETS,
  WORKERCLUSTERS,
} from '../../operator/kube/resources.ts';
import { BY_WEIGHT, placed, propagate, scheduled } from '../kit/hubs/karmada-work.ts';
import { programs } from '../kit/hubs/programs.ts';
import { RealKarmada } from '../kit/hubs/real-karmada.ts';
import { OwnGarden } from '../kit/own-garden.ts';

/** Of the operator of an embedded garden. */
const OPERATOR_NAMESPACE = 'kube-system';
const STEP_MS = 5 * 60_000;

/** Local clusters that wait for work of the real Karmada: one warm, one asleep. Each test goes on where the one before ended. */
describe.skipIf(!programs || (await whyNoNodes()) !== undefined)('the real Karmada and waiting clusters', () => {
  let karmada: RealKarmada;
  let garden: OwnGarden;
  let caches: { clusters: Informer<WorkerCluster>; memberships: Informer<Membership>; policies: Informer<BurstPolicy> };
  const began = Date.now();
  const saw = (what: string) => console.log(`waiting ${((Date.now() - began) / 1000).toFixed(1)} s: ${what}`);

  beforeAll(async () => {
    karmada = await RealKarmada.start(programs!);
    garden = await OwnGarden.start(toolsDirectory());
    await garden.connect();
    const { client } = garden;
    await karmada.apiserver.client.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } });
    await client.create({
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'karmada', namespace: OPERATOR_NAMESPACE },
      stringData: { value: karmada.apiserver.kubeconfig },
    });
    const drain = { timeout: '1m', force: true };
    await client.create({
      apiVersion: ALPHA_API_VERSION,
      kind: 'Hub',
      metadata: { name: 'karmada' },
      spec: { type: 'Karmada', kubeconfigRef: { name: 'karmada' }, allowedNamespaces: ['default'], drain },
    });
    const pools = [{ name: 'a', minimum: 1, maximum: 1 }];
    const template = { spec: { cloudProvider: 'local', controlPlaneNodes: 1, pools } };
    await client.create({
      apiVersion: ALPHA_API_VERSION,
      kind: 'BurstPolicy',
      metadata: { name: 'peak', namespace: 'default' },
      spec: {
        hub: 'karmada',
        trigger: { pendingFor: '1ms' },
        candidates: [
          { name: 'awake', warmClusters: 1, assumedHourly: '0.1', template },
          { name: 'night', sleepingClusters: 1, assumedHourly: '0.1', template },
        ],
        maximumClusters: 2,
        budget: { hourly: '1' },
        scaleIn: { idleFor: '2s', minimumLife: '1s' },
        cooldown: { scaleOut: '1s', scaleIn: '1s' },
      },
    });
    caches = {
      clusters: new Informer(client, WORKERCLUSTERS),
      memberships: new Informer(client, MEMBERSHIPS),
      policies: new Informer(client, BURSTPOLICIES),
    };
    for (const cache of Object.values(caches)) cache.start();
  }, STEP_MS);
  afterAll(async () => {
    await Promise.all(Object.values(caches ?? {}).map((cache) => cache.stop()));
    await garden?.dispose();
    await karmada?.stop();
    await karmada?.apiserver.stop();
  }, STEP_MS);

  const of = (candidate: string) =>
    caches.clusters.list().find(({ metadata: { name } }) => name.startsWith(`peak-${candidate}-`));
  const member = (candidate: string) =>
    caches.memberships.list().find(({ spec }) => spec.cluster === of(candidate)?.metadata.name)?.status;
  const isAsleep = () => of('night')?.status?.phase === 'Hibernated';
  const until = <R>(what: string, is: () => R | undefined | false) =>
    waitFor(Object.values(caches), is, {
      timeoutMs: STEP_MS,
      what: () =>
        `${what}; there are ${JSON.stringify(Object.values(caches).flatMap((cache): readonly object[] => cache.list()))}`,
    });
  const isServed = (name: string, on: string, replicas: number) =>
    expect
      .poll(() => placed(karmada.apiserver.client, name), { timeout: STEP_MS, interval: 50 })
      .toEqual({ [member(on)!.memberName!]: replicas });
  /** Until they run there, too, which Karmada hears from the member. */
  const isRunning = (name: string, replicas: number) =>
    expect
      .poll(
        async () =>
          (await karmada.apiserver.client.get<any>(DEPLOYMENTS, name, 'shop')).status?.readyReplicas as unknown,
        { timeout: STEP_MS, interval: 50 },
      )
      .toBe(replicas);
  const work = async (name: string, replicas: number) => {
    const { client } = karmada.apiserver;
    await propagate(client, { name, replicas, cpu: '500m', image: IMAGES.pause.ref }, { replicaScheduling: BY_WEIGHT });
    await expect.poll(async () => (await scheduled(client, name))[0]?.status, { timeout: STEP_MS }).toBe('False');
    saw(`${name} needs ${replicas} replicas of 500m. Karmada: ${(await scheduled(client, name))[0]?.message}`);
    return Date.now();
  };
  const taints = async () =>
    (await karmada.apiserver.client.list<KarmadaCluster>(CLUSTERS)).items.map(
      ({ metadata, spec }) => `${metadata.name} (taints: ${spec?.taints?.map(({ key }) => key)})`,
    );
  const after = (from: number) => `${((Date.now() - from) / 1000).toFixed(1)} s`;

  it(
    'have one cluster warm and one asleep, both closed to work',
    async () => {
      await until('one to sleep', isAsleep);
      await until('one to wait warm', () => isTrue(member('awake')?.conditions, 'Warm'));
      saw(`in Karmada are ${await taints()}`);
    },
    STEP_MS,
  );

  it(
    'give the warm cluster work at once',
    async () => {
      const uid = of('awake')!.metadata.uid;
      const from = await work('web', 3);
      await until('it to be opened', () => of('awake')!.metadata.labels?.[LABELS.burstWarm] === undefined);
      saw(`it is opened ${after(from)} after Karmada's refusal was read`);
      await isServed('web', 'awake', 3);
      saw(`Karmada has placed 3 replicas on it ${after(from)} after that`);
      await isRunning('web', 3);
      saw(`they run ${after(from)} after that`);
      expect(of('awake')!.metadata.uid).toBe(uid);
      expect(isAsleep()).toBe(true);
    },
    STEP_MS,
  );

  it(
    'wake the sleeping cluster for more work, and let it sleep again',
    async () => {
      const uid = of('night')!.metadata.uid;
      const from = await work('more', 1);
      await until('it to be in Karmada', () => member('night')?.state === 'Joined' && !isAsleep());
      saw(`it is awake and in Karmada ${after(from)} after Karmada's refusal was read`);
      await isServed('more', 'night', 1);
      await isRunning('more', 1);
      saw(`the work runs there ${after(from)} after that`);
      await karmada.apiserver.client.delete(DEPLOYMENTS, 'more', 'shop');
      const gone = Date.now();
      await until('it to sleep again', isAsleep);
      saw(`it sleeps again ${after(gone)} after its work was deleted`);
      expect(of('night')!.metadata.uid).toBe(uid);
      saw(`in Karmada are ${await taints()}`);
      const actions = caches.policies.list()[0]?.status?.decisions?.map(({ action }) => action);
      saw(`decisions, the newest first: ${actions}`);
      expect(actions).toEqual(expect.arrayContaining(['Open', 'Wake', 'Sleep']));
    },
    STEP_MS,
  );

  it(
    'leave nothing in Karmada when the policy is deleted',
    async () => {
      await karmada.apiserver.client.delete(DEPLOYMENTS, 'web', 'shop');
      await garden.client.delete(BURSTPOLICIES, 'peak', 'default');
      await until('all to be given back', () => caches.clusters.size === 0 && caches.policies.size === 0);
      await garden.client.delete(HUBS, 'karmada');
      const { client } = karmada.apiserver;
      expect((await client.list(CLUSTERS)).items).toEqual([]);
      const secrets = (await client.list(SECRETS)).items.map(({ metadata }) => metadata.name);
      expect(secrets.filter((name) => name.startsWith('default--peak'))).toEqual([]);
      saw('nothing of them is left in Karmada or in the garden');
    },
    STEP_MS,
  );
});
