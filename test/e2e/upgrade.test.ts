import { beforeAll, expect, it } from 'vitest';
import { e2e } from '../kit/garden.ts';
import {
  hasOld,
  kubelets,
  letGo,
  MAKE_MS,
  makeOld,
  NEW,
  OLD,
  runGuarded,
  type Upgraded,
  upgrade,
  whenReady,
  why,
} from '../kit/upgrade.ts';
import { untilPods } from '../kit/workload.ts';

/** What a single API server may be away for. */
const LONGEST_PAUSE_MS = 5_000;
/** Between two writes that are confirmed while another server answers: a busy machine, not an API that is away. Half a second was seen. */
const NOT_AWAY_MS = 2_000;

(hasOld ? e2e : e2e.skip)(`an upgrade of Kubernetes${why}`, () => {
  let single: Upgraded;
  let threefold: Upgraded;

  beforeAll(async () => {
    const clusters = await Promise.all([makeOld({ dataPlaneNodes: 1 }), makeOld({ controlPlaneNodes: 3 })]);
    single = await whenReady(clusters[0]);
    threefold = await whenReady(clusters[1]);
    return () => Promise.all([single, threefold].map(({ writer }) => writer.stop()));
  }, MAKE_MS);

  it('interrupts a single API server for less than 5 s, and then drains and replaces nodes', async () => {
    await runGuarded(single);
    expect(await kubelets(single)).toEqual([`v${OLD}`]);
    await upgrade(single, () => letGo(single));
    expect(single.writer.longestPauseMs).toBeLessThan(LONGEST_PAUSE_MS);
    expect(await kubelets(single)).toEqual([`v${NEW}`]);
    await untilPods(single.client, 'guarded', ({ length }) => length === 1, 'to be Ready again');
  });

  it('keeps one of three API servers available all the time', async () => {
    await upgrade(threefold);
    // A request that is on its way to a server that ends may be lost; the next one, 10 ms later, is not.
    expect(threefold.writer.mostRefusedInARow).toBeLessThan(2);
    expect(threefold.writer.longestPauseMs).toBeLessThan(NOT_AWAY_MS);
  });
});
