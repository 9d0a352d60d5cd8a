import { watch } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { isTrue } from '../../operator/api/conditions.ts';
import { type ApiServerProxy, startApiServerProxy } from './cloud/api-server-proxy.ts';
import { type CloudName, type CloudResource, type FakeCloud, nodePoolsOf } from './cloud/index.ts';
import { changeCluster, deleteCluster, kubeconfigOf, makeCluster, type Name, until } from './garden.ts';

/** Names of our profiles. */
const PROFILES: Readonly<Record<CloudName, string>> = { aws: 'aws', gcp: 'gcp', 'azure-native': 'azure' };

interface ControlPlane {
  cluster: CloudResource;
  hosted: Name;
  proxy: ApiServerProxy;
  /** The pools that it has, as JSON. */
  pools: string;
}

/** What the managed services of a fake cloud are made of. */
export interface RealControlPlanes {
  /** Names of the managed clusters that have one. */
  names(): string[];
  close(): Promise<void>;
}

/**
 * Puts a real control plane behind every managed cluster of the fake cloud: a hosted cluster of the garden, with simulated
 * nodes in the number and of the types that the cloud's node groups have at any moment.
 */
export async function realControlPlanes(cloud: FakeCloud): Promise<RealControlPlanes> {
  const planes = new Map<string, ControlPlane>();
  let working: Promise<unknown> = Promise.resolve();
  const inTurn = <T>(work: () => Promise<T>): Promise<T> => {
    const next = working.then(work, work);
    working = next.catch(() => {});
    return next;
  };

  async function scale(plane: ControlPlane): Promise<void> {
    const pools = nodePoolsOf(plane.cluster, cloud.resources()).map(({ name, machineType, count }) => ({
      name,
      machineType,
      minimum: count,
      maximum: count,
    }));
    const text = JSON.stringify(pools);
    if (text === plane.pools || pools.length === 0) return;
    plane.pools = text;
    const dataPlaneNodes = pools.reduce((sum, { minimum }) => sum + minimum, 0);
    await changeCluster(plane.hosted, { pools, dataPlaneNodes });
  }
  const look = () => {
    for (const plane of planes.values()) {
      inTurn(() => scale(plane)).catch((error: Error) => {
        console.warn(`the nodes of ${plane.cluster.name}: ${error.message}`);
      });
    }
  };

  async function make(cluster: CloudResource): Promise<ApiServerProxy> {
    const hosted = await makeCluster(
      { cloudProvider: PROFILES[cluster.cloud], mode: 'Hosted' },
      { namespace: 'managed-services' },
    );
    await until(
      hosted,
      (found) => isTrue(found?.status?.conditions, 'APIServerAvailable'),
      `behind ${cluster.name} to have an API server`,
    );
    const proxy = await startApiServerProxy(await kubeconfigOf(hosted), (token) =>
      cloud.isAdministrator(cluster, token),
    );
    planes.set(cluster.name, { cluster, hosted, proxy, pools: '' });
    look();
    return proxy;
  }

  async function leave({ name }: CloudResource): Promise<void> {
    const plane = planes.get(name);
    planes.delete(name);
    if (!plane) return;
    await inTurn(() => plane.proxy.close());
    await deleteCluster(plane.hosted, { wait: false });
  }

  const hook = createServer((request, response) => {
    void (async () => {
      let text = '';
      for await (const chunk of request) text += chunk;
      const cluster = JSON.parse(text) as CloudResource;
      if (request.method === 'DELETE') await leave(cluster);
      const { endpoint, certificateAuthority } =
        request.method === 'POST' ? await make(cluster) : { endpoint: '', certificateAuthority: '' };
      response.end(JSON.stringify({ endpoint, certificateAuthority }));
    })().catch((error: Error) => response.writeHead(500).end(error.message));
  });
  await new Promise<void>((resolve) => hook.listen(0, '127.0.0.1', resolve));
  cloud.setEndpointHook(`http://127.0.0.1:${(hook.address() as AddressInfo).port}/`);
  const watcher = watch(join(cloud.dir, 'resources'), look);

  return {
    names: () => [...planes.keys()],
    async close() {
      watcher.close();
      cloud.setEndpointHook(undefined);
      hook.closeAllConnections();
      await new Promise((resolve) => hook.close(resolve));
      await working;
      await Promise.all([...planes.values()].map(({ proxy }) => proxy.close()));
    },
  };
}
