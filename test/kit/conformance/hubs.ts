import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { findCondition } from '../../../operator/api/conditions.ts';
import { LABELS } from '../../../operator/api/group.ts';
import { HubAudit } from '../../../operator/controllers/membership/audit.ts';
import { cleanUp } from '../../../operator/controllers/membership/clean.ts';
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
import type { HubScene } from '../hubs/hub-scene.ts';
import { rotates } from '../rotation.ts';

/** An object, and how to address it. */
export type HubObject = { readonly resource: Resource; readonly object: KubeObject };

/** A type of hub, as the conformance suite needs it. */
export interface HubUnderTest {
  readonly type: string;
  /** In which runs its tests have a turn; absent: in each. */
  readonly turn?: Parameters<typeof rotates>[1];
  open(): Promise<HubScene>;
  /** Kinds that it writes in the hub, beside Secrets. */
  readonly kinds: readonly Resource[];
  /** Kinds that it writes in the member, beside those of identities. */
  readonly inMember?: readonly Resource[];
  /** Part of the path of what shows the labels of shop/demo in the hub, for example `/secrets/shop--demo`. */
  readonly shows: string;
  /** Most writes, on both sides and of the receipt, that a cluster costs which comes and goes: up to three tell what it waits for. Absent: nobody counts. */
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
  const declare = hub.turn ? rotates(describe, hub.turn) : describe;
  declare(`hub ${hub.type}`, () => {
    let scene: HubScene;
    const kinds = { hub: [...hub.kinds, SECRETS], member: [...IN_MEMBER, ...(hub.inMember ?? [])] };
    beforeAll(async () => {
      scene = await hub.open();
    });
    afterAll(() => scene?.stop());
    beforeEach(() => scene.makeHub());
    afterEach(async () => {
      // Also when a test has failed: the next one begins with nothing.
      await scene.stopOperator();
      await scene.startOperator();
      scene.open();
      const { client } = scene.garden;
      await client.delete(WORKERCLUSTERS, 'demo', 'shop').catch(() => {});
      await scene.until('the cluster to have left', () => scene.memberships.size === 0);
      await release(scene);
      if (scene.hubs.size > 0) {
        await scene.until('the hub to have no members', () => !scene.hubs.get('test')?.status?.memberships);
        await client.delete(HUBS, 'test');
        await scene.until('the hub to be gone', () => scene.hubs.size === 0);
      }
      await scene.stopOperator();
      // The member was not destroyed, as a cluster that is deleted is.
      await sweep(scene, kinds);
    });

    const joined = async () => {
      await scene.makeCluster();
      scene.open();
      await scene.until('the cluster to join', () => scene.state() === 'Joined');
    };
    const receipts = async () =>
      (await scene.garden.client.list(SECRETS, { namespace: 'kube-system', labelSelector: MEMBERSHIP_RECEIPTS })).items;
    const leave = async () => {
      await scene.garden.client.delete(WORKERCLUSTERS, 'demo', 'shop');
      await scene.until('the membership to be gone', () => scene.memberships.size === 0);
    };

    it('has a cluster join by itself, and leave without a trace before it is taken apart', async () => {
      await scene.startOperator();
      await joined();
      expect(scene.isHeld).toBe(true);
      const made = await scene.made(kinds);
      expect(made.length).toBeGreaterThan(0);
      expect(await unsaid(scene, kinds)).toEqual([]);
      expect(scene.events.some((text) => text.startsWith('Membership Joined'))).toBe(true);

      const { length } = scene.line.writes;
      await scene.garden.client.mergePatch(WORKERCLUSTERS, 'demo', 'shop', {
        metadata: { annotations: { seen: 'now' } },
      });
      await scene.garden.client.mergePatch(HUBS, 'test', undefined, { metadata: { annotations: { seen: 'now' } } });
      // Whatever these set off is over when a change that is acted on has come through.
      await scene.garden.client.mergePatch(WORKERCLUSTERS, 'demo', 'shop', { metadata: { labels: { tier: 'gold' } } });
      await scene.until('the hub to be counted', () => scene.hubs.get('test')?.status?.joined === 1);
      const acted = ['/hubs/', hub.shows];
      const idle = scene.line.writes.slice(length).filter((write) => !acted.some((path) => write.includes(path)));
      expect(idle).toEqual([]);

      await leave();
      expect(await receipts()).toEqual([]);
      expect(scene.isHeld).toBe(false);
      // What is inside of the cluster goes with it.
      expect(await scene.made({ ...kinds, member: [] })).toEqual([]);
    });

    it.runIf(hub.costs)('costs no more writes than it says, to come and to go', async () => {
      await scene.startOperator();
      await joined();
      const writes = () => scene.line.writes.filter((write) => !write.includes('/hubs/'));
      expect(writes().slice(hub.costs!.join)).toEqual([]);
      await leave();
      // Both together: the watch may tell of the last write of the join before its answer is here.
      expect(writes().slice(hub.costs!.join + hub.costs!.leave)).toEqual([]);
    });

    it('takes away what it made in a cluster that stays', async () => {
      await scene.startOperator();
      await joined();
      await scene.makeHub('test', { clusterSelector: { matchLabels: { fleet: 'other' } } });
      await scene.until('the membership to be gone', () => scene.memberships.size === 0);
      expect(await scene.made(kinds)).toEqual([]);
      expect(await receipts()).toEqual([]);
    });

    it('puts back what somebody deleted: in the hub at once, in the cluster when it is looked through', async () => {
      await scene.startOperator();
      await joined();
      await scene.quiet();
      const before = await scene.made(kinds);
      const { items: secrets } = await scene.garden.client.list(SECRETS, { labelSelector: LABELS.membership });
      for (const { metadata } of secrets) await scene.garden.client.delete(SECRETS, metadata.name, metadata.namespace);
      await expect.poll(() => scene.made(kinds), { timeout: PATIENCE_MS }).toEqual(before);

      await scene.quiet();
      const { now } = scene;
      try {
        for (const resource of kinds.member)
          for (const { metadata } of (await scene.member.client.list(resource, { labelSelector: LABELS.membership }))
            .items)
            await scene.member.client.delete(resource, metadata.name, metadata.namespace);
        scene.now = () => new Date(+now() + HOUR_MS);
        const { name, namespace } = scene.membership()!.metadata;
        await scene.garden.client.mergePatch(MEMBERSHIPS, name, namespace, { metadata: { labels: { look: 'now' } } });
        await expect.poll(() => scene.made(kinds), { timeout: PATIENCE_MS }).toEqual(before);
        // A token of the account that was deleted would open nothing any more.
        await expect.poll(() => dead(scene, receipts), { timeout: PATIENCE_MS }).toEqual([]);
      } finally {
        scene.now = now;
      }
    });

    it('writes down what it makes before it makes anything, and finds its way from every write that it dies after', async () => {
      await scene.makeCluster();
      let deaths = 0;
      const deathsOf: string[] = [];
      for (let after = 1; ; after++) {
        // Each operator dies with its first write that the ones before have not made.
        await scene.startOperator(1);
        scene.open();
        const isOver = await Promise.race([
          scene
            .until('the cluster to join', () => scene.state() === 'Joined')
            .then(
              () => true,
              () => true,
            ),
          died(scene),
        ]);
        const written = await receipts();
        const made = await scene.made(kinds);
        if (made.length > 0) {
          const places = JSON.parse(Buffer.from(written[0]!.data.record, 'base64').toString()).places as Place[];
          const noted = places.map(({ resource, namespace = '', name }) => `${resource.kind} ${namespace}/${name}`);
          expect(noted).toEqual(expect.arrayContaining(made));
        }
        const lastWrite = scene.line.writes.at(-1) ?? '';
        await scene.stopOperator();
        if (isOver) break;
        deaths++;
        deathsOf.push(lastWrite);
        // One that dies of the same write again and again makes it anew each time.
        if (after > 38) throw new Error(`it never ends: ${deathsOf.slice(-3).join('; ')}`);
      }
      expect(deaths).toBeGreaterThan(5);
      const made = await scene.made(kinds);
      expect(new Set(made).size).toBe(made.length);

      await scene.garden.client.delete(WORKERCLUSTERS, 'demo', 'shop');
      for (let after = 1; scene.memberships.size > 0; after++) {
        await scene.startOperator(1);
        scene.open();
        const gone = scene.until('the membership to be gone', () => scene.memberships.size === 0);
        await Promise.race([gone.catch(() => {}), died(scene)]);
        await scene.stopOperator();
        expect(after).toBeLessThan(40);
      }
      expect(await receipts()).toEqual([]);
      expect(await scene.made({ ...kinds, member: [] })).toEqual([]);
    });

    it('does not touch what others made, and says whose name is in the way', async () => {
      const { resource, object } = hub.taken;
      await scene.startOperator();
      await scene.garden.client.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } });
      const theirs = await scene.garden.client.apply(object, { resource, fieldManager: 'somebody' });
      await scene.makeCluster();
      scene.open();
      const waiting = () => scene.membership()?.status?.waiting ?? '';
      await scene.until('the name to be said', () => waiting().includes('was not made for this membership'));
      expect(waiting()).toContain(object.metadata.name);
      const { name, namespace } = object.metadata;
      const live = await scene.garden.client.get(resource, name, namespace);
      expect(live.metadata.resourceVersion).toBe(theirs.metadata.resourceVersion);

      await leave();
      expect((await scene.garden.client.get(resource, name, namespace)).metadata.uid).toBe(theirs.metadata.uid);
      await scene.garden.client.delete(resource, name, namespace);
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
      const garden = scene.garden.client;
      const { client, url: server, kubeconfig: access } = scene.member;
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

    it.runIf(theirs)('leaves alone what somebody else made for the cluster, where it is to observe it', () =>
      besideTheirs(async (name, [first], live) => {
        await scene.makeHub('test', { adoption: 'Observe' });
        const before = await live(first!);
        await scene.startOperator();
        await joined();
        const { status } = scene.membership()!;
        expect(findCondition(status?.conditions, 'Observed')?.message).toContain(
          `${keyOf(first!.object)} of the hub is this cluster, and somebody else made it`,
        );
        expect(status?.memberName).toBe(name);
        await leave();
        expect(await scene.made(kinds)).toEqual([]);
        expect(await receipts()).toEqual([]);
        const after = await live(first!);
        const kept = ({ metadata, spec }: KubeObject) => [metadata.uid, metadata.labels, metadata.generation, spec];
        expect(kept(after!)).toEqual(kept(before!));
      }),
    );

    it.runIf(theirs)('takes over what somebody else made for the cluster, where it is to own it, or says why not', () =>
      besideTheirs(async (name, objects, live, whyNot) => {
        await scene.makeHub('test', { adoption: 'Own' });
        const before = await live(objects[0]!);
        await scene.startOperator();
        if (whyNot !== undefined) {
          await scene.makeCluster();
          scene.open();
          const waiting = () => scene.membership()?.status?.waiting ?? '';
          await scene.until('it to be said', () => waiting().includes(whyNot));
          expect(await scene.made(kinds)).toEqual([]);
          return;
        }
        await joined();
        expect(scene.membership()?.status?.memberName).toBe(name);
        const after = await live(objects[0]!);
        expect(after?.metadata.uid).toBe(before?.metadata.uid);
        expect(after?.metadata.labels?.[LABELS.membership]).toBe(scene.membership()?.metadata.uid);
        await leave();
        for (const one of objects) expect(await live(one)).toBeUndefined();
        expect(await scene.made({ ...kinds, member: [] })).toEqual([]);
      }),
    );

    it('makes nothing where the hub cannot reach the cluster, and names both ends', async () => {
      const dials = vi.spyOn(hubType(hub.type)!, 'dials').mockReturnValue('HubToMember');
      try {
        await scene.makeHub('test', { member: { endpoint: 'https://0.0.0.0:6443' } });
        await scene.startOperator();
        await scene.makeCluster();
        scene.open();
        const waiting = () => scene.membership()?.status?.waiting ?? '';
        await scene.until('it to be said', () =>
          waiting().includes('cannot reach cluster shop/demo at https://0.0.0.0'),
        );
        expect(waiting()).toContain('Hub test at https://');
        expect(await scene.made(kinds)).toEqual([]);
        expect(await receipts()).toEqual([]);
        await scene.makeHub();
        await scene.until('the cluster to join', () => scene.state() === 'Joined');
      } finally {
        dials.mockRestore();
      }
    });

    it('does not begin to drain before the other members have room for the work', async () => {
      const type = hubType(hub.type)!;
      const drain = vi.fn(() => []);
      const before = { placements: undefined, drain: undefined, ...type };
      let placed = ['ResourceBinding shop/web'];
      Object.assign(type, { drains: () => 'Moves', placements: () => placed, drain });
      try {
        await scene.startOperator();
        await scene.makeCluster();
        scene.open([POD]);
        await scene.until('the cluster to join', () => scene.state() === 'Joined');
        await scene.garden.client.delete(WORKERCLUSTERS, 'demo', 'shop');
        const condition = () => findCondition(scene.membership()?.status?.conditions, 'RoomElsewhere');
        await scene.until('it to be said', () => condition()?.status === 'False');
        expect(condition()?.message).toContain('have no room for the 3 CPU that pods here request');
        expect(drain).not.toHaveBeenCalled();
        expect(scene.isHeld).toBe(true);
        placed = [];
        await scene.until('the membership to be gone', () => scene.memberships.size === 0);
      } finally {
        Object.assign(type, before);
      }
    });

    it('is audited: what a membership left that nobody ended is found in the hub, and taken away', async () => {
      await scene.startOperator();
      await joined();
      await scene.quiet();
      const made = await scene.made({ ...kinds, member: [] });
      const written = await receipts();
      await scene.stopOperator();
      const { client } = scene.garden;
      const audit = new HubAudit(client, 'kube-system');
      const found = async () => (await audit.look(AbortSignal.timeout(PATIENCE_MS))).leftOvers;
      try {
        expect(await found()).toEqual([]);
        // Somebody takes the finalizer off, and the receipt is lost.
        const { name, namespace } = scene.membership()!.metadata;
        await client.delete(MEMBERSHIPS, name, namespace);
        await client.mergePatch(MEMBERSHIPS, name, namespace, { metadata: { finalizers: null } });
        await client.delete(WORKERCLUSTERS, 'demo', 'shop');
        await release(scene);
        for (const { metadata } of written) await client.delete(SECRETS, metadata.name, metadata.namespace);
        expect(
          (await found())
            .map(({ resource, namespace: within = '', name: one }) => `${resource.kind} ${within}/${one}`)
            .sort(),
        ).toEqual(made);
        const signal = AbortSignal.timeout(PATIENCE_MS);
        const how = { told: () => {}, patienceMs: 5_000, now: () => new Date() };
        expect(await cleanUp(client, await audit.look(signal), how, signal)).toEqual([]);
        expect(await scene.made({ ...kinds, member: [] })).toEqual([]);
        expect(await found()).toEqual([]);
      } finally {
        await audit.close();
        await scene.startOperator();
      }
    });

    it('waits for a cluster that does not answer, and lets go of one that is dead', async () => {
      await scene.startOperator();
      await scene.makeCluster();
      await scene.until('the membership to be made', () => scene.membership() !== undefined);
      expect(await scene.made(kinds)).toEqual([]);
      const close = scene.open();
      await scene.until('the cluster to join', () => scene.state() === 'Joined');
      await scene.silence();
      close();
      await scene.until('it to be said', () => (scene.membership()?.status?.waiting ?? '').includes('does not answer'));
      expect(scene.state()).toBe('Joined');
      await leave();
      expect(await scene.made({ ...kinds, member: [] })).toEqual([]);
    });

    it('has work moved away before a cluster sleeps, parks it, and opens it with new tokens when it has woken', async () => {
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
        await scene.startOperator();
        await joined();
        const old = new Set(tokens(told));
        await scene.sleep(true);
        const drained = () => findCondition(scene.membership()?.status?.conditions, 'Drained');
        await scene.until('work to be moved', () => drained()?.message === 'the hub moves ResourceBinding shop/web');
        expect(drain).toHaveBeenCalled();
        expect(scene.isKeptAwake).toBe(true);
        placed = [];
        await scene.until('the cluster to be parked', () => scene.state() === 'Asleep');
        expect(told.at(-1)?.closed).toBe('Asleep');
        // The operator hears of what it wrote a moment later.
        await expect.poll(() => scene.isKeptAwake, { timeout: PATIENCE_MS }).toBe(false);
        const { length } = told;
        await scene.sleep(false);
        await scene.until('the cluster to be back', () => scene.state() === 'Joined');
        const open = told.slice(length).filter(({ closed }) => closed === undefined);
        expect(open.length).toBeGreaterThan(0);
        expect(tokens(open).filter((token) => old.has(token))).toEqual([]);
        expect(scene.membership()?.status?.waiting).toBeUndefined();
      } finally {
        Object.assign(type, before);
      }
    });

