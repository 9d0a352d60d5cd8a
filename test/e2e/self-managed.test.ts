import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, expect, it } from 'vitest';
import { findCondition } from '../../operator/api/conditions.ts';
import { ANNOTATIONS } from '../../operator/api/group.ts';
import { CONTROL_PLANE_WORKER, controlPlaneMachineName } from '../../operator/api/names.ts';
import type { Shoot } from '../../operator/api/shoot.ts';
import type { KubeClient } from '../../operator/kube/client.ts';
import {
  CONFIGMAPS,
  type ConfigMap,
  conditionIsTrue,
  EVENTS,
  NAMESPACES,
  NODES,
  type Node,
  type PersistentVolume,
  PODS,
  type Pod,
  PVCS,
  PVS,
  SERVICES,
  type Service,
  SHOOTS,
} from '../../operator/kube/resources.ts';
import { CERTIFICATES_HERE, expectShortLived } from '../kit/certificates.ts';
import { expectEncrypted, keysOfSecrets, SAID, SECRET_URL, writeForDisk } from '../kit/etcd-disk.ts';
import {
  changeCluster,
  clusterClient,
  coppice,
  deleteCluster,
  e2e,
  follow,
  gardenClient,
  kubeconfigFile,
  kubectl,
  makeCluster,
  type Name,
  ok,
  seedNamespace,
  seedPods,
  temporaryFile,
  until,
  untilReady,
} from '../kit/garden.ts';
import { beyondHeartbeats, eventsSince, quiet } from '../kit/idle.ts';
import { difference, writes } from '../kit/metrics.ts';
import { rotates } from '../kit/rotation.ts';
import { runCommand } from '../kit/run.ts';
import { testTools } from '../kit/tools.ts';
import { claimOf, echoService, run, untilPods } from '../kit/workload.ts';
import { Writer } from '../kit/writer.ts';

/** kubeadm's image may still be made in a fresh garden, and its control plane takes half a minute on a busy machine. */
const BEGIN_MS = 12 * 60_000;
const machine = (ordinal: number) => controlPlaneMachineName(CONTROL_PLANE_WORKER, ordinal);
/** What a command says on a machine of a control plane. */
const onMachine = async (cluster: Name, ordinal: number, ...command: string[]): Promise<string> =>
  ok(await kubectl(['exec', '-n', seedNamespace(cluster), machine(ordinal), '--', ...command]));

const KUBELET = '/var/lib/kubelet/pki/kubelet-client-current.pem';

/** Names of the keys that a machine's own etcd has Secrets encrypted with, whatever other members have. */
async function keysAt(cluster: Name, ordinal: number): Promise<string[]> {
  const { etcdctl } = await testTools('etcdctl');
  const { spec } = await gardenClient().get<Service>(SERVICES, machine(ordinal), seedNamespace(cluster));
  const file = async (name: string) =>
    temporaryFile(
      `${ordinal}-${name.replace('/', '-')}`,
      await onMachine(cluster, ordinal, 'cat', `/etc/kubernetes/pki/etcd/${name}`),
    );
  const identity = [
    `--cacert=${await file('ca.crt')}`,
    `--cert=${await file('healthcheck-client.crt')}`,
    `--key=${await file('healthcheck-client.key')}`,
  ];
  return keysOfSecrets(async (options) =>
    ok(
      await runCommand(etcdctl, [
        `--endpoints=https://${spec.clusterIP}:2379`,
        ...identity,
        'get',
        '--consistency=s',
        ...options,
      ]),
    ),
  );
}

/** Expects that a machine has that Secret encrypted on its disk, and that its own API server reads it. */
async function expectSecretAt(cluster: Name, ordinal: number, kubeconfig: string): Promise<void> {
  const namespace = seedNamespace(cluster);
  await expectEncrypted(
    async (command) => (await kubectl(['exec', '-n', namespace, machine(ordinal), '--', ...command])).code === 0,
  );
  const { spec } = await gardenClient().get<Service>(SERVICES, machine(ordinal), namespace);
  const read = ['get', `--raw=${SECRET_URL}`, `--server=https://${spec.clusterIP}:6443`];
  expect(ok(await kubectl(read, { kubeconfig }))).toContain(SAID);
}

