import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { findCondition } from '../../../operator/api/conditions.ts';
import { LABELS } from '../../../operator/api/group.ts';
import { HubAudit } from '../../../operator/controllers/membership/audit.ts';
import { cleanUpMembership } from '../../../operator/controllers/membership/clean.ts';
import { MEMBERSHIP_RECEIPTS, type MembershipReceipt } from '../../../operator/controllers/membership/receipt.ts';
import type { HubType, Member } from '../../../operator/hubs/contract.ts';
import { hubType } from '../../../operator/hubs/index.ts';
import {
  CLUSTERROLEBINDINGS,
  CLUSTERROLES,
  HUBS,
  type KubeObject,
  keyOf,
  MEMBERSHIPS,
  NAMESPACES,
  type Resource,
  SECRETS,
  SERVICEACCOUNTS,
  WORKERCLUSTERS,
} from '../../../operator/kube/resources.ts';
import type { HubTestbed } from '../hubs/hub-testbed.ts';

/** An object, and how to address it. */
export type HubObject = { readonly resource: Resource; readonly object: KubeObject };

/** A type of hub, as the conformance suite needs it. */
export interface HubUnderTest {
  readonly type: string;
  open(): Promise<HubTestbed>;
  /** Kinds that it writes in the hub, beside Secrets. */
  readonly kinds: readonly Resource[];
  /** Kinds that it writes in the member, beside those of identities. */
  readonly inMember?: readonly Resource[];
  /** Part of the path of what shows the labels of shop/demo in the hub, for example `/secrets/shop--demo`. */
  readonly shows: string;
  /**
   * Most writes, on both sides and of the receipt, that a cluster costs which comes and goes: up to three tell what it waits for. Absent:
   * nobody counts.
   */
  readonly costs?: { readonly join: number; readonly leave: number };
  /** An object of somebody else's that has a name which the join of shop/demo wants. */
  readonly taken: { readonly resource: Resource; readonly object: KubeObject };
  /** What somebody else might make for this cluster, and what the hub then calls it; the first stands for it. Absent: the hub cannot tell. */
  theirs?: (cluster: { id: string; server: string; access: string }) => {
    readonly name: string;
    readonly objects: readonly HubObject[];
    /** Why it cannot be taken over, or part of that; absent: it can. */
    readonly whyNot?: string;
  };
}

const PATIENCE_MS = 120_000;
const HOUR_MS = 3_600_000;
const IN_MEMBER = [SERVICEACCOUNTS, CLUSTERROLES, CLUSTERROLEBINDINGS, SECRETS];

