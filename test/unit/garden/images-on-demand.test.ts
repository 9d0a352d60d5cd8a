import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ANNOTATIONS } from '../../../operator/api/group.ts';
import { askFor } from '../../../operator/garden/images/asked.ts';
import { imagesDirectory } from '../../../operator/garden/images/build.ts';
import { ImagesOnDemand } from '../../../operator/garden/images/images-on-demand.ts';
import { startMirror } from '../../../operator/garden/images/mirror.ts';
import { IMAGES_ON_DEMAND } from '../../../operator/garden/images/on-demand-catalog.ts';
import { ToolCache } from '../../../operator/garden/toolchain/cache.ts';
import type { ProgressEvent } from '../../../operator/garden/toolchain/progress.ts';
import { Toolchain } from '../../../operator/garden/toolchain/toolchain.ts';
import { programOf, TOOL_NAMES, TOOLS, type ToolName } from '../../../operator/garden/toolchain/tools.ts';
import type { KubeClient } from '../../../operator/kube/client.ts';
import { silent } from '../../../operator/kube/log.ts';

type Mirror = Awaited<ReturnType<typeof startMirror>>;

const OTHER = TOOL_NAMES.filter((name) => name.endsWith('-1.35'));
const pod = (name: string, image: string) => ({
  metadata: { name, namespace: 'one', annotations: {} as Record<string, string> },
  spec: { containers: [{ image }] },
  status: { phase: 'Pending' },
});

