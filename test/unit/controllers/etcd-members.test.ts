import { beforeAll, expect, it } from 'vitest';
import { reconcileEtcdMembers, refuseLostMajority } from '../../../operator/controllers/shoot/hosted/etcd-members.ts';
import type { Operation } from '../../../operator/controllers/shoot/operation.ts';
import { newShootState } from '../../../operator/controllers/shoot/state.ts';
import { type EtcdClient, EtcdError, type EtcdMember } from '../../../operator/etcd/etcd-client.ts';
import type { KubeObject } from '../../../operator/kube/resources.ts';
import { etcdClaimName, etcdConfig, notedVolumes } from '../../../operator/shoot/etcd.ts';
import type { PKIData } from '../../../operator/shoot/pki.ts';
import { etcdPeerURL } from '../../../operator/shoot/values.ts';
import { partOf } from '../../kit/builders/partial.ts';
import { controlPlane, NOW, pkiOf } from '../shoot/values.ts';

const ORDINALS = [0, 1, 2];
const values = { ...controlPlane(3) };
const NS = values.namespace;
let pki: PKIData;
beforeAll(async () => {
  pki = await pkiOf(values);
});

/** A seed with an etcd of three members, each in a pod with a claim, and what the operator did there and to etcd. */
class Testbed {
  readonly did: string[] = [];
  readonly claims = new Map(ORDINALS.map((ordinal) => [ordinal, `claim${ordinal}`]));
  readonly pods = new Map(ORDINALS.map((ordinal) => [ordinal, { uid: `pod${ordinal}`, ready: true }]));
  members: EtcdMember[] = ORDINALS.map((ordinal) => this.#member(ordinal, { id: `old${ordinal}` }));
  opened = 0;
  /** How many more times etcd lets no member vote. */
  refusals = 0;
  now = NOW;
  secret: KubeObject | undefined;
  readonly op: Operation;

  constructor() {
    const pod = (ordinal: number) => {
      const found = this.pods.get(ordinal);
      const conditions = [{ type: 'Ready', status: found?.ready ? 'True' : 'False' }];
      return (
        found && { metadata: { name: `etcd-main-${ordinal}`, namespace: NS, uid: found.uid }, status: { conditions } }
      );
    };
    this.op = partOf<Operation>({
      values: { ...values, etcd: { ...values.etcd, initialised: true } },
      pki,
      shoot: { metadata: values.shoot },
      state: newShootState(),
      deps: {
        now: () => this.now,
        recordEvent: (_: object, type: string, reason: string) => this.did.push(`${type} ${reason}`),
      },
      seed: {
        applier: {
          apply: async (object: KubeObject) => {
            if (object.kind === 'Secret') this.secret = object;
            return { object, changed: true };
          },
        },
        client: {
          list: async () => ({
            items: [...this.claims].map(([ordinal, uid]) => ({ metadata: { name: etcdClaimName(ordinal), uid } })),
          }),
          delete: async (_: object, name: string, namespace: string, options: { preconditions: { uid: string } }) => {
            expect([name, namespace, options.preconditions.uid]).toEqual(['etcd-main-1', NS, this.pods.get(1)?.uid]);
            this.did.push(`delete pod ${name}`);
            this.pods.set(1, { uid: 'pod1-again', ready: true });
            Object.assign(this.members.at(-1)!, { name: 'etcd-main-1', healthy: true });
          },
        },
        pods: { get: (key: string) => pod(Number(key.at(-1))) },
        podsOf: () => [],
        secrets: { absorb: () => {} },
        statefulSets: { get: () => ({ spec: { replicas: 3 } }) },
      },
    });
  }

  #member(ordinal: number, change: Partial<EtcdMember>): EtcdMember {
    const name = `etcd-main-${ordinal}`;
    const peerURLs = [etcdPeerURL(values, ordinal)];
    return { id: '', name, learner: false, healthy: true, leader: ordinal === 0, caughtUp: true, peerURLs, ...change };
  }

