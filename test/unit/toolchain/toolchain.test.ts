import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { CoppiceError } from '../../../operator/api/errors.ts';
import { INSTALLED_TOOLS, NODE_TOOLS } from '../../../operator/garden/seed/node.ts';
import type { ProgressEvent } from '../../../operator/garden/toolchain/progress.ts';
import { type Sources, Toolchain } from '../../../operator/garden/toolchain/toolchain.ts';
import { cacheFolder, TOOLS, type ToolName } from '../../../operator/garden/toolchain/tools.ts';

let dir: string;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'coppice-tools-'));
});
afterEach(() => rm(dir, { recursive: true, force: true }));

/** A machine with Go and apt, without internet, that has nothing installed; and what was done on it. */
const bareMachine = (more: Partial<Sources> = {}) => {
  const done: string[] = [];
  const installed = new Set<string>();
  const events: ProgressEvent[] = [];
  const sources: Sources = {
    findOnPath: async (name) => (installed.has(name) ? { file: `/usr/bin/${name}` } : { reason: 'not installed' }),
    fetchArchive: () => Promise.reject(new Error('example.org cannot be resolved')),
    findGo: async () => '/usr/bin/go',
    dependencies: async (_, names) => new Set(['shared', ...names]),
    goBuild: async (_, names, folder, { onPackage }) => {
      done.push(`build ${names.join(' ')}`);
      for (const pkg of ['shared', ...names]) onPackage?.(pkg);
      for (const name of names) await writeFile(join(folder, name), name);
    },
    whyNoPackages: async () => undefined,
    installPackages: async (packages) => {
      done.push(`apt ${packages.sort().join(' ')}`);
      for (const name of ['iptables', 'conntrack', 'runc']) installed.add(name);
    },
    ...more,
  };
  const toolchain = new Toolchain({ dir, sources, onProgress: (event) => events.push(event) });
  return { toolchain, done, events, installed };
};

const cache = async (name: ToolName) => {
  await mkdir(join(dir, cacheFolder(name)), { recursive: true });
  await writeFile(join(dir, cacheFolder(name), name), 'cached', { mode: 0o755 });
};

