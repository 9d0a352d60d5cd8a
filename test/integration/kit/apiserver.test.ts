import { spawn } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { NAMESPACES } from '../../../operator/kube/resources.ts';
import { sharedApiserver } from '../../kit/shared-apiserver.ts';

/** Processes by number, of those whose command line has this text. */
async function processes(text: string): Promise<Map<number, string>> {
  const found = new Map<number, string>();
  for (const pid of (await readdir('/proc')).filter((name) => /^\d+$/.test(name))) {
    const [commandLine, name] = await Promise.all(
      ['cmdline', 'comm'].map((file) => readFile(`/proc/${pid}/${file}`, 'utf8').catch(() => '')),
    );
    if (commandLine!.includes(text)) found.set(Number(pid), name!.trim());
  }
  return found;
}

it('the processes of a killed test run end with it', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'coppice-killed-'));
  const kit = new URL('../../kit/apiserver.ts', import.meta.url).href;
  const code = `import { startApiserver } from '${kit}'; await startApiserver();`;
  const env = { ...process.env, TMPDIR: folder };
  const killed = spawn(process.execPath, ['--input-type=module', '-e', code], { stdio: 'ignore', env });
  const servers = async () => [...(await processes(folder)).values()].sort();
  try {
    await expect.poll(servers).toEqual(['etcd', 'kube-apiserver']);
    killed.kill('SIGKILL');
    await expect.poll(servers).toEqual([]);
  } finally {
    killed.kill('SIGKILL');
    for (const pid of (await processes(folder)).keys()) process.kill(pid, 'SIGKILL');
    await rm(folder, { recursive: true, force: true, maxRetries: 3 });
  }
});

it('files that share an API server have their own namespaces, and leave it to the others', async () => {
  const [one, other] = await Promise.all([sharedApiserver(), sharedApiserver()]);
  try {
    expect(other.url).toBe(one.url);
    await one.leave();
    expect(other.namespace).not.toBe(one.namespace);
    expect(await other.client.getOrUndefined(NAMESPACES, one.namespace)).toBeDefined();
  } finally {
    await other.leave();
  }
});
