import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { describe, expect, it, onTestFinished } from 'vitest';
import { cpuOf, WorkerWatch } from '../../bench/worker-watch.ts';

describe('cpuOf', () => {
  it('separates own time from that of ended children', () => {
    const line = '42 (a (odd) name) S 1 42 42 0 -1 4194560 1 2 3 4 150 50 300 25 20 0 11 0 12345 1 2';
    expect(cpuOf(line)).toEqual({ name: 'a (odd) name', own: 2, children: 3.25 });
  });
});

describe('WorkerWatch', () => {
  it('measures a worker and its children while it watches', async () => {
    const burn = 'const end = process.cpuUsage().user + 300e3; while (process.cpuUsage().user < end);';
    const inner = `require("node:child_process").spawnSync(process.execPath, ["-e", ${JSON.stringify(burn)}])`;
    const child = spawn(process.execPath, ['-e', `process.once('message', () => { ${inner}; process.send(1); })`], {
      detached: true,
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    });
    onTestFinished(() => void child.kill('SIGKILL'));
    const watch = new WorkerWatch(() => [child.pid!]);
    child.send('go');
    await once(child, 'message');
    const { cpu, peak, peakShare } = watch.stop();
    expect(cpu.plugin + cpu.engine).toBeGreaterThanOrEqual(0.3);
    expect(cpu.plugin).toBeGreaterThan(0);
    expect(peak.worker.anonymous).toBeGreaterThan(5);
    expect(peak.plugin.share).toBeGreaterThan(0);
    expect(peakShare.all).toBeGreaterThanOrEqual(peakShare.withoutPlugins);
  });
});
