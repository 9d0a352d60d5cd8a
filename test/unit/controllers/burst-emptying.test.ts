import { beforeEach, describe, expect, it } from 'vitest';
import type { BurstPolicySpec } from '../../../operator/api/burstpolicy.ts';
import { ALPHA_API_VERSION, LABELS } from '../../../operator/api/group.ts';
import type { WorkerCluster } from '../../../operator/api/workercluster.ts';
import { BurstMemory } from '../../../operator/controllers/burst/memory.ts';
import type { PlacedWork } from '../../../operator/hubs/contract.ts';
import type { KubeObject, Pod } from '../../../operator/kube/resources.ts';
import { buildPod, buildWorkerCluster } from '../../kit/builders/objects.ts';
import { BurstTestbed, demand, Killed, MINUTE, policyNamed, SECOND } from '../../kit/burst/testbed.ts';
import { casesUpTo } from '../../kit/cases.ts';

const UNDERUSED = { scaleIn: { consolidationPolicy: 'WhenEmptyOrUnderutilized' as const } };
const SOURCE = 'ResourceBinding shop/web';

let testbed: BurstTestbed;
beforeEach(() => {
  testbed = new BurstTestbed();
});

const pod = (name: string, nodeName: string): Pod =>
  buildPod({
    metadata: {
      name,
      namespace: 'shop',
      labels: { 'pod-template-hash': '5d4f' },
      ownerReferences: [{ kind: 'ReplicaSet', name: 'web-5d4f', uid: 'rs', controller: true }],
    },
    spec: { nodeName, containers: [{ name: 'web', resources: { requests: { cpu: '1', memory: '1Gi' } } }] },
  });

/** The cluster that was bought. */
const bought = (): WorkerCluster => testbed.clusters().find(({ metadata }) => metadata.labels?.[LABELS.burstPolicy])!;
const inside = () => testbed.open.get(`shop/${bought().metadata.name}`)!;
const isMarked = () => bought().metadata.labels?.[LABELS.burstEmptying] === 'true';
const actions = () => testbed.receipt()!.decisions.map(({ action }) => action);
const shown = () => testbed.policy()!.status!.clusters![0]!;

/** What the membership of the bought cluster says. */
function membershipSays(...conditions: { type: string; status: string; reason: string; message?: string }[]): void {
  const { name } = bought().metadata;
  testbed.objects.put({
    apiVersion: ALPHA_API_VERSION,
    kind: 'Membership',
    metadata: { name: `${name}.production`, namespace: 'shop' },
    spec: { cluster: name, hub: 'production' },
    status: { state: 'Joined', memberName: name, conditions },
  });
}
const draining = { type: 'Drained', status: 'False', reason: 'Draining', message: 'the hub moves it' };

/** A bought cluster of three nodes is old enough, and one replica is left there; the private one has so many nodes, and nothing runs there. */
async function afterPeak(more: Partial<BurstPolicySpec> = UNDERUSED, ownNodes = 4): Promise<void> {
  testbed.objects.put(policyNamed('peak', { ...more, maximumClusters: 1 }));
  const own = buildWorkerCluster({
    metadata: { name: 'private', namespace: 'shop' },
    spec: { cloudProvider: 'cloud', controlPlaneNodes: 1, pools: [{ name: 'a', minimum: ownNodes }] },
  });
  testbed.demands = [demand(SOURCE, 3)];
  await testbed.looks(40 * SECOND);
  testbed.objects.put(own);
  testbed.join(own, 0);
  testbed.join(bought(), 0);
  const { name } = bought().metadata;
  inside().pods = [pod('web-1', `${name}-0`), pod('web-2', `${name}-1`), pod('web-3', `${name}-2`)];
  testbed.demands = [];
  testbed.placedBy = (member): PlacedWork[] =>
    member === name
      ? [
          {
            source: SOURCE,
            count: inside().pods.length,
            each: { cpu: '1', memory: '1Gi' },
            workload: { kind: 'Deployment', namespace: 'shop', name: 'web' },
          },
        ]
      : [];
  await testbed.looks(40 * MINUTE);
  inside().pods = inside().pods.slice(0, 1);
}

