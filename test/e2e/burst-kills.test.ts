import { afterAll, beforeAll, expect, it } from 'vitest';
import { findCondition, isTrue } from '../../operator/api/conditions.ts';
import { ANNOTATIONS, API_VERSION, LABELS, ROLES } from '../../operator/api/group.ts';
import type { StoredReceipt } from '../../operator/burst/clusters/stored-receipt.ts';
import { readStatus } from '../../operator/garden/daemon/status.ts';
import { StateDirectory } from '../../operator/garden/state/state.ts';
import { CLUSTERPROFILES } from '../../operator/hubs/cluster-profile.ts';
import { PLACEMENTDECISIONS } from '../../operator/hubs/placement-decisions.ts';
import type { Informer } from '../../operator/kube/informer.ts';
import { receiptIn } from '../../operator/kube/receipt.ts';
import {
  BURSTPOLICIES,
  CLOUDPROFILES,
  DEPLOYMENTS,
  type KubeObject,
  MEMBERSHIPS,
  NAMESPACES,
  PODS,
  type Pod,
  SECRETS,
  type Secret,
  WORKERCLUSTERS,
} from '../../operator/kube/resources.ts';
import { BurstInGarden, fleetOf, makeFleet, POLICY } from '../kit/burst-in-garden.ts';
import { clusterClient, coppice, e2e, follow, garden, gardenClient, ok } from '../kit/garden.ts';
import { HeldRequests } from '../kit/held-requests.ts';
import { echo } from '../kit/workload.ts';

const NAME = 'burst-kills';
const FLEET = fleetOf(NAME);
const SOURCE = `PlacementDecision ${FLEET}/web`;
const PATIENCE_MS = 3 * 60_000;
/** Long enough that a busy machine sees work come and go within it. */
const PENDING_FOR_S = 6;
const EACH = { cpu: '1', memory: '64Mi' };

/** A simulated cloud whose only machine costs so much an hour: control planes and API servers are real, and machines are not. */
const cloud = (name: string, hourly: string, simulation: object = {}): KubeObject => ({
  apiVersion: API_VERSION,
  kind: 'CloudProfile',
  metadata: { name },
  spec: {
    type: 'simulated',
    kubernetes: { versions: [{ version: '1.36.3', classification: 'supported' }] },
    seedSelector: { providerTypes: ['*'] },
    providerConfig: { simulation },
    defaults: {
      mode: 'Hosted',
      region: 'here',
      machineType: 'medium',
      pods: '100.96.0.0/11',
      services: '100.64.0.0/13',
    },
    machineTypes: [
      { name: 'medium', cpu: '4', gpu: '0', memory: '16Gi', pods: 110, price: { hourly, currency: 'USD' } },
    ],
    regions: [{ name: 'here', zones: [{ name: 'here-a' }] }],
  },
});
const CHEAP = `${NAME}-cheap`;
const DEAR = `${NAME}-dear`;

const candidate = (name: string, cloudProvider: string) => ({
  name,
  template: { spec: { cloudProvider, controlPlaneNodes: 1, pools: [{ name: 'a', maximum: 1 }] } },
});

/** A garden with a hub whose scheduler is this test, and a policy that serves it. */
class Testbed extends BurstInGarden {
  readonly receipts: Informer<Secret>;
  /** Names of all clusters that ever were made for the policy, by UID. */
  readonly made = new Map<string, string>();
  #killed: number | undefined;

  private constructor(caches: Awaited<ReturnType<typeof makeFleet>>, receipts: Informer<Secret>) {
    super(NAME, caches, PATIENCE_MS, [receipts]);
    this.receipts = receipts;
    this.clusters.onChange(({ object: { metadata } }) => {
      if (metadata.namespace === NAME) this.made.set(metadata.uid!, metadata.name);
    });
  }

  static async make(): Promise<Testbed> {
    const client = gardenClient();
    const receipts = { labelSelector: `${LABELS.role}=${ROLES.burstReceipt}` };
    const testbed = new Testbed(await makeFleet(NAME), await follow<Secret>(client, SECRETS, receipts));
    // Of one whose machines do not come nobody needs the control plane.
    const soldOut = { capacity: { depleted: [{ machineType: 'medium' }] }, controlPlane: { run: false } };
    await client.create(cloud(CHEAP, '0.1', soldOut));
    await client.create(cloud(DEAR, '0.2'));
    await client.create({ ...decisionOf([]), decisions: [] }, { resource: PLACEMENTDECISIONS });
    await testbed.makePolicy({
      trigger: { pendingFor: `${PENDING_FOR_S}s` },
      candidates: [candidate('cheap', CHEAP), candidate('dear', DEAR)],
      maximumClusters: 3,
      budget: { hourly: '0.29', currency: 'USD' },
    });
    return testbed;
  }