e2e('a self-managed cluster', () => {
  let cluster: Name;
  let client: KubeClient;
  let kubeconfig: string;

  beforeAll(async () => {
    cluster = await makeCluster({ mode: 'SelfManaged', dataPlaneNodes: 1 });
    const began = performance.now();
    await untilReady(cluster, BEGIN_MS);
    console.log(`Ready after ${((performance.now() - began) / 1000).toFixed(1)} s`);
    client = await clusterClient(cluster);
    kubeconfig = await kubeconfigFile(cluster);
  }, BEGIN_MS);

  it('reports its mode, and counts workload machines only', async () => {
    const { status } = await untilReady(cluster);
    expect(status).toMatchObject({
      phase: 'Ready',
      mode: 'SelfManaged',
      provider: 'local',
      simulated: false,
      controlPlane: { desired: 1, ready: 1 },
      nodes: { desired: 1, current: 1, ready: 1 },
      dataPlaneNodes: 1,
      lastOperation: { state: 'Succeeded', progress: 100 },
      lastErrors: [],
      // The local machine type; the node of the control plane takes no workload.
      resource: { total: { cpu: '2' } },
    });
    for (const type of ['APIServerAvailable', 'ControlPlaneHealthy', 'EveryNodeReady', 'SystemComponentsHealthy'])
      expect(status?.conditions).toContainEqual(expect.objectContaining({ type, status: 'True' }));
  });

  it('shows its control plane to kubectl with the marks of kubeadm', async () => {
    const file = await temporaryFile('self-managed.yaml', ok(await coppice(['kubeconfig', cluster.name])));
    const nodes = ok(await kubectl(['get', 'nodes', '--no-headers'], { kubeconfig: file }))
      .trim()
      .split('\n');
    expect(nodes).toHaveLength(2);
    expect(nodes.find((line) => line.startsWith(machine(0)))).toMatch(/ Ready +control-plane .* v1\.\d+\.\d+/);
    const node = await client.get<Node>(NODES, machine(0));
    expect(node.spec.taints).toEqual([
      expect.objectContaining({ key: 'node-role.kubernetes.io/control-plane', effect: 'NoSchedule' }),
    ]);
  });

  it('runs nothing of its control plane in the seed', async () => {
    const inSeed = (await seedPods(cluster)).map((pod) => pod.metadata.name);
    expect(inSeed.every((name) => name.startsWith('machines-'))).toBe(true);
    const { items } = await client.list<Pod>(PODS, { namespace: 'kube-system' });
    for (const component of ['etcd', 'kube-apiserver', 'kube-controller-manager', 'kube-scheduler'])
      expect(items.map((pod) => pod.metadata.name)).toContain(`${component}-${machine(0)}`);
  });

  it('runs pods on its other node, and serves logs of both', async () => {
    await client.apply(echoService('echo'));
    const [pod] = await run(client, { name: 'echo' });
    expect(pod!.spec.nodeName).not.toBe(machine(0));
    const exec = (...command: string[]) =>
      kubectl(['exec', pod!.metadata.name, '--', '/usr/local/bin/echo', ...command], { kubeconfig });
    // The Service was made a moment ago: nodes hear of it, and of its pod, one after the other.
    const service = async () => (await exec('get', 'http://echo.default.svc.cluster.local/')).stdout;
    await expect.poll(service, { timeout: 60_000 }).toContain(`hostname=${pod!.metadata.name}`);
    expect(ok(await exec('get', 'https://kubernetes.default.svc/readyz'))).toBe('ok');
    const log = await kubectl(['logs', '-n', 'kube-system', `kube-scheduler-${machine(0)}`], { kubeconfig });
    expect(ok(log)).not.toBe('');
  });

  it('has Secrets encrypted on its disk', async () => {
    await writeForDisk(client);
    await expectSecretAt(cluster, 0, kubeconfig);
  });

  it('has no certificate valid for more than 60 days, and no member of system:masters', async () => {
    // Those of kubeadm, of its kubeconfigs, and both of its kubelet.
    expect(expectShortLived(await onMachine(cluster, 0, 'bash', '-c', CERTIFICATES_HERE))).toBeGreaterThan(10);
  });

  it('provides a claim without storage class with a volume on its other node', async () => {
    await client.apply(claimOf('data'));
    const [pod] = await run(client, { name: 'client', claim: 'data' });
    expect(pod!.spec.nodeName).not.toBe(machine(0));
  });

  it('causes no write without changes', async () => {
    const places = [gardenClient(), client];
    await Promise.all(places.map(quiet));
    const since = Date.now();
    const before = await Promise.all(places.map(writes));
    await sleep(20_000);
    // By whomever: named, so that it is seen who cannot leave it alone.
    const after = await Promise.all(places.map(writes));
    expect(after.map((counts, place) => beyondHeartbeats(difference(before[place]!, counts)))).toEqual([{}, {}]);
    expect(await eventsSince(gardenClient(), since)).toEqual([]);
  });

  it('restores its data when its control plane machine is killed', async () => {
    const note = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'kept', namespace: 'default' } };
    await client.create({ ...note, data: { text: 'before' } } as ConfigMap);
    const before = (await seedPods(cluster)).find((pod) => pod.metadata.name === machine(0))!;
    const system = await client.get(NAMESPACES, 'kube-system');
    // As if it had been off for so long that its kubelet has none any more by which to ask for another.
    const over = `echo over >"$(readlink -f ${KUBELET})"; touch -h -d '54 days ago' ${KUBELET}`;
    await onMachine(cluster, 0, 'bash', '-c', over);
    await gardenClient().delete(PODS, machine(0), seedNamespace(cluster), { gracePeriodSeconds: 0 });
    await until(cluster, (found) => found?.status?.phase !== 'Ready', 'to say that it is away');
    await untilReady(cluster);
    const after = (await seedPods(cluster)).find((pod) => pod.metadata.name === machine(0))!;
    expect(after.metadata.uid).not.toBe(before.metadata.uid);
    expect(after.status?.podIP).not.toBe(before.status?.podIP);
    const again = await clusterClient(cluster);
    expect((await again.get<ConfigMap>(CONFIGMAPS, 'kept', 'default')).data).toEqual({ text: 'before' });
    // The same cluster, not another one with equal keys.
    expect((await again.get(NAMESPACES, 'kube-system')).metadata.uid).toBe(system.metadata.uid);
    await untilPods(again, 'echo', (pods) => pods.length === 1, 'to run still');
    await run(again, { name: 'later' });
    expect(expectShortLived(await onMachine(cluster, 0, 'cat', KUBELET))).toBe(1);
  });

  it('reports the loss of its volume, and does not start anew', async () => {
    const namespace = seedNamespace(cluster);
    await gardenClient().delete(PVCS, `var-${machine(0)}`, namespace);
    await gardenClient().delete(PODS, machine(0), namespace, { gracePeriodSeconds: 0 });
    const lost = /the only control plane machine lost its volume/;
    await until(
      cluster,
      (found) => found?.status?.lastErrors?.some(({ description }) => lost.test(description)),
      'to say so',
    );
    const { code } = await kubectl(['get', '--raw=/readyz', '--request-timeout=5s'], { kubeconfig });
    expect(code).not.toBe(0);
  });

  it('leaves nothing behind', async () => {
    const namespace = seedNamespace(cluster);
    const { items } = await gardenClient().list(PVCS, { namespace });
    expect(items.map((claim) => claim.metadata.name)).toEqual([`var-${machine(0)}`]);
    await deleteCluster(cluster);
    expect(await seedPods(cluster)).toEqual([]);
    const volumes = await gardenClient().list<PersistentVolume>(PVS);
    expect(volumes.items.filter((volume) => volume.spec.claimRef?.namespace === namespace)).toEqual([]);
    const namespaces = await follow(gardenClient(), NAMESPACES);
    await namespaces.waitFor(() => !namespaces.get(namespace), { timeoutMs: 60_000, what: `${namespace} to be gone` });
  });
});

