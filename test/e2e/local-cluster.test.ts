import { beforeAll, expect, it } from 'vitest';
import { clusterClient, coppice, deleteCluster, e2e, makeCluster, type Name, ok, untilReady } from '../kit/garden.ts';

e2e('a local cluster', () => {
  let cluster: Name;
  beforeAll(async () => {
    cluster = await makeCluster({ dataPlaneNodes: 2 });
    await untilReady(cluster);
  });
  it('is described', async () => {
    console.log(ok(await coppice(['describe', cluster.name])));
    expect(await (await clusterClient(cluster)).ready()).toBe(true);
    await deleteCluster(cluster);
  });
});
