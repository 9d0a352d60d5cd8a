import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { whyNoNodes } from '../../operator/garden/host/capabilities.ts';
import { toolsDirectory } from '../../operator/garden/toolchain/cache.ts';
import { CLUSTERS } from '../../operator/hubs/karmada/cluster.ts';
import { RESOURCEBINDINGS } from '../../operator/hubs/karmada/seen.ts';
import {
  BURSTPOLICIES,
  CLOUDPROFILES,
  DEPLOYMENTS,
  HUBS,
  NAMESPACES,
  SECRETS,
  WORKERCLUSTERS,
} from '../../operator/kube/resources.ts';
import { programs } from '../kit/hubs/programs.ts';
import { RealKarmada } from '../kit/hubs/real-karmada.ts';
import { OwnGarden } from '../kit/own-garden.ts';
import { startCoppice } from '../kit/run.ts';

/** For one story with its end. */
const STORY_MS = 8 * 60_000;

/** The demo with a Karmada at hand: real local clusters, filled by the real Karmada. */
describe.skipIf(!programs || (await whyNoNodes()) !== undefined)('coppice demo burst --karmada', () => {
  let karmada: RealKarmada;
  let garden: OwnGarden;
  let kubeconfig: string;

  beforeAll(async () => {
    karmada = await RealKarmada.start(programs!);
    garden = await OwnGarden.start(toolsDirectory());
    await garden.connect();
    kubeconfig = join(garden.home, 'karmada.config');
    await writeFile(kubeconfig, karmada.apiserver.kubeconfig);
    const { client } = karmada.apiserver;
    await client.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } });
    // Of a demo in another garden, of which nothing may be touched.
    const labels = { 'app.kubernetes.io/managed-by': 'coppice-demo', 'multi-cluster.demo.io/garden': 'another' };
    const selector = { matchLabels: { app: 'web' } };
    const template = { metadata: { labels: { app: 'web' } }, spec: { containers: [{ name: 'a', image: 'pause' }] } };
    await client.apply({
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: 'web', namespace: 'shop', labels },
      spec: { selector, template },
    });
  });
  afterAll(async () => {
    await garden?.dispose();
    await karmada?.stop();
    await karmada?.apiserver.stop();
  });

  const play = async (heard: (line: string, stop: () => void) => void): Promise<number | null> => {
    const args = ['demo', 'burst', '--karmada', kubeconfig, '--timeout', '8m'];
    const child = startCoppice(args, { home: garden.home, tools: toolsDirectory() });
    createInterface({ input: child.stdout! }).on('line', (line) => {
      console.log(line);
      heard(line, () => child.kill('SIGINT'));
    });
    createInterface({ input: child.stderr! }).on('line', (line) => console.log(line));
    const [code] = (await once(child, 'close', { signal: AbortSignal.timeout(STORY_MS * 2) })) as [number | null];
    return code;
  };

  const nothingIsLeft = async () => {
    const { client } = karmada.apiserver;
    const names = async (of: typeof client, ...kinds: (typeof CLUSTERS)[]) => {
      const lists = await Promise.all(kinds.map((kind) => of.list(kind)));
      return lists.flatMap(({ items }) => items.map(({ kind, metadata }) => `${kind ?? ''} ${metadata.name}`));
    };
    expect(await names(client, CLUSTERS, RESOURCEBINDINGS)).toEqual([]);
    const there = await names(client, NAMESPACES, SECRETS);
    expect(there.filter((name) => name.includes('burst-demo'))).toEqual([]);
    expect(await client.getOrUndefined(DEPLOYMENTS, 'web', 'shop')).toBeDefined();
    expect(await names(garden.client, WORKERCLUSTERS, BURSTPOLICIES)).toEqual([]);
    const own = await names(garden.client, NAMESPACES, SECRETS, HUBS, CLOUDPROFILES);
    expect(own.filter((name) => name.includes('burst-demo'))).toEqual([]);
  };

  it(
    'plays a peak that the real Karmada places, and leaves nothing',
    async () => {
      const lines: string[] = [];
      expect(await play((line) => lines.push(line))).toBe(0);
      const said = lines.join('\n');
      expect(said).toMatch(/demand rises: Deployment sale needs 3 replicas, and Karmada says: /);
      expect(said).toMatch(/6 replicas run on private, [\d.]+ s after they were requested; its pool is full/);
      expect(said).toMatch(/the peak: Deployment rush needs 3 replicas, and Karmada says: /);
      expect(said).toMatch(/private has one node again, and 3 replicas run on it/);
      await nothingIsLeft();
    },
    STORY_MS * 2,
  );

  it(
    'leaves nothing when it is interrupted',
    async () => {
      const code = await play((line, stop) => {
        if (/\] peak-.* is bought/.test(line)) stop();
      });
      expect(code).toBe(130);
      await nothingIsLeft();
    },
    STORY_MS * 2,
  );
});
