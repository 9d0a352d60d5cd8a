import { afterAll, beforeAll, expect, it } from 'vitest';
import { findCondition } from '../../operator/api/conditions.ts';
import { COMPONENTS } from '../../operator/api/names.ts';
import type { WorkerCluster } from '../../operator/api/workercluster.ts';
import {
  CONFIGMAPS,
  type KubeObject,
  NAMESPACES,
  NODES,
  SHOOTS,
  WORKERCLUSTERS,
} from '../../operator/kube/resources.ts';
import { coppice, e2e, ok, garden as shared } from '../kit/garden.ts';
import { leftOvers } from '../kit/left-overs.ts';
import { OwnGarden, type Part } from '../kit/own-garden.ts';
import { echoService, VALIDATING_WEBHOOKS, validatingWebhook } from '../kit/workload.ts';

const namesFrom = (count: number) => Array.from({ length: count }, (_, ordinal) => `${COMPONENTS.etcd}-${ordinal}`);

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
  const scale = (name: string, dataPlaneNodes: number) =>
    garden.client.mergePatch<WorkerCluster>(WORKERCLUSTERS, name, 'default', { spec: { dataPlaneNodes } });
  const machines = (name: string) => garden.pods(name).filter((pod) => pod.metadata.name.startsWith('machines-'));

  beforeAll(async () => {
    garden = await OwnGarden.start();
    await garden.connect();
  });
  afterAll(() => garden?.dispose());

  const TABLE: [Part, { from: number; to: number }][] = [
    ['operator', { from: 1, to: 2 }],
    ['etcd', { from: 2, to: 1 }],
    ['kube-apiserver', { from: 1, to: 2 }],
    ['kubelet', { from: 2, to: 1 }],
    ['containerd', { from: 1, to: 2 }],
  ];
  it.each(TABLE)(
    'goes on after kill -9 of %s in the middle of create, scale and delete',
    async (part, { from, to }) => {
      const name = `without-${part}`;
      const { generation = 0 } = (await garden.apply(name, { dataPlaneNodes: from })).metadata;
      await garden.when(`etcd of ${name} to be made`, () =>
        garden.pods(name).some((pod) => pod.metadata.name.startsWith(COMPONENTS.etcd)),
      );
      await garden.kill(part);
      await settled(name, generation, { nodes: from });

      const before = garden.shoot(name)?.metadata.generation ?? 0;
      const scaled = await scale(name, to);
      await garden.when(`${name} to be in the middle of scaling`, () => {
        const { metadata, status } = garden.shoot(name) ?? {};
        const isUnderWay = (metadata?.generation ?? 0) > before && status?.lastOperation?.state === 'Processing';
        return isUnderWay && (to < from || machines(name).length === to);
      });
      await garden.kill(part);
      await settled(name, scaled.metadata.generation ?? 0, { nodes: to });

      await garden.client.delete(WORKERCLUSTERS, name, 'default');
      await garden.when(`the Shoot of ${name} to be deleted`, () => garden.shoot(name)?.metadata.deletionTimestamp);
      await garden.kill(part);
      await garden.gone(name);
      expect(await garden.volumes()).toEqual([]);
    },
  );

  const NAME = 'kept';
  const CONFIG: KubeObject = {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'made-before', namespace: 'default' },
    data: { key: 'value' },
  };
  const keyIsThere = async () => {
    const client = await garden.clusterClient(NAME);
    try {
      expect((await client.get(CONFIGMAPS, 'made-before', 'default')).data).toEqual(CONFIG.data);
    } finally {
      await client.close();
    }
  };
  let uid: string | undefined;

  it('grows etcd to three members when the operator is killed in the middle, and keeps its keys', async () => {
    const applied = await garden.apply(NAME, { dataPlaneNodes: 1 });
    uid = applied.metadata.uid;
    await settled(NAME, applied.metadata.generation ?? 0);
    const client = await garden.clusterClient(NAME);
    await client.create(CONFIG);
    await client.close();
    const { metadata } = await garden.apply(NAME, { dataPlaneNodes: 1, controlPlaneNodes: 3 });
    for (const member of namesFrom(3).slice(1)) {
      await garden.when(`${member} to be made`, () => garden.pods(NAME).some((pod) => pod.metadata.name === member));
      await garden.kill('operator');
    }
    await settled(NAME, metadata.generation ?? 0, { members: 3 });
    await keyIsThere();
  });

  it('is scaled after kill -9 of the operator, while a webhook that is down guards what the operator writes into it', async () => {
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

      const asleep = await scale(NAME, 0);
      await settled(NAME, asleep.metadata.generation ?? 0, { members: 3, nodes: 0 });
      await garden.kill('operator');
      const awake = await scale(NAME, 1);
      await settled(NAME, awake.metadata.generation ?? 0, { members: 3 });
      await isRefused();
      await client.request('DELETE', `${VALIDATING_WEBHOOKS}/down`);
    } finally {
      await client.close();
    }
  });

  it('is taken over as it runs when only its daemon was killed', async () => {
    const before = (await garden.status()).processes.map(({ name, pid }) => `${name} ${pid}`);
    await garden.killDaemon();
    await garden.up();
    expect((await garden.status()).processes.map(({ name, pid }) => `${name} ${pid}`).sort()).toEqual(before.sort());
    await garden.ready(NAME);
  });

  it('comes back with the same clusters after kill -9 of all that runs', async () => {
    const before = await garden.inventory(NAME);
    await garden.killEverything();
    const { processes } = await garden.status();
    await garden.up();
    const after = (await garden.status()).processes;
    expect(after.map(({ name }) => name).sort()).toEqual(processes.map(({ name }) => name).sort());
    // What the status said before the end proves nothing: the API server, and the node, must say something new.
    const began = Date.now();
    await garden.eventually(keyIsThere);
    await garden.eventually(async () => {
      const client = await garden.clusterClient(NAME);
      try {
        for (const node of (await client.list(NODES)).items) {
          const ready = findCondition((node.status as { conditions?: [] } | undefined)?.conditions, 'Ready');
          const { lastHeartbeatTime = '' } = (ready ?? {}) as { lastHeartbeatTime?: string };
          expect(ready?.status).toBe('True');
          expect(Date.parse(lastHeartbeatTime)).toBeGreaterThan(began - 1000);
        }
      } finally {
        await client.close();
      }
    });
    const cluster = await garden.ready(NAME);
    expect(cluster.metadata.uid).toBe(uid);
    expect(garden.all(WORKERCLUSTERS).list()).toHaveLength(1);
    expect(garden.all(SHOOTS).list()).toHaveLength(1);
    // etcd and the API server may still be coming back.
    await garden.eventually(async () => expect(await garden.inventory(NAME)).toEqual(before));
  });

  it('stands beside another garden, and goes without touching it', async () => {
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
