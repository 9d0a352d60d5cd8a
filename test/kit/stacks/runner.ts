import { silent } from '../../../operator/kube/log.ts';
import { PulumiRunner } from '../../../providers/pulumi/runner.ts';
import type { CloudName, FakeCloud } from '../cloud/index.ts';
import { CLOUDS } from '../cloud/model.ts';
import { isTurn } from '../rotation.ts';
import { testTools } from '../tools.ts';
import { InProcessWorkers } from './workers.ts';

/** Who runs the programs of a test: Pulumi's own engine (2 s and 0.35 GB each time), or this process in its place. */
export type EngineOfTests = 'real' | 'in-process';

/**
 * Who runs the lives of this cloud in this run of the tests: the real engine those of one cloud, by turns, so that each cloud shows again
 * and again that both do the same. COPPICE_TEST_ROTATION chooses: 0 is AWS', 1 Google's, 2 Azure's, `all` (and nothing) everybody's.
 */
export const engineFor = (cloud: CloudName): EngineOfTests =>
  isTurn({ of: CLOUDS.length, turns: [CLOUDS.indexOf(cloud)] }) ? 'real' : 'in-process';

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