/** What every hub promises, told by one cluster that comes and goes. */
export function keepsMembers(hub: HubUnderTest): void {
  describe(`hub ${hub.type}`, () => {
    let testbed: HubTestbed;
    const kinds = { hub: [...hub.kinds, SECRETS], member: [...IN_MEMBER, ...(hub.inMember ?? [])] };
    beforeAll(async () => {
      testbed = await hub.open();
    });
    afterAll(() => testbed?.stop());
    beforeEach(() => testbed.makeHub());
    afterEach(async () => {
      // Also when a test has failed: the next one begins with nothing.
      await testbed.stopOperator();
      await testbed.startOperator();
      testbed.open();
      const { client } = testbed.garden;
      await client.delete(WORKERCLUSTERS, 'demo', 'shop').catch(() => {});
      await testbed.until('the cluster to have left', () => testbed.memberships.size === 0);
      await release(testbed);
      if (testbed.hubs.size > 0) {
        await testbed.until('the hub to have no members', () => !testbed.hubs.get('test')?.status?.memberships);
        await client.delete(HUBS, 'test');
        await testbed.until('the hub to be gone', () => testbed.hubs.size === 0);
      }
      await testbed.stopOperator();
      // The member was not destroyed, as a cluster that is deleted is.
      await sweep(testbed, kinds);
    });

    const joined = async () => {
      await testbed.makeCluster();
      testbed.open();
      await testbed.until('the cluster to join', () => testbed.state() === 'Joined');
    };
    const receipts = async () =>
      (await testbed.garden.client.list(SECRETS, { namespace: 'kube-system', labelSelector: MEMBERSHIP_RECEIPTS }))
        .items;
    const leave = async () => {
      await testbed.garden.client.delete(WORKERCLUSTERS, 'demo', 'shop');
      await testbed.until('the membership to be gone', () => testbed.memberships.size === 0);
    };

    it('lets a cluster join by itself, and leave without a trace before its deletion', async () => {
      await testbed.startOperator();
      await joined();
      expect(testbed.isHeld).toBe(true);
      const made = await testbed.made(kinds);
      expect(made.length).toBeGreaterThan(0);
      expect(await unsaid(testbed, kinds)).toEqual([]);
      expect(testbed.events.some((text) => text.startsWith('Membership Joined'))).toBe(true);

      const { length } = testbed.line.writes;
      await testbed.garden.client.mergePatch(WORKERCLUSTERS, 'demo', 'shop', {
        metadata: { annotations: { seen: 'now' } },
      });
      await testbed.garden.client.mergePatch(HUBS, 'test', undefined, { metadata: { annotations: { seen: 'now' } } });
      // Whatever these set off is over when a change that is acted on has come through.
      await testbed.garden.client.mergePatch(WORKERCLUSTERS, 'demo', 'shop', {
        metadata: { labels: { tier: 'gold' } },
      });
      await testbed.until('the hub to be counted', () => testbed.hubs.get('test')?.status?.joined === 1);
      const acted = ['/hubs/', hub.shows];
      const idle = testbed.line.writes.slice(length).filter((write) => !acted.some((path) => write.includes(path)));
      expect(idle).toEqual([]);

      await leave();
      expect(await receipts()).toEqual([]);
      expect(testbed.isHeld).toBe(false);
      // What is inside of the cluster goes with it.
      expect(await testbed.made({ ...kinds, member: [] })).toEqual([]);
    });

    it.runIf(hub.costs)('needs no more writes than declared for a join and a leave', async () => {
      await testbed.startOperator();
      await joined();
      const writes = () => testbed.line.writes.filter((write) => !write.includes('/hubs/'));
      expect(writes().slice(hub.costs!.join)).toEqual([]);
      await leave();
      // Both together: the watch may tell of the last write of the join before its answer is here.
      expect(writes().slice(hub.costs!.join + hub.costs!.leave)).toEqual([]);
    });

    it('deletes what it created in a cluster that stays', async () => {
      await testbed.startOperator();
      await joined();
      await testbed.makeHub('test', { clusterSelector: { matchLabels: { fleet: 'other' } } });
      await testbed.until('the membership to be gone', () => testbed.memberships.size === 0);
      expect(await testbed.made(kinds)).toEqual([]);
      expect(await receipts()).toEqual([]);
    });

    it('restores deleted objects: in the hub at once, in the cluster at the next check', async () => {
      await testbed.startOperator();
      await joined();
      await testbed.quiet();
      const before = await testbed.made(kinds);
      const { items: secrets } = await testbed.garden.client.list(SECRETS, { labelSelector: LABELS.membership });
      for (const { metadata } of secrets)
        await testbed.garden.client.delete(SECRETS, metadata.name, metadata.namespace);
      await expect.poll(() => testbed.made(kinds), { timeout: PATIENCE_MS }).toEqual(before);

      await testbed.quiet();
      const { now } = testbed;
      try {
        for (const resource of kinds.member)
          for (const { metadata } of (await testbed.member.client.list(resource, { labelSelector: LABELS.membership }))
            .items)
            await testbed.member.client.delete(resource, metadata.name, metadata.namespace);
        testbed.now = () => new Date(+now() + HOUR_MS);
        const { name, namespace } = testbed.membership()!.metadata;
        await testbed.garden.client.mergePatch(MEMBERSHIPS, name, namespace, { metadata: { labels: { look: 'now' } } });
        await expect.poll(() => testbed.made(kinds), { timeout: PATIENCE_MS }).toEqual(before);
        // A token of the account that was deleted would open nothing any more.
        await expect.poll(() => dead(testbed, receipts), { timeout: PATIENCE_MS }).toEqual([]);
      } finally {
        testbed.now = now;
      }
    });

    it('records objects before their creation, and recovers from a kill after each write', async () => {
      await testbed.makeCluster();
      let deaths = 0;
      const deathsOf: string[] = [];
      for (let after = 1; ; after++) {
        // Each operator dies with its first write that the ones before have not made.
        await testbed.startOperator(1);
        testbed.open();
        const isOver = await Promise.race([
          testbed
            .until('the cluster to join', () => testbed.state() === 'Joined')
            .then(
              () => true,
              () => true,
            ),
          died(testbed),
        ]);
        const written = await receipts();
        const made = await testbed.made(kinds);
        if (made.length > 0) {
          const places = JSON.parse(Buffer.from(written[0]!.data.record, 'base64').toString()).places as Place[];
          const noted = places.map(({ resource, namespace = '', name }) => `${resource.kind} ${namespace}/${name}`);
          expect(noted).toEqual(expect.arrayContaining(made));
        }
        const lastWrite = testbed.line.writes.at(-1) ?? '';
        await testbed.stopOperator();
        if (isOver) break;
        deaths++;
        deathsOf.push(lastWrite);
        // One that dies of the same write again and again makes it anew each time.
        if (after > 38) throw new Error(`it never ends: ${deathsOf.slice(-3).join('; ')}`);
      }
      expect(deaths).toBeGreaterThan(5);
      const made = await testbed.made(kinds);
      expect(new Set(made).size).toBe(made.length);

      await testbed.garden.client.delete(WORKERCLUSTERS, 'demo', 'shop');
      for (let after = 1; testbed.memberships.size > 0; after++) {
        await testbed.startOperator(1);
        testbed.open();
        const gone = testbed.until('the membership to be gone', () => testbed.memberships.size === 0);
        await Promise.race([gone.catch(() => {}), died(testbed)]);
        await testbed.stopOperator();
        expect(after).toBeLessThan(40);
      }
      expect(await receipts()).toEqual([]);
      expect(await testbed.made({ ...kinds, member: [] })).toEqual([]);
    });

    it('never changes foreign objects, and names those in the way', async () => {
      const { resource, object } = hub.taken;
      await testbed.startOperator();
      await testbed.garden.client.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } });
      const theirs = await testbed.garden.client.apply(object, { resource, fieldManager: 'somebody' });
      await testbed.makeCluster();
      testbed.open();
      const waiting = () => testbed.membership()?.status?.waiting ?? '';
      await testbed.until('the name to be said', () => waiting().includes('was not made for this membership'));
      expect(waiting()).toContain(object.metadata.name);
      const { name, namespace } = object.metadata;
      const live = await testbed.garden.client.get(resource, name, namespace);
      expect(live.metadata.resourceVersion).toBe(theirs.metadata.resourceVersion);

      await leave();
      expect((await testbed.garden.client.get(resource, name, namespace)).metadata.uid).toBe(theirs.metadata.uid);
      await testbed.garden.client.delete(resource, name, namespace);
    });

    const { theirs } = hub;
    /** Runs while somebody else has put the cluster into the hub. `live` is what stands for it. */
    const besideTheirs = async (
      run: (
        name: string,
        objects: readonly HubObject[],
        live: (one: HubObject) => Promise<KubeObject | undefined>,
        whyNot: string | undefined,
      ) => Promise<void>,
    ) => {
      const garden = testbed.garden.client;
      const { client, url: server, kubeconfig: access } = testbed.member;
      const id = (await client.get(NAMESPACES, 'kube-system')).metadata.uid ?? '';
      await garden.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } });
      const { name, objects, whyNot } = theirs!({ id, server, access });
      for (const { resource, object } of objects) {
        const { status, ...rest } = object;
        const how = { resource, fieldManager: 'somebody' };
        await garden.apply(rest, how);
        if (status) await garden.apply({ ...rest, status }, { ...how, subresource: 'status' });
      }
      const place = ({ metadata }: KubeObject) => [metadata.name, metadata.namespace] as const;
      try {
        const live = ({ resource, object }: HubObject) => garden.getOrUndefined(resource, ...place(object));
        await run(name, objects, live, whyNot);
      } finally {
        for (const { resource, object } of objects) await garden.delete(resource, ...place(object));
      }
    };

    it.runIf(theirs)('ignores foreign objects of a cluster that it only observes', () =>
      besideTheirs(async (name, [first], live) => {
        await testbed.makeHub('test', { adoption: 'Observe' });
        const before = await live(first!);
        await testbed.startOperator();
        await joined();
        const { status } = testbed.membership()!;
        expect(findCondition(status?.conditions, 'Observed')?.message).toContain(
          `${keyOf(first!.object)} of the hub is this cluster, and somebody else made it`,
        );
        expect(status?.memberName).toBe(name);
        await leave();
        expect(await testbed.made(kinds)).toEqual([]);
        expect(await receipts()).toEqual([]);
        const after = await live(first!);
        const kept = ({ metadata, spec }: KubeObject) => [metadata.uid, metadata.labels, metadata.generation, spec];
        expect(kept(after!)).toEqual(kept(before!));
      }),
    );

    it.runIf(theirs)('adopts foreign objects of a cluster that it owns, or reports why not', () =>
      besideTheirs(async (name, objects, live, whyNot) => {
        await testbed.makeHub('test', { adoption: 'Own' });
        const before = await live(objects[0]!);
        await testbed.startOperator();
        if (whyNot !== undefined) {
          await testbed.makeCluster();
          testbed.open();
          const waiting = () => testbed.membership()?.status?.waiting ?? '';
          await testbed.until('it to be said', () => waiting().includes(whyNot));
          expect(await testbed.made(kinds)).toEqual([]);
          return;
        }
        await joined();
        expect(testbed.membership()?.status?.memberName).toBe(name);
        const after = await live(objects[0]!);
        expect(after?.metadata.uid).toBe(before?.metadata.uid);
        expect(after?.metadata.labels?.[LABELS.membership]).toBe(testbed.membership()?.metadata.uid);
        await leave();
        for (const one of objects) expect(await live(one)).toBeUndefined();
        expect(await testbed.made({ ...kinds, member: [] })).toEqual([]);
      }),
    );

    it('creates nothing if it cannot reach the cluster, and names both ends', async () => {
      const dials = vi.spyOn(hubType(hub.type)!, 'dials').mockReturnValue('HubToMember');
      try {
        await testbed.makeHub('test', { member: { endpoint: 'https://0.0.0.0:6443' } });
        await testbed.startOperator();
        await testbed.makeCluster();
        testbed.open();
        const waiting = () => testbed.membership()?.status?.waiting ?? '';
        await testbed.until('it to be said', () =>
          waiting().includes('cannot reach cluster shop/demo at https://0.0.0.0'),
        );
        expect(waiting()).toContain('Hub test at https://');
        expect(await testbed.made(kinds)).toEqual([]);
        expect(await receipts()).toEqual([]);
        await testbed.makeHub();
        await testbed.until('the cluster to join', () => testbed.state() === 'Joined');
      } finally {
        dials.mockRestore();
      }
    });

    it('starts no drain before other members have room for the work', async () => {
      const type = hubType(hub.type)!;
      const drain = vi.fn(() => []);
      const before = { placements: undefined, drain: undefined, ...type };
      let placed = ['ResourceBinding shop/web'];
      Object.assign(type, { drains: () => 'Moves', placements: () => placed, drain });
      try {
        await testbed.startOperator();
        await testbed.makeCluster();
        testbed.open([POD]);
        await testbed.until('the cluster to join', () => testbed.state() === 'Joined');
        await testbed.garden.client.delete(WORKERCLUSTERS, 'demo', 'shop');
        const condition = () => findCondition(testbed.membership()?.status?.conditions, 'RoomElsewhere');
        await testbed.until('it to be said', () => condition()?.status === 'False');
        expect(condition()?.message).toContain('have no room for the 3 CPU that pods here request');
        expect(drain).not.toHaveBeenCalled();
        expect(testbed.isHeld).toBe(true);
        placed = [];
        await testbed.until('the membership to be gone', () => testbed.memberships.size === 0);
      } finally {
        Object.assign(type, before);
      }
    });

    it('is audited: remains of a membership are found in the hub and deleted', async () => {
      await testbed.startOperator();
      await joined();
      await testbed.quiet();
      const made = await testbed.made({ ...kinds, member: [] });
      const written = await receipts();
      await testbed.stopOperator();
      const { client } = testbed.garden;
      const audit = new HubAudit(client, 'kube-system');
      const found = async () => (await audit.look(AbortSignal.timeout(PATIENCE_MS))).leftOvers;
      try {
        expect(await found()).toEqual([]);
        // Somebody takes the finalizer off, and the receipt is lost.
        const { name, namespace } = testbed.membership()!.metadata;
        await client.delete(MEMBERSHIPS, name, namespace);
        await client.mergePatch(MEMBERSHIPS, name, namespace, { metadata: { finalizers: null } });
        await client.delete(WORKERCLUSTERS, 'demo', 'shop');
        await release(testbed);
        for (const { metadata } of written) await client.delete(SECRETS, metadata.name, metadata.namespace);
        expect(
          (await found())
            .map(({ resource, namespace: within = '', name: one }) => `${resource.kind} ${within}/${one}`)
            .sort(),
        ).toEqual(made);
        const signal = AbortSignal.timeout(PATIENCE_MS);
        const how = { told: () => {}, patienceMs: PATIENCE_MS / 2, now: () => new Date() };
        expect(await cleanUpMembership(client, await audit.look(signal), how, signal)).toEqual([]);
        expect(await testbed.made({ ...kinds, member: [] })).toEqual([]);
        expect(await found()).toEqual([]);
      } finally {
        await audit.close();
        await testbed.startOperator();
      }
    });

    it('waits for an unreachable cluster, and releases a dead one', async () => {
      await testbed.startOperator();
      await testbed.makeCluster();
      await testbed.until('the membership to be made', () => testbed.membership() !== undefined);
      expect(await testbed.made(kinds)).toEqual([]);
      const close = testbed.open();
      await testbed.until('the cluster to join', () => testbed.state() === 'Joined');
      await testbed.silence();
      close();
      await testbed.until('it to be said', () =>
        (testbed.membership()?.status?.waiting ?? '').includes('does not answer'),
      );
      expect(testbed.state()).toBe('Joined');
      await leave();
      expect(await testbed.made({ ...kinds, member: [] })).toEqual([]);
    });

    it('moves work away before a cluster sleeps, closes it, and opens it with new tokens after wake-up', async () => {
      const told: Member[] = [];
      const type = hubType(hub.type)!;
      const before = { drain: undefined, placements: undefined, ...type };
      let placed = ['ResourceBinding shop/web'];
      const drain = vi.fn(before.drain ?? (() => []));
      Object.assign(type, {
        drains: () => 'Moves',
        placements: () => placed,
        drain,
        join: (...all: Parameters<HubType['join']>) => {
          told.push(all[0]);
          return before.join(...all);
        },
      });
      const tokens = (members: readonly Member[]) =>
        members.flatMap(({ credentials }) =>
          Object.values(credentials).flatMap(({ token, expiresAt }) => (expiresAt ? [token] : [])),
        );
      try {
        await testbed.startOperator();
        await joined();
        const old = new Set(tokens(told));
        await testbed.sleep(true);
        const drained = () => findCondition(testbed.membership()?.status?.conditions, 'Drained');
        await testbed.until('work to be moved', () => drained()?.message === 'the hub moves ResourceBinding shop/web');
        expect(drain).toHaveBeenCalled();
        expect(testbed.isKeptAwake).toBe(true);
        placed = [];
        await testbed.until('the cluster to be parked', () => testbed.state() === 'Asleep');
        expect(told.at(-1)?.closed).toBe('Asleep');
        // The operator hears of what it wrote a moment later.
        await expect.poll(() => testbed.isKeptAwake, { timeout: PATIENCE_MS }).toBe(false);
        const { length } = told;
        await testbed.sleep(false);
        await testbed.until('the cluster to be back', () => testbed.state() === 'Joined');
        const open = told.slice(length).filter(({ closed }) => closed === undefined);
        expect(open.length).toBeGreaterThan(0);
        expect(tokens(open).filter((token) => old.has(token))).toEqual([]);
        expect(testbed.membership()?.status?.waiting).toBeUndefined();
      } finally {
        Object.assign(type, before);
      }
    });

    it('protects a Hub with members from deletion, unless it releases them', async () => {
      await testbed.startOperator();
      await joined();
      await testbed.until('the hub to count it', () => testbed.hubs.get('test')?.status?.memberships === 1);
      await expect(testbed.garden.client.delete(HUBS, 'test')).rejects.toThrow(/has 1 members/);
      const made = await testbed.made(kinds);
      await testbed.makeHub('test', { orphan: true });
      await testbed.garden.client.delete(HUBS, 'test');
      await testbed.until('the hub to be gone', () => testbed.hubs.size === 0);
      expect(await testbed.made(kinds)).toEqual(made);
      expect(await receipts()).toEqual([]);
    });
  });
}

