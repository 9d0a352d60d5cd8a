import { beforeAll, expect, it } from 'vitest';
import type { KubeClient } from '../../operator/kube/client.ts';
import { NODES, type Node } from '../../operator/kube/resources.ts';
import { changeCluster, clusterClient, e2e, makeCluster, type Name, untilReady } from '../kit/garden.ts';
import { hasTimeForAll, OLDER_KUBERNETES } from '../kit/lanes.ts';
import { rotates } from '../kit/rotation.ts';
import { areMade } from '../kit/tools.ts';
import { run, untilPods } from '../kit/workload.ts';
import { Writer } from '../kit/writer.ts';

const OLD = '1.35.4';
const NEW = '1.36.3';
/** Where nobody has asked for it before, all of the older version is made first. */
const MAKE_MS = 25 * 60_000;
/** What a single API server may be away for. */
const LONGEST_PAUSE_MS = 5_000;

interface Upgraded {
  readonly cluster: Name;
  readonly client: KubeClient;
  readonly writer: Writer;
}

const isThere = hasTimeForAll() || (await areMade(OLDER_KUBERNETES));
const why = isThere ? '' : ` [Kubernetes ${OLD} is not made on this machine: npm run test:all makes it]`;

rotates(isThere ? e2e : e2e.skip, { of: 3, turns: [1] })(`an upgrade of Kubernetes${why}`, () => {
  let single: Upgraded;
  let threefold: Upgraded;

  const begin = (spec: Parameters<typeof makeCluster>[0]) => makeCluster({ kubernetes: { version: OLD }, ...spec });
  const whenReady = async (cluster: Name): Promise<Upgraded> => {
    const { status } = await untilReady(cluster, MAKE_MS);
    expect(status?.kubernetesVersion).toBe(OLD);
    const client = await clusterClient(cluster);
    expect((await client.serverVersion()).gitVersion).toBe(`v${OLD}`);
    const writer = new Writer(client);
    writer.start();
    return { cluster, client, writer };
  };
  const upgrade = async ({ cluster, client, writer }: Upgraded) => {
    await changeCluster(cluster, { kubernetes: { version: NEW } });
    const { status } = await untilReady(cluster);
    await writer.stop();
    const { acknowledged, refused, refusals, longestPauseMs } = writer;
    const pause = `${Math.round(longestPauseMs)} ms between two at most`;
    console.log(`${acknowledged.length} writes confirmed, ${refused} not, ${pause}`, ...refusals);
    expect(status?.kubernetesVersion).toBe(NEW);
    expect((await client.serverVersion()).gitVersion).toBe(`v${NEW}`);
    expect(await writer.lost()).toEqual([]);
  };
  const kubeletOf = ({ status }: Node) => status?.nodeInfo?.kubeletVersion;
  const kubelets = async ({ client }: Upgraded) => (await client.list<Node>(NODES)).items.map(kubeletOf);

  beforeAll(async () => {
    const clusters = await Promise.all([begin({ dataPlaneNodes: 1 }), begin({ controlPlaneNodes: 3 })]);
    single = await whenReady(clusters[0]);
    threefold = await whenReady(clusters[1]);
    return () => Promise.all([single, threefold].map(({ writer }) => writer.stop()));
  }, MAKE_MS);

  it('takes a single API server away for less than 5 s, and replaces nodes after it, with what runs on them', async () => {
    await run(single.client, { name: 'web' });
    expect(await kubelets(single)).toEqual([`v${OLD}`]);
    await upgrade(single);
    expect(single.writer.longestPauseMs).toBeLessThan(LONGEST_PAUSE_MS);
    expect(await kubelets(single)).toEqual([`v${NEW}`]);
    await untilPods(single.client, 'web', ({ length }) => length === 1, 'to be Ready again');
  });

  it('has one of three API servers answer all the time', async () => {
    await upgrade(threefold);
    // A request that is on its way to a server that ends may be lost; the next one, 10 ms later, is not.
    expect(threefold.writer.mostRefusedInARow).toBeLessThan(2);
  });
});