    it('keeps a Hub with members from being deleted, unless it lets go of them', async () => {
      await scene.startOperator();
      await joined();
      await scene.until('the hub to count it', () => scene.hubs.get('test')?.status?.memberships === 1);
      await expect(scene.garden.client.delete(HUBS, 'test')).rejects.toThrow(/has 1 members/);
      const made = await scene.made(kinds);
      await scene.makeHub('test', { orphan: true });
      await scene.garden.client.delete(HUBS, 'test');
      await scene.until('the hub to be gone', () => scene.hubs.size === 0);
      expect(await scene.made(kinds)).toEqual(made);
      expect(await receipts()).toEqual([]);
    });
  });
}

/** What does not say which garden, cluster and Hub it was made for. */
async function unsaid({ garden, member }: HubScene, kinds: { hub: readonly Resource[]; member: readonly Resource[] }) {
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
async function dead({ member }: HubScene, receipts: () => Promise<KubeObject[]>): Promise<string[]> {
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
async function died(scene: HubScene): Promise<false> {
  while (!scene.line.broken) await new Promise((resolve) => setTimeout(resolve, 10));
  return false;
}

/** What the rest of the operator does when nothing holds a cluster any more. */
const release = (scene: HubScene) =>
  scene.garden.client.mergePatch(WORKERCLUSTERS, 'demo', 'shop', { metadata: { finalizers: null } }).catch(() => {});

/** What is destroyed with a cluster, where it is not. */
export const sweepMember = (scene: HubScene): Promise<void> => sweep(scene, { hub: [], member: IN_MEMBER });

async function sweep(scene: HubScene, kinds: { hub: readonly Resource[]; member: readonly Resource[] }): Promise<void> {
  for (const [side, resources] of Object.entries(kinds) as ['hub' | 'member', readonly Resource[]][]) {
    const { client } = side === 'hub' ? scene.garden : scene.member;
    for (const resource of resources)
      for (const { metadata } of (await client.list(resource, { labelSelector: LABELS.membership })).items)
        await client.delete(resource, metadata.name, metadata.namespace);
  }
}