describe('an underused bought cluster', () => {
  it('is emptied by its hub and removed: recorded first, then marked, then deleted', async () => {
    await afterPeak();
    await testbed.looks(9 * MINUTE);
    expect(isMarked()).toBe(false);
    testbed.objects.writes.length = 0;
    await testbed.looks(2 * MINUTE);
    expect(isMarked()).toBe(true);
    expect(testbed.objects.writes[0]).toMatch(/^apply secrets kube-system\/burst-/);
    expect(shown()).toMatchObject({ phase: 'Emptying' });
    expect(testbed.policy()!.status!.decisions![0]).toMatchObject({
      action: 'Empty',
      hourly: '0.3',
      why: `it has little work: 1 replica (1 CPU, 1Gi memory each) of ${SOURCE}, for which there is room on shop/private`,
    });
    expect(testbed.events.at(-1)).toMatch(/^ClusterEmptied /);

    membershipSays(draining);
    await testbed.looks(MINUTE);
    expect(bought().metadata.deletionTimestamp).toBeUndefined();
    // The hub has nothing there any more, and the last pod is still ending.
    membershipSays({ type: 'Drained', status: 'True', reason: 'Drained' });
    await testbed.look(10 * SECOND);
    expect(bought().metadata.deletionTimestamp).toBeUndefined();
    inside().pods = [];
    await testbed.look(10 * SECOND);
    expect(bought()).toBeUndefined();
    expect(actions()).toEqual(['Remove', 'Empty', 'Buy']);
    expect(testbed.receipt()!.decisions[0]!.why).toBe('its work was moved to other clusters');
    expect(testbed.outcomes().slice(0, 2)).toEqual([
      'Remove ?',
      expect.stringMatching(/^Empty Succeeded: it was given back \d+ s .*: its work was moved to other clusters$/),
    ]);
  });

  it('that cannot be marked blocks nothing else, and the policy reports it', async () => {
    await afterPeak();
    const { name } = bought().metadata;
    testbed.objects.put(policyNamed('peak', { ...UNDERUSED, maximumClusters: 2 }));
    testbed.frozen = name;
    await testbed.looks(11 * MINUTE);
    expect(actions()[0]).toBe('Empty');
    expect(testbed.policy()!.status!.conditions).toContainEqual(
      expect.objectContaining({ type: 'Ready', message: expect.stringContaining(`${name} cannot be emptied: `) }),
    );
    testbed.demands = [demand('ResourceBinding shop/more', 10)];
    await testbed.looks(2 * MINUTE);
    expect(testbed.clusters()).toHaveLength(3);
  });

  it('causes no write while its hub empties it', async () => {
    await afterPeak();
    await testbed.looks(11 * MINUTE);
    membershipSays(draining);
    await testbed.look(10 * SECOND);
    testbed.objects.writes.length = 0;
    await testbed.looks(5 * MINUTE);
    expect(testbed.objects.writes).toEqual([]);
  });

  it("stays without the policy's setting, and its use is not read", async () => {
    await afterPeak({});
    testbed.placedBy = () => {
      throw new Error('asked');
    };
    await testbed.looks(60 * MINUTE);
    expect(isMarked()).toBe(false);
    expect(actions()).toEqual(['Buy']);
    expect(shown().stays).toBe('pod shop/web-1 of ReplicaSet web-5d4f runs there');
  });

  it('stays while its pods request the threshold or more', async () => {
    await afterPeak({ scaleIn: { ...UNDERUSED.scaleIn, utilizationThreshold: 15 } });
    // A third of three nodes of 1.9 CPUs is 17 %.
    await testbed.looks(60 * MINUTE);
    expect(actions()).toEqual(['Buy']);
    expect(shown().stays).toBe('its pods request 15 % of its CPU or memory, or more (utilizationThreshold)');
  });

  it('names the longest blocking pod, and keeps naming it', async () => {
    await afterPeak({});
    const at = (name: string, ago: number, more: object = {}): Pod => {
      const made = pod(name, `${bought().metadata.name}-0`);
      const creationTimestamp = new Date(testbed.now - ago).toISOString();
      return { ...made, metadata: { ...made.metadata, creationTimestamp, ...more } };
    };
    const job = { ownerReferences: [{ kind: 'Job', name: 'report', uid: 'job', controller: true }] };
    inside().pods = [at('web-1', 20 * MINUTE), at('agent', 60 * MINUTE, { ownerReferences: [] })];
    await testbed.looks(MINUTE);
    expect(shown().stays).toMatch(/^pod shop\/agent runs there since 20/);
    testbed.objects.writes.length = 0;
    inside().pods = [...inside().pods.slice(1), at('web-2', 0), at('report-1', 90 * MINUTE, job)];
    await testbed.looks(5 * MINUTE);
    expect(testbed.objects.writes).toEqual([]);
    inside().pods = inside().pods.slice(1);
    await testbed.look(10 * SECOND);
    // What has just come is new work, and nobody asks why.
    expect(shown().stays).toBeUndefined();
    inside().pods = inside().pods.slice(1);
    await testbed.look(10 * SECOND);
    expect(shown().stays).toBe('pods of Jobs run there, and it goes when these have ended');
  });

  it('is only reported in a dry run', async () => {
    await afterPeak();
    testbed.objects.put(policyNamed('peak', { ...UNDERUSED, dryRun: true }));
    await testbed.looks(30 * MINUTE);
    expect(isMarked()).toBe(false);
    expect(testbed.receipt()!.decisions[0]).toMatchObject({ action: 'Empty', dryRun: true });
    expect(actions()).toEqual(['Empty', 'Buy']);
  });

  it.each<[string, () => void, string]>([
    ['its hub does not tell what it would move', () => Object.assign(testbed, { placedBy: undefined }), 'do not tell'],
    ['its hub moves nothing', () => Object.assign(testbed, { placedBy: () => 'the Hub does not say' }), 'does not say'],
    [
      'its hub does not answer',
      () =>
        Object.assign(testbed, {
          placedBy: () => {
            throw new Error('refused');
          },
        }),
      'the operator cannot find out what runs there: refused',
    ],
    [
      'somebody runs what the hub has not placed',
      () => Object.assign(testbed, { placedBy: () => [] }),
      'pod shop/web-1',
    ],
    [
      'a PodDisruptionBudget forbids it',
      () =>
        testbed.inside.set('PodDisruptionBudget', [
          {
            apiVersion: 'policy/v1',
            kind: 'PodDisruptionBudget',
            metadata: { name: 'web', namespace: 'shop' },
            spec: { selector: {} },
            status: { disruptionsAllowed: 0 },
          } as KubeObject,
        ]),
      'PodDisruptionBudget shop/web',
    ],
    [
      'it keeps data',
      () =>
        testbed.inside.set('PersistentVolumeClaim', [
          {
            apiVersion: 'v1',
            kind: 'PersistentVolumeClaim',
            metadata: { name: 'data', namespace: 'shop' },
            status: { phase: 'Bound' },
          } as KubeObject,
        ]),
      'PersistentVolumeClaim shop/data',
    ],
    [
      'another cluster leaves the hub',
      () => {
        const metadata = { name: 'old.production', namespace: 'shop', deletionTimestamp: '2026-11-23T12:00:00Z' };
        const spec = { cluster: 'old', hub: 'production' };
        testbed.objects.put({ apiVersion: ALPHA_API_VERSION, kind: 'Membership', metadata, spec } as KubeObject);
      },
      'another cluster of the hub',
    ],
  ])('stays, and the status says why, when %s', async (_, happens, why) => {
    await afterPeak();
    happens();
    await testbed.looks(15 * MINUTE);
    expect(isMarked()).toBe(false);
    expect(shown()).toMatchObject({ phase: 'Joined', stays: expect.stringContaining(why) });
    testbed.objects.writes.length = 0;
    await testbed.looks(30 * MINUTE);
    expect(testbed.objects.writes).toEqual([]);
  });

  it('stays without room in other members, and is emptied once they have room', async () => {
    await afterPeak(UNDERUSED, 1);
    await testbed.looks(15 * MINUTE);
    expect(shown().stays).toContain('not enough room elsewhere');
    testbed.open.get('shop/private')!.nodes.push(...[1, 2].map((index) => nodeLike('private', index)));
    await testbed.look(10 * SECOND);
    expect(isMarked()).toBe(true);
  });
});