describe('another Kubernetes version', () => {
  let folder: string;
  let mirror: Mirror;
  let onDemand: ImagesOnDemand | undefined;
  let stopping: AbortController;
  let built: string[];
  /** Pods that were told something, with what. */
  let told: string[];
  /** A build waits for this. */
  let compiled: PromiseWithResolvers<void>;
  /** How the next builds fail, in turn. */
  let failures: string[];
  let pods: ReturnType<typeof pod>[];
  const asked = () => join(folder, 'asked');

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'coppice-on-demand-'));
    [stopping, built, told, compiled] = [new AbortController(), [], [], Promise.withResolvers()];
    failures = [];
    pods = [
      pod('gone', 'registry.k8s.io/kube-apiserver:v1.35.4'),
      pod('waits', 'registry.k8s.io/kube-apiserver:v1.35.4'),
      pod('other', 'registry.k8s.io/pause:3'),
    ];
    const cache = new ToolCache(folder);
    for (const name of TOOL_NAMES.filter((one) => !OTHER.includes(one))) {
      await mkdir(dirname(cache.file(name)), { recursive: true });
      await writeFile(cache.file(name), name, { mode: 0o755 });
    }
    mirror = await startMirror({
      dirs: [imagesDirectory(folder)],
      host: '127.0.0.1',
      port: 0,
      onDemand: { names: [...IMAGES_ON_DEMAND.keys()], ask: (name) => askFor(asked(), name) },
    });
  });
  afterEach(async () => {
    stopping.abort();
    await onDemand?.stop();
    await mirror.close();
    await rm(folder, { recursive: true, force: true });
  });

  const begin = (againAfterMs = 0) => {
    const client = {
      list: async () => ({ items: pods }),
      async mergePatch(
        _: unknown,
        name: string,
        __: string,
        patch: { metadata: { annotations: Record<string, string | null> } },
      ) {
        if (name === 'gone') throw new Error('not found');
        const { annotations } = pods.find(({ metadata }) => metadata.name === name)!.metadata;
        for (const [key, value] of Object.entries(patch.metadata.annotations))
          if (value === null) delete annotations[key];
          else annotations[key] = value;
        const { [ANNOTATIONS.imageProgress]: progress, [ANNOTATIONS.imageFailure]: failure } =
          patch.metadata.annotations;
        told.push(`${name}: ${progress ?? failure ?? null}`);
      },
    } as unknown as KubeClient;
    const sources = {
      findOnPath: async () => ({ reason: 'not installed' }),
      fetchArchive: () => Promise.reject(new Error('offline')),
      findGo: async () => '/go',
      dependencies: async () => new Set(['a']),
      async goBuild(_: string, names: ToolName[], into: string) {
        const failure = failures.shift();
        if (failure !== undefined) throw new Error(failure);
        await compiled.promise;
        for (const name of names) await writeFile(join(into, programOf(name)), name);
        built.push(...names);
      },
    };
    onDemand = new ImagesOnDemand({
      asked: asked(),
      openToolchain: (onProgress: (event: ProgressEvent) => void) =>
        new Toolchain({ dir: folder, signal: stopping.signal, onProgress, sources }),
      client,
      log: silent,
      signal: stopping.signal,
      say: () => {},
      againAfterMs: () => againAfterMs,
    });
    onDemand.start();
  };
  const pull = (image: string, registry: string, tag = `v${TOOLS['kubelet-1.35'].version}`) =>
    fetch(`${mirror.url}/v2/${image}/manifests/${tag}?ns=${registry}`).then(({ status }) => status);

  it('is built once a cluster requests its image, while waiting pods get progress', async () => {
    begin();
    const pulled = pull('kube-apiserver', 'registry.k8s.io');
    await expect.poll(() => told).toEqual(['waits: this machine is building Kubernetes 1.35.4, about 9 min left']);
    expect(built).toEqual([]);
    compiled.resolve();
    expect(await pulled).toBe(200);
    // What it waits for from now on is said as of any other pod.
    await expect.poll(() => told.at(-1)).toBe('waits: null');
    expect(await pull('machine', 'coppice.local')).toBe(200);
    expect(await pull('control-plane-machine', 'coppice.local')).toBe(200);
    expect(built.toSorted()).toEqual(OTHER.toSorted());
  });

  it('is built by a restarted garden that had not finished', async () => {
    compiled.resolve();
    await askFor(asked(), 'coppice.local/machine:v1.35.4');
    begin();
    await expect.poll(() => built.length).toBe(OTHER.length);
  });

  describe('whose build fails', () => {
    const CANNOT = /: this machine cannot make Kubernetes 1\.35\.4, and tries again at \d\d:\d\d UTC: /;
    const AN_HOUR_MS = 3_600_000;

    it('is reported with reason and retry, in one line without passwords, until it succeeds', async () => {
      failures = [`go: downloading\n https://user:secret@proxy.example.com: refused ${'x'.repeat(1000)}`];
      compiled.resolve();
      begin();
      await askFor(asked(), 'registry.k8s.io/kube-apiserver:v1.35.4');
      await expect.poll(() => told.at(-1)).toBe('waits: null');
      const [said, ...more] = told.filter((line) => CANNOT.test(line));
      expect(more).toEqual([]);
      expect(said).toMatch(/https:\/\/proxy\.example\.com: refused/);
      expect(said).not.toMatch(/\n|secret/);
      expect(said!.length).toBeLessThan(300);
      expect(pods[1]!.metadata.annotations).toEqual({});
      expect(built.toSorted()).toEqual(OTHER.toSorted());
    });

    it('is reported to a pod that requests it before the retry', async () => {
      failures = ['no space left on device'];
      compiled.resolve();
      begin(AN_HOUR_MS);
      void pull('kube-apiserver', 'registry.k8s.io').catch(() => {});
      await expect.poll(() => told.filter((line) => CANNOT.test(line))).toHaveLength(1);
      pods.push(pod('late', 'registry.k8s.io/kube-apiserver:v1.35.4'));
      void pull('kube-apiserver', 'registry.k8s.io').catch(() => {});
      await expect.poll(() => told.at(-1)).toMatch(/^late: .*no space left on device/);
    });

    it('does not block other builds', async () => {
      failures = ['no space left on device'];
      await rm(new ToolCache(folder).file('metrics-server'));
      compiled.resolve();
      begin(AN_HOUR_MS);
      void pull('kube-apiserver', 'registry.k8s.io').catch(() => {});
      await expect.poll(() => told.filter((line) => CANNOT.test(line))).toHaveLength(1);
      const { version } = TOOLS['metrics-server'];
      expect(await pull('metrics-server/metrics-server', 'registry.k8s.io', `v${version}`)).toBe(200);
    });
  });

  it('on request causes no other builds: metrics-server is built alone', async () => {
    await rm(new ToolCache(folder).file('metrics-server'));
    compiled.resolve();
    begin();
    const { version } = TOOLS['metrics-server'];
    expect(await pull('metrics-server/metrics-server', 'registry.k8s.io', `v${version}`)).toBe(200);
    expect(built).toEqual(['metrics-server']);
  });

  it('is not built for an unknown image, which is refused at once', async () => {
    compiled.resolve();
    begin();
    expect(await pull('kube-apiserver', 'registry.k8s.io', 'v1.34.0')).toBe(404);
    expect(await pull('kube-apiserver', 'example.com')).toBe(404);
    expect(built).toEqual([]);
  });
});
