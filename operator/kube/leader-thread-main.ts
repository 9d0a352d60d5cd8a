import { readFileSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';
import { parentPort, workerData } from 'node:worker_threads';
import { KubeClient } from './client.ts';
import { systemClock } from './clock.ts';
import { LeaderElector } from './leader.ts';
import { CLOCK, type FromThread, type LeaderThreadData, type ToThread } from './leader-thread-protocol.ts';
import type { Level } from './log.ts';

/** How often the thread looks whether the main event loop has run. */
const LOOK_MS = 1_000;
/** How long a process that lost the Lease may take to end by itself: it has ended its work by then, or had time to. */
const END_MS = 1_000;

const MILLISECOND = 1_000_000n;
const { kubeconfig, timing, clock, ...lease } = workerData as LeaderThreadData;
const port = parentPort!;
const shared = new BigInt64Array(clock);
const tell = (message: FromThread) => port.postMessage(message);

/**
 * Ends the process from within this thread: its main event loop may be in the middle of something that never ends. What it holds in memory
 * is on no disk, and the next one looks afresh.
 */
function endProcess(why: string): void {
  Atomics.store(shared, CLOCK.deadline, 0n);
  // Past the main event loop, by which all other lines are written.
  writeSync(2, `${JSON.stringify({ level: 60, time: new Date().toISOString(), msg: why })}\n`);
  process.kill(process.pid, 'SIGKILL');
}

const stopping = new AbortController();
/** Ends renewing without giving the Lease back: the process is to be ended, and may be one that no signal ends (number 1 of a container). */
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

const log = (level: Level) => (fields: object, message: string) =>
  tell({ type: 'log', level, fields: withText(fields), message });
/** Errors are cut to what a message between threads can carry, and a log shows. */
const withText = (fields: object) =>
  Object.fromEntries(
    Object.entries(fields).map(([key, value]) => [key, value instanceof Error ? value.message : value]),
  );

const onRequest = ({ method, status }: { method: string; status: number }) => tell({ type: 'request', method, status });
// A connection of its own: on those of a busy operator a renewal waits behind all that was asked before it.
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
    // Counted from when it was asked: the others count from later.
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
// Lets the thread end, once nothing else is left.
port.unref();
