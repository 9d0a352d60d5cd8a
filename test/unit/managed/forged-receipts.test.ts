import { beforeEach, describe, expect, it } from 'vitest';
import type { CloudProfile } from '../../../operator/api/cloudprofile.ts';
import { LABELS } from '../../../operator/api/group.ts';
import { type WorkerCluster, workerClusterSpec } from '../../../operator/api/workercluster.ts';
import { moveEarlierReceipts } from '../../../operator/controllers/managed/earlier-receipts.ts';
import { reportLeftOver } from '../../../operator/controllers/managed/left-over.ts';
import {
  clusterOfReceipt,
  type ManagedReceipt,
  managedReceipts,
} from '../../../operator/controllers/managed/receipt.ts';
import { clusterIn } from '../../../operator/controllers/managed/wish.ts';
import { silent } from '../../../operator/kube/log.ts';
import { SECRETS, type Secret } from '../../../operator/kube/resources.ts';
import { buildWorkerCluster } from '../../kit/builders/objects.ts';
import { memoryProfile } from '../../kit/managed-garden.ts';
import { MemoryApiServer } from '../../kit/memory-api-server.ts';

const OPERATOR = 'kube-system';
const GARDEN = 'garden-uid';
const signal = new AbortController().signal;
const EVIL = 'https://evil.example.org';

const cluster = buildWorkerCluster({
  metadata: { name: 'one', namespace: 'shop', uid: 'u1' },
  spec: workerClusterSpec.parse({ cloudProvider: 'memory', credentialsRef: { name: 'cloud' } }),
});
/** What commit d22f180 wrote. */
const honest: ManagedReceipt = {
  owner: { technicalID: 'shoot--shop--one', uid: 'u1', name: 'one', namespace: 'shop', garden: GARDEN },
  profile: 'memory',
  account: 'account-1',
  credentials: { namespace: 'shop', secret: 'cloud' },
  cluster: clusterIn('here', memoryProfile),
  applied: '0123456789abcdef',
  outputs: { name: 'one', endpoint: 'https://one.example.org', certificateAuthority: 'CA', version: '1.36.3' },
  lookedAt: '2026-11-21T12:00:00Z',
};

/** A receipt where they lay once: anybody who may write Secrets of the namespace can write this. */
const beside = (content: object, name = 'one-cloud', namespace = 'shop'): Secret => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name, namespace, labels: { [LABELS.managedBy]: 'coppice', [LABELS.role]: 'cloud-record' } },
  type: 'multi-cluster.demo.io/cloud-record',
  data: { record: Buffer.from(JSON.stringify(content)).toString('base64') },
});

let garden: MemoryApiServer;
let events: string[];
let clusters: Map<string, WorkerCluster>;

beforeEach(() => {
  garden = new MemoryApiServer();
  events = [];
  clusters = new Map([['shop/one', cluster]]);
});

/** The operator starts. @returns what it believes of shop/one */
async function start(): Promise<ManagedReceipt | undefined> {
  const receipts = managedReceipts(garden, OPERATOR);
  await moveEarlierReceipts(
    {
      client: garden,
      garden: GARDEN,
      namespace: OPERATOR,
      log: silent,
      receipts: {
        get: () => undefined,
        save: (receipt, before) => receipts.save(clusterOfReceipt(receipt), receipt, before),
        remove: async () => {},
      },
      recordEvent: (object, _type, reason, message) =>
        void events.push(`${object.metadata.name} ${reason}: ${message}`),
      cluster: (key) => clusters.get(key),
      profile: (name): CloudProfile | undefined => (name === 'memory' ? memoryProfile : undefined),
    },
    signal,
  );
  return receipts.read('shop/one');
}

describe('a receipt that an earlier operator left in the namespace of its cluster', () => {
  it("moves to the operator's namespace, and its endpoint must be confirmed by the cloud", async () => {
    garden.put(beside(honest));
    expect(await start()).toEqual({ ...honest, unconfirmed: true });
    expect(garden.find(SECRETS, 'one-cloud', 'shop')).toBeUndefined();
    expect(events).toEqual([]);
  });

  it('of a deleted cluster moves too, and its left-overs are still searched', async () => {
    clusters.clear();
    garden.put(beside(honest));
    expect(await start()).toMatchObject({ owner: honest.owner, credentials: honest.credentials });
  });

  it.each<[string, object, string]>([
    ['is of another cluster', { ...honest, owner: { ...honest.owner, uid: 'u2' } }, 'another cluster than the present'],
    [
      "names another tenant's credentials",
      { ...honest, credentials: { namespace: 'bank', identity: 'deployer' } },
      'credentials of namespace bank',
    ],
    [
      'names a host for a region',
      { ...honest, cluster: { ...honest.cluster, region: 'x.evil.example.org/#' } },
      'has no region',
    ],
    ['names a profile that the cluster does not', { ...honest, profile: 'elsewhere' }, 'no CloudProfile elsewhere'],
    ['is of no such form', { ...honest, cluster: 7 }, 'not of the form'],
  ])('that %s is reported, and neither believed nor deleted', async (_, forged, why) => {
    garden.put(beside(forged));
    expect(await start()).toBeUndefined();
    expect(garden.writes).toEqual([]);
    expect(events).toEqual([expect.stringMatching(new RegExp(`^one-cloud ReceiptRejected: .*${why}`))]);
  });

  it("belongs to its location's cluster: another name in it has no effect", async () => {
    const owner = { technicalID: 'shoot--bank--vault', uid: 'u1', name: 'vault', namespace: 'bank', garden: 'other' };
    garden.put(beside({ ...honest, owner }));
    expect((await start())?.owner).toEqual(honest.owner);
  });

  it('adopts no cluster that the spec does not name', async () => {
    const adopt = { id: 'prod', deletionPolicy: 'Delete' };
    garden.put(beside({ ...honest, cluster: { ...honest.cluster, adopt } }));
    expect((await start())?.cluster.adopt).toBeUndefined();
  });

  it('is ignored when it appears later, or has only the name', async () => {
    garden.put({ ...beside(honest), type: 'Opaque' });
    expect(await start()).toBeUndefined();
    expect(garden.writes).toEqual([]);
  });
});

describe('a receipt of a cluster deleted by force', () => {
  it('leads only to credentials of its namespace and to regions, whatever is written in it', async () => {
    const shown: unknown[] = [];
    const deps = {
      garden: GARDEN,
      log: silent,
      now: () => new Date(0),
      stateBackend: async () => ({ url: 'file:///state', env: {} }),
      receipts: { get: () => undefined, save: async () => {}, remove: async () => {} },
      recordEvent: (_: object, _type: string, _reason: string, message: string) => void events.push(message),
      profile: () => memoryProfile,
      clouds: () => ({ tagged: async (ctx: unknown) => void shown.push(ctx) }) as never,
      credentialsIn: async (use: { namespace: string }) => {
        shown.push(use.namespace);
        return { use: honest.credentials, values: { token: 'secret' }, version: '1' };
      },
    };
    const forged = {
      ...honest,
      credentials: { namespace: 'bank', identity: 'deployer' },
      cluster: { ...honest.cluster, region: `${EVIL}/#` },
    } as ManagedReceipt;
    await reportLeftOver(deps, 'shop/one', forged, signal);
    expect(shown).toEqual(['shop']);
    expect(events[0]).toContain("would become part of a host's name");
  });
});