const nodeLike = (cluster: string, index: number) => {
  const [node] = testbed.open.get(`shop/${cluster}`)!.nodes;
  return { ...node!, metadata: { ...node!.metadata, name: `${cluster}-${index}` } };
};

const noRoom = { type: 'RoomElsewhere', status: 'False', reason: 'NoRoom', message: 'nobody has room' } as const;

describe('a bought cluster that is being emptied', () => {
  beforeEach(async () => {
    await afterPeak();
    await testbed.looks(11 * MINUTE);
    expect(isMarked()).toBe(true);
  });

  it.each<[string, () => Promise<void> | void, string]>([
    [
      'its hub finds no room elsewhere in time',
      async () => {
        membershipSays(noRoom);
        await testbed.looks(10 * MINUTE);
      },
      'within 10 minutes: nobody has room',
    ],
    [
      'its hub does not move it in time',
      async () => {
        membershipSays(draining);
        await testbed.looks(10 * MINUTE);
      },
      'within 10 minutes: pod shop/web-1 is there',
    ],
  ])('takes work again and is left alone for a while when %s', async (_, happens, why) => {
    await happens();
    await testbed.look(10 * SECOND);
    expect(isMarked()).toBe(false);
    expect(testbed.receipt()!.decisions[0]).toMatchObject({ action: 'Keep', why: expect.stringContaining(why) });
    membershipSays();
    await testbed.looks(29 * MINUTE);
    expect(isMarked()).toBe(false);
    await testbed.looks(2 * MINUTE);
    expect(isMarked()).toBe(true);
    // The second time it is left alone for twice as long.
    membershipSays({ type: 'Drained', status: 'False', reason: 'DrainNotPossible', message: 'the hub moves nothing' });
    await testbed.look(10 * SECOND);
    membershipSays();
    await testbed.looks(58 * MINUTE);
    expect(actions().filter((action) => action === 'Empty')).toHaveLength(2);
    await testbed.looks(3 * MINUTE);
    expect(actions().filter((action) => action === 'Empty')).toHaveLength(3);
  });

  it.each<[string, string, number]>([
    ['shorter than the time that its Hub has', '90s', 90 * SECOND],
    ['longer than that', '25m', 25 * MINUTE],
  ])(
    'takes work again after the deadline of its policy, %s, and is left alone for a while',
    async (_, drainDeadline, ms) => {
      testbed.objects.put(policyNamed('peak', { scaleIn: { ...UNDERUSED.scaleIn, drainDeadline } }));
      membershipSays(draining);
      const since = Date.parse(testbed.receipt()!.purchases[0]!.emptyingSince!);
      await testbed.look(since + ms - SECOND - testbed.now);
      expect(isMarked()).toBe(true);
      await testbed.look(SECOND);
      expect(isMarked()).toBe(false);
      expect(inside().pods).toHaveLength(1);
      expect(testbed.receipt()!.decisions[0]).toMatchObject({
        action: 'Keep',
        why: `its hub has not moved all of it within its drainDeadline of ${drainDeadline}: pod shop/web-1 is there`,
      });
      membershipSays();
      await testbed.looks(29 * MINUTE);
      expect(actions()).toEqual(['Keep', 'Empty', 'Buy']);
      await testbed.looks(2 * MINUTE);
      expect(actions()).toEqual(['Empty', 'Keep', 'Empty', 'Buy']);
    },
  );

  it("waits for its membership, which uses members' last recorded room", async () => {
    membershipSays(noRoom);
    await testbed.looks(MINUTE);
    expect(isMarked()).toBe(true);
    testbed.open.get('shop/private')!.nodes.length = 1;
    await testbed.look(10 * SECOND);
    expect(isMarked()).toBe(false);
    expect(testbed.receipt()!.decisions[0]!.why).toContain('not enough room elsewhere');
  });

  it('reopens when waiting work has no other room, and nothing is bought for it', async () => {
    membershipSays(draining);
    testbed.open.get('shop/private')!.pods = [0, 1, 2, 3].map((index) => pod(`api-${index}`, `private-${index}`));
    testbed.demands = [demand('ResourceBinding shop/api', 2)];
    await testbed.look(10 * SECOND);
    expect(isMarked()).toBe(false);
    await testbed.looks(MINUTE);
    expect(testbed.says('DemandMet')).toBe('False Fits');
    expect(actions()).toEqual(['Keep', 'Empty', 'Buy']);
    expect(testbed.outcomes()[1]).toMatch(/^Empty Kept: it took work again \d+ s after the decision: .*shop\/api/);
  });

  it('is no room for waiting work while it is drained', async () => {
    membershipSays(draining);
    testbed.demands = [demand('ResourceBinding shop/api', 2)];
    await testbed.look(10 * SECOND);
    expect(testbed.policy()!.status!.demand![0]!.message).toContain('it fits on shop/private,');
    expect(isMarked()).toBe(true);
  });

  it('reopens when the policy no longer empties it', async () => {
    testbed.objects.put(policyNamed('peak', { scaleIn: {} }));
    await testbed.look(10 * SECOND);
    expect(isMarked()).toBe(false);
  });

  it('is recognized by a restarted operator', async () => {
    testbed.memory = new BurstMemory();
    membershipSays(draining);
    await testbed.looks(MINUTE);
    membershipSays({ type: 'Drained', status: 'True', reason: 'Drained' });
    inside().pods = [];
    await testbed.look(10 * SECOND);
    expect(actions()).toEqual(['Remove', 'Empty', 'Buy']);
  });
});

