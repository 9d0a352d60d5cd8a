import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { ENGINES_FILE, forgetEngines, isDeadEngine } from '../../../../providers/pulumi/engines-started.ts';
import { engineIdentityOf } from '../../../../providers/pulumi/processes.ts';
import { claimStack } from '../../../../providers/pulumi/stack-claim.ts';

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'coppice-claim-'));
});
afterEach(() => rmSync(dir, { recursive: true }));

/** Identities of a process that lives and of one that is dead. */
async function twoProcesses() {
  const start = () => spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'ignore' });
  const [living, dying] = [start(), start()];
  const identities = { living: engineIdentityOf(living.pid!)!, dead: engineIdentityOf(dying.pid!)! };
  dying.kill('SIGKILL');
  await once(dying, 'exit');
  return { ...identities, [Symbol.dispose]: () => void living.kill('SIGKILL') };
}

it('claimStack admits one holder at a time', () => {
  const giveBack = claimStack(dir, 'a.cluster');
  expect(() => claimStack(dir, 'a.cluster')).toThrow(`process ${process.pid} works on stack a.cluster`);
  giveBack();
  claimStack(dir, 'a.cluster')();
  expect(readdirSync(dir)).toEqual([]);
});

it('claimStack takes over from a dead process, but not from a living one', async () => {
  using processes = await twoProcesses();
  writeFileSync(join(dir, 'runner.json'), JSON.stringify(processes.living));
  expect(() => claimStack(dir, 'a.cluster')).toThrow(`process ${processes.living.pid}`);
  writeFileSync(join(dir, 'runner.json'), JSON.stringify(processes.dead));
  claimStack(dir, 'a.cluster')();
});

it('claimStack takes over from a process killed during its claim', () => {
  writeFileSync(join(dir, 'runner.json'), '{"pid":');
  claimStack(dir, 'a.cluster')();
});

it('isDeadEngine distinguishes living, dead and foreign engines', async () => {
  using processes = await twoProcesses();
  const lines = [processes.living, processes.dead].map((one) => JSON.stringify(one));
  writeFileSync(join(dir, ENGINES_FILE), `${lines.join('\n')}\n{"pid":`);
  expect(isDeadEngine(dir, processes.living.pid)).toBe(false);
  expect(isDeadEngine(dir, processes.dead.pid)).toBe(true);
  expect(isDeadEngine(dir, 4_000_000)).toBeUndefined();
  forgetEngines(dir);
  expect(isDeadEngine(dir, processes.dead.pid)).toBeUndefined();
});

it('isDeadEngine treats an engine as alive while a process with its ID and start time lives', async () => {
  using processes = await twoProcesses();
  const { living } = processes;
  const earlier = { pid: living.pid, started: 'before/1' };
  writeFileSync(join(dir, ENGINES_FILE), `${JSON.stringify(earlier)}\n${JSON.stringify(living)}\n`);
  expect(isDeadEngine(dir, living.pid)).toBe(false);
  writeFileSync(join(dir, ENGINES_FILE), `${JSON.stringify(earlier)}\n`);
  expect(isDeadEngine(dir, living.pid)).toBe(true);
});
