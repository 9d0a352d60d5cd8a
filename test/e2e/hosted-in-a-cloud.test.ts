import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { API_VERSION, LABELS } from '../../operator/api/group.ts';
import type { WorkerCluster } from '../../operator/api/workercluster.ts';
import { CommandError, run as command } from '../../operator/garden/host/command.ts';
import type { KubeClient } from '../../operator/kube/client.ts';
import { conditionIsTrue, NODES, type Node, type Pod, WORKERCLUSTERS } from '../../operator/kube/resources.ts';
import { ZONE_LABEL } from '../../providers/nodes.ts';
import type { Account, FakeCloud, LaunchedInstance } from '../kit/cloud/index.ts';
import {
  clusterClient,
  e2e,
  endAll,
  follow,
  gardenClient,
  giveUp,
  kubeconfigFile,
  kubectl,
  type Name,
  ok,
  PATIENCE_MS,
  untilReady,
} from '../kit/garden.ts';
import { apply, type CloudTestbed, hostedTestbed } from '../kit/machines/cloud-testbed.ts';
import { COLD_MS, whyNoMachineImage } from '../kit/machines/image.ts';
import { machinesCache, type RealMachines } from '../kit/machines/real-machines.ts';
import { rotates } from '../kit/rotation.ts';
import { timed } from '../kit/timed.ts';
import { testImages } from '../kit/tools.ts';
import { echo, run, untilNodes, untilPods } from '../kit/workload.ts';

const NAMESPACE = 'far-away';
const REGION = 'eu-central-1';
const blue: Name = { name: 'blue', namespace: NAMESPACE };
const GOOGLE_REGION = 'europe-west3';
const green: Name = { name: 'green', namespace: 'far-at-google' };
const POOL = 'steady';
/** Engine runs, and machines that boot and install themselves, on two busy cores. */
const BEGIN_MS = 9 * 60_000;

const why = await whyNoMachineImage(machinesCache());
if (why !== undefined) console.warn(`e2e: machines of clouds are not booted here: ${why}`);

/**
 * Machines take minutes to boot and to install themselves: a run boots seven of the seventeen here and in
 * self-managed-in-a-cloud.test.ts. In each there is one cluster of either kind, from kubectl apply to nothing.
 */
const booted = why === undefined ? e2e : e2e.skip;
const describeAWS = rotates(booted, { of: 4, turns: [0, 3] });
const describeGoogle = rotates(booted, { of: 4, turns: [1, 2] });
/** Steps that boot machines again. */
const longer = rotates(it, { of: 4, turns: [0] });

const isReady = (node: Node) => conditionIsTrue(node, 'Ready');
const nameOf = ({ metadata }: Pod | Node) => metadata.name;

/** What a pod gets that asks for the URL: the body, or why it has none. Asked on the pod's own machine. */
function fetchedOn(machines: RealMachines, pod: Pod, url: string): Promise<string> {
  const asked = `http://${pod.status!.podIP}:8080/fetch?url=${encodeURIComponent(url)}`;
  return machines.machine(pod.spec.nodeName!).run(['curl', '--silent', '--show-error', '--max-time', '10', asked]);
}

/** What a pod gets that asks another for its page. */
const pageOf = (machines: RealMachines, from: Pod, to: Pod): Promise<string> =>
  fetchedOn(machines, from, `http://${to.status?.podIP}:8080/`);

/** Pods are Ready by their kubelets' word, which is before other machines have learnt the way to them. */
async function untilReached(machines: RealMachines, from: Pod, to: Pod): Promise<void> {
  const answer = () => pageOf(machines, from, to).catch(String);
  await expect.poll(answer, { timeout: PATIENCE_MS, interval: 1_000 }).toContain(`hostname=${nameOf(to)}`);
}

const inCluster = async (name: Name, ...args: string[]) =>
  ok(await kubectl(args, { kubeconfig: await kubeconfigFile(name) }));

