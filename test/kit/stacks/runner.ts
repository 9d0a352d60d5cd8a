import { silent } from '../../../operator/kube/log.ts';
import { PulumiRunner } from '../../../providers/pulumi/runner.ts';
import type { CloudName, FakeCloud } from '../cloud/index.ts';
import { CLOUDS } from '../cloud/model.ts';
import { isTurn } from '../rotation.ts';
import { testTools } from '../tools.ts';
import { InProcessWorkers } from './workers.ts';

/** Who runs the programs of a test: Pulumi's own engine (2 s and 0.35 GB each time), or this process in its place. */
export type EngineOfTests = 'real' | 'in-process';

/** What lives in a cloud: clusters of its managed service, or machines for control planes and workers that we run. */
export type Kind = 'managed' | 'machines';

/** In which of three turns the real engine runs a cloud's lives of this kind: in each turn those of two clouds, one of either kind. */
const turnOf = (cloud: CloudName, kind: Kind): number =>
  (CLOUDS.indexOf(cloud) + (kind === 'machines' ? 1 : 0)) % CLOUDS.length;

/**
 * Who runs the lives of this kind in this cloud in this run of the tests: the real engine those of two clouds, by turns, so that each shows
 * again and again that both engines do the same. COPPICE_TEST_ROTATION chooses: 0 is managed clusters at AWS and machines at Azure, 1 Google
 * and AWS, 2 Azure and Google, `all` (and nothing) everything.
 */
export const engineFor = (cloud: CloudName, kind: Kind): EngineOfTests =>
  isTurn({ of: CLOUDS.length, turns: [turnOf(cloud, kind)] }) ? 'real' : 'in-process';

/** A runner over a fake cloud, without plugins of others. */
export async function testRunner(cloud: FakeCloud, home: string, by: EngineOfTests): Promise<PulumiRunner> {
  const { pulumi } = by === 'real' ? await testTools('pulumi') : { pulumi: 'in-process' };
  return new PulumiRunner({
    engine: async () => pulumi,
    home,
    log: silent,
    acquirePlugins: false,
    plugins: cloud.pluginFolders,
    ...(by === 'in-process' && { workers: new InProcessWorkers(cloud) }),
  });
}
