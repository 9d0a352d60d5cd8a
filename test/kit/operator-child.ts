import { readFileSync } from 'node:fs';
import { KubeClient } from '../../operator/kube/client.ts';
import { setFence } from '../../operator/kube/http/fence.ts';
import { LeaderThread } from '../../operator/kube/leader-thread.ts';
import type { LeaderTiming } from '../../operator/kube/leader-thread-protocol.ts';
import { silent } from '../../operator/kube/log.ts';
import { Registry } from '../../operator/kube/metrics.ts';
import { startOperator } from '../../operator/operator.ts';
import { providerNamed } from '../../providers/index.ts';
import { managedOnly } from './managed-only.ts';
import { MemoryCloud } from './memory-cloud.ts';

/** What an operator in a process of its own is told by the first argument, as JSON. */
export interface OperatorChild {
  /** File. */
  readonly kubeconfig: string;
  /** Name of its Lease in kube-system: operators of one name take turns. */
  readonly lease: string;
  readonly identity: string;
  readonly timing: Partial<LeaderTiming>;
  /** Where its clouds keep state. */
  readonly directory: string;
  /** The API server that each managed cluster of cloud `memory` has. */
  readonly managed: Pick<MemoryCloud, 'endpoint' | 'certificateAuthority' | 'token'>;
}

// As operator/main.ts, with clouds of the tests.
const { kubeconfig, lease, identity, timing, directory, managed } = JSON.parse(
  process.argv[2] ?? '{}',
) as OperatorChild;
const garden = KubeClient.fromOwnKubeconfig(readFileSync(kubeconfig, 'utf8'), { directory: '/' });
const cloud = managedOnly('memory', Object.assign(new MemoryCloud(), managed).managed());
const stop = new AbortController();
process.once('SIGTERM', () => stop.abort(new Error('received SIGTERM')));

const leader = new LeaderThread({
  kubeconfig,
  namespace: 'kube-system',
  name: lease,
  identity,
  timing,
  rememberIn: undefined,
  log: silent,
  onLost: () => process.exit(3),
  async onStarted(signal) {
    const operator = await startOperator(
      {
        garden,
        log: silent,
        metrics: new Registry(),
        provider: ({ spec }) => (spec.type === 'memory' ? cloud : providerNamed('simulated')),
        state: { namespace: 'kube-system', directory },
      },
      signal,
    );
    process.stdout.write('operates\n');
    await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
    await operator.stop();
  },
});
setFence(leader.fence);
await leader.run(stop.signal);
await garden.close();