describeAWS('a hosted cluster whose machines boot in a cloud', () => {
  let cloud: FakeCloud;
  let account: Account;
  let machines: RealMachines;
  let seedNetwork: string;
  let cluster: KubeClient;
  const atEnd: (() => Promise<unknown>)[] = [];
  const fetched = (pod: Pod, url: string) => fetchedOn(machines, pod, url);
  const reaches = (from: Pod, to: Pod) => untilReached(machines, from, to);

  beforeAll(async () => {
    await testImages('proxy-server', 'proxy-agent');
    const made = await hostedTestbed(atEnd, { name: 'aws', region: REGION, namespace: NAMESPACE });
    ({ cloud, account, machines, seedNetwork } = made);
  }, COLD_MS);

  afterAll(async () => {
    // What a test that failed has left goes with its cloud.
    atEnd.push(() => giveUp(blue));
    await endAll(atEnd);
  });

  afterEach(async ({ task }) => {
    if (task.result?.state === 'fail' && machines) console.warn(await machines.journals());
  });

  it('becomes Ready from kubectl apply, with machines that got nothing but user data', async () => {
    await apply({
      apiVersion: API_VERSION,
      kind: 'WorkerCluster',
      metadata: blue,
      spec: {
        cloudProvider: 'aws',
        mode: 'Hosted',
        controlPlaneNodes: 1,
        credentialsRef: { name: 'keys' },
        dataPlaneNodes: 2,
        pools: [{ name: POOL, minimum: 1 }],
      },
    });
    const found = await untilReady(blue, BEGIN_MS);
    expect(found.status).toMatchObject({
      mode: 'Hosted',
      provider: 'aws',
      simulated: false,
      nodes: { desired: 2, ready: 2 },
    });
    cluster = await clusterClient(blue);
    const nodes = await untilNodes(
      cluster,
      // The provider tells them their zones when it next looks.
      (all) => all.length === 2 && all.every((node) => isReady(node) && node.metadata.labels?.[ZONE_LABEL]),
      'to be two, Ready and in zones',
    );
    const instances = await cloud.instances(account, REGION);
    expect(nodes.map(nameOf).sort()).toEqual(instances.map(({ id }) => id).sort());
    for (const { id, address, zone } of instances) {
      const node = nodes.find((one) => nameOf(one) === id)!;
      expect(node.status?.addresses).toContainEqual({ type: 'InternalIP', address });
      expect(node.metadata.labels).toMatchObject({ [LABELS.pool]: POOL, [ZONE_LABEL]: zone });
      expect(await machines.machine(id).run(['cloud-init', 'status', '--wait'])).toContain('status: done');
      const failed = await machines.machine(id).run(['systemctl', 'list-units', '--failed', '--plain', '--no-legend']);
      expect(failed.trim()).toBe('');
      // A machine that its cloud ends tells kubelet first, which then ends pods in order.
      expect(await machines.machine(id).run(['systemd-inhibit', '--list', '--no-legend'])).toMatch(/kubelet.*shutdown/);
    }
  });

  it('has machines that accept no connection from outside', async () => {
    for (const { address } of await cloud.instances(account, REGION)) {
      const dial = (seconds: number) => ['timeout', `${seconds}`, 'bash', '-c', `exec 3<>/dev/tcp/${address}/10250`];
      await expect(command(['nsenter', `--net=/run/netns/${seedNetwork}`, ...dial(3)])).rejects.toThrow(CommandError);
      // It is there all the same, however busy it is.
      await command([...machines.network.enter, ...dial(60)]);
    }
  });

  it('serves logs and exec through the tunnel that its machines opened', async () => {
    const [pod] = await run(cluster, { name: 'echo', replicas: 2, spread: true });
    // Its kubelet serves once its certificate was approved, and the tunnel is there.
    const said = () => inCluster(blue, 'logs', nameOf(pod!)).catch(String);
    await expect.poll(said, { timeout: PATIENCE_MS, interval: 1_000 }).toContain(`as ${nameOf(pod!)}`);
    const asked = ['/usr/local/bin/echo', 'get', 'http://127.0.0.1:8080/inside'];
    expect(await inCluster(blue, 'exec', nameOf(pod!), '--', ...asked)).toContain('path=/inside');
  });

  it('runs pods that reach each other across machines, also by name, but not the cloud metadata', async () => {
    const pods = await untilPods(cluster, 'echo', (ready) => ready.length === 2, 'to be Ready');
    expect(new Set(pods.map(({ spec }) => spec.nodeName)).size).toBe(2);
    const [one, other] = pods as [Pod, Pod];
    for (const [from, to] of [
      [one, other],
      [other, one],
    ] as const) {
      const answer = await fetched(from, `http://${to.status?.podIP}:8080/`);
      expect(answer).toContain(`hostname=${nameOf(to)}`);
      expect(answer).toContain(`client=${from.status?.podIP}:`);
      expect(await fetched(from, 'https://kubernetes.default.svc/readyz')).toBe('ok');
      expect(await fetched(from, 'http://169.254.169.254/latest/user-data')).toMatch(/deadline exceeded|Timeout/);
    }
  });

  longer('has a machine with its pods again after a reset', async () => {
    const [pod] = await untilPods(cluster, 'echo', (ready) => ready.length === 2, 'to be Ready');
    const id = pod!.spec.nodeName!;
    const before = (await cluster.get<Node>(NODES, id)).metadata.uid;
    await machines.machine(id).reset();
    const restarts = (one: Pod) => one.status?.containerStatuses?.[0]?.restartCount ?? 0;
    const pods = await untilPods(
      cluster,
      'echo',
      (ready) => ready.length === 2 && ready.some((one) => restarts(one) > 0),
      'to be Ready again',
    );
    expect((await cluster.get<Node>(NODES, id)).metadata.uid).toBe(before);
    const [one, other] = pods as [Pod, Pod];
    await reaches(one, other);
    await reaches(other, one);
  });

  longer('replaces a dead machine, whose pods run elsewhere', async () => {
    const before = machines.names();
    const victim = before[0]!;
    await machines.kill(victim);
    const nodes = await untilNodes(
      cluster,
      (all) => all.filter(isReady).length === 2 && !all.some((node) => nameOf(node) === victim),
      `to be two without ${victim}`,
      BEGIN_MS,
    );
    expect(nodes.map(nameOf).filter((name) => before.includes(name))).toHaveLength(1);
    await untilReady(blue, BEGIN_MS);
    const pods = await untilPods(
      cluster,
      'echo',
      (ready) =>
        new Set(ready.map(({ spec }) => spec.nodeName)).size === 2 &&
        !ready.some(({ spec }) => spec.nodeName === victim),
      'to run on both machines',
    );
    const [one, other] = pods as [Pod, Pod];
    await reaches(one, other);
  });

  longer('replaces its machines one by one for another machine type', async () => {
    const before = machines.names();
    const nodes = await follow<Node>(cluster, NODES);
    const wereReady = new Set<string>();
    const drained = new Set<string>();
    let fewest = Number.POSITIVE_INFINITY;
    const look = () => {
      const all = nodes.list();
      for (const node of all.filter(isReady)) wereReady.add(nameOf(node));
      for (const node of all.filter(({ spec }) => spec.unschedulable)) drained.add(nameOf(node));
      // Ready once, and not now: whether kubelets are in time, a busy host decides.
      fewest = Math.min(fewest, all.filter((node) => wereReady.has(nameOf(node)) && !drained.has(nameOf(node))).length);
    };
    look();
    const off = nodes.onAnyChange(look);
    const change = { spec: { pools: [{ name: POOL, minimum: 1, machineType: 'm5.xlarge' }] } };
    await gardenClient().mergePatch<WorkerCluster>(WORKERCLUSTERS, blue.name, NAMESPACE, change);
    await untilReady(blue, BEGIN_MS);
    off();
    expect([...drained].sort()).toEqual([...before].sort());
    expect(fewest, 'nodes that pods could go to').toBe(2);
    const now = await cloud.instances(account, REGION);
    expect(now.filter(({ id }) => before.includes(id))).toEqual([]);
    await untilPods(cluster, 'echo', (ready) => ready.length === 2, 'to run on the new machines');
  });

  it('is scaled in by the termination of exactly the drained machine', async () => {
    await cluster.apply(echo({ name: 'echo', replicas: 1 }), { fieldManager: 'coppice-e2e' });
    ok(await kubectl(['scale', 'workercluster', blue.name, '-n', NAMESPACE, '--replicas=1']));
    const found = await untilReady(blue, BEGIN_MS);
    expect(found.status?.nodes).toMatchObject({ desired: 1, ready: 1 });
    const [node] = await untilNodes(cluster, (all) => all.length === 1, 'to be one');
    await expect.poll(() => machines.names(), { timeout: PATIENCE_MS }).toEqual([nameOf(node!)]);
    const routes = () => machines.machine(nameOf(node!)).run(['ip', 'route', 'show', 'dev', 'pods']);
    await expect.poll(routes, { timeout: PATIENCE_MS }).toBe('');
    await untilPods(cluster, 'echo', ([pod]) => pod?.spec.nodeName === nameOf(node!), 'to run on what is left');
  });

  it('leaves nothing in the cloud after its deletion', async () => {
    ok(await kubectl(['delete', 'workercluster', blue.name, '-n', NAMESPACE], { timeoutMs: BEGIN_MS }));
    expect(cloud.resources().map(({ type, name }) => `${type} ${name}`)).toEqual([]);
    await expect.poll(() => machines.names(), { timeout: 30_000 }).toEqual([]);
  });
});

