import { execFile } from 'node:child_process';
import { open, readFile, rm } from 'node:fs/promises';
import { cpus, loadavg, release, tmpdir, totalmem } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { readLayout } from '../../operator/garden/host/cgroups.ts';
import { TOOLS } from '../../operator/garden/toolchain/tools.ts';
import { summarize } from './statistics.ts';

/** What the figures depend on. Says nothing that would tell whose machine it is. */
export interface Machine {
  cpu: string;
  cores: number;
  memoryGiB: number;
  isVirtual: boolean;
  distribution: string;
  kernel: string;
  cgroups: number;
  /** Of the folder where the garden keeps its state. */
  fileSystem: string;
  /** Median of 30 writes of 2 KiB, each with fsync: etcd waits for one at each write. */
  fsyncMs: number;
  node: string;
  kubernetes: string;
  etcd: string;
  containerd: string;
  coppice: string;
  /** Of one minute, before the first measurement. */
  loadBefore: number;
}

/** @param containerd its path; absent: none is needed */
export async function describeMachine(containerd: string | undefined): Promise<Machine> {
  const [os, info, layout, fileSystem, fsyncMs, containerdVersion, coppice] = await Promise.all([
    text('/etc/os-release'),
    text('/proc/cpuinfo'),
    readLayout(),
    fileSystemOf(tmpdir()),
    fsyncTime(),
    containerd ? output(containerd, ['--version']) : '',
    commit(),
  ]);
  return {
    cpu: cpus()[0]?.model ?? 'unknown',
    cores: cpus().length,
    memoryGiB: Math.round(totalmem() / 1024 ** 3),
    isVirtual: /^flags.*\bhypervisor\b/m.test(info),
    distribution: /^PRETTY_NAME="?([^"\n]*)/m.exec(os)?.[1] ?? 'unknown',
    kernel: release(),
    cgroups: layout?.version ?? 0,
    fileSystem,
    fsyncMs,
    node: process.version,
    kubernetes: TOOLS['kube-apiserver'].version,
    etcd: TOOLS.etcd.version,
    containerd: /\bv?(\d+\.\d+\.\d+\S*)/.exec(containerdVersion)?.[1] ?? 'not used',
    coppice,
    loadBefore: loadavg()[0] ?? 0,
  };
}

/** Time of all cores since the boot, in hundredths of a second: how much of it was used, and taken by the host. */
export async function cpuTimes(): Promise<{ total: number; busy: number; stolen: number }> {
  const [, line = ''] = /^cpu +(.*)$/m.exec(await text('/proc/stat')) ?? [];
  const [user = 0, nice = 0, system = 0, idle = 0, wait = 0, irq = 0, soft = 0, stolen = 0] = line
    .split(' ')
    .map(Number);
  const busy = user + nice + system + irq + soft;
  return { total: busy + idle + wait + stolen, busy, stolen };
}

const text = (file: string): Promise<string> => readFile(file, 'utf8').catch(() => '');

const output = (file: string, args: readonly string[]): Promise<string> =>
  promisify(execFile)(file, [...args], { cwd: fileURLToPath(new URL('../..', import.meta.url)) }).then(
    ({ stdout }) => stdout.trim(),
    () => '',
  );

async function commit(): Promise<string> {
  const [id, changes] = await Promise.all([
    output('git', ['rev-parse', '--short=12', 'HEAD']),
    output('git', ['status', '--porcelain', '--untracked-files=no']),
  ]);
  return id ? `${id}${changes ? ' with changes' : ''}` : 'unknown';
}

async function fileSystemOf(folder: string): Promise<string> {
  let best = { point: '', type: 'unknown' };
  for (const line of (await text('/proc/self/mountinfo')).split('\n')) {
    const [before = '', after = ''] = line.split(' - ');
    const point = before.split(' ')[4] ?? '';
    const holds = folder === point || folder.startsWith(point.endsWith('/') ? point : `${point}/`);
    if (point && holds && point.length >= best.point.length) best = { point, type: after.split(' ')[0] ?? '' };
  }
  return best.type;
}

async function fsyncTime(): Promise<number> {
  const file = join(tmpdir(), `coppice-bench-fsync-${process.pid}`);
  const handle = await open(file, 'w');
  const times: number[] = [];
  try {
    for (let i = 0; i < 30; i++) {
      const start = performance.now();
      await handle.write(Buffer.alloc(2048));
      await handle.datasync();
      times.push(performance.now() - start);
    }
  } finally {
    await handle.close();
    await rm(file, { force: true });
  }
  return summarize(times)!.median;
}
