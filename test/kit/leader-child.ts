import { readFileSync } from 'node:fs';
import { KubeClient } from '../../operator/kube/client.ts';
import { setFence } from '../../operator/kube/http/fence.ts';
import { LeaderThread } from '../../operator/kube/leader-thread.ts';
import type { LeaderTiming } from '../../operator/kube/leader-thread-protocol.ts';
import { silent } from '../../operator/kube/log.ts';

/** What a process that leads in a test is told by its first argument, as JSON. */
export interface LeaderChild {
  readonly kubeconfig: string;
  readonly namespace: string;
  readonly name: string;
  readonly identity: string;
  readonly timing: Partial<LeaderTiming>;
  /** How long its main event loop stands still once it leads, milliseconds. Absent: not at all. */
  readonly standsStillMs?: number;
}

const { standsStillMs, ...lease } = JSON.parse(process.argv[2] ?? '{}') as LeaderChild;
const client = KubeClient.fromOwnKubeconfig(readFileSync(lease.kubeconfig, 'utf8'), { directory: '/' });
const stop = new AbortController();
process.once('SIGTERM', () => stop.abort(new Error('received SIGTERM')));
const say = (line: string) => process.stdout.write(`${line}\n`);

const leader = new LeaderThread({
  ...lease,
  rememberIn: undefined,
  log: silent,
  onLost: () => process.exit(3),
  async onStarted(signal) {
    say('leads');
    if (standsStillMs !== undefined) {
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, standsStillMs);
      say('goes on');
    }
    // Writes without a pause, as an operator that is busy.
    for (let count = 0; !signal.aborted; count++) {
      const metadata = { name: `by-${lease.identity}`, namespace: lease.namespace };
      const data = { count: String(count) };
      await client
        .apply({ apiVersion: 'v1', kind: 'ConfigMap', metadata, data })
        .catch((error: Error) => say(error.name));
      if (count === 0) say('writes');
    }
  },
});
setFence(leader.fence);
await leader.run(stop.signal);
await client.close();
say('has stopped');
