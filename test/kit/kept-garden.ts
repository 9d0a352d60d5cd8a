import { readFile } from 'node:fs/promises';
import { gunzipSync } from 'node:zlib';
import { inventoryManifests } from '../../operator/garden/daemon/inventory.ts';
import { applyKinds, applyObjects, localSeed } from '../../operator/garden/daemon/manifests.ts';
import { chooseRanges } from '../../operator/garden/host/ranges.ts';
import { silent } from '../../operator/kube/log.ts';
import { Registry } from '../../operator/kube/metrics.ts';
import { type Operator, startOperator } from '../../operator/operator.ts';
import { providerNamed } from '../../providers/index.ts';
import type { TestApiserver } from './apiserver.ts';
import { managedOnly } from './managed-only.ts';
import type { Made, MemoryCloud } from './memory-cloud.ts';

/** A garden as the code of one commit has left it: see test/fixtures/README.md. */
export interface KeptGarden {
  /** Whose code wrote it. */
  commit: string;
  /** RFC 3339. An operator that opens it takes this for the present time, or its certificates had run out one day. */
  takenAt: string;
  /** Address and authority of the API server that it was taken from, which managed clusters of the test have as well. */
  url: string;
  ca: string;
  /** What etcd held: objects by key. */
  stored: Record<string, { kind: string; data?: Record<string, string> }>;
  /** What was in the cloud, by account, owner and name. */
  made: Record<string, Made>;
}

export async function readKept(file: URL): Promise<KeptGarden> {
  return JSON.parse(gunzipSync(await readFile(file)).toString()) as KeptGarden;
}

/**
 * What etcd is to hold so that the garden is as it was, on another API server: kubeconfigs and records of managed clusters lead to
 * that one, whose token they bear.
 */
export function storedFor(
  { stored, url, ca }: KeptGarden,
  server: Pick<TestApiserver, 'url' | 'ca' | 'readerToken'>,
): Record<string, string> {
  const base64 = (text: string) => Buffer.from(text).toString('base64');
  const inJson = (text: string) => JSON.stringify(text).slice(1, -1);
  const moved = (text: string) =>
    text
      .replaceAll(url, server.url)
      .replaceAll(inJson(ca), inJson(server.ca))
      .replaceAll(base64(ca), base64(server.ca))
      .replace(/^( *token: ).+$/m, `$1${server.readerToken}`);
  return Object.fromEntries(
    Object.entries(stored).map(([key, object]) => {
      if (object.kind !== 'Secret') return [key, JSON.stringify(object)];
      const data = Object.entries(object.data ?? {}).map(([name, value]) => {
        const text = Buffer.from(value, 'base64').toString();
        return [name, moved(text) === text ? value : base64(moved(text))];
      });
      return [key, JSON.stringify({ ...object, data: Object.fromEntries(data) })];
    }),
  );
}

/** What `coppice up` applies whenever it brings a garden up. */
export const install = async ({ client }: TestApiserver): Promise<void> => {
  const seed = localSeed(chooseRanges('000abc', [])!, { url: 'http://10.0.0.1:5000' });
  const objects = [seed, ...(await inventoryManifests(client, false))];
  await applyKinds(client, objects);
  await applyObjects(client, objects);
};

/** An operator with clusters without control planes, and managed ones in a cloud in memory whose every cluster is the garden itself. */
export async function operate(
  server: TestApiserver,
  cloud: MemoryCloud,
  options: { name: string; directory: string; now?: () => Date; metrics?: Registry; signal: AbortSignal },
): Promise<Operator> {
  cloud.endpoint = server.url;
  cloud.certificateAuthority = server.ca;
  cloud.token = server.readerToken;
  const { name, directory, now, metrics = new Registry(), signal } = options;
  const memory = managedOnly('memory', cloud.managed(name));
  return startOperator(
    {
      garden: await server.asOperator(),
      log: silent,
      metrics,
      provider: ({ spec }) => (spec.type === 'memory' ? memory : providerNamed('simulated')),
      state: { namespace: 'kube-system', directory },
      ...(now && { now }),
    },
    signal,
  );
}