it('is emptied and removed once, with the operator killed after each of its writes', async () => {
  const history = async (lives: number) => {
    testbed = new BurstTestbed();
    await afterPeak();
    testbed.lives = lives;
    const pass = async (during: number) => {
      for (let past = 0; past < during; past += MINUTE)
        await testbed.look(MINUTE).catch((error: unknown) => {
          if (!(error instanceof Killed)) throw error;
          testbed.lives = Number.POSITIVE_INFINITY;
          testbed.memory = new BurstMemory();
        });
    };
    testbed.objects.writes.length = 0;
    for (let past = 0; past < 60 && !isMarked(); past++) await pass(MINUTE);
    expect(isMarked(), `killed after write ${lives}`).toBe(true);
    membershipSays({ type: 'Drained', status: 'True', reason: 'Drained' });
    inside().pods = [];
    const { name } = bought().metadata;
    await pass(3 * MINUTE);
    const gone = testbed.clusters().every(({ metadata }) => metadata.name !== name || metadata.deletionTimestamp);
    expect(gone, `killed after write ${lives}`).toBe(true);
    expect(actions()).toEqual(['Remove', 'Empty', 'Buy']);
    return testbed.objects.writes.length;
  };
  const writes = await history(Number.POSITIVE_INFINITY);
  for (const lives of casesUpTo(writes)) await history(lives);
});
