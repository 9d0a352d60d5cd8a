import { describe, expect, it } from 'vitest';
import { nodesAlone } from '../../../operator/rehearsal/baselines.ts';
import { cluster } from './fixtures.ts';
import { HEADER, playWork, policy, SLOW, STANDING } from './policy-fixtures.ts';

const KIND = 'batch.volcano.sh/v1alpha1 Job';
const play = (rows: string, objects = [STANDING, policy()], from = 'hub', labels = 'tier=public') =>
  playWork(rows.replaceAll('KIND', `${KIND},${labels},${from}`), objects, SLOW, `${HEADER},kind,kindLabels,kindFrom`);

describe('the work of a kind that not every cluster serves', () => {
  it('does not run where its kind is not served; a cluster is bought where the hub propagates the kind', async () => {
    const { told, report } = await play('20m,train,1,,500m,1Gi,,,,KIND\n2h,train,1,,,,,,,KIND');
    expect(told('bought')).toEqual([expect.stringMatching(/^00:20:30 bought: 1 replica .* of train/)]);
    expect(report.work!.waits).toMatchObject({ count: 1, max: 7 * 60_000 + 30_000 });
  });

  it('buys no first cluster where something else installs the kind, with the reason; once one serves it, others', async () => {
    const rows = '20m,train,1,,500m,1Gi,,,,KIND\n1h,train,5,,1500m,1Gi,,,,KIND\n3h,train,5,,,,,,,KIND';
    const none = await play(rows, [STANDING, policy()], 'others');
    expect(none.told('bought')).toEqual([]);
    expect(none.report.work!.refusals).toMatchObject([
      {
        why: `public: a new cluster of it will not serve ${KIND}: the hub does not bring it there, and no clusters made like it show that they have it`,
      },
    ]);
    const one = await play(rows, [STANDING, policy({ minimumClusters: 1 })], 'others');
    expect(one.told('bought')).toEqual([
      expect.stringMatching(/^00:00:00 bought: the policy is to have 1 cluster/),
      expect.stringMatching(/^01:00:30 bought: /),
    ]);
    expect(one.report.work!.waiting).toBe(0);
  });

  it('buys nothing where the hub propagates the kind only to other clusters', async () => {
    const { told, report } = await play(
      '20m,train,1,,500m,1Gi,,,,KIND\n2h,train,1,,,,,,,KIND',
      undefined,
      'hub',
      'tier=own',
    );
    expect(told('bought')).toEqual([]);
    expect(report.work!.waiting).toBe(1);
  });

  it('keeps the cluster that serves it, whatever is free elsewhere', async () => {
    const scaleIn = { idleFor: '10m', minimumLife: '30m', consolidationPolicy: 'WhenEmptyOrUnderutilized' };
    const rows = '20m,train,1,,500m,1Gi,,,,KIND\n6h,train,1,,,,,,,KIND';
    const { told } = await play(rows, [STANDING, policy({ scaleIn })]);
    expect(told('emptied', 'given-back')).toEqual([]);
    const plain = await playWork('20m,web,2,,1500m,1Gi,,,\n30m,train,1,,500m,1Gi,,,\n40m,web,0,,,,,,\n6h,web,0,,,,,,', [
      STANDING,
      policy({ scaleIn }),
    ]);
    expect(plain.told('emptied')).toHaveLength(1);
  });

  it('with nodes alone grows only where its kind is served', async () => {
    const own = cluster('own', { mode: 'Hosted', dataPlaneNodes: 0 });
    const rows = '20m,train,1,,500m,1Gi,,,,KIND\n2h,train,1,,,,,,,KIND';
    const grown = async (labels: string) => {
      const { scenario, again } = await play(rows, [own, policy()], 'hub', labels);
      const { total } = await again(nodesAlone(scenario, 'public')!);
      return total.machineMs;
    };
    expect(await grown('tier=own')).toBe(0);
    expect(await grown('tier=public')).toBeGreaterThan(0);
  });
});
