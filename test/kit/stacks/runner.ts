import { silent } from '../../../operator/kube/log.ts';
import { PulumiRunner } from '../../../providers/pulumi/runner.ts';
import type { CloudName, FakeCloud } from '../cloud/index.ts';
import { testTools } from '../tools.ts';
import { InProcessWorkers } from './workers.ts';

/** Who runs the programs of a test: Pulumi's own engine (2 s and 0.35 GB each time), or this process in its place. */
export type EngineOfTests = 'real' | 'in-process';

/** The clouds whose whole lives Pulumi's own engine runs in this run of the tests. */
export const engineFor = (_cloud: CloudName): EngineOfTests => 'in-process';

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
