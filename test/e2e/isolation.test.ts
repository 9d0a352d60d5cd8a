import { beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { API_VERSION, LABELS, ROLES } from '../../operator/api/group.ts';
import { COMPONENTS } from '../../operator/api/names.ts';
import { run as command } from '../../operator/garden/host/command.ts';
import { namespaceFile, networkNames } from '../../operator/garden/host/network.ts';
import { StateDirectory } from '../../operator/garden/state/state.ts';
import type { NetworkPolicy } from '../../operator/kube/network-policy.ts';
import { UNPRIVILEGED } from '../../operator/kube/pod-security.ts';
import {
  DEPLOYMENTS,
  NAMESPACES,
  NETWORKPOLICIES,
  NODES,
  type Node,
  PODS,
  type Pod,
  SERVICES,
  type Service,
} from '../../operator/kube/resources.ts';
import {
  clusterClient,
  coppice,
  deleteCluster,
  e2e,
  follow,
  garden,
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
  temporaryFile,
  uniqueName,
  untilReady,
} from '../kit/garden.ts';
import { ECHO_IMAGE, run, untilPods } from '../kit/workload.ts';

type Endpoint = [address: string, port: number];
type WithProbe = { ephemeralContainerStatuses?: { name: string; state?: { running?: object } }[] };

const PROBE = 'probe';
/** Ports that nothing else has, in a pod of a control plane and on the node. */
const PROBE_PORT = 18_080;
const METADATA_PORT = 18_081;
const MIRROR_PORT = 5000;
/** Of what was asked without TLS, some answer and some hang up. */
const ANSWERED = /answered \d+|EOF|malformed HTTP|reset by peer/;
const SHUT_OUT = /connection refused|no route to host|unreachable|deadline exceeded|timeout|not permitted/;

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

  it('can have the same name in two namespaces', async () => {
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

  it('can have names of 63 characters in namespaces with names of 63 characters', async () => {
    expect(long.name).toHaveLength(63);
    expect(long.namespace).toHaveLength(63);
    const { items } = await (await clusterClient(long)).list<Node>(NODES);
    expect(items).toHaveLength(1);
    expect(ok(await coppice(['describe', long.name, '-n', long.namespace]))).toContain(long.name);
  });

  it('are isolated, though their pods have addresses of the same range', async () => {
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

  describe('in the seed:', () => {
    let pods: Pod[];
    let others: Pod[];
    let kubeconfig: string;
    const podOf = (list: Pod[], app: string) => list.find(({ metadata }) => metadata.labels?.app === app)!;
    const machinesOf = (list: Pod[]) => list.filter(({ metadata }) => metadata.labels?.[LABELS.role] === ROLES.machine);
    const at = (pod: Pod, port: number): Endpoint => [pod.status!.podIP!, port];
    const exec = (pod: Pod, container: string[], command: string[]) =>
      kubectl(['exec', '-n', pod.metadata.namespace!, pod.metadata.name, ...container, '--', ...command], {
        kubeconfig,
      });
    /** Whether a pod with the test's image beside it gets a connection. Throws where that cannot be told from what it says. */
    const reaches = async (pod: Pod, [address, port]: Endpoint, container = PROBE): Promise<boolean> => {
      const get = ['/usr/local/bin/echo', 'get', `http://${address}:${port}/`];
      const { code, stdout, stderr } = await exec(pod, ['-c', container], get);
      if (code === 0 || ANSWERED.test(stdout + stderr)) return true;
      if (SHUT_OUT.test(stderr)) return false;
      throw new Error(`${pod.metadata.name} at ${address}:${port}: ${stdout}${stderr}`);
    };
    /** The same from a machine, by its shell. */
    const machineReaches = async (machine: Pod, [address, port]: Endpoint) => {
      const dial = ['timeout', '20', 'bash', '-c', `exec 3<>/dev/tcp/${address}/${port}`];
      return (await exec(machine, [], dial)).code === 0;
    };

    /** A container more in pods that run already: their images have no program that connects to anything. */
    async function probed(...chosen: Pod[]): Promise<void> {
      const probe = { name: PROBE, image: ECHO_IMAGE, env: [{ name: 'PORT', value: `${PROBE_PORT}` }] };
      const namespace = chosen[0]!.metadata.namespace!;
      for (const { metadata } of chosen)
        await gardenClient().request(
          'PATCH',
          `/api/v1/namespaces/${namespace}/pods/${metadata.name}/ephemeralcontainers`,
          {
            contentType: 'application/strategic-merge-patch+json',
            body: { spec: { ephemeralContainers: [{ ...probe, securityContext: UNPRIVILEGED }] } },
          },
        );
      const seen = await follow<Pod>(gardenClient(), PODS, { namespace });
      const runs = ({ metadata }: Pod) =>
        (seen.get(`${namespace}/${metadata.name}`)?.status as WithProbe | undefined)?.ephemeralContainerStatuses?.some(
          ({ name, state }) => name === PROBE && state?.running,
        );
      await seen.waitFor(() => chosen.every(runs), { timeoutMs: PATIENCE_MS, what: 'probes in control planes to run' });
    }

    /** Something that answers where clouds have their metadata, and the seed has nothing. */
    async function serveMetadata(node: Node): Promise<void> {
      const inSeed = ['nsenter', `--net=${namespaceFile(networkNames(new StateDirectory(garden.home).id))}`];
      const address = ['169.254.169.254/32', 'dev', 'lo'];
      await command([...inSeed, 'ip', 'address', 'add', ...address]);
      onTestFinished(async () => void (await command([...inSeed, 'ip', 'address', 'del', ...address])));
      const client = gardenClient();
      const metadata = { name: 'metadata', namespace: 'default' };
      await client.create({
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { ...metadata, labels: { app: 'metadata' } },
        spec: {
          nodeName: node.metadata.name,
          hostNetwork: true,
          terminationGracePeriodSeconds: 0,
          containers: [{ name: 'echo', image: ECHO_IMAGE, env: [{ name: 'PORT', value: `${METADATA_PORT}` }] }],
        },
      });
      onTestFinished(() => client.delete(PODS, metadata.name, metadata.namespace).then(() => undefined));
      await untilPods(client, 'metadata', ([one]) => one !== undefined, 'to serve');
    }

    beforeAll(async () => {
      [pods, others] = (await Promise.all(twins.map((twin) => seedPods(twin)))) as [Pod[], Pod[]];
      kubeconfig = await temporaryFile(
        'garden.yaml',
        ok(await coppice(['kubeconfig', '--garden', '--expires-in', '2h'])),
      );
    });

    it('machines reach nothing of the other cluster, by a NetworkPolicy', async () => {
      const { etcd, apiServer, scheduler } = COMPONENTS;
      const [machine, second] = machinesOf(pods) as [Pod, Pod];
      const [stranger] = machinesOf(others) as [Pod];
      expect(await machineReaches(machine, at(podOf(pods, apiServer), 6443))).toBe(true);
      expect(await machineReaches(machine, at(second, 10250))).toBe(true);
      expect(await machineReaches(machine, at(podOf(others, apiServer), 6443))).toBe(false);
      for (const port of [2379, 2382])
        for (const cluster of [others, pods])
          expect(await machineReaches(machine, at(podOf(cluster, etcd), port))).toBe(false);
      expect(await machineReaches(machine, at(podOf(others, scheduler), 10259))).toBe(false);
      expect(await machineReaches(machine, at(stranger, 10250))).toBe(false);
    });

    it('control planes reach only their own cluster: no other one, no seed API server or kubelet, no cloud metadata', async () => {
      const { etcd, apiServer, scheduler } = COMPONENTS;
      const [node] = (await gardenClient().list<Node>(NODES)).items as [Node];
      await Promise.all([serveMetadata(node), probed(...[apiServer, etcd, scheduler].map((app) => podOf(pods, app)))]);
      const [free] = (await run(gardenClient(), { name: 'free' })) as [Pod];
      onTestFinished(() =>
        gardenClient()
          .delete(DEPLOYMENTS, 'free', 'default')
          .then(() => undefined),
      );
      const seed = await gardenClient().get<Service>(SERVICES, 'kubernetes', 'default');
      const address = node.status!.addresses!.find(({ type }) => type === 'InternalIP')!.address;
      const ofSeed: Record<string, Endpoint> = {
        'API server of the seed': [seed.spec.clusterIP!, 443],
        kubelet: [address, node.status!.daemonEndpoints.kubeletEndpoint.Port],
        'image mirror': [address, MIRROR_PORT],
        metadata: ['169.254.169.254', METADATA_PORT],
        'pod of somebody else': at(free, 8080),
      };
      /** Those of the endpoints that a pod gets to. One that is silent takes seconds, so they are dialled side by side. */
      const reached = async (pod: Pod, endpoints: Record<string, Endpoint>, container?: string) => {
        const names = Object.keys(endpoints);
        const did = await Promise.all(names.map((name) => reaches(pod, endpoints[name]!, container)));
        return names.filter((_, index) => did[index]);
      };
      // Whom no policy selects gets there, so whoever does not was refused.
      await expect.poll(() => reached(free, ofSeed, 'echo')).toEqual(Object.keys(ofSeed));

      /** Each member's Service has the name of its pod. */
      const serviceOf = async ({ metadata: { name: pod, namespace } }: Pod) =>
        (await gardenClient().get<Service>(SERVICES, pod, namespace)).spec.clusterIP!;
      const ofOther: Record<string, Endpoint> = {
        'its API server': at(podOf(others, apiServer), 6443),
        'its etcd': at(podOf(others, etcd), 2379),
        "its etcd's gateway": at(podOf(others, etcd), 2382),
        'its etcd, by the Service': [await serviceOf(podOf(others, etcd)), 2379],
        'its scheduler': at(podOf(others, scheduler), 10259),
        'its machine': at(machinesOf(others)[0]!, 10250),
      };
      const toOwnAPIServer = { own: at(podOf(pods, apiServer), 6443) };
      const fromAPIServer: Record<string, Endpoint> = {
        etcd: [await serviceOf(podOf(pods, etcd)), 2379],
        machine: at(machinesOf(pods)[0]!, 10250),
      };
      await expect.poll(() => reached(podOf(pods, scheduler), toOwnAPIServer)).toEqual(['own']);
      await expect.poll(() => reached(podOf(pods, apiServer), fromAPIServer)).toEqual(['etcd', 'machine']);
      const closed = { ...ofSeed, ...ofOther };
      for (const app of [apiServer, etcd, scheduler]) expect(await reached(podOf(pods, app), closed), app).toEqual([]);
      expect(await reached(podOf(pods, scheduler), { etcd: at(podOf(pods, etcd), 2379) })).toEqual([]);
      expect(await reached(podOf(pods, apiServer), { gateway: at(podOf(pods, etcd), 2382) })).toEqual([]);
      // Machines are let out to the internet and to the mirror, and to nothing else of the seed.
      for (const what of ['API server of the seed', 'kubelet', 'metadata', 'pod of somebody else'])
        expect(await machineReaches(machinesOf(pods)[0]!, ofSeed[what]!), `machine at ${what}`).toBe(false);
    });

    it('a Service unknown to the seed is refused and not dropped, so that no client hangs', async () => {
      const client = gardenClient();
      const [early] = (await run(client, { name: 'early' })) as [Pod];
      onTestFinished(() => client.delete(DEPLOYMENTS, 'early', 'default').then(() => undefined));
      const { spec } = await client.get<Service>(SERVICES, 'kubernetes', 'default');
      const unknown = spec.clusterIP!.replace(/\d+\.\d+$/, '255.250');
      const { code, stderr } = await exec(early, [], ['/usr/local/bin/echo', 'get', `http://${unknown}:2379/`]);
      expect([code === 0, stderr]).toEqual([false, expect.stringContaining('connection refused')]);
    });

    it('a deleted NetworkPolicy is restored, and the Seed reports that policies are enforced', async () => {
      expect((await networkTried()).status).toBe('True');
      const garden = gardenClient();
      const { namespace } = pods[0]!.metadata;
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
  });

  it('do not start an API server outside of its own network', async () => {
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
  it('creates a cluster, and cannot change its status, create a Shoot or raise a Quota', async () => {
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
