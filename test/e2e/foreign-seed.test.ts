import { rm } from 'node:fs/promises';
import { beforeAll, expect, inject, it } from 'vitest';
import { API_VERSION } from '../../operator/api/group.ts';
import { StateDirectory } from '../../operator/garden/state/state.ts';
import { KubeClient } from '../../operator/kube/client.ts';
import { NAMESPACES, NODES, type Node, SEEDS } from '../../operator/kube/resources.ts';
import {
  coppice,
  e2e,
  garden,
  gardenClient,
  makeCluster,
  ok,
  PATIENCE_MS,
  uniqueName,
  untilReady,
} from '../kit/garden.ts';
import { makeHome } from '../kit/home.ts';
import { leftOvers } from '../kit/left-overs.ts';
import { runCoppice } from '../kit/run.ts';

e2e('a garden whose seed is another cluster', () => {
  const name = uniqueName('far');
  let home: string;
  let client: KubeClient;
  const there = async (...args: string[]) =>
    ok(await runCoppice(args, { home, tools: inject('tools'), timeoutMs: 300_000 }));
  const apply = (spec: object, cluster = name) =>
    client.apply({
      apiVersion: API_VERSION,
      kind: 'WorkerCluster',
      metadata: { name: cluster, namespace: 'default' },
      spec: { cloudProvider: 'local', ...spec },
    });
  const connect = async () => KubeClient.fromKubeconfig(await there('kubeconfig', name, '--secret'));

  beforeAll(async () => {
    home = await makeHome();
    await there('up', '--detach', '--seed-kubeconfig', garden.kubeconfig);
    client = KubeClient.fromKubeconfig(await there('kubeconfig', '--garden', '--expires-in', '2h'));
    // This machine has no registry for kindest/node: machines of the seed's own kind, with its mirror of images.
    const { spec } = await gardenClient().get(SEEDS, 'local');
    await client.mergePatch(SEEDS, 'local', undefined, {
      spec: { machineImage: null, provider: { providerConfig: spec.provider.providerConfig } },
    });
    return async () => {
      await client.close();
      await there('down');
      expect(await leftOvers(new StateDirectory(home))).toEqual([]);
      await rm(home, { recursive: true, force: true });
    };
  });

  it('has clusters that are reached at a port of its nodes, if its Services are not reachable', async () => {
    await apply({ controlPlaneNodes: 1, dataPlaneNodes: 1 });
    await there('wait', name, '--timeout', '240s');
    const [node] = (await gardenClient().list<Node>(NODES)).items;
    const address = node!.status!.addresses!.find(({ type }) => type === 'InternalIP')!.address;
    expect(await there('kubeconfig', name)).toMatch(new RegExp(`server: https://${address}:3\\d{4}\\b`));
    const cluster = await connect();
    const nodes = await cluster.list<Node>(NODES);
    expect(nodes.items).toHaveLength(1);
    await cluster.close();
  });

  it('adds etcd members through the API server of the seed', async () => {
    await apply({ controlPlaneNodes: 3, dataPlaneNodes: 0 });
    await there('wait', name, '--timeout', '280s');
    const cluster = await connect();
    await expect.poll(() => cluster.ready(), { timeout: PATIENCE_MS }).toBe(true);
    await cluster.close();
  });

  it('keeps a cluster of the same name that belongs to the other garden', async () => {
    const same = await makeCluster({ dataPlaneNodes: 0 }, { name: uniqueName('same'), namespace: 'default' });
    const before = await untilReady(same);
    const kubeconfig = ok(await coppice(['kubeconfig', same.name, '--secret']));
    await apply({ controlPlaneNodes: 1, dataPlaneNodes: 0 }, same.name);
    const { metadata } = await gardenClient().get(NAMESPACES, 'kube-system');
    const refusal = () => there('get', 'workercluster', same.name, '-o', 'json');
    await expect.poll(refusal, { timeout: 60_000 }).toContain(`belongs to the garden ${metadata.uid}`);
    await there('delete', same.name, '--wait');
    expect(ok(await coppice(['kubeconfig', same.name, '--secret']))).toBe(kubeconfig);
    const owner = KubeClient.fromKubeconfig(kubeconfig);
    await expect.poll(() => owner.ready(), { timeout: PATIENCE_MS }).toBe(true);
    await owner.close();
    expect((await untilReady(same)).metadata.uid).toBe(before.metadata.uid);
  });

  it('deletes its clusters from the seed', async () => {
    await there('delete', name, '--wait');
    // Empty by now; Kubernetes takes some seconds to notice that.
    const left = () => gardenClient().getOrUndefined(NAMESPACES, `shoot--default--${name}`);
    await expect.poll(left, { timeout: PATIENCE_MS }).toBeUndefined();
  });
});
