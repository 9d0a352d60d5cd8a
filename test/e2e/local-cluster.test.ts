import { mkdir, mkdtemp, readdir, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { findCondition, isTrue } from '../../operator/api/conditions.ts';
import { LABELS } from '../../operator/api/group.ts';
import { COMPONENTS, kubeconfigSecretName } from '../../operator/api/names.ts';
import { parseBytes, parseCpu } from '../../operator/api/quantity.ts';
import type { WorkerCluster } from '../../operator/api/workercluster.ts';
import { IMAGES } from '../../operator/garden/images/catalog.ts';
import { StateDirectory } from '../../operator/garden/state/state.ts';
import type { KubeClient } from '../../operator/kube/client.ts';
import {
  type CertificateSigningRequest,
  CONFIGMAPS,
  CSRS,
  decodeSecret,
  type KubeObject,
  NODES,
  type Node,
  type PersistentVolumeClaim,
  PODS,
  type Pod,
  PVCS,
  PVS,
  SECRETS,
  type Secret,
  SHOOTS,
  WORKERCLUSTERS,
} from '../../operator/kube/resources.ts';
import { expectShortLived } from '../kit/certificates.ts';
import { resourceFromDescription } from '../kit/described-nodes.ts';
import {
  changeCluster,
  clusterClient,
  coppice,
  e2e,
  follow,
  garden,
  gardenClient,
  kubeconfigFile,
  kubectl,
  makeCluster,
  type Name,
  ok,
  PATIENCE_MS,
  seedNamespace,
  seedPods,
  temporaryFile,
  until,
  untilJoined,
  untilReady,
} from '../kit/garden.ts';
import { refusedIdentities } from '../kit/metrics.ts';
import {
  madeArchive,
  madeImage,
  push,
  startRegistry,
  startTokens,
  type TestRegistry,
  type TokenServer,
} from '../kit/registry.ts';
import { COPPICE, owned, runCommand } from '../kit/run.ts';
import { argsOnPage, commandOnPage, outputOnPage } from '../kit/task-pages/on-page.ts';
import { timed } from '../kit/timed.ts';
import { claimOf, DATA, echoService, run, untilPods } from '../kit/workload.ts';

/** What each computer carries is another number. */
const MOST = /\b(most|for) \d+/g;

e2e('a local cluster with two nodes', () => {
  let cluster: Name;
  let client: KubeClient;
  let kubeconfig: string;
  let pods: Pod[];
  let refused: number;
  const exec = (pod: Pod, ...command: string[]) =>
    kubectl(['exec', pod.metadata.name, '--', '/usr/local/bin/echo', ...command], { kubeconfig });
  /** The lines `key=value` that the echo server answers with. */
  const answer = (text: string) =>
    Object.fromEntries(
      text
        .trim()
        .split('\n')
        .map((line) => line.split('=') as [string, string]),
    );

  beforeAll(async () => {
    cluster = await makeCluster({ dataPlaneNodes: 2 });
    // The first event that says so counts: not a moment later, and without a second try.
    for (const type of ['APIServerAvailable', 'Ready']) {
      await until(cluster, (found) => isTrue(found?.status?.conditions, type), `to have the condition ${type}`);
      client = await clusterClient(cluster);
      const body = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: `made-when-${type.toLowerCase()}` } };
      await client.request('POST', '/api/v1/namespaces', { body, retries: 0 });
    }
    refused = await refusedIdentities(client);
    kubeconfig = await kubeconfigFile(cluster);
    await client.apply(echoService('echo'));
    pods = await run(client, { name: 'echo', replicas: 2, spread: true });
  });

  it('is Ready with all its parts', async () => {
    const found = await untilReady(cluster);
    expect(found.status).toMatchObject({
      phase: 'Ready',
      mode: 'Hosted',
      provider: 'local',
      simulated: false,
      controlPlane: { desired: 1, ready: 1 },
      nodes: { desired: 2, current: 2, ready: 2 },
      lastOperation: { state: 'Succeeded', progress: 100 },
      lastErrors: [],
    });
    for (const type of ['APIServerAvailable', 'ControlPlaneHealthy', 'EveryNodeReady', 'SystemComponentsHealthy']) {
      expect(found.status?.conditions).toContainEqual(expect.objectContaining({ type, status: 'True' }));
    }
    const inSeed = await seedPods(cluster);
    expect(inSeed.filter((pod) => pod.metadata.name.startsWith('machines-'))).toHaveLength(2);
  });

  // Kubelets that go on without their certificates are, and are five seconds late.
  it('had no refused request during its creation', () => {
    expect(refused).toBe(0);
  });

  it('has its kubeconfig in a Secret in the form of Cluster API', async () => {
    const secret = await gardenClient().get<Secret>(SECRETS, kubeconfigSecretName(cluster.name), cluster.namespace);
    expect(secret.type).toBe('cluster.x-k8s.io/secret');
    expect(secret.metadata.labels).toMatchObject({ [LABELS.clusterName]: cluster.name });
    expect(Object.keys(secret.data ?? {})).toEqual(['value']);
  });

  it('is usable with kubectl by the output of "coppice kubeconfig"', async () => {
    const file = await temporaryFile('printed.yaml', ok(await coppice(['kubeconfig', cluster.name])));
    const nodes = ok(await kubectl(['get', 'nodes', '--no-headers'], { kubeconfig: file }))
      .trim()
      .split('\n');
    expect(nodes).toHaveLength(2);
    for (const line of nodes) expect(line).toMatch(/ Ready .* v1\.\d+\.\d+/);
    const tree = ok(await coppice(['describe', cluster.name]));
    expect(tree).toContain(`WorkerCluster/${cluster.name}`);
    expect(tree).toMatch(/Pool\/default +2\/2 +True/);
  });

  it('is readable only by "coppice kubeconfig --viewer --exec", whose plugin kubectl runs', async () => {
    const cache = await mkdtemp(join(tmpdir(), 'coppice-cache-'));
    try {
      // kubectl keeps what it finds out at home, too.
      const env = { HOME: cache, XDG_CACHE_HOME: cache };
      const printed = ok(await coppice(['kubeconfig', cluster.name, '--viewer', '--exec'], { env }));
      expect(printed).not.toMatch(/client-key-data|token:/);
      const file = await temporaryFile('viewer.yaml', printed);
      const as = (...words: string[]) => kubectl(words, { kubeconfig: file, env });
      expect(
        ok(await as('get', 'nodes', '-o', 'name'))
          .trim()
          .split('\n'),
      ).toHaveLength(2);
      expect(ok(await as('get', 'pods', '-n', 'kube-system'))).toContain('coredns');
      expect((await as('get', 'secrets', '-A')).stderr).toContain('User "garden:');
      expect((await as('delete', 'namespace', 'default')).stderr).toContain('forbidden');
    } finally {
      await rm(cache, { recursive: true });
    }
  });

  it('is in the inventory of the garden, with working access that shows no Secrets', async () => {
    const { status } = await untilJoined(cluster);
    const offered = Object.fromEntries(
      status?.properties.map(({ name, value }: Record<string, string>) => [name, value]),
    );
    expect(offered['cpu.allocatable']).toBe((await untilReady(cluster)).status?.resource?.total?.cpu);
    const provider = status?.accessProviders.find(({ name }: { name: string }) => name === 'kubeconfig-secretreader');
    // As that plugin of the cluster inventory is told it.
    const where = provider.cluster.extensions[0].extension as { name: string; namespace: string; key: string };
    const secret = await gardenClient().get<Secret>(SECRETS, where.name, where.namespace);
    const file = await temporaryFile('inventory.yaml', decodeSecret(secret.data)[where.key]!);
    expect(
      ok(await kubectl(['get', 'nodes', '-o', 'name'], { kubeconfig: file }))
        .trim()
        .split('\n'),
    ).toHaveLength(2);
    expect((await kubectl(['get', 'secrets', '-A'], { kubeconfig: file })).stderr).toContain('forbidden');
    expect(ok(await coppice(['hubs']))).toMatch(new RegExp(`${cluster.name} +inventory +Joined`));
  });

  it('lets a pod reach a pod on another node with its own address', async () => {
    const [one, other] = pods as [Pod, Pod];
    expect(one.spec.nodeName).not.toBe(other.spec.nodeName);
    for (const [from, to] of [
      [one, other],
      [other, one],
    ] as const) {
      const said = answer(ok(await exec(from, 'get', `http://${to.status?.podIP}:8080/`)));
      expect(said.hostname).toBe(to.metadata.name);
      expect(said.client).toMatch(new RegExp(`^${from.status?.podIP}:`));
    }
  });

  it('lets pods on both nodes reach a Service by name', async () => {
    for (const from of pods) {
      const answered = new Set<string>();
      // kube-proxy chooses by chance: 20 times the same of two is one in half a million.
      for (let i = 0; i < 20 && answered.size < 2; i++) {
        const host = i % 2 === 0 ? 'echo' : 'echo.default.svc.cluster.local';
        answered.add(answer(ok(await exec(from, 'get', `http://${host}/`))).hostname ?? '');
      }
      expect([...answered].sort()).toEqual(pods.map((pod) => pod.metadata.name).sort());
    }
  });

  it('lets pods reach the API server by the Service kubernetes', async () => {
    for (const from of pods) {
      expect(ok(await exec(from, 'get', 'https://kubernetes.default.svc/readyz'))).toBe('ok');
    }
  });

  describe('runs images', () => {
    let root: string;
    let registry: TestRegistry;
    let own: TestRegistry;
    let tokens: TokenServer;
    const deployments: string[] = [];
    const create = async (name: string, image: string) => {
      deployments.push(name);
      ok(await kubectl(['create', 'deployment', name, `--image=${image}`], { kubeconfig }));
    };
    const runs = (name: string) => untilPods(client, name, (ready) => ready.length === 1, 'to run');
    /** Waits until a pod of the Deployment says this of its image. */
    const says = async (name: string, text: string) => {
      const found = await follow<Pod>(client, PODS);
      const pods = () => found.list().filter(({ metadata }) => metadata.labels?.app === name);
      const said = () =>
        pods().flatMap(({ status }) => status?.containerStatuses?.map(({ state }) => state?.waiting?.message));
      const what = () => `a pod of ${name} to say "${text}"; it says ${JSON.stringify(said())}`;
      await found.waitFor(() => said().some((one) => one?.includes(text)), {
        timeoutMs: PATIENCE_MS,
        what,
      });
    };

    beforeAll(async () => {
      root = await mkdtemp(join(tmpdir(), 'coppice-registry-'));
      tokens = await startTokens('jane:secret');
      [registry, own] = await Promise.all([startRegistry({ root }), startRegistry({ root, tokens })]);
      const image = await madeImage(IMAGES.echo.ref);
      await push(registry.host, 'team/app', 'v1', image);
      await push(registry.host, 'private/app', 'v1', image);
    });
    afterAll(async () => {
      ok(await kubectl(['delete', 'deployment', ...deployments, '--ignore-not-found'], { kubeconfig }));
      ok(await coppice(['up', '--detach', '--registry', 'none']));
      await Promise.all([registry, own, tokens].map(({ close }) => close()));
      await rm(root, { recursive: true, force: true });
    });

    it('of any registry that this machine reaches, and shows in the pod why others fail', async () => {
      // It is on this machine, of which pods shall see nothing by themselves.
      await create('not-allowed', `${registry.host}/team/app:v1`);
      await says('not-allowed', 'coppice up --registry HOST:PORT');
      const { host } = new URL(tokens.url);
      const named = { 'localhost:5001': registry.host };
      const up = argsOnPage('docs/tasks/images.md', 'coppice up --detach --registry localhost:5001', named);
      ok(await coppice([...up, '--registry', own.host, '--registry', host]));
      await create('from-elsewhere', `${registry.host}/team/app:v1`);
      await runs('from-elsewhere');
      await create('not-there', `${registry.host}/team/none:v1`);
      await says('not-there', `there is no such image at ${registry.host}/team/none: check its name and tag`);
    });

    it('that are private, with the login in an imagePullSecret', async () => {
      await create('no-login', `${own.host}/private/app:v1`);
      // In containerd's own words.
      await says('no-login', 'pull access denied, repository does not exist or may require authorization');
      const login = ['--docker-username=jane', '--docker-password=secret', `--docker-server=${own.host}`];
      ok(await kubectl(['create', 'secret', 'docker-registry', 'login', ...login], { kubeconfig }));
      const patch = JSON.stringify({ imagePullSecrets: [{ name: 'login' }] });
      await expect
        .poll(() =>
          kubectl(['patch', 'serviceaccount', 'default', '--patch', patch], { kubeconfig }).then(({ code }) => code),
        )
        .toBe(0);
      await create('login', `${own.host}/private/app:v1`);
      await runs('login');
    });

    it('as volumes: a container of one image runs a program of another', async () => {
      const name = 'image-volume';
      const program = { name, image: IMAGES.pause.ref, command: ['/tools/echo'] };
      await client.create({
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name, namespace: 'default', labels: { app: name } },
        spec: {
          containers: [{ ...program, volumeMounts: [{ name, mountPath: '/tools', subPath: 'usr/local/bin' }] }],
          volumes: [{ name, image: { reference: `${registry.host}/team/app:v1` } }],
        },
      });
      await runs(name);
      const logs = ['logs', name, '--pod-running-timeout=60s', '--follow=false'];
      await expect.poll(() => kubectl(logs, { kubeconfig }).then(({ stdout }) => stdout)).toContain(`as ${name}`);
      ok(await kubectl(['delete', 'pod', name, '--grace-period=1', '--wait'], { kubeconfig }));
    });

    it('imported by "coppice load" from an archive, Docker, or standard input', async () => {
      const archive = await madeArchive(IMAGES.echo.ref);
      const load = argsOnPage('docs/tasks/images.md', 'coppice load app.tar --cluster demo', {
        'app.tar': archive,
        demo: cluster.name,
      });
      ok(await coppice([...load, '--as', 'loaded:v1']));
      await create('loaded', 'loaded:v1');
      await runs('loaded');

      // A Docker that has one image.
      const bin = join(root, 'bin');
      await mkdir(bin);
      await writeFile(join(bin, 'docker'), `#!/bin/sh\n[ "$2" = inspect ] || cat ${archive}\n`, { mode: 0o755 });
      await symlink(COPPICE, join(bin, 'coppice'));
      const env = { PATH: `${bin}:${process.env.PATH}` };
      const here = owned({ home: garden.home, tools: inject('tools'), env });
      const shell = (command: string) => runCommand('bash', ['-c', `set -o pipefail; ${command} --as piped:v1`], here);
      ok(await shell(commandOnPage('docs/tasks/images.md', 'docker save app:dev | coppice load -')));
      await create('piped', 'piped:v1');
      await runs('piped');
      expect(ok(await shell(commandOnPage('docs/tasks/images.md', 'coppice load app:dev')))).toContain('is loaded');
    });
  });

  it('refuses more nodes than this computer can run, as the page says', async () => {
    const scale = argsOnPage('docs/tasks/local-capacity.md', 'coppice scale demo --nodes 4000', { demo: cluster.name });
    const { code, stderr } = await coppice(scale);
    await changeCluster(cluster, { dataPlaneNodes: 2 });
    const said = stderr.trim().replaceAll(cluster.name, 'demo').replace(MOST, '$1 40');
    expect([code, said]).toEqual([1, outputOnPage('docs/tasks/local-capacity.md', 'coppice scale demo --nodes 4000')]);
    await untilReady(cluster);
  });

  it('answers for a name that does not exist at once', async () => {
    const missing = await exec(pods[0]!, 'resolve', 'no-such-service.default.svc.cluster.local');
    expect(missing.code).toBe(1);
    expect(missing.stderr).toContain('no such host');
  });

  it('serves logs', async () => {
    for (const pod of pods) {
      expect(ok(await kubectl(['logs', pod.metadata.name], { kubeconfig }))).toContain(`as ${pod.metadata.name}`);
    }
  });

  it('reaches Services and pods on every node from its API server', async () => {
    const metrics = '/api/v1/namespaces/kube-system/services/http:kube-dns:9153/proxy/metrics';
    expect(await client.request<string>('GET', metrics, { retries: 0 })).toContain('coredns_build_info');
    for (const { metadata } of pods) {
      const path = `/api/v1/namespaces/default/pods/${metadata.name}:8080/proxy/asked`;
      const said = answer(await client.request<string>('GET', path, { retries: 0 }));
      expect(said).toMatchObject({ hostname: metadata.name, path: '/asked' });
    }
  });

  it('reaches no foreign pod of the seed, whatever address a Node or a Pod claims', async () => {
    const other = (await seedPods(cluster)).find(
      ({ metadata }) => metadata.labels?.app === COMPONENTS.controllerManager,
    )!;
    const address = other.status!.podIP!;
    // It is there, and would answer anybody who can reach it.
    const inSeed = `/api/v1/namespaces/${other.metadata.namespace}/pods/https:${other.metadata.name}:10257/proxy/healthz`;
    expect(await gardenClient().request('GET', inSeed)).toBe('ok');
    const name = 'forged';
    await client.create({ apiVersion: 'v1', kind: 'Node', metadata: { name } });
    const addresses = [{ type: 'InternalIP', address }];
    await client.mergePatch(NODES, name, undefined, { status: { addresses } }, { subresource: 'status' });
    const spec = { nodeName: name, containers: [{ name, image: 'none' }] };
    await client.create({ apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace: 'default' }, spec });
    const status = { podIP: address, podIPs: [{ ip: address }] };
    await client.mergePatch(PODS, name, 'default', { status }, { subresource: 'status' });
    const got = (path: string) =>
      client.request<string>('GET', path, { retries: 0 }).catch(({ message }: Error) => message);
    const refused = `dial tcp ${address}:10257: connect: no route to host`;
    expect(await got(`/api/v1/nodes/https:${name}:10257/proxy/healthz`)).toContain(refused);
    expect(await got(`/api/v1/namespaces/default/pods/https:${name}:10257/proxy/healthz`)).toContain(refused);
    await client.delete(NODES, name);
    // No kubelet would ever say that it has ended.
    await client.delete(PODS, name, 'default', { gracePeriodSeconds: 0 });
  });

  it('issues serving certificates to kubelets by request', async () => {
    const { items } = await client.list<CertificateSigningRequest>(CSRS);
    const serving = items.filter((request) => request.spec.signerName === 'kubernetes.io/kubelet-serving');
    const nodes = await client.list<Node>(NODES);
    for (const { metadata } of nodes.items) {
      const own = serving.filter((request) => request.spec.username === `system:node:${metadata.name}`);
      expect(own.length).toBeGreaterThan(0);
      expect(own.every((request) => request.status?.certificate)).toBe(true);
      // Through the API server, which checks the certificate, and whom kubelets know by name.
      expect(await client.request('GET', `/api/v1/nodes/${metadata.name}/proxy/healthz`)).toBe('ok');
    }
    const issued = items.map(({ status }) => Buffer.from(status?.certificate ?? '', 'base64').toString());
    expect(expectShortLived(issued.join(''))).toBeGreaterThanOrEqual(2 * nodes.items.length);
  });

  it('uses only certificates that expire and whose rights can be revoked', async () => {
    const { data } = await gardenClient().get<Secret>(SECRETS, 'pki', seedNamespace(cluster));
    expect(expectShortLived(Object.values(decodeSecret(data)).join(''))).toBeGreaterThan(5);
  });

  it('keeps data in a claim without storage class for the next pod, and deletes it with the claim', async () => {
    await client.apply(claimOf('kept'));
    const sh = (pod: Pod | undefined, command: string) =>
      kubectl(['exec', pod?.metadata.name ?? '', '--', '/bin/sh', '-c', command], { kubeconfig });
    const [first] = await run(client, { name: 'client', claim: 'kept' });
    ok(await sh(first, `echo as it was > ${DATA}/note`));
    ok(await kubectl(['delete', 'pod', first!.metadata.name, '--wait'], { kubeconfig }));
    const isAnother = ([one]: Pod[]) => one !== undefined && one.metadata.uid !== first?.metadata.uid;
    const [second] = await untilPods(client, 'client', isAnother, 'to be made anew');
    expect(ok(await sh(second, `cat ${DATA}/note`))).toBe('as it was\n');
    const claim = await client.get<PersistentVolumeClaim>(PVCS, 'kept', 'default');
    expect(claim).toMatchObject({ status: { phase: 'Bound' }, spec: { storageClassName: 'coppice-local' } });
    const machine = (await seedPods(cluster)).find(({ metadata }) => metadata.name === second?.spec.nodeName);
    const volumes = ['volumes', 'kubernetes.io~empty-dir', 'var', 'lib', 'coppice', 'volumes'];
    const disks = new StateDirectory(garden.home).path('seed', 'kubelet', 'pods');
    const folders = () => readdir(join(disks, machine!.metadata.uid!, ...volumes));
    expect(await folders()).toHaveLength(1);
    ok(await kubectl(['delete', 'deployment/client', 'pvc/kept', '--wait'], { kubeconfig }));
    await expect.poll(folders).toEqual([]);
    await expect.poll(async () => (await client.list(PVS)).items).toEqual([]);
  });

  it('reports that NetworkPolicies have no effect', async () => {
    expect(ok(await coppice(['describe', cluster.name]))).toMatch(/NetworkPoliciesEnforced +False +NoEnforcement/);
  });

  it('reports its total and available resources to the millicore', async () => {
    const matches = async (when: string) => {
      const expected = resourceFromDescription(ok(await kubectl(['describe', 'nodes'], { kubeconfig })));
      await until(
        cluster,
        (found) => isDeepStrictEqual(found?.status?.resource, expected),
        `to have the resources ${JSON.stringify(expected)} ${when}`,
      );
      return expected;
    };
    const before = await matches('before');
    const pod = { name: 'hungry', requests: { cpu: '333m', memory: '77Mi' } };
    await run(client, pod);
    const during = await matches('while a pod runs');
    expect(parseCpu(before.available.cpu) - parseCpu(during.available.cpu)).toBe(333);
    expect(parseBytes(before.available.memory) - parseBytes(during.available.memory)).toBe(77 * 2 ** 20);
    ok(await kubectl(['delete', 'deployment', 'hungry', '--cascade=foreground', '--wait'], { kubeconfig }));
    expect(await matches('after it has gone')).toEqual(before);
  });

  it('sleeps without any pod in the seed, keeps its data, and wakes with as many nodes as before', async () => {
    const kept = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'kept', namespace: 'default' } };
    await client.create({ ...kept, data: { of: 'before' } });
    const nodes = async () => (await client.list<Node>(NODES)).items.map(({ metadata }) => metadata.name);
    const claims = async () =>
      (await gardenClient().list(PVCS, { namespace: seedNamespace(cluster) })).items.map(
        ({ metadata }) => metadata.uid,
      );
    const before = { nodes: await nodes(), claims: await claims() };
    expect(before.claims).toHaveLength(1);
    const failures = new Set<string>();
    const watchFailures = (found: WorkerCluster | undefined) => {
      for (const { description } of found?.status?.lastErrors ?? []) failures.add(description);
      const serves = findCondition(found?.status?.conditions, 'APIServerAvailable');
      if (serves?.status === 'False' && !['Hibernated', 'Waking'].includes(serves.reason ?? ''))
        failures.add(serves.message ?? '');
    };
    await timed('a local cluster with two nodes falls asleep', async () => {
      await changeCluster(cluster, { hibernation: { enabled: true } });
      await until(
        cluster,
        (found) => {
          watchFailures(found);
          return found?.status?.phase === 'Hibernated' && found.status.lastOperation?.state === 'Succeeded';
        },
        'to sleep',
      );
    });
    const asleep = await until(cluster, (found) => found, 'to be there');
    expect(asleep.status).toMatchObject({
      nodes: { desired: 0, current: 0, ready: 0 },
      controlPlane: { desired: 0, ready: 0 },
      lastOperation: { type: 'Hibernate', state: 'Succeeded' },
      hibernation: { asleep: true },
    });
    for (const [type, status] of [
      ['Hibernated', 'True'],
      ['APIServerAvailable', 'False'],
      ['Ready', 'False'],
    ])
      expect(asleep.status?.conditions).toContainEqual(expect.objectContaining({ type, status }));
    expect((await seedPods(cluster)).map(({ metadata }) => metadata.name)).toEqual([]);
    expect(await claims()).toEqual(before.claims);
    const inHub = (state: string) => new RegExp(`${cluster.name} +inventory +${state}`);
    expect(ok(await coppice(['hubs']))).toMatch(inHub('Asleep'));
    const versions = () =>
      Promise.all(
        [WORKERCLUSTERS, SHOOTS].map(async (kind) => {
          const { metadata } = await gardenClient().get(kind, cluster.name, cluster.namespace);
          return metadata.resourceVersion;
        }),
      );
    const written = await versions();
    expect(ok(await coppice(['get', 'wc', cluster.name]))).toContain('Hibernated');
    expect(ok(await coppice(['describe', cluster.name]))).not.toContain("the cluster's own API server");
    expect((await kubectl(['get', 'nodes', '--request-timeout=5s'], { kubeconfig })).code).not.toBe(0);
    // An idle garden writes nothing while it sleeps.
    expect(await versions()).toEqual(written);

    await timed('it wakes with two nodes', async () => {
      await changeCluster(cluster, { hibernation: { enabled: false } });
      await until(
        cluster,
        (found) => {
          watchFailures(found);
          return (
            isTrue(found?.status?.conditions, 'Ready') &&
            found?.status?.observedGeneration === found?.metadata.generation
          );
        },
        'to be awake',
      );
    });
    expect([...failures]).toEqual([]);
    // By the kubeconfig that people have had all the while.
    const live = await client.get<KubeObject & { data: object }>(CONFIGMAPS, 'kept', 'default');
    expect(live.data).toEqual({ of: 'before' });
    const awake = await nodes();
    expect(awake).toHaveLength(2);
    expect(awake.filter((name) => before.nodes.includes(name))).toEqual([]);
    expect(await claims()).toEqual(before.claims);
    expect(await run(client, { name: 'after-sleep' })).toHaveLength(1);
    await untilJoined(cluster);
    await expect.poll(async () => ok(await coppice(['hubs']))).toMatch(inHub('Joined'));
  });
});
