import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { describe, expect, it } from 'vitest';
import { cpuBetween, isRunning, type Process, parseStat, podOf } from '../../bench/processes.ts';

const UID = '149d8024-f42c-48a4-b74b-6527b54c88ea';
const CONTAINER = '042977cfc32363abddd67afe1f5c096c610f9ba9be32e3aab6d8911b8f5cbb5e';

describe('parseStat', () => {
  it('accepts names with blanks and parentheses', () => {
    const numbers = [7, 1, 1, 0, -1, 0, 0, 0, 0, 0, 150, 50, 20, 30, 20, 0, 4, 0, 12345];
    expect(parseStat(`42 (a (b) c) S ${numbers.join(' ')} 0 0`)).toEqual({
      pid: 42,
      name: 'a (b) c',
      parent: 7,
      cpuSeconds: 2.5,
      startedAt: 123.45,
    });
  });
});

describe('podOf', () => {
  it.each([
    [`/kubepods/burstable/pod${UID}/${CONTAINER}`, { uid: UID, container: CONTAINER }],
    [`/kubepods/pod${UID}`, { uid: UID, container: undefined }],
    // What runs in a machine belongs to the machine.
    [
      `/kubepods/pod${UID}/${CONTAINER}/kubepods/pod${UID.replace('1', '2')}/${CONTAINER}`,
      { uid: UID, container: CONTAINER },
    ],
    ['/system', undefined],
  ])('finds the pod and container of cgroup %s', (path, pod) => {
    expect(podOf(path)).toEqual(pod);
  });
});

describe('cpuBetween', () => {
  const of = (pid: number, startedAt: number, cpuSeconds: number, component: string): Process => ({
    pid,
    name: component,
    parent: 1,
    cpuSeconds,
    startedAt,
    isSandbox: false,
    component,
  });
  it('counts the difference, all of new processes, and nothing of ended ones', () => {
    const before = [of(1, 10, 5, 'etcd'), of(2, 10, 9, 'etcd'), of(3, 10, 7, 'kubelet')];
    const after = [of(1, 10, 6, 'etcd'), of(2, 50, 1, 'kubelet'), of(4, 60, 2, 'etcd')];
    const parts = cpuBetween(before, after, ({ component }) => component ?? '');
    expect(Object.fromEntries(parts)).toEqual({ etcd: 3, kubelet: 1 });
  });
});

// Of a deleted cluster's shims it was seen that their parent, the host's first process, looked up to two seconds later.
it('isRunning is false for an ended process, even before its parent has reaped it', async () => {
  const parent = spawn('sh', ['-c', 'sleep 0.05 & echo $!; exec sleep 300'], { stdio: ['ignore', 'pipe', 'ignore'] });
  try {
    const [told] = await once(parent.stdout, 'data');
    const pid = Number(String(told));
    await expect.poll(() => isRunning(pid), { timeout: 60_000 }).toBe(false);
    expect(process.kill(pid, 0)).toBe(true);
    expect(isRunning(parent.pid!)).toBe(true);
  } finally {
    parent.kill('SIGKILL');
  }
});
