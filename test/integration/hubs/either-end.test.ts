import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { findCondition } from '../../../operator/api/conditions.ts';
import { LABELS } from '../../../operator/api/group.ts';
import { CLUSTER_INVENTORY } from '../../../operator/garden/daemon/inventory.ts';
import { CLUSTERPROFILES } from '../../../operator/hubs/cluster-profile.ts';
import { hubType } from '../../../operator/hubs/index.ts';
import { KubeApiError, KubeUnreachableError } from '../../../operator/kube/errors.ts';
import { SECRETS, SERVICEACCOUNTS, WORKERCLUSTERS } from '../../../operator/kube/resources.ts';
import { sweepMember } from '../../kit/conformance/hubs.ts';
import { HubTestbed } from '../../kit/hubs/hub-testbed.ts';

const MANY = 8;
const HOUR_MS = 3_600_000;
const PATIENCE = { timeout: 120_000 };
const OTHER = { clusterSelector: { matchLabels: { fleet: 'other' } } };

describe('a hub and its members', () => {
  let testbed: HubTestbed;
  beforeAll(async () => {
    testbed = await HubTestbed.start({ type: 'ClusterProfile' }, [CLUSTER_INVENTORY]);
  });
  afterAll(() => testbed?.stop());
  beforeEach(async () => {
    testbed.now = () => new Date();
    await testbed.startOperator();
    await testbed.makeHub();
  });
  afterEach(async () => {
    vi.restoreAllMocks();
    await remove();
    await testbed.stopOperator();
  });
  /** All clusters. */
  const remove = async () => {
    const { client } = testbed.garden;
    for (const { metadata } of (await client.list(WORKERCLUSTERS, { namespace: 'shop' })).items) {
      await client.mergePatch(WORKERCLUSTERS, metadata.name, 'shop', { metadata: { finalizers: null } });
      await client.delete(WORKERCLUSTERS, metadata.name, 'shop');
    }
    await testbed.until('all to have left', () => testbed.memberships.size === 0);
  };

  it('are validated at intervals for any number of clusters, and at once after a change of the Hub', async () => {
    const isReady = () => testbed.hubs.get('test')?.status?.conditions?.find(({ type }) => type === 'Ready')?.status;
    await testbed.until('the hub to be usable', () => isReady() === 'True');
    const validate = vi.spyOn(hubType('ClusterProfile')!, 'validate');
    const at = new Date();
    testbed.now = () => at;
    const names = Array.from({ length: MANY }, (_, at) => `c${at}`);
    for (const [index, name] of names.entries()) {
      await testbed.makeCluster({}, name);
      // Each of them has the Hub looked at anew.
      await testbed.until(`${name} to be a member`, () => testbed.memberships.size === index + 1);
    }
    await testbed.makeHub('test', { maxConcurrentLeaves: MANY });
    await expect.poll(() => validate.mock.calls.length).toBe(1);
    testbed.now = () => new Date(+at + 11_000);
    await testbed.makeCluster({}, 'last');
    await expect.poll(() => validate.mock.calls.length).toBe(2);
    await remove();
    expect(validate).toHaveBeenCalledTimes(2);
  });

  it('separate by force when the cluster is unreachable, with an Event, and nothing stays in the hub', async () => {
    const { garden, member } = testbed;
    await testbed.makeCluster();
    testbed.open();
    await testbed.until('the cluster to join', () => testbed.state() === 'Joined');
    // Nobody has noticed yet: it counts as one that answers.
    await member.kill();
    try {
      await testbed.makeHub('test', { ...OTHER, drain: { timeout: '1s', force: true } });
      await testbed.until('the cluster to have left', () => testbed.memberships.size === 0);
    } finally {
      await member.start();
      await sweepMember(testbed);
    }
    expect(await garden.client.getOrUndefined(CLUSTERPROFILES, 'shop--demo', 'shop')).toBeUndefined();
    const forced = testbed.events.filter((text) => text.startsWith('Membership Forced'));
    expect(forced).toEqual(['Membership Forced: cluster shop/demo does not answer: objects of Hub test remain in it']);
  });

  it('separate without force when the unreachable cluster was deleted', async () => {
    const { garden, member } = testbed;
    const before = testbed.events.length;
    await testbed.makeHub();
    await testbed.makeCluster();
    let isAnswering = true;
    const reason = () => findCondition(testbed.membership()?.status?.conditions, 'Ready')?.reason;
    testbed.open([], 'demo', 'demo', () => isAnswering);
    await testbed.until('the cluster to join', () => testbed.state() === 'Joined');
    await member.kill();
    try {
      // Its conditions say no more of its API server by then: all that knows is the line.
      await garden.client.delete(WORKERCLUSTERS, 'demo', 'shop');
      await testbed.until('the leave to fail', () => reason() === 'CannotGoOn');
      isAnswering = false;
      await testbed.until('the cluster to have left', () => testbed.memberships.size === 0);
    } finally {
      await member.start();
      await sweepMember(testbed);
    }
    expect(await garden.client.getOrUndefined(CLUSTERPROFILES, 'shop--demo', 'shop')).toBeUndefined();
    expect(testbed.events.slice(before).filter((text) => text.startsWith('Membership Forced'))).toEqual([]);
  });

  /** What a leave by force has left in the hub. */
  const sweepHub = async () => {
    const { client } = testbed.garden;
    for (const resource of [CLUSTERPROFILES, SECRETS])
      for (const { metadata } of (await client.list(resource, { labelSelector: LABELS.membership })).items)
        await client.delete(resource, metadata.name, metadata.namespace);
    await sweepMember(testbed);
  };

  it('separate by force when the hub is unreachable, with an Event', async () => {
    const { client } = testbed.garden;
    const before = testbed.events.length;
    await testbed.makeCluster();
    testbed.open();
    await testbed.until('the cluster to join', () => testbed.state() === 'Joined');
    const away = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' });
    vi.spyOn(hubType('ClusterProfile')!, 'observe').mockRejectedValue(new KubeUnreachableError('GET /', away));
    await testbed.makeHub('test', { ...OTHER, drain: { timeout: '1s', force: true } });
    await testbed.until('the cluster to have left', () => testbed.memberships.size === 0);
    expect(await client.getOrUndefined(CLUSTERPROFILES, 'shop--demo', 'shop')).toBeDefined();
    const forced = testbed.events.slice(before).filter((text) => text.startsWith('Membership Forced'));
    expect(forced).toEqual([
      'Membership Forced: Hub test does not answer: objects of the cluster remain in it under the name shop--demo',
    ]);
  });

  it('separate completely even by force after concurrent writes', async () => {
    const { client } = testbed.garden;
    const before = testbed.events.length;
    await sweepHub();
    await testbed.makeCluster();
    testbed.open();
    await testbed.until('the cluster to join', () => testbed.state() === 'Joined');
    // The time of the drain is over from the first look on.
    testbed.now = () => new Date(Date.now() + HOUR_MS);
    const inBetween = new KubeApiError('PATCH /', 409, { reason: 'Conflict', message: 'the object has been modified' });
    const type = hubType('ClusterProfile')!;
    const observe = type.observe.bind(type);
    let refused = 0;
    vi.spyOn(type, 'observe').mockImplementation(async (...all) => {
      if (all[2].closed === 'Leaving' && refused++ === 0) throw inBetween;
      return observe(...all);
    });
    await testbed.makeHub('test', { ...OTHER, drain: { timeout: '1s', force: true } });
    await testbed.until('the cluster to have left', () => testbed.memberships.size === 0);
    expect(refused).toBeGreaterThan(1);
    expect(await client.getOrUndefined(CLUSTERPROFILES, 'shop--demo', 'shop')).toBeUndefined();
    expect(await testbed.made({ hub: [], member: [SERVICEACCOUNTS] })).toEqual([]);
    expect(testbed.events.slice(before).filter((text) => text.startsWith('Membership Forced'))).toEqual([]);
  });

  it('ignore a deletion in the hub until it is complete, and then restore the object', async () => {
    const { client } = testbed.garden;
    await sweepHub();
    await testbed.makeCluster();
    testbed.open();
    await testbed.until('the cluster to join', () => testbed.state() === 'Joined');
    const place = [CLUSTERPROFILES, 'shop--demo', 'shop'] as const;
    const finalizers = (wanted: string[] | null) => client.mergePatch(...place, { metadata: { finalizers: wanted } });
    const { uid } = (await finalizers([`${LABELS.membership}-test`])).metadata;
    await testbed.quiet();
    const { length } = testbed.line.writes;
    await client.delete(...place);
    await testbed.quiet();
    expect(testbed.line.writes.slice(length)).toEqual([]);
    await finalizers(null);
    await expect.poll(async () => (await client.getOrUndefined(...place))?.metadata.uid ?? uid, PATIENCE).not.toBe(uid);
  });
});
