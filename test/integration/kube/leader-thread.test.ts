import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { CONFIGMAPS, type KubeObject, LEASES, type Lease } from '../../../operator/kube/resources.ts';
import type { LeaderChild } from '../../kit/leader-child.ts';
import { type SharedApiserver, sharedApiserver } from '../../kit/shared-apiserver.ts';

type ConfigMap = KubeObject & { data: { count: string } };

const CHILD = fileURLToPath(new URL('../../kit/leader-child.ts', import.meta.url));
const TIMING = { leaseDurationMs: 6_000, renewDeadlineMs: 4_000, retryPeriodMs: 500, stalledMs: 60_000 };

let api: SharedApiserver;
let folder: string;
const children = new Set<ChildProcess>();
beforeAll(async () => {
  api = await sharedApiserver();
  folder = await mkdtemp(join(tmpdir(), 'coppice-leader-'));
  await writeFile(join(folder, 'kubeconfig'), api.kubeconfig, { mode: 0o600 });
});
afterEach(() => {
  for (const child of children) child.kill('SIGKILL');
  children.clear();
});
afterAll(async () => {
  await rm(folder, { recursive: true, force: true });
  await api?.leave();
});

function start(name: string, identity: string, more: Partial<LeaderChild> = {}) {
  const told: LeaderChild = {
    kubeconfig: join(folder, 'kubeconfig'),
    namespace: api.namespace,
    name,
    identity,
    timing: TIMING,
    ...more,
  };
  const child = spawn(process.execPath, [CHILD, JSON.stringify(told)], { stdio: ['ignore', 'pipe', 'pipe'] });
  children.add(child);
  let said = '';
  child.stdout.on('data', (data: Buffer) => {
    said += data;
  });
  let failed = '';
  child.stderr.on('data', (data: Buffer) => {
    failed += data;
  });
  const says = (line: string) =>
    expect.poll(() => `${said}${failed}`, { timeout: 60_000, interval: 20 }).toContain(`${line}\n`);
  const ended = once(child, 'exit') as Promise<[number | null, NodeJS.Signals | null]>;
  return { child, says, ended, failed: () => failed };
}

const holder = async (name: string) =>
  (await api.client.getOrUndefined<Lease>(LEASES, name, api.namespace))?.spec?.holderIdentity;
const writes = async (identity: string) =>
  Number((await api.client.getOrUndefined<ConfigMap>(CONFIGMAPS, `by-${identity}`, api.namespace))?.data.count);

it('LeaderThread keeps the Lease while the main event loop is blocked for longer than the Lease lasts', async () => {
  const one = start('busy', 'busy-one', { standsStillMs: 9_000 });
  await one.says('leads');
  start('busy', 'busy-two');
  await one.says('goes on');
  await one.says('writes');
  expect(await holder('busy')).toBe('busy-one');
});

it('LeaderThread kills a process whose main event loop is stuck, and another replica leads', async () => {
  const one = start('stuck', 'stuck-one', { standsStillMs: 60_000, timing: { ...TIMING, stalledMs: 2_000 } });
  await one.says('leads');
  const two = start('stuck', 'stuck-two');
  expect(await one.ended).toEqual([null, 'SIGKILL']);
  expect(one.failed()).toContain('the main event loop has stood still for');
  await two.says('writes');
});

it('a process that was stopped past its Lease sends no write when it continues', async () => {
  const one = start('frozen', 'frozen-one');
  await one.says('writes');
  one.child.kill('SIGSTOP');
  const two = start('frozen', 'frozen-two');
  await two.says('writes');
  const before = await writes('frozen-one');
  one.child.kill('SIGCONT');
  const [code, signal] = await one.ended;
  expect([3, 'SIGKILL']).toContain(code ?? signal);
  // The one that it was about to send when it was stopped may have left since: its precondition is what refuses that.
  expect(await writes('frozen-one')).toBeLessThanOrEqual(before + 1);
});

it('LeaderThread releases the Lease when the process stops', async () => {
  const one = start('stopped', 'stopped-one');
  await one.says('writes');
  one.child.kill('SIGTERM');
  await one.says('has stopped');
  expect(await one.ended).toEqual([0, null]);
  expect(await holder('stopped')).toBe('');
});
