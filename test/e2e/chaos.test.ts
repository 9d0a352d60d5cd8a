import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { findCondition } from '../../operator/api/conditions.ts';
import { COMPONENTS, technicalID } from '../../operator/api/names.ts';
import { run as command } from '../../operator/garden/host/command.ts';
import { namespaceFile, networkNames } from '../../operator/garden/host/network.ts';
import type { KubeClient } from '../../operator/kube/client.ts';
import {
  CONFIGMAPS,
  type KubeObject,
  NAMESPACES,
  NODES,
  SHOOTS,
  WORKERCLUSTERS,
} from '../../operator/kube/resources.ts';
import { coppice, e2e, kubectl, ok, garden as shared, temporaryFile } from '../kit/garden.ts';
import { type Internet, makeInternet, whyNoEgress } from '../kit/internet.ts';
import { leftOvers } from '../kit/left-overs.ts';
import { OwnGarden } from '../kit/own-garden.ts';
import { argsOnPage } from '../kit/task-pages/on-page.ts';
import { echoService, run, VALIDATING_WEBHOOKS, validatingWebhook } from '../kit/workload.ts';

const namesFrom = (count: number) => Array.from({ length: count }, (_, ordinal) => `${COMPONENTS.etcd}-${ordinal}`);
const MACHINES = 'machines-';

const noWayOut = await whyNoEgress();

