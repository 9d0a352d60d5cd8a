import { beforeEach, describe, expect, it } from 'vitest';
import { type LeftOverDependencies, reportLeftOver } from '../../../operator/controllers/managed/left-over.ts';
import type { ManagedReceipt } from '../../../operator/controllers/managed/receipt.ts';
import { clusterIn } from '../../../operator/controllers/managed/wish.ts';
import { silent } from '../../../operator/kube/log.ts';
import { OWNER_TAGS } from '../../../providers/tags.ts';
import { memoryProfile } from '../../kit/managed-garden.ts';
import { MemoryCloud } from '../../kit/memory-cloud.ts';

const NOW = new Date('2026-11-21T12:00:00Z');
const signal = new AbortController().signal;
const receipt: ManagedReceipt = {
  owner: { technicalID: 'shoot--shop--one', uid: 'u1', name: 'one', namespace: 'shop', garden: 'g1' },
  profile: 'memory',
  account: 'account-1',
  credentials: { namespace: 'shop', secret: 'cloud' },
  cluster: clusterIn('here', memoryProfile),
};

let cloud: MemoryCloud;
let events: string[];
let removed: string[];
let accessKey: string;
const deps = (): LeftOverDependencies => ({
  garden: 'g1',
  log: silent,
  now: () => NOW,
  stateBackend: async () => ({ url: 'file:///state', env: {} }),
  receipts: { get: () => receipt, save: async () => {}, remove: async (key) => void removed.push(key) },
  recordEvent: (object, _type, reason, message) => void events.push(`${object.metadata.name} ${reason}: ${message}`),
  profile: (name) => (name === 'memory' ? memoryProfile : undefined),
  clouds: () => cloud.managed(),
  credentialsIn: async (use) => ({ use, values: { accessKey }, version: '1' }),
});

beforeEach(() => {
  cloud = new MemoryCloud();
  events = [];
  removed = [];
  accessKey = 'key-1';
});

describe('the left-overs of a cluster deleted by force', () => {
  it('are reported, not removed, and searched again', async () => {
    const ctx = { account: { id: 'account-1', credentials: { accessKey } }, region: 'here', profile: memoryProfile };
    const state = { url: 'file:///state', env: {} };
    await cloud
      .managed()
      .apply({ ...ctx, state, owner: receipt.owner, log: silent, signal, now: () => NOW }, receipt.cluster);
    expect(await reportLeftOver(deps(), 'shop/one', receipt, signal)).toMatchObject({ requeueAfterMs: 6 * 3600_000 });
    expect(events).toEqual([
      'one LeftBehind: WorkerCluster shop/one was deleted by force: 2 resources are left in account account-1; "coppice sweep" lists them, "coppice sweep --yes" removes them: cluster cluster-2, network network-1',
    ]);
    expect([cloud.made.size, removed]).toEqual([2, []]);
  });

  it('are forgotten when nothing is found', async () => {
    expect(await reportLeftOver(deps(), 'shop/one', receipt, signal)).toBeUndefined();
    expect([removed, events]).toEqual([['shop/one'], []]);
  });

  it('are reported by tag where they cannot be listed', async () => {
    accessKey = 'revoked';
    expect(await reportLeftOver(deps(), 'shop/one', receipt, signal)).toBeDefined();
    expect(events[0]).toContain(`has tag ${OWNER_TAGS.uid}=u1, but cannot be shown here: the cloud does not know`);
    expect(removed).toEqual([]);
  });
});