/** What does not say which garden, cluster and Hub it was made for. */
async function unsaid(
  { garden, member }: HubTestbed,
  kinds: { hub: readonly Resource[]; member: readonly Resource[] },
) {
  const uid = (await garden.client.get(NAMESPACES, 'kube-system')).metadata.uid;
  const labels = {
    [LABELS.garden]: uid,
    [LABELS.hub]: 'test',
    [LABELS.memberNamespace]: 'shop',
    [LABELS.member]: 'demo',
  };
  const lists = await Promise.all([
    ...kinds.hub.map((kind) => garden.client.list(kind, { labelSelector: LABELS.membership })),
    ...kinds.member.map((kind) => member.client.list(kind, { labelSelector: LABELS.membership })),
  ]);
  return lists
    .flatMap(({ items }) => items)
    .filter(({ metadata }) => Object.entries(labels).some(([key, value]) => metadata.labels?.[key] !== value))
    .map(({ kind, metadata }) => `${kind} ${metadata.name}`);
}

/** Names of the credentials in the receipts that the cluster does not take. */
async function dead({ member }: HubTestbed, receipts: () => Promise<KubeObject[]>): Promise<string[]> {
  const names: string[] = [];
  for (const { data } of await receipts()) {
    const { credentials } = JSON.parse(
      Buffer.from((data as Record<string, string>).record ?? '', 'base64').toString(),
    ) as Pick<MembershipReceipt, 'credentials'>;
    for (const { identity, side, token } of credentials) {
      if (side === 'hub') continue;
      const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenReview', spec: { token } };
      const { status } = await member.client.request('POST', '/apis/authentication.k8s.io/v1/tokenreviews', { body });
      if (!status.authenticated) names.push(identity);
    }
  }
  return names;
}