e2e('a garden whose processes are killed', () => {
  let garden: OwnGarden;

  /** The cluster is Ready for that generation, and of everything there is as much as there should be. */
  const settled = async (name: string, generation: number, { members = 1, nodes = 1 } = {}) => {
    await garden.ready(name, generation);
    const found = await garden.inventory(name);
    expect(found.namespaces).toHaveLength(1);
    expect(found.machines).toHaveLength(nodes);
    expect(found.nodes).toEqual(found.machines);
    expect(found.etcdPods).toEqual(namesFrom(members));
    expect(found.etcdMembers).toEqual(namesFrom(members));
    expect(found.etcdVolumes).toEqual(namesFrom(members).map((member) => `data-${member}`));
  };
  /** Waits for a pod of the cluster whose name begins like that. */
  const podOf = (name: string, prefix: string) =>
    garden.when(`${prefix} of ${name} to be made`, () =>
      garden.pods(name).some(({ metadata }) => metadata.name.startsWith(prefix)),
    );
  const isUnderWay = (name: string) => garden.shoot(name)?.status?.lastOperation?.state === 'Processing';

  const CONFIG: KubeObject = {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'made-before', namespace: 'default' },
    data: { key: 'value' },
  };
  const inside = async <T>(name: string, ask: (client: KubeClient) => Promise<T>): Promise<T> => {
    const client = await garden.clusterClient(name);
    try {
      return await ask(client);
    } finally {
      await client.close();
    }
  };
  const keyIsThere = (name: string) =>
    inside(name, async (client) =>
      expect((await client.get(CONFIGMAPS, 'made-before', 'default')).data).toEqual(CONFIG.data),
    );
  /** What the status said before proves nothing: each Node of the cluster must say since then that it is Ready. */
  const nodesAnswer = (name: string, since: number) =>
    inside(name, async (client) => {
      for (const node of (await client.list(NODES)).items) {
        const ready = findCondition((node.status as { conditions?: [] } | undefined)?.conditions, 'Ready');
        const { lastHeartbeatTime = '' } = (ready ?? {}) as { lastHeartbeatTime?: string };
        expect(ready?.status).toBe('True');
        expect(Date.parse(lastHeartbeatTime)).toBeGreaterThan(since - 1000);
      }
    });

  let internet: Internet;
  beforeAll(async () => {
    internet = await makeInternet();
    const resolvers = await temporaryFile('resolv.conf', `nameserver ${internet.address}\n`);
    garden = await OwnGarden.start(undefined, { COPPICE_RESOLV_CONF: resolvers });
    await garden.connect();
  });
  afterAll(async () => {
    await garden?.dispose();
    await internet?.close();
  });

  let uid: string | undefined;

  it('reaches the desired state of five clusters, though each part is killed in each of their phases', async () => {
    const before = { waits: 1, grows: 1, shrinks: 2, goes: 1 };
    const applied = await Promise.all(
      Object.entries(before).map(async ([name, dataPlaneNodes]) => {
        const { metadata } = await garden.apply(name, { dataPlaneNodes });
        await settled(name, metadata.generation ?? 0, { nodes: dataPlaneNodes });
        return metadata;
      }),
    );
    uid = applied.find(({ name }) => name === 'grows')?.uid;
    for (const name of ['waits', 'grows']) await inside(name, (client) => client.create(CONFIG));
    const waits = await garden.inventory('waits');

    const generations = Object.fromEntries(
      await Promise.all([
        ...Object.entries({
          makes: { dataPlaneNodes: 1 },
          grows: { dataPlaneNodes: 2, controlPlaneNodes: 3 as const },
          shrinks: { dataPlaneNodes: 1 },
        }).map(async ([name, spec]) => [name, (await garden.apply(name, spec)).metadata.generation ?? 0] as const),
        garden.client.delete(WORKERCLUSTERS, 'goes', 'default').then(() => ['goes', 0] as const),
      ]),
    );
    await garden.when('one cluster to be made, one to grow, one to shrink and one to go at the same time', () => {
      const isGoing = garden.shoot('goes')?.metadata.deletionTimestamp !== undefined;
      return isGoing && ['makes', 'grows', 'shrinks'].every(isUnderWay);
    });
    await garden.kill('operator');
    const [, second, third] = namesFrom(3);
    await podOf('grows', second!);
    await garden.kill('kubelet');
    await podOf('makes', COMPONENTS.apiServer);
    await garden.kill('kube-apiserver');
    await podOf('makes', MACHINES);
    await garden.kill('containerd');
    const struck = Date.now();
    await garden.killPod('waits', MACHINES);
    await podOf('grows', third!);
    await garden.kill('etcd');
    expect(isUnderWay('makes') || isUnderWay('grows'), 'that one was still under way at the last kill').toBe(true);

    await Promise.all([
      settled('makes', generations.makes!),
      settled('grows', generations.grows!, { members: 3, nodes: 2 }),
      settled('shrinks', generations.shrinks!),
      garden.gone('goes'),
      garden.eventually(() => nodesAnswer('waits', struck)),
    ]);
    await garden.ready('waits');
    expect(await garden.inventory('waits')).toEqual(waits);
    for (const name of ['waits', 'grows']) await keyIsThere(name);
    const volumes = Object.entries({ grows: 3, makes: 1, shrinks: 1, waits: 1 }).flatMap(([name, members]) =>
      namesFrom(members).map((member) => `${technicalID('default', name)}/data-${member}`),
    );
    await garden.eventually(async () => expect(await garden.volumes()).toEqual(volumes));
  });

  const NAME = 'grows';

  it('scales a cluster after kill -9 of the operator, despite a broken webhook in that cluster', async () => {
    const client = await garden.clusterClient(NAME);
    try {
      const kinds = ['configmaps', 'serviceaccounts', 'services', 'deployments', 'roles', 'rolebindings'];
      const resources = ['namespaces', 'clusterroles', 'clusterrolebindings', ...kinds];
      const rule = { apiGroups: ['*'], resources, operations: ['*'] };
      // No pod stands behind the Service.
      await client.create(echoService('down', 443));
      const body = validatingWebhook('down', { name: 'down', port: 443 }, {}, undefined, rule);
      await client.request('POST', VALIDATING_WEBHOOKS, { body });
      const refusal = () =>
        client.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { generateName: 'x-' } as never }).then(
          () => 'made',
          (error: Error) => error.message,
        );
      const isRefused = async () => expect(await refusal()).toContain('no endpoints available for service "down"');
      // An API server learns of a new webhook some moments after it has taken it.
      await garden.eventually(isRefused);

      const asleep = await garden.apply(NAME, { dataPlaneNodes: 0, controlPlaneNodes: 3 });
      await settled(NAME, asleep.metadata.generation ?? 0, { members: 3, nodes: 0 });
      await garden.kill('operator');
      const awake = await garden.apply(NAME, { dataPlaneNodes: 2, controlPlaneNodes: 3 });
      await settled(NAME, awake.metadata.generation ?? 0, { members: 3, nodes: 2 });
      await isRefused();
      await client.request('DELETE', `${VALIDATING_WEBHOOKS}/down`);
    } finally {
      await client.close();
    }
  });

  it('keeps all other processes when only its daemon was killed', async () => {
    // Meanwhile all but one go.
    const going = ['makes', 'shrinks', 'waits'];
    for (const name of going) await garden.client.delete(WORKERCLUSTERS, name, 'default');
    const before = (await garden.status()).processes.map(({ name, pid }) => `${name} ${pid}`);
    await garden.killDaemon();
    await garden.up();
    expect((await garden.status()).processes.map(({ name, pid }) => `${name} ${pid}`).sort()).toEqual(before.sort());
    await garden.ready(NAME);
    await Promise.all(going.map((name) => garden.gone(name)));
    await garden.eventually(async () => expect(await garden.volumes()).toHaveLength(3));
  });

  it('restarts with the same clusters after kill -9 of all processes', async () => {
    const before = await garden.inventory(NAME);
    await garden.killEverything();
    const { processes } = await garden.status();
    await garden.up();
    const after = (await garden.status()).processes;
    expect(after.map(({ name }) => name).sort()).toEqual(processes.map(({ name }) => name).sort());
    // What the status said before the end proves nothing: the API server, and the node, must say something new.
    const began = Date.now();
    await garden.eventually(() => keyIsThere(NAME));
    await garden.eventually(() => nodesAnswer(NAME, began));
    const cluster = await garden.ready(NAME);
    expect(cluster.metadata.uid).toBe(uid);
    expect(garden.all(WORKERCLUSTERS).list()).toHaveLength(1);
    expect(garden.all(SHOOTS).list()).toHaveLength(1);
    // etcd and the API server may still be coming back.
    await garden.eventually(async () => expect(await garden.inventory(NAME)).toEqual(before));
  });

  const lacking = noWayOut ? ` (there is none here: ${noWayOut})` : '';
  it.skipIf(noWayOut)(
    `lets pods reach what this machine reaches except its loopback, until egress is turned off${lacking}`,
    async () => {
      const onLoopback = createServer((_, response) => response.end('loopback')).listen(0, '127.0.0.1');
      const name = 'reaches';
      const { metadata } = await garden.apply(name, { dataPlaneNodes: 1 });
      await garden.ready(name, metadata.generation);
      const kubeconfig = await temporaryFile('reaches.yaml', ok(await garden.coppice(['kubeconfig', name])));
      const client = await garden.clusterClient(name);
      try {
        const [pod] = await run(client, { name: 'echo' });
        const get = (url: string) =>
          kubectl(['exec', pod!.metadata.name, '--', '/usr/local/bin/echo', 'get', url], { kubeconfig });
        const reaches = async () =>
          expect(ok(await get('http://www.example.test/'))).toContain('the internet at www.example.test');
        await reaches();
        const { ports, ranges } = (await garden.directory.read())!;
        const port = (onLoopback.address() as AddressInfo).port;
        const closed = [
          `http://${ranges.hostAddress}:${port}/`,
          `http://${internet.hostAddress}:${port}/`,
          `https://${ranges.hostAddress}:${ports.apiserver}/version`,
          `https://${internet.hostAddress}:${ports.apiserver}/version`,
          'http://169.254.169.254/',
        ];
        for (const { code, stderr } of await Promise.all(closed.map(get))) {
          expect(code).not.toBe(0);
          expect(stderr).toMatch(/connection refused|no route to host|unreachable|deadline exceeded|timeout/);
        }

        await garden.killDaemon();
        await garden.up();
        const names = networkNames(garden.directory.id);
        const rules = await command(['nsenter', `--net=${namespaceFile(names)}`, 'iptables-save']);
        expect(rules.match(/-o egress .*MASQUERADE/g)).toHaveLength(1);
        const routes = await command(['ip', '-n', names.namespace, 'route']);
        expect(routes.match(/^default .*/gm)).toEqual([expect.stringContaining('dev egress')]);
        await reaches();

        const status = async () => (await garden.coppice(['status'])).stdout;
        ok(await garden.coppice([...argsOnPage('docs/tasks/egress.md', 'coppice up --egress public'), '--detach']));
        expect(await status()).toContain('Pods reach the internet, but no private network');
        ok(await garden.coppice([...argsOnPage('docs/tasks/egress.md', 'coppice up --no-egress'), '--detach']));
        expect((await get(`http://${internet.address}/`)).stderr).toMatch(/unreachable|no route to host/);
        expect((await get('http://www.example.test/')).code).not.toBe(0);
        expect(await status()).toContain('Pods reach nothing outside the garden');
      } finally {
        onLoopback.close();
        await client.close();
      }
    },
  );

  it('runs beside another garden, and is deleted without effect on it', async () => {
    const other = JSON.parse(ok(await coppice(['status', '-o', 'json'])));
    const own = JSON.parse(ok(await garden.coppice(['status', '-o', 'json'])));
    expect(own.apiserver.server).not.toBe(other.apiserver.server);
    for (const [what, range] of Object.entries(own.seed.ranges)) expect(range).not.toBe(other.seed.ranges[what]);
    // With a cluster that is Ready and one that is only half made.
    await garden.apply('half-made', { dataPlaneNodes: 1 });
    await garden.when('the namespace of half-made', () =>
      garden
        .all(NAMESPACES)
        .list()
        .some(({ metadata }) => metadata.name.endsWith('--half-made')),
    );
    expect(await garden.down()).toEqual([]);
    const still = JSON.parse(ok(await coppice(['status', '-o', 'json'])));
    expect(still.components).toEqual(other.components);
    expect(shared.home).not.toBe(garden.home);
    expect(await leftOvers(garden.directory)).toEqual([]);
  });
});