e2e('the number of control plane machines', () => {
  let cluster: Name;
  let client: KubeClient;
  const controlPlaneNodes = async () =>
    (await client.list<Node>(NODES, { labelSelector: 'node-role.kubernetes.io/control-plane' })).items;

  beforeAll(async () => {
    cluster = await makeCluster({ mode: 'SelfManaged' });
    await untilReady(cluster, BEGIN_MS);
    client = await clusterClient(cluster);
    const note = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'kept', namespace: 'default' } };
    await client.create({ ...note, data: { text: 'of one' } } as ConfigMap);
    await writeForDisk(client);
  }, BEGIN_MS);

  it('grows from 1 to 3', async () => {
    await changeCluster(cluster, { controlPlaneNodes: 3 });
    const found = await untilReady(cluster, 2 * BEGIN_MS);
    expect(found.status?.controlPlane).toEqual({ desired: 3, ready: 3 });
    const nodes = await controlPlaneNodes();
    expect(nodes.map((node) => node.metadata.name).sort()).toEqual([machine(0), machine(1), machine(2)]);
    expect(nodes.every((node) => conditionIsTrue(node, 'Ready'))).toBe(true);
  });

  it('grows by machines without certificates valid for more than 60 days', async () => {
    for (const ordinal of [1, 2])
      expect(expectShortLived(await onMachine(cluster, ordinal, 'bash', '-c', CERTIFICATES_HERE))).toBeGreaterThan(10);
  });

  it('grows by machines with encrypted Secrets, which their API servers read', async () => {
    const kubeconfig = await kubeconfigFile(cluster);
    for (const ordinal of [0, 1, 2]) await expectSecretAt(cluster, ordinal, kubeconfig);
  });

  rotates(it, { of: 2, turns: [0] })(
    'permits a requested rotation of the encryption key of Secrets during writes',
    async () => {
      const [earlier] = await keysAt(cluster, 0);
      const writer = new Writer(client);
      writer.start();
      const began = performance.now();
      const operation = { metadata: { annotations: { [ANNOTATIONS.operation]: 'rotate-etcd-encryption-key' } } };
      await gardenClient().mergePatch(SHOOTS, cluster.name, cluster.namespace, operation);
      try {
        for (const reason of ['AddingKey', 'WritingWithKey', 'DroppingKey', undefined])
          await until(
            cluster,
            (found) => findCondition(found?.status?.conditions, 'EncryptionKeyRotating')?.reason === reason,
            `to say ${reason}`,
            BEGIN_MS,
          );
      } finally {
        await writer.stop();
      }
      const seconds = ((performance.now() - began) / 1000).toFixed(1);
      const { acknowledged, refused, longestPauseMs, mostRefusedInARow } = writer;
      console.log(
        `${seconds} s: ${acknowledged.length} writes confirmed, ${refused} not, ${longestPauseMs} ms at most`,
      );
      expect(mostRefusedInARow).toBeLessThan(2);
      expect(await writer.lost()).toEqual([]);
      const keys = await Promise.all([0, 1, 2].map((ordinal) => keysAt(cluster, ordinal)));
      expect(keys).toEqual(Array(3).fill([keys[0]![0]]));
      expect(keys[0]![0]).toMatch(/^key-/);
      expect(keys[0]![0]).not.toBe(earlier);
      const kubeconfig = await kubeconfigFile(cluster);
      for (const ordinal of [0, 1, 2]) {
        await expectSecretAt(cluster, ordinal, kubeconfig);
        expect(await onMachine(cluster, ordinal, 'cat', '/etc/kubernetes/pki/encryption.json')).not.toContain(earlier);
      }
      const { metadata } = await gardenClient().get<Shoot>(SHOOTS, cluster.name, cluster.namespace);
      expect(metadata.annotations ?? {}).not.toHaveProperty([ANNOTATIONS.operation]);
      await untilReady(cluster);
    },
  );

  it('is sufficient while the first machine is absent', async () => {
    await gardenClient().delete(PODS, machine(0), seedNamespace(cluster), { gracePeriodSeconds: 0 });
    await until(cluster, (found) => found?.status?.controlPlane?.ready === 2, 'to say that one is away');
    expect((await client.get<ConfigMap>(CONFIGMAPS, 'kept', 'default')).data).toEqual({ text: 'of one' });
    await until(cluster, (found) => found?.status?.controlPlane?.ready === 3, 'to be whole again');
    await untilReady(cluster);
  });

  it('is restored by a new member after a machine lost its volume', async () => {
    const namespace = seedNamespace(cluster);
    const claim = `var-${machine(1)}`;
    const before = await gardenClient().get(PVCS, claim, namespace);
    await gardenClient().delete(PVCS, claim, namespace);
    await gardenClient().delete(PODS, machine(1), namespace, { gracePeriodSeconds: 0 });
    await until(cluster, (found) => found?.status?.controlPlane?.ready === 2, 'to say that one is away');
    await until(cluster, (found) => found?.status?.controlPlane?.ready === 3, 'to be whole again', BEGIN_MS);
    await untilReady(cluster, BEGIN_MS);
    expect((await gardenClient().get(PVCS, claim, namespace)).metadata.uid).not.toBe(before.metadata.uid);
    await expectSecretAt(cluster, 1, await kubeconfigFile(cluster));
    // As its old self it would have taken part without what it had agreed to.
    const { items: events } = await gardenClient().list(EVENTS, { namespace: cluster.namespace });
    expect(events).toContainEqual(
      expect.objectContaining({ reason: 'EtcdMemberRemoved', message: `the operator removes ${machine(1)} from etcd` }),
    );
    expect((await client.get<ConfigMap>(CONFIGMAPS, 'kept', 'default')).data).toEqual({ text: 'of one' });
  });

  it('shrinks from 3 to 1, and written data stays', async () => {
    await changeCluster(cluster, { controlPlaneNodes: 1 });
    const found = await untilReady(cluster, BEGIN_MS);
    expect(found.status?.controlPlane).toEqual({ desired: 1, ready: 1 });
    expect((await controlPlaneNodes()).map((node) => node.metadata.name)).toEqual([machine(0)]);
    const { items } = await gardenClient().list(PVCS, { namespace: seedNamespace(cluster) });
    expect(items.map((claim) => claim.metadata.name)).toEqual([`var-${machine(0)}`]);
    expect((await client.get<ConfigMap>(CONFIGMAPS, 'kept', 'default')).data).toEqual({ text: 'of one' });
  });
});