  /** What the hub says: how many replicas have no place, and where others are. */
  async says(unplaced: number | string, ...placedOn: string[]): Promise<void> {
    const text = typeof unplaced === 'string' ? unplaced : JSON.stringify({ replicas: unplaced, requests: EACH });
    await gardenClient().apply(decisionOf(placedOn, unplaced === 0 ? {} : { [ANNOTATIONS.unplaced]: text }), {
      resource: PLACEMENTDECISIONS,
      fieldManager: 'scheduler',
      force: true,
    });
  }

  /** What the policy says of the work; undefined: nothing. */
  said() {
    return this.policies.list()[0]?.status?.demand?.find(({ source }) => source === SOURCE);
  }

  receipt(): StoredReceipt | undefined {
    return receiptIn<StoredReceipt>(this.receipts.list()[0]);
  }

  protected override shown(): unknown[] {
    return [this.receipt(), ...super.shown()];
  }

  decided(action: string): string[] {
    const { decisions = [] } = this.policies.list()[0]?.status ?? {};
    return decisions.filter((one) => one.action === action).map(({ why }) => why);
  }

  /** Ends the operator at once. Its supervisor starts it again, and waits longer each time. */
  async kill(phase: string): Promise<void> {
    const began = performance.now();
    const running = async () => {
      const status = await readStatus(new StateDirectory(garden.home).statusFile);
      const { pid, state } = status!.processes.find(({ name }) => name === 'operator')!;
      return state === 'running' && pid !== this.#killed ? pid : undefined;
    };
    await expect.poll(running, { timeout: PATIENCE_MS, interval: 50 }).toBeDefined();
    this.#killed = await running();
    process.kill(this.#killed!, 'SIGKILL');
    console.info(`${phase}: the operator is killed (${((performance.now() - began) / 1000).toFixed(1)} s)`);
  }
}

const decisionOf = (placedOn: readonly string[], annotations: Record<string, string> = {}): KubeObject => ({
  apiVersion: 'multicluster.x-k8s.io/v1alpha1',
  kind: 'PlacementDecision',
  metadata: { name: 'web', namespace: FLEET, annotations },
  schedulerName: 'test',
  decisions: placedOn.map((name) => ({ clusterProfileRef: { name } })),
});

e2e('a policy whose operator is killed in each phase', () => {
  let testbed: Testbed;
  let held: HeldRequests;
  /** Name of the ClusterProfile of what was bought. */
  let member = '';

  beforeAll(async () => {
    testbed = await Testbed.make();
    held = await HeldRequests.of(gardenClient(), WORKERCLUSTERS, { [LABELS.burstPolicy]: POLICY });
  });
  afterAll(async () => {
    await held?.end();
    await testbed?.end();
    for (const one of [CHEAP, DEAR]) await gardenClient().delete(CLOUDPROFILES, one);
  });

  it('buys nothing for a flapping hub, or for unreadable demand', async () => {
    for (const began = Date.now(); Date.now() < began + 1.5 * PENDING_FOR_S * 1000; ) {
      await testbed.says(3);
      await testbed.until('work to be seen', () => testbed.said()?.state === 'Stabilising');
      await testbed.says(0);
      await testbed.until('it to be over', () => testbed.said() === undefined);
    }
    await testbed.says('{"replicas": "many"}');
    await testbed.until('that to be refused', () =>
      testbed.decided('Refuse').some((why) => why.includes('cannot be read')),
    );
    await testbed.says(1_000_000);
    await testbed.until('so much to be refused', () => testbed.said()?.message?.includes('more than 5000'));
    expect([testbed.made.size, testbed.receipt()?.purchases ?? []]).toEqual([0, []]);
    await gardenClient().mergePatch(BURSTPOLICIES, POLICY, NAME, { spec: { trigger: { pendingFor: '1ms' } } });
  });

  it('creates a recorded purchase once, and uses the next candidate when the cloud is depleted', async () => {
    const made = held.hold('CREATE');
    await testbed.says(3);
    await made.seen;
    const [written, ...others] = await testbed.until('it to be written down', () => {
      const { purchases = [] } = testbed.receipt() ?? {};
      return purchases.length > 0 && purchases;
    });
    expect([written!.candidate, others, testbed.made.size]).toEqual(['cheap', [], 0]);
    await testbed.kill('written down, not made');
    made.release();
    await testbed.until('it to be made', () => testbed.of('cheap'));
    await testbed.kill('made');
    expect([...testbed.made.values()]).toEqual([written!.name]);
    await testbed.until('it to be given up', () => testbed.decided('Fail').length > 0);
    expect(testbed.decided('Fail')[0]).toMatch(/^sold out: medium in here-a/);
    await testbed.until('the next to be made', () => testbed.of('dear'));
    await testbed.until('nothing to be left of the first', () => !testbed.of('cheap'));
  });

  it('joins and fills the purchase, and buys no more for work that the hub still reports', async () => {
    const profile = await testbed.until(
      'it to join',
      () =>
        testbed.membership('dear')?.status?.state === 'Joined' &&
        testbed.profiles.list().find((one) => isTrue(one.status?.conditions, 'Joined')),
    );
    member = profile.metadata.name;
    await testbed.kill('joined');
    await testbed.until('it to count as room', () => testbed.said()?.state === 'Fits');
    const inside = await clusterClient({ name: testbed.of('dear')!.metadata.name, namespace: NAME });
    await inside.create(echo({ name: 'web', replicas: 3, requests: EACH }));
    const pods = await follow<Pod>(inside, PODS, { namespace: 'default' });
    await testbed.says(0, member);
    await pods.waitFor(() => pods.list().filter(({ status }) => status?.phase === 'Running').length === 3, {
      timeoutMs: PATIENCE_MS,
      what: 'three pods to run',
    });
    await testbed.kill('filled');
    expect(testbed.made.size).toBe(2);
  });

  it('stops at its budget, and destroys nothing for it', async () => {
    await testbed.says(3, member);
    const said = await testbed.until('work to be refused', () => testbed.said()?.state === 'Refused' && testbed.said());
    expect(said.message).toContain('dear: it costs 0.2 USD an hour, and 0.09 USD of the budget of 0.29 USD are left');
    await gardenClient().mergePatch(BURSTPOLICIES, POLICY, NAME, { spec: { budget: { hourly: '0.05' } } });
    await testbed.until('the new budget to be told', () => testbed.said()?.message?.includes('0.05'));
    await testbed.says(0, member);
    await testbed.until('nothing to wait', () => testbed.said() === undefined);
    expect(testbed.decided('Remove')).toEqual([]);
    expect(testbed.of('dear')?.metadata.deletionTimestamp).toBeUndefined();
    expect(testbed.made.size).toBe(2);
  });

  it('returns the purchase once, and leaves nothing', async () => {
    const { metadata } = testbed.of('dear')!;
    const inside = await clusterClient({ name: metadata.name, namespace: NAME });
    const deleted = held.hold('DELETE');
    await inside.delete(DEPLOYMENTS, 'web', 'default');
    await deleted.seen;
    await testbed.until('that it goes to be written down', () => testbed.receipt()?.purchases[0]?.leaving);
    expect(testbed.of('dear')?.metadata.deletionTimestamp).toBeUndefined();
    await testbed.kill('written down that it goes');
    deleted.release();
    // The hub has not taken its work away.
    await testbed.until('it to be drained', () =>
      findCondition(testbed.membership('dear')?.status?.conditions, 'Drained'),
    );
    await testbed.kill('draining');
    expect(testbed.of('dear')).toBeDefined();
    await testbed.says(0);
    await testbed.until('it to have left', () => testbed.profiles.size === 0);
    await testbed.kill('left');
    await testbed.until('it to be deleted', () => !testbed.of('dear'));
    await testbed.kill('deleted');
    await testbed.until('it to be gone from what is written down', () => testbed.receipt()?.purchases.length === 0);
    const { status } = await testbed.until('that to be told', () =>
      testbed.policies.list()[0]!.status?.clusters?.length ? undefined : testbed.policies.list()[0]!,
    );
    expect(Number(status!.spend?.amount)).toBeGreaterThan(0);
    expect(testbed.decided('Buy')).toHaveLength(2);
    expect(testbed.decided('Remove')).toHaveLength(1);
    expect(testbed.made.size).toBe(2);
    for (const kind of [MEMBERSHIPS, CLUSTERPROFILES, NAMESPACES, SECRETS]) {
      // A cluster is gone before its namespace is: docs/decisions/0008-a-cluster-is-gone-before-its-namespace.md.
      const left = async () => {
        const { items } = await gardenClient().list(kind);
        return items.map((one) => one.metadata.name).filter((name) => /peak-(cheap|dear)/.test(name));
      };
      await expect.poll(left, { timeout: PATIENCE_MS }).toEqual([]);
    }
    ok(await coppice(['hubs', 'audit']));
  });
});