  /** Its claim and pod come anew; without its data it does not start. */
  loseVolume(ordinal: number): void {
    this.claims.set(ordinal, `claim${ordinal}-new`);
    this.pods.set(ordinal, { uid: `pod${ordinal}-new`, ready: false });
    this.members.find(({ id }) => id === `old${ordinal}`)!.healthy = false;
  }

  look(): Promise<void> {
    const client = partOf<EtcdClient>({
      observe: async () => this.members.map((member) => ({ ...member })),
      remove: async (id: string) => {
        this.did.push(`remove ${id}`);
        this.members = this.members.filter((member) => member.id !== id);
      },
      addLearner: async (url: string) => {
        const ordinal = ORDINALS.find((one) => etcdPeerURL(values, one) === url)!;
        // By now it must be told whom to join, itself included.
        this.did.push(`add ${ordinal}, told of ${told(this.op, ordinal)}`);
        this.members.push(this.#member(ordinal, { id: `new${ordinal}`, name: '', learner: true, healthy: false }));
      },
      promote: async (id: string) => {
        if (this.refusals-- > 0) {
          this.now = new Date(+this.now + 40_000);
          throw new EtcdError('etcd refused /v3/cluster/member/promote: etcdserver: unhealthy cluster', 503);
        }
        this.did.push(`promote ${id}`);
        this.members.find((member) => member.id === id)!.learner = false;
      },
      close: async () => {},
    });
    const open = async () => {
      this.opened++;
      return client;
    };
    return reconcileEtcdMembers(this.op, new AbortController().signal, open);
  }
}

const told = ({ values: now }: Operation, ordinal: number): string =>
  String(etcdConfig(now, ordinal)['initial-cluster'])
    .split(',')
    .map((entry) => entry.split('=')[0]!.at(-1))
    .join('');

it("etcd members' volumes are recorded, and a member with a lost volume rejoins as new", async () => {
  const testbed = new Testbed();
  await testbed.look();
  expect(notedVolumes(testbed.secret)).toEqual({ 0: 'claim0', 1: 'claim1', 2: 'claim2' });
  expect(told(testbed.op, 1)).toBe('02');
  expect(testbed.did).toEqual([]);

  await testbed.look();
  expect(testbed.opened, 'etcd was asked although nothing changed').toBe(1);

  testbed.loseVolume(1);
  await testbed.look();
  expect(testbed.did).toEqual([
    'Warning EtcdVolumeLost',
    'remove old1',
    'add 1, told of 012',
    'Normal EtcdMemberJoins',
    'delete pod etcd-main-1',
    'promote new1',
  ]);
  expect(notedVolumes(testbed.secret)).toEqual({ 0: 'claim0', 1: 'claim1-new', 2: 'claim2' });
  expect(testbed.members.filter(({ learner, healthy }) => healthy && !learner)).toHaveLength(3);
  expect(testbed.op.values.etcd.endpoints).toEqual(ORDINALS);
});

it('an etcd without voters is tolerated, and reported after half a minute', async () => {
  const lost = async (refusals: number) => {
    const testbed = new Testbed();
    await testbed.look();
    testbed.loseVolume(1);
    testbed.refusals = refusals;
    return testbed;
  };
  const soon = await lost(1);
  await soon.look();
  expect(soon.did.at(-1)).toBe('promote new1');
  await expect((await lost(2)).look()).rejects.toThrow('unhealthy cluster');
});

it('a lost etcd majority is reported, and nothing is changed', async () => {
  const testbed = new Testbed();
  await testbed.look();
  const { signal } = new AbortController();
  testbed.loseVolume(1);
  await refuseLostMajority(testbed.op, signal);
  testbed.loseVolume(2);
  await expect(refuseLostMajority(testbed.op, signal)).rejects.toMatchObject({
    code: 'ERR_CONFIGURATION_PROBLEM',
    message: expect.stringContaining('the volumes of 2 of 3 etcd members are lost (1, 2)'),
  });
  expect(testbed.did).toEqual([]);
  expect(testbed.members).toHaveLength(3);
});
