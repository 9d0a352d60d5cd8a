import { beforeEach, describe, expect, it } from 'vitest';
import { LABELS } from '../../../operator/api/group.ts';
import { explainPolicy } from '../../../operator/cli/render/burst.ts';
import { BurstMemory } from '../../../operator/controllers/burst/memory.ts';
import { WORKERCLUSTERS } from '../../../operator/kube/resources.ts';
import { BurstTestbed, demand, Killed, MINUTE, policyNamed, SECOND } from '../../kit/burst/testbed.ts';

let testbed: BurstTestbed;
beforeEach(() => begin());

function begin(): void {
  testbed = new BurstTestbed();
  testbed.objects.put(policyNamed('peak'));
  testbed.demands = [demand('ResourceBinding shop/web', 3)];
}

const told = () => testbed.events.filter((text) => text.startsWith('Decision'));
/** It has work, and is given back when it had none for long enough. */
async function untilGone(): Promise<void> {
  const [cluster] = testbed.clusters();
  testbed.join(cluster!, 3);
  testbed.demands = [];
  await testbed.looks(40 * MINUTE);
  testbed.empty(cluster!);
  await testbed.looks(12 * MINUTE);
}

describe('the outcome of a purchase', () => {
  it('is reported in steps: in the hub, then with work; by explain, an Event and a metric', async () => {
    await testbed.looks(40 * SECOND);
    expect(testbed.outcomes()).toEqual(['Buy ?']);
    testbed.now += 14 * SECOND;
    const [cluster] = testbed.clusters();
    testbed.join(cluster!, 0);
    await testbed.look();
    expect(testbed.outcomes()).toEqual([
      'Buy InProgress: it was in the hub 14 s after the decision; it has had no work yet',
    ]);
    expect(told()).toEqual([]);
    testbed.join(cluster!, 3);
    testbed.demands = [];
    await testbed.look(3 * SECOND);
    const became = 'it was in the hub 14 s after the decision, and had work 3 s later';
    expect(testbed.outcomes()).toEqual([`Buy Succeeded: ${became}`]);
    expect(told()).toEqual([`DecisionSucceeded Buy, WorkerCluster ${cluster!.metadata.name}: ${became}`]);
    expect(explainPolicy(testbed.policy()!, testbed.now)).toContain(`      outcome: ${became}`);
    expect(await testbed.metrics.render()).toContain(
      'coppice_burst_outcome_seconds_sum{action="Buy",result="Succeeded"} 17',
    );
  });

  it('contains the total cost of a removed cluster, which equals its spending', async () => {
    await testbed.looks(40 * SECOND);
    await untilGone();
    const [spent] = Object.values(testbed.receipt()!.spent);
    expect(testbed.outcomes()[0]).toBe(
      `Remove Succeeded: it was gone 60 s after the decision, and has cost ${spent} USD in all`,
    );
    expect(Number(spent)).toBeGreaterThan(0.2);
  });

  it('has no cost where the record is older than recorded costs', async () => {
    await testbed.looks(40 * SECOND);
    testbed.join(testbed.clusters()[0]!, 3);
    await testbed.look(10 * SECOND);
    const { name } = testbed.clusters()[0]!.metadata;
    const cluster = testbed.objects.find(WORKERCLUSTERS, name, 'shop')!;
    testbed.objects.put({ ...cluster, status: { cost: { hourly: '0.2' } } } as never);
    await testbed.look(10 * SECOND);
    const { deps } = testbed;
    const receipt = testbed.receipt()!;
    const purchases = receipt.purchases.map((one) => {
      const { cost: _, ...older } = one;
      return older;
    });
    await deps.receipts.save('shop/peak', { ...receipt, purchases }, await deps.receipts.read('shop/peak'));
    await untilGone();
    expect(testbed.outcomes()[0]).toMatch(/^Remove Succeeded: it was gone \d+ s after the decision$/);
  });

  it.each<[string, () => void, RegExp]>([
    [
      'did not come',
      () => {
        const [first] = testbed.clusters();
        const codes = ['ERR_INFRA_RESOURCES_DEPLETED'];
        const ready = { type: 'Ready', status: 'False', message: 'no machines left', lastTransitionTime: '', codes };
        testbed.objects.put({ ...first!, status: { conditions: [ready] } } as never);
      },
      /^Buy Failed: it was given up 10 s after the decision: no machines left$/,
    ],
    [
      'is taken from the policy',
      () => {
        const [first] = testbed.clusters();
        const { [LABELS.burstPolicy]: _, ...labels } = first!.metadata.labels!;
        testbed.objects.put({ ...first!, metadata: { ...first!.metadata, labels } });
      },
      /^Buy Lost: somebody deleted it, or took it from the policy, 10 s after the decision$/,
    ],
  ])('is told of one that %s', async (_, happens, outcome) => {
    await testbed.looks(50 * SECOND);
    testbed.now -= 10 * SECOND;
    happens();
    await testbed.look(10 * SECOND);
    expect(testbed.outcomes().at(-1)).toMatch(outcome);
    expect(told()).toHaveLength(1);
  });

  it('is reported for a cluster removed without ever having work', async () => {
    await testbed.looks(40 * SECOND);
    testbed.join(testbed.clusters()[0]!, 0);
    await testbed.look(10 * SECOND);
    testbed.demands = [];
    await testbed.looks(40 * MINUTE);
    expect(testbed.outcomes().at(-1)).toBe(
      'Buy Unused: it was in the hub 10 s after the decision, and had no work in the 30 minutes until it was given back',
    );
  });

  it('is reported once with the operator killed after each of its writes', async () => {
    const shown: string[][] = [];
    for (let lives = 0; lives <= 8; lives++) {
      begin();
      testbed.lives = lives === 0 ? Number.POSITIVE_INFINITY : lives;
      const look = async (after: number) => {
        await testbed.look(after).catch((error: unknown) => {
          if (!(error instanceof Killed)) throw error;
          testbed.lives = Number.POSITIVE_INFINITY;
          testbed.memory = new BurstMemory();
        });
      };
      for (let past = 0; past < 3 * MINUTE; past += 10 * SECOND) await look(10 * SECOND);
      testbed.join(testbed.clusters()[0]!, 3);
      testbed.demands = [];
      for (let past = 0; past < 40 * MINUTE; past += MINUTE) await look(MINUTE);
      testbed.empty(testbed.clusters()[0]!);
      for (let past = 0; past < 30 * MINUTE; past += MINUTE) await look(MINUTE);
      shown.push(testbed.outcomes().map((text) => text.replaceAll(/\d+ s |[\d.]+ USD/g, '')));
      expect(new Set(told()).size, `killed at write ${lives}`).toBe(told().length);
    }
    for (const one of shown) expect(one).toEqual(shown[0]);
    expect(shown[0]).toHaveLength(2);
  });

  it('is not reported for a dry run', async () => {
    testbed.objects.put(policyNamed('peak', { dryRun: true }));
    await testbed.looks(40 * MINUTE);
    expect(testbed.outcomes()).toEqual(['Buy ?']);
  });
});
