import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdir, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { run } from '../../../operator/garden/host/command.ts';
import { kubernetesImageName, toolImage } from '../../../operator/garden/images/catalog.ts';
import { toolsDirectory } from '../../../operator/garden/toolchain/cache.ts';
import { Toolchain } from '../../../operator/garden/toolchain/toolchain.ts';
import {
  KUBERNETES_VERSIONS,
  type KubernetesVersion,
  kubernetesTool,
} from '../../../operator/garden/toolchain/tools.ts';
import { RELEASES } from '../../../providers/machines/software.ts';
import { OLDER_KUBERNETES } from '../needed-tools.ts';
import { areMade, testTools } from '../tools.ts';
import { type Releases, sumOf } from './internet.ts';

const RUNTIME = ['containerd', 'containerd-shim-runc-v2', 'ctr'] as const;
const PLUGINS = ['bridge', 'host-local', 'loopback', 'portmap', 'ptp'] as const;
const KUBERNETES = ['kubelet', 'kube-proxy', 'kubeadm'] as const;

/** The Kubernetes versions that machines can get here: the older one only where it was made before. */
async function kubernetesVersions(): Promise<KubernetesVersion[]> {
  const [newest, ...older] = KUBERNETES_VERSIONS;
  return [newest, ...((await areMade(OLDER_KUBERNETES)) ? older : [])];
}

/**
 * What the projects whose releases a node is made of have published, made of the toolchain's own tools: real programs in archives like
 * the real ones. The versions in the paths are those that the document asks for; a tool that came from the distribution may be older.
 * @param cache folder for archives, which take some seconds to make
 */
export async function publishedReleases(cache: string): Promise<Releases> {
  const tools = await testTools(...RUNTIME, ...PLUGINS, 'runc');
  const arch = process.arch === 'arm64' ? 'arm64' : 'amd64';
  const { CONTAINERD, RUNC, CNI_PLUGINS } = RELEASES;
  const [containerd, plugins] = await Promise.all([
    archive(
      cache,
      RUNTIME.map((name) => tools[name]),
      'bin/',
    ),
    archive(
      cache,
      PLUGINS.map((name) => tools[name]),
      './',
    ),
  ]);
  const published = (path: string, file: string, sums: { path: string; text: string }): Releases => ({
    [path]: { file },
    [sums.path]: { text: sums.text },
  });
  const releases: Releases[] = [];
  const containerdPath = `/containerd/containerd/releases/download/v${CONTAINERD}/containerd-static-${CONTAINERD}-linux-${arch}.tar.gz`;
  const sum = await digest(containerd);
  releases.push(
    published(containerdPath, containerd, { path: `${containerdPath}.sha256sum`, text: sumOf(sum, containerdPath) }),
  );
  const runcFolder = `/opencontainers/runc/releases/download/v${RUNC}`;
  // One list for all architectures.
  const runcSums = `${'0'.repeat(64)}  runc.other\n${sumOf(await digest(tools.runc), `runc.${arch}`)}`;
  releases.push(
    published(`${runcFolder}/runc.${arch}`, tools.runc, { path: `${runcFolder}/runc.sha256sum`, text: runcSums }),
  );
  const pluginsPath = `/containernetworking/plugins/releases/download/v${CNI_PLUGINS}/cni-plugins-linux-${arch}-v${CNI_PLUGINS}.tgz`;
  const pluginsSum = sumOf(await digest(plugins), pluginsPath);
  releases.push(published(pluginsPath, plugins, { path: `${pluginsPath}.sha256`, text: pluginsSum }));
  for (const version of await kubernetesVersions())
    for (const name of KUBERNETES) {
      const tool = kubernetesTool(name, version);
      const { [tool]: file } = await testTools(tool);
      const path = `/release/v${version}/bin/linux/${arch}/${name}`;
      // The sum alone, without a name and an end of line.
      releases.push(published(path, file, { path: `${path}.sha256`, text: await digest(file) }));
    }
  return Object.assign({}, ...releases) as Releases;
}

const CONTROL_PLANE = ['kube-apiserver', 'kube-controller-manager', 'kube-scheduler'] as const;

/** The folder of images that registries have, with all in it that a new node runs, kubeadm's control plane too, and what tests run on one. */
export async function publishedImages(): Promise<string> {
  const toolchain = new Toolchain({ dir: toolsDirectory() });
  try {
    const ofKubernetes = (await kubernetesVersions()).flatMap((version) =>
      CONTROL_PLANE.map((name) => kubernetesImageName(name, version)),
    );
    const names = [...ofKubernetes, 'etcd', 'pause', 'coredns', 'echo'] as const;
    const made = names.map((name) => toolImage(name, toolchain));
    return dirname((await Promise.all(made))[0]!);
  } finally {
    await toolchain.close();
  }
}

/** A tar.gz of files, under their own names below `prefix`. */
async function archive(cache: string, files: readonly string[], prefix: string): Promise<string> {
  const stats = await Promise.all(files.map((file) => stat(file)));
  const state = files.map((file, index) => [file, stats[index]!.size, stats[index]!.mtimeMs]);
  const hash = createHash('sha256')
    .update(JSON.stringify([state, prefix]))
    .digest('hex')
    .slice(0, 16);
  const target = join(cache, `release-${hash}.tar.gz`);
  if (await stat(target).catch(() => undefined)) return target;
  await mkdir(cache, { recursive: true });
  const draft = `${target}.${process.pid}`;
  try {
    const members = files.flatMap((file) => ['-C', dirname(file), basename(file)]);
    const names = ['--dereference', `--transform=s,^,${prefix},`, '--owner=0', '--group=0'];
    await run(['tar', '-I', 'gzip -1', '-cf', draft, ...names, ...members], { timeoutMs: 120_000 });
    await rename(draft, target);
  } finally {
    await rm(draft, { force: true });
  }
  return target;
}

async function digest(file: string): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(file, { highWaterMark: 1 << 20 })) hash.update(chunk as Buffer);
  return hash.digest('hex');
}
