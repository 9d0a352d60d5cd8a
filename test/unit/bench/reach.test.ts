import { expect, it } from 'vitest';
import type { Process } from '../../bench/processes.ts';
import { serverPod } from '../../bench/reach.ts';

const process = (pid: number, name: string, startedAt: number, more: Partial<Process> = {}): Process => ({
  pid,
  name,
  parent: 1,
  cpuSeconds: 0,
  startedAt,
  pod: 'a',
  isSandbox: name === 'pause',
  ...more,
});
const shim = process(1, 'containerd-shim', 9.7, { isSandbox: true, component: 'containerd' });
const memory = (pid: number) => ({ rss: 0, anonymous: 0, share: pid });

it('serverPod separates the memory of shim and pauses, and measures the start from the network on', () => {
  const pod = serverPod(
    [process(100, 'kube-apiserver', 10.5), process(3, 'pause', 10.2), shim, process(2, 'pause', 10)],
    memory,
  );
  expect(pod).toEqual({ server: 100, rest: 6 * 1024, startMs: expect.closeTo(500) });
});

it('serverPod rejects a pod without an API server', () => {
  expect(() => serverPod([shim, process(2, 'pause', 10)], memory)).toThrow('no API server');
});
