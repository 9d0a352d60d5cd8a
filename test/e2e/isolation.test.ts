import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, expect, it, onTestFinished } from 'vitest';
import { API_VERSION, LABELS, ROLES } from '../../operator/api/group.ts';
import { COMPONENTS } from '../../operator/api/names.ts';
import type { NetworkPolicy } from '../../operator/kube/network-policy.ts';
import { NAMESPACES, NETWORKPOLICIES, NODES, type Node, PODS, type Pod } from '../../operator/kube/resources.ts';
import {
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
  networkTried,
  ok,
  PATIENCE_MS,
  seedNamespace,
  seedPods,
  uniqueName,
  untilReady,
} from '../kit/garden.ts';
import { run } from '../kit/workload.ts';

e2e('clusters side by side', () => {
  const name = uniqueName('twin');
  const namespaces = [uniqueName('one'), uniqueName('two')] as const;
  let twins: [Name, Name];
  let long: Name;

  beforeAll(async () => {
    const [one, two] = namespaces;
    const longest = uniqueName('a-cluster-with-the-longest-name').padEnd(63, 'x');
    [twins, long] = await Promise.all([
      Promise.all([
        makeCluster({ dataPlaneNodes: 2 }, { name, namespace: one }),
        makeCluster({ dataPlaneNodes: 1 }, { name, namespace: two }),
      ]),
      makeCluster({ dataPlaneNodes: 1 }, { name: longest, namespace: uniqueName('long').padEnd(63, 'y') }),
    ]);
    await Promise.all([...twins, long].map((cluster) => untilReady(cluster)));
    return async () => {
      await Promise.all([...twins, long].map((cluster) => deleteCluster(cluster)));
      for (const { namespace } of [...twins, long]) await gardenClient().delete(NAMESPACES, namespace);
    };
  });

  it('may have the same name in two namespaces', async () => {
    expect(seedNamespace(twins[0])).not.toBe(seedNamespace(twins[1]));
    const printed = await Promise.all(
      twins.map(async ({ namespace }) => ok(await coppice(['kubeconfig', name, '-n', namespace]))),
    );
    expect(printed[0]).not.toBe(printed[1]);
    const uids = await Promise.all(
      twins.map(async (twin) => (await (await clusterClient(twin)).get(NAMESPACES, 'kube-system')).metadata.uid),
    );
    expect(uids[0]).not.toBe(uids[1]);
  });

  it('may have names of 63 characters, of namespaces of 63 characters', async () => {
    expect(long.name).toHaveLength(63);
    expect(long.namespace).toHaveLength(63);
    const { items } = await (await clusterClient(long)).list<Node>(NODES);
    expect(items).toHaveLength(1);
    expect(ok(await coppice(['describe', long.name, '-n', long.namespace]))).toContain(long.name);
  });

  it('do not meet, though their pods have addresses of the same range', async () => {
    const [big, small] = await Promise.all(twins.map((twin) => clusterClient(twin)));
    const ranges = async (client: typeof big) =>
      (await client!.list<Node>(NODES)).items.map((node) => node.spec.podCIDR).sort();
    const [bigRanges, smallRanges] = await Promise.all([ranges(big), ranges(small)]);
    expect(bigRanges).toEqual(expect.arrayContaining(smallRanges));

    const [spread, alone] = await Promise.all([
      run(big!, { name: 'echo', replicas: 2, spread: true }),
      run(small!, { name: 'alone' }),
    ]);
    const files = await Promise.all(twins.map((twin) => kubeconfigFile(twin)));
    const get = (file: string | undefined, from: Pod | undefined, address: string | undefined) =>
      kubectl(['exec', from!.metadata.name, '--', '/usr/local/bin/echo', 'get', `http://${address}:8080/`], {
        kubeconfig: file!,
      });
    // A pod on the machine that only the big cluster has, at an address that nothing in the small one has.
    const outside = spread.find((pod) => !smallRanges.some((range) => inRange(pod.status?.podIP, range)));
    expect(outside).toBeDefined();
    const stranger = await get(files[1], alone[0], outside?.status?.podIP);
    expect(stranger.code).not.toBe(0);
    expect(stranger.stdout).not.toContain('hostname=');
    // From within its own cluster it answers, so the silence above was not its own.
    const other = spread.find((pod) => pod !== outside);
    expect(ok(await get(files[0], other, outside?.status?.podIP))).toContain(`hostname=${outside?.metadata.name}`);
    // An address that both clusters may have belongs to one's own pods.
    const own = await get(files[1], alone[0], alone[0]?.status?.podIP);
    expect(ok(own)).toContain(`hostname=${alone[0]?.metadata.name}`);
  });

  it('reach nothing of each other in the seed, because a policy forbids it', async () => {
    const [pods, others] = await Promise.all(twins.map((twin) => seedPods(twin)));
    const garden = gardenClient();
    const addressOf = (list: Pod[] | undefined, app: string) =>
      list!.find(({ metadata }) => metadata.labels?.app === app)!.status!.podIP!;
    const machinesOf = (list: Pod[] | undefined) =>
      list!.filter(({ metadata }) => metadata.labels?.[LABELS.role] === ROLES.machine);
    const [machine, second] = machinesOf(pods);
    const folder = await mkdtemp(join(tmpdir(), 'coppice-isolation-'));
    onTestFinished(() => rm(folder, { recursive: true, force: true }));
    const kubeconfig = join(folder, 'garden.yaml');
    await writeFile(kubeconfig, ok(await coppice(['kubeconfig', '--garden'])), { mode: 0o600 });
    /** Whether the first machine of the first twin gets a connection. */
    const reaches = async (address: string, port: number) => {
      const { namespace, name: pod } = machine!.metadata;
      const dial = ['timeout', '20', 'bash', '-c', `exec 3<>/dev/tcp/${address}/${port}`];
      return (await kubectl(['exec', '-n', namespace!, pod, '--', ...dial], { kubeconfig })).code === 0;
    };
    const { etcd, apiServer, scheduler } = COMPONENTS;
    const [stranger] = machinesOf(others);
    expect(await reaches(addressOf(pods, apiServer), 6443)).toBe(true);
    expect(await reaches(second!.status!.podIP!, 10250)).toBe(true);
    expect(await reaches(addressOf(others, apiServer), 6443)).toBe(false);
    expect(await reaches(addressOf(others, etcd), 2379)).toBe(false);
    expect(await reaches(addressOf(pods, etcd), 2379)).toBe(false);
    expect(await reaches(addressOf(others, scheduler), 10259)).toBe(false);
    expect(await reaches(stranger!.status!.podIP!, 10250)).toBe(false);

    // The Seed says so, and nobody takes it away for long.
    expect((await networkTried()).status).toBe('True');
    const namespace = machine!.metadata.namespace!;
    const policies = await follow<NetworkPolicy>(garden, NETWORKPOLICIES, { namespace });
    const [before] = policies.list();
    await garden.delete(NETWORKPOLICIES, before!.metadata.name, namespace);
    await policies.waitFor(
      () =>
        policies
          .list()
          .some(({ metadata }) => metadata.name === before!.metadata.name && metadata.uid !== before!.metadata.uid),
      { timeoutMs: PATIENCE_MS, what: 'a policy that somebody deleted to be there again' },
    );
  });

  it('have no API server that runs outside of its own network', async () => {
    const inSeed = (await seedPods(twins[1])).find(({ metadata }) => metadata.labels?.app === COMPONENTS.apiServer)!;
    const { namespace } = inSeed.metadata;
    const garden = gardenClient();
    // The same pod, but that the interface in its cluster's network cannot be made.
    const { containers, volumes, securityContext } = inSeed.spec as Record<string, any>;
    const broken = (container: { env?: { name: string; value: string }[] }) => ({
      ...container,
      ...(container.env && { env: container.env.map((one) => (one.name === 'VNI' ? { ...one, value: '-1' } : one)) }),
    });
    const name = 'without-network';
    await garden.create({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name, namespace },
      spec: { automountServiceAccountToken: false, containers: containers.map(broken), volumes, securityContext },
    });
    onTestFinished(() => garden.delete(PODS, name, namespace, { gracePeriodSeconds: 0 }).then(() => undefined));
    const pods = await follow<Pod>(garden, PODS, { namespace });
    const ended = await pods.waitFor(
      () => {
        const { containerStatuses = [] } = pods.get(`${namespace}/${name}`)?.status ?? {};
        const all = containerStatuses.map(({ state, lastState }) => state?.terminated ?? lastState?.terminated);
        return all.length === 2 && all.every((one) => one !== undefined) && all;
      },
      { timeoutMs: PATIENCE_MS, what: 'neither the network to be made nor the API server to stay' },
    );
    for (const one of ended) expect(one?.exitCode).toBeGreaterThan(0);
    const log = `/api/v1/namespaces/${namespace}/pods/${name}/log?container=${COMPONENTS.apiServer}`;
    const said = () => garden.request<string>('GET', log);
    await expect.poll(said, { timeout: 60_000 }).toMatch(/egress.*no such file or directory/);
  });
});