// What Google does otherwise than AWS: the metadata, names, a network in which all goes by the gateway, and repairs.
describeGoogle('a hosted cluster whose machines boot at Google', () => {
  const ZONES = /^europe-west3-[abc]$/;
  let { cloud, account, machines }: Partial<CloudTestbed> = {};
  let cluster: KubeClient;
  const atEnd: (() => Promise<unknown>)[] = [];
  const instances = () => cloud!.instances(account!, GOOGLE_REGION);
  const spread = () =>
    untilPods(
      cluster,
      'echo',
      (ready) => new Set(ready.map(({ spec }) => spec.nodeName)).size === 2,
      'to run on both machines',
    );
  const reaches = (from: Pod, to: Pod) => untilReached(machines!, from, to);

  beforeAll(async () => {
    await testImages('proxy-server', 'proxy-agent');
    const testbed = { name: 'gcp', region: GOOGLE_REGION, namespace: green.namespace } as const;
    ({ cloud, account, machines } = await hostedTestbed(atEnd, testbed));
  }, COLD_MS);

  afterAll(async () => {
    atEnd.push(() => giveUp(green));
    await endAll(atEnd);
  });

  afterEach(async ({ task }) => {
    if (task.result?.state === 'fail' && machines) console.warn(await machines.journals());
  });

  it('becomes Ready from kubectl apply, with nodes named as their instances, and serves logs', async () => {
    await apply({
      apiVersion: API_VERSION,
      kind: 'WorkerCluster',
      metadata: green,
      spec: {
        cloudProvider: 'gcp',
        mode: 'Hosted',
        controlPlaneNodes: 1,
        credentialsRef: { name: 'keys' },
        dataPlaneNodes: 1,
        pools: [{ name: POOL, minimum: 1 }],
      },
    });
    const { status } = await untilReady(green, BEGIN_MS);
    expect(status).toMatchObject({
      mode: 'Hosted',
      provider: 'gcp',
      simulated: false,
      nodes: { desired: 1, ready: 1 },
    });
    cluster = await clusterClient(green);
    const isTold = (node: Node) => isReady(node) && node.metadata.labels?.[ZONE_LABEL] !== undefined;
    const [node] = await untilNodes(cluster, (all) => all.length === 1 && all.every(isTold), 'to be one, in a zone');
    const [{ name, address, zone }] = (await instances()) as [LaunchedInstance];
    expect(nameOf(node!)).toBe(name);
    expect(zone).toMatch(ZONES);
    expect(node!.metadata.labels).toMatchObject({ [LABELS.pool]: POOL, [ZONE_LABEL]: zone });
    expect(node!.status?.addresses).toContainEqual({ type: 'InternalIP', address });
    const machine = machines!.machine(name);
    expect(await machine.run(['cloud-init', 'status', '--wait'])).toContain('status: done');
    expect((await machine.run(['cloud-init', 'query', 'v1.cloud_name'])).trim()).toBe('gce');
    expect((await machine.run(['systemctl', 'list-units', '--failed', '--plain', '--no-legend'])).trim()).toBe('');
    const [pod] = await run(cluster, { name: 'echo', replicas: 1, spread: true });
    // Its kubelet serves once its certificate was approved.
    const said = async () =>
      (await kubectl(['logs', nameOf(pod!)], { kubeconfig: await kubeconfigFile(green) })).stdout;
    await expect.poll(said, { timeout: 30_000 }).toContain(`as ${nameOf(pod!)}`);
    // The metadata server is the resolver too: pods have the one and not the other.
    const asked = await fetchedOn(machines!, pod!, 'http://metadata.google.internal/computeMetadata/v1/');
    expect(asked).toMatch(/deadline exceeded|Timeout/);
  });

  it('grows by a machine whose pods reach those of the first by the gateway', async () => {
    // One change of both: what the first machine was told is no longer what machines are told.
    const change = { spec: { dataPlaneNodes: 2, pools: [{ name: POOL, minimum: 1, labels: { told: 'later' } }] } };
    await gardenClient().mergePatch<WorkerCluster>(WORKERCLUSTERS, green.name, green.namespace, change);
    await cluster.apply(echo({ name: 'echo', replicas: 2, spread: true }), { fieldManager: 'coppice-e2e' });
    await untilReady(green, BEGIN_MS);
    const [one, other] = (await spread()) as [Pod, Pod];
    await reaches(one, other);
    await reaches(other, one);
    expect(new Set((await instances()).map(({ zone }) => zone)).size).toBe(2);
  });

  it('gets a dead machine again under its name, with the current user data', async () => {
    const [before] = await instances();
    const { uid } = (await cluster.get<Node>(NODES, before!.name)).metadata;
    await machines!.kill(before!.name);
    const isBack = ({ status }: Node) =>
      status?.addresses?.some(({ type, address }) => type === 'InternalIP' && address !== before!.address) === true;
    const areBack = (all: Node[]) =>
      all.length === 2 && all.every(isReady) && all.some((node) => nameOf(node) === before!.name && isBack(node));
    await timed('a machine at Google back', () =>
      untilNodes(cluster, areBack, `to have ${before!.name} again`, BEGIN_MS),
    );
    expect((await cluster.get<Node>(NODES, before!.name)).metadata.uid).toBe(uid);
    expect(await machines!.machine(before!.name).run(['cat', '/etc/coppice/machine.env'])).toContain('told=later');
    // Pods of the machine that died are said to be Ready until its kubelet tells otherwise, and the other machine has yet to learn its new
    // address.
    const reach = async () => {
      const [one, other] = (await spread()) as [Pod, Pod];
      expect(await pageOf(machines!, one, other)).toContain(`hostname=${nameOf(other)}`);
      expect(await pageOf(machines!, other, one)).toContain(`hostname=${nameOf(one)}`);
      return true;
    };
    await timed('its pods reached', () => expect.poll(reach, { timeout: PATIENCE_MS, interval: 1_000 }).toBe(true));
  });

  it('shrinks by exactly the drained machine, and leaves nothing after its deletion', async () => {
    ok(await kubectl(['scale', 'workercluster', green.name, '-n', green.namespace, '--replicas=1']));
    await untilReady(green, BEGIN_MS);
    const [node] = await untilNodes(cluster, (all) => all.length === 1, 'to be one');
    await expect.poll(() => machines!.names(), { timeout: PATIENCE_MS }).toEqual([nameOf(node!)]);
    ok(await kubectl(['delete', 'workercluster', green.name, '-n', green.namespace], { timeoutMs: BEGIN_MS }));
    expect(cloud!.resources().map(({ type, name }) => `${type} ${name}`)).toEqual([]);
    await expect.poll(() => machines!.names(), { timeout: 30_000 }).toEqual([]);
  });
});
