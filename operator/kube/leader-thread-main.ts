import { readFileSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';
import { parentPort, workerData } from 'node:worker_threads';
import { KubeClient } from './client.ts';
import { systemClock } from './clock.ts';
import { LeaderElector } from './leader.ts';
import { CLOCK, type FromThread, type LeaderThreadData, type ToThread } from './leader-thread-protocol.ts';
import type { LogLevel } from './log.ts';

/** How often the thread checks the heartbeat of the main event loop. */
const LOOK_MS = 1_000;
/** Time for a process that lost the Lease to end by itself before it is killed. */
const END_MS = 1_000;

const MILLISECOND = 1_000_000n;
const { kubeconfig, timing, clock, ...lease } = workerData as LeaderThreadData;
const port = parentPort!;
const shared = new BigInt64Array(clock);
const tell = (message: FromThread) => port.postMessage(message);

/**
 * Kills the process from this thread: the main event loop may be stuck for ever. The next leader rebuilds its state
 * from the API server.
 */
function endProcess(why: string): void {
  Atomics.store(shared, CLOCK.deadline, 0n);
  // Write directly: all other log lines go through the main event loop, which may be stuck.
  writeSync(2, `${JSON.stringify({ level: 60, time: new Date().toISOString(), msg: why })}\n`);
  process.kill(process.pid, 'SIGKILL');
}

const stopping = new AbortController();
/**
 * Stops renewing without releasing the Lease: the process is about to be killed, and no signal may end it when it is
 * PID 1 of a container.
 */
const stalled = new AbortController();
let workEnded = () => {};
port.on('message', ({ type }: ToThread) => {
  if (type === 'stop') stopping.abort(new Error('the process stops'));
  else workEnded();
});

const watch = setInterval(() => {
  const silentNs = process.hrtime.bigint() - Atomics.load(shared, CLOCK.heartbeat);
  if (silentNs < BigInt(timing.stalledMs) * MILLISECOND) return;
  clearInterval(watch);
  stalled.abort(new Error('the main event loop stands still'));
  endProcess(`the main event loop has stood still for ${silentNs / (1000n * MILLISECOND)} s: the process is ended`);
}, LOOK_MS);

const log = (level: LogLevel) => (fields: object, message: string) =>
  tell({ type: 'log', level, fields: withText(fields), message });
/** Errors as text, because an Error does not survive postMessage. */
const withText = (fields: object) =>
  Object.fromEntries(
    Object.entries(fields).map(([key, value]) => [key, value instanceof Error ? value.message : value]),
  );

const onRequest = ({ method, status }: { method: string; status: number }) => tell({ type: 'request', method, status });
// A separate connection: on the busy operator's connections a renewal would queue behind other requests.
const client = kubeconfig
  ? KubeClient.fromOwnKubeconfig(readFileSync(kubeconfig, 'utf8'), { directory: dirname(kubeconfig) }, { onRequest })
  : KubeClient.fromEnvironment(undefined, { onRequest });

const { leaseDurationMs, renewDeadlineMs, retryPeriodMs } = timing;
const elector = new LeaderElector({
  client,
  namespace: lease.namespace,
  name: lease.name,
  identity: lease.identity,
  ...(lease.rememberIn !== undefined && { rememberIn: lease.rememberIn }),
  leaseDurationMs,
  renewDeadlineMs,
  retryPeriodMs,
  log: { debug: log('debug'), info: log('info'), warn: log('warn'), error: log('error') },
  onLooked: seen,
  onRenewed(askedAt) {
    // Counted from when the request was sent: other replicas count from later.
    const left = renewDeadlineMs - (systemClock.now() - askedAt);
    const deadline = process.hrtime.bigint() + BigInt(Math.round(left * 1e6));
    if (!stalled.signal.aborted) Atomics.store(shared, CLOCK.deadline, deadline);
  },
  async onStarted(signal) {
    seen();
    tell({ type: 'started' });
    const ended = new Promise<void>((resolve) => {
      workEnded = resolve;
    });
    signal.addEventListener('abort', () => tell({ type: 'end' }), { once: true });
    await ended;
  },
  onLost() {
    Atomics.store(shared, CLOCK.deadline, 0n);
    tell({ type: 'lost' });
    setTimeout(() => endProcess('the Lease is lost, and the process has not ended by itself'), END_MS);
  },
});

function seen(): void {
  const { leading, problem, earlierLeaders } = elector;
  tell({ type: 'seen', leading, ...(problem !== undefined && { problem }), leaders: earlierLeaders });
}

await elector.run(AbortSignal.any([stopping.signal, stalled.signal]));
clearInterval(watch);
Atomics.store(shared, CLOCK.deadline, 0n);
await client.close();
tell({ type: 'done' });
// Lets the thread end once no other work is left.
port.unref();
