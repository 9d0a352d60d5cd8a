import type { BurstPolicy } from '../../../operator/api/burstpolicy.ts';
import { BURSTPOLICIES } from '../../../operator/kube/resources.ts';
import type { TestApiserver } from '../apiserver.ts';
import { BoughtClusters } from './bought-clusters.ts';
import { makePeakPolicy, runBurst, sellClusters } from './burst-beside.ts';
import { runControllers } from './controllers.ts';
import { HubTestbed } from './hub-testbed.ts';
import { makeQueues } from './kueue-work.ts';
import { Processes } from './processes.ts';
import { RealKueue } from './real-kueue.ts';
import { SchedulingMember } from './scheduling-member.ts';

const PATIENCE_MS = 120_000;

/** The real Kueue in a garden that is its hub, a private cluster of 4 CPUs that has joined it, and machines for those that policies buy. */
export class KueueBurst {
  readonly testbed: HubTestbed;
  readonly own: SchedulingMember;
  readonly bought: BoughtClusters;
  readonly #ends: readonly { stop(): Promise<unknown> }[];

  private constructor(
    testbed: HubTestbed,
    own: SchedulingMember,
    bought: BoughtClusters,
    ends: readonly { stop(): Promise<unknown> }[],
  ) {
    this.testbed = testbed;
    this.own = own;
    this.bought = bought;
    this.#ends = ends;
  }

  /**
   * @param programs folder with those of Kueue
   * @param names of API servers that are kept for clusters that are bought
   * @param account who the operator is in the garden, as HubTestbed has it
   */
  static async start(
    programs: string,
    names: readonly string[],
    account: 'admin' | 'chart' = 'admin',
  ): Promise<KueueBurst> {
    const kueue = await RealKueue.begin(programs);
    const processes = await Processes.begin('members');
    const testbed = await HubTestbed.start({ type: 'Kueue' }, [], account);
    const kept: Record<string, TestApiserver> = {};
    for (const name of names) kept[name] = await testbed.addMember(name, '4', '8Gi');
    await runControllers(processes, testbed.garden, 'hub', ['namespace', 'garbagecollector']);
    const own = await SchedulingMember.start(processes, testbed.member, 'demo');
    await own.addNode('one', '4', '8Gi');
    await kueue.runIn(testbed.garden, 'hub');
    // Whoever makes such clusters has Kueue and its queues come with them.
    for (const [name, member] of Object.entries({ demo: testbed.member, ...kept })) {
      await kueue.runIn(member, name);
      await makeQueues(member.client, { cpu: '4', memory: '8Gi' });
    }
    await makeQueues(testbed.garden.client, { cpu: '100', memory: '100Gi' }, ['test']);
    const bought = new BoughtClusters(testbed, processes, kept);
    await bought.start();
    await sellClusters(testbed.garden.client);
    runBurst(testbed);
    await testbed.startOperator();
    await testbed.makeHub();
    await testbed.makeCluster();
    testbed.open(own.pods);
    await testbed.until('the private cluster to join', () => testbed.state() === 'Joined', PATIENCE_MS);
    return new KueueBurst(testbed, own, bought, [bought, own, processes, kueue, testbed]);
  }

  async stop(): Promise<void> {
    for (const end of this.#ends) await end.stop();
  }

  policy(): Promise<BurstPolicy | undefined> {
    return this.testbed.garden.client.getOrUndefined<BurstPolicy>(BURSTPOLICIES, 'peak', 'shop');
  }

  /** BurstPolicy shop/peak, which may buy one cluster. */
  async makePolicy(): Promise<void> {
    const spec = { cloudProvider: 'cloud', pools: [{ name: 'a', maximum: 5 }] };
    await makePeakPolicy(this.testbed.garden.client, [{ name: 'cloud', template: { spec } }]);
  }
}