e2e("a tenant with Kubernetes' role edit in a namespace", () => {
  it('makes a cluster there, and cannot say what it was granted, make a Shoot or raise a Quota', async () => {
    const namespace = uniqueName('tenant');
    const client = gardenClient();
    await client.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } });
    onTestFinished(() => client.delete(NAMESPACES, namespace).then(() => undefined));
    const group = 'rbac.authorization.k8s.io';
    await client.create({
      apiVersion: `${group}/v1`,
      kind: 'RoleBinding',
      metadata: { name: 'edit', namespace },
      roleRef: { apiGroup: group, kind: 'ClusterRole', name: 'edit' },
      subjects: [{ apiGroup: group, kind: 'User', name: 'ada' }],
    });
    const as = (args: string[], object?: object) =>
      kubectl([...args, '-n', namespace, '--as=ada'], object ? { input: JSON.stringify(object) } : {});
    const written = (kind: string, spec: object) => ({
      apiVersion: API_VERSION,
      kind,
      metadata: { name: 'one' },
      spec,
    });

    const cluster = written('WorkerCluster', { cloudProvider: 'simulated', dataPlaneNodes: 0, region: 'nowhere' });
    ok(await as(['create', '-f', '-'], cluster));
    // kubectl patch would ask for the object first, and be refused that.
    for (const verb of ['patch', 'update']) {
      const may = await as(['auth', 'can-i', verb, 'workerclusters', '--subresource=status']);
      expect(may.stdout.trim(), `${verb} of status`).toBe('no');
    }
    expect((await as(['auth', 'can-i', 'patch', 'workerclusters'])).stdout.trim()).toBe('yes');
    const shoot = written('Shoot', { cloudProfile: { name: 'x' }, region: 'x', provider: { type: 'x' } });
    expect((await as(['create', '-f', '-'], shoot)).stderr).toContain('cannot create resource "shoots"');
    const quota = written('Quota', { metrics: { nodes: 5000 } });
    expect((await as(['create', '-f', '-'], quota)).stderr).toContain('cannot create resource "quotas"');
    ok(await as(['delete', 'workercluster', 'one']));
  });
});

/** Whether an address lies in a /24. */
const inRange = (address: string | undefined, range: string | undefined): boolean =>
  address?.split('.').slice(0, 3).join('.') === range?.split('.').slice(0, 3).join('.');