describe('Toolchain', () => {
  test('uses cached tools and nothing else', async () => {
    await cache('etcd');
    const { toolchain, done } = bareMachine({ findOnPath: () => Promise.reject(new Error('must not be asked')) });
    const { etcd } = await toolchain.ensure(['etcd']);
    expect(etcd).toBe(join(dir, cacheFolder('etcd'), 'etcd'));
    expect(toolchain.path('etcd')).toBe(etcd);
    expect(() => toolchain.path('kubelet')).toThrow(/ensure/);
    expect(done).toEqual([]);
  });

  test('builds in order of need by group, and installs packages together', async () => {
    const { toolchain, done } = bareMachine();
    const files = await toolchain.ensure(['kube-proxy', 'conntrack', 'kubelet', 'etcd', 'kube-apiserver', 'iptables']);
    expect(done.filter((line) => line.startsWith('build'))).toEqual([
      'build etcd',
      'build kube-apiserver',
      'build kubelet kube-proxy',
    ]);
    expect(done.filter((line) => line.startsWith('apt'))).toEqual(['apt conntrack iptables']);
    expect(files.iptables).toBe('/usr/bin/iptables');
    expect(await readFile(files.kubelet, 'utf8')).toBe('kubelet');
  });

  test('reports missing packages of a node while builds take minutes', async () => {
    const { promise: compiling, reject: giveUp } = Promise.withResolvers<void>();
    // It may be given up before anything was compiled.
    compiling.catch(() => {});
    const { toolchain } = bareMachine({
      goBuild: () => compiling,
      whyNoPackages: async () => 'there is no apt-get',
    });
    const built = Promise.allSettled([toolchain.ensure(['etcd', 'kube-apiserver']), toolchain.ensure(NODE_TOOLS)]);
    await expect(toolchain.ensure(INSTALLED_TOOLS)).rejects.toThrow(/runc/);
    giveUp(new Error('nobody waits for it'));
    await built;
  });

  test('reports packages installed together once', async () => {
    const { toolchain, events } = bareMachine();
    await toolchain.ensure(['iptables', 'conntrack', 'runc']);
    const told = events.filter(({ source, phase }) => source === 'package' && phase === 'working');
    expect(told.map(({ detail }) => detail)).toEqual(['installing iptables, conntrack, runc with apt-get']);
  });

  test('fetches a tool requested twice once, and urgent ones first', async () => {
    const { toolchain, done } = bareMachine();
    await Promise.all([
      toolchain.ensure(['coredns', 'kwok']),
      toolchain.ensure(['etcd', 'coredns']),
      toolchain.ensure(['etcd']),
    ]);
    expect(done).toEqual(['build etcd', 'build coredns', 'build kwok']);
  });

  test('reports why each source failed, and progress', async () => {
    const { toolchain, events } = bareMachine();
    await toolchain.ensure(['runc']);
    expect(events).toContainEqual({
      tool: 'runc',
      phase: 'skipped',
      source: 'archive',
      detail: 'example.org cannot be resolved',
    });
    expect(events.at(-1)).toEqual({ tool: 'runc', phase: 'ready', source: 'package', detail: '/usr/bin/runc' });
    await toolchain.ensure(['etcd']);
    const building = events.find((event) => event.source === 'build' && event.phase === 'working');
    expect(building).toMatchObject({ tool: 'etcd', fraction: 0, remainingSeconds: TOOLS.etcd.build?.weight });
  });

  test('fails with one error that names what to install', async () => {
    const { toolchain } = bareMachine({
      findGo: async () => undefined,
      whyNoPackages: async () => 'only root can install packages',
    });
    const error = await toolchain.ensure(['etcd', 'iptables', 'bridge']).catch((e: unknown) => e);
    expect(error).toBeInstanceOf(CoppiceError);
    const { message, advice } = error as CoppiceError;
    expect(message).toMatch(/etcd \(.*Go is not installed/);
    expect(message).toMatch(/iptables \(.*only root can install packages/);
    expect(advice).toMatch(/on Debian and Ubuntu by: apt-get install iptables containernetworking-plugins/);
    expect(advice).toMatch(/Install Go 1\.26 or later.*etcd \(3\.7\.3 or a later patch\)/);
  });

  test('retries after a failure', async () => {
    let hasGo = false;
    const { toolchain } = bareMachine({ findGo: async () => (hasGo ? '/usr/bin/go' : undefined) });
    await expect(toolchain.ensure(['etcd'])).rejects.toThrow(/No source has etcd/);
    hasGo = true;
    await expect(toolchain.ensure(['etcd'])).resolves.toHaveProperty('etcd');
  });

  test('does not let a failing build block others', async () => {
    const { toolchain } = bareMachine({
      goBuild: async (_, names, folder) => {
        if (names.includes('etcd')) throw new Error('go build ended with 1: no space left on device');
        for (const name of names) await writeFile(join(folder, name), name);
      },
    });
    const [etcd, kwok] = await Promise.allSettled([toolchain.ensure(['etcd']), toolchain.ensure(['kwok'])]);
    expect(etcd).toMatchObject({ reason: { message: expect.stringMatching(/no space left on device/) } });
    expect(kwok.status).toBe('fulfilled');
  });

  test('ignores an empty or incomplete cache entry', async () => {
    await cache('bridge');
    await cache('etcd');
    await writeFile(join(dir, cacheFolder('etcd'), 'etcd'), '');
    const { toolchain, done } = bareMachine();
    await expect(toolchain.ensure(['bridge'])).rejects.toThrow(/bridge/);
    await toolchain.ensure(['etcd']);
    expect(done).toContain('build etcd');
  });

  test('builds a bundle together, whichever tool was requested', async () => {
    const { toolchain, done } = bareMachine();
    const { ctr } = await toolchain.ensure(['ctr']);
    expect(done).toEqual(['build containerd containerd-shim-runc-v2 ctr']);
    expect(await toolchain.ensure(['containerd'])).toEqual({ containerd: join(dirname(ctr), 'containerd') });
    expect(done).toHaveLength(1);
  });

  test('builds a bundle by one command per group', async () => {
    const { toolchain, done } = bareMachine();
    const files = await toolchain.ensure(['e2e.test', 'ginkgo']);
    expect(done).toEqual(['build e2e.test', 'build ginkgo']);
    expect(dirname(files.ginkgo)).toBe(dirname(files['e2e.test']));
  });
});