type Place = { resource: { kind: string }; namespace?: string; name: string };

const POD = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'web', namespace: 'shop' },
  spec: { nodeName: 'one', containers: [{ name: 'web', resources: { requests: { cpu: '3' } } }] },
};

/** Resolves to false when the operator has died. */
async function died(testbed: HubTestbed): Promise<false> {
  while (!testbed.line.broken) await new Promise((resolve) => setTimeout(resolve, 10));
  return false;
}

/** What the rest of the operator does when nothing holds a cluster any more. */
const release = (testbed: HubTestbed) =>
  testbed.garden.client.mergePatch(WORKERCLUSTERS, 'demo', 'shop', { metadata: { finalizers: null } }).catch(() => {});

/** What is destroyed with a cluster, where it is not. */
export const sweepMember = (testbed: HubTestbed): Promise<void> => sweep(testbed, { hub: [], member: IN_MEMBER });

async function sweep(
  testbed: HubTestbed,
  kinds: { hub: readonly Resource[]; member: readonly Resource[] },
): Promise<void> {
  for (const [side, resources] of Object.entries(kinds) as ['hub' | 'member', readonly Resource[]][]) {
    const { client } = side === 'hub' ? testbed.garden : testbed.member;
    for (const resource of resources)
      for (const { metadata } of (await client.list(resource, { labelSelector: LABELS.membership })).items)
        await client.delete(resource, metadata.name, metadata.namespace);
  }
}
