import type { BurstPolicy } from '../../../operator/api/burstpolicy.ts';
import { BURSTPOLICIES } from '../../../operator/kube/resources.ts';
import type { TestApiserver } from '../apiserver.ts';
import { BoughtClusters } from './bought-clusters.ts';
import { makePeakPolicy, runBurst, sellClusters } from './burst-beside.ts';
import type { HubTestbed } from './hub-testbed.ts';
import type { Processes } from './processes.ts';
import { SchedulingMember } from './scheduling-member.ts';

const PATIENCE_MS = 120_000;

interface Ends {
  stop(): Promise<unknown>;
}

/** What there is before the hub is made. */
interface Given {
  readonly testbed: HubTestbed;
  readonly processes: Processes;
  /** The real hub. */
  readonly hub: Ends;
  readonly own: SchedulingMember;
  /** API servers that are kept for clusters that are bought, by name. */
  readonly kept: Readonly<Record<string, TestApiserver>>;
}

/** A real hub, a private cluster of 4 CPUs that has joined it, and machines for those that policies buy. */
export class BurstOnHub {
  readonly testbed: HubTestbed;
  readonly own: SchedulingMember;
  readonly kept: Given['kept'];
  readonly bought: BoughtClusters;
  readonly #ends: readonly Ends[];

  private constructor({ testbed, own, kept, processes, hub }: Given, bought: BoughtClusters) {
    this.testbed = testbed;
    this.own = own;
    this.kept = kept;
    this.bought = bought;
    this.#ends = [bought, own, processes, hub, testbed];
  }

  /**
   * @param labels of the private cluster
   * @param prepare called when that was made, before it is open
   */
  static async start(
    given: Given,
    labels: Record<string, string> = {},
    prepare: (testbed: HubTestbed) => Promise<unknown> = async () => {},
  ): Promise<BurstOnHub> {
    const { testbed, own } = given;
    const bought = new BoughtClusters(testbed, given.processes, given.kept);
    await bought.start();
    await sellClusters(testbed.garden.client);
    runBurst(testbed);
    await testbed.startOperator();
    await testbed.makeHub();
    await testbed.makeCluster(labels);
    await prepare(testbed);
    testbed.open(own.pods);
    await testbed.until('the private cluster to join', () => testbed.state() === 'Joined', PATIENCE_MS);
    return new BurstOnHub(given, bought);
  }

  async stop(): Promise<void> {
    for (const end of this.#ends) await end.stop();
  }

  /** BurstPolicy shop/peak, once it is made. */
  policy(): Promise<BurstPolicy | undefined> {
    return this.testbed.garden.client.getOrUndefined<BurstPolicy>(BURSTPOLICIES, 'peak', 'shop');
  }

  /** BurstPolicy shop/peak, which may buy one cluster. */
  async makePolicy(): Promise<void> {
    const spec = { cloudProvider: 'cloud', pools: [{ name: 'a', maximum: 5 }] };
    await makePeakPolicy(this.testbed.garden.client, [{ name: 'cloud', template: { spec } }]);
  }
}

/** The private cluster's node, and the API servers that are kept. */
export async function addClusters(
  testbed: HubTestbed,
  processes: Processes,
  names: readonly string[],
): Promise<Pick<Given, 'own' | 'kept'>> {
  const kept: Record<string, TestApiserver> = {};
  for (const name of names) kept[name] = await testbed.addMember(name, '4', '8Gi');
  const own = await SchedulingMember.start(processes, testbed.member, 'demo');
  await own.addNode('one', '4', '8Gi');
  return { own, kept };
}
