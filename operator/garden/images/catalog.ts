import type { Toolchain } from '../toolchain/toolchain.ts';
import { type KubernetesVersion, kubernetesTool, programOf, TOOLS, type ToolName } from '../toolchain/tools.ts';
import { buildImage } from './build.ts';

interface CatalogEntry {
  ref: string;
  tool: ToolName;
  /** Path of the executable in upstream's image, which manifests name. */
  path: string;
  env?: Record<string, string>;
}

const component = (tool: ToolName, tag: string): CatalogEntry => ({
  ref: `registry.k8s.io/${programOf(tool)}:${tag}`,
  tool,
  path: `/usr/local/bin/${programOf(tool)}`,
});

const kubernetes = (tool: ToolName) => component(tool, `v${TOOLS[tool].version}`);

/** Upstream's images have the program at the root. */
const konnectivity = (tool: ToolName): CatalogEntry => ({
  ref: `registry.k8s.io/kas-network-proxy/${tool}:v${TOOLS[tool].version}`,
  tool,
  path: `/${tool}`,
});

const ownVersion = (tool: ToolName) => TOOLS[tool].version.split('-')[0]!;

const catalog = {
  etcd: component('etcd', `${TOOLS.etcd.version}-0`),
  'kube-apiserver': kubernetes('kube-apiserver'),
  'kube-controller-manager': kubernetes('kube-controller-manager'),
  'kube-scheduler': kubernetes('kube-scheduler'),
  'kube-proxy': kubernetes('kube-proxy'),
  'kube-apiserver-1.35': kubernetes('kube-apiserver-1.35'),
  'kube-controller-manager-1.35': kubernetes('kube-controller-manager-1.35'),
  'kube-scheduler-1.35': kubernetes('kube-scheduler-1.35'),
  coredns: { ref: `registry.k8s.io/coredns/coredns:v${TOOLS.coredns.version}`, tool: 'coredns', path: '/coredns' },
  kwok: { ref: `registry.k8s.io/kwok/kwok:v${TOOLS.kwok.version}`, tool: 'kwok', path: '/usr/local/bin/kwok' },
  'local-path-provisioner': {
    ref: `docker.io/rancher/local-path-provisioner:v${TOOLS['local-path-provisioner'].version}`,
    tool: 'local-path-provisioner',
    path: '/usr/bin/local-path-provisioner',
  },
  'metrics-server': {
    ref: `registry.k8s.io/metrics-server/metrics-server:v${TOOLS['metrics-server'].version}`,
    tool: 'metrics-server',
    path: '/metrics-server',
  },
  'proxy-server': konnectivity('proxy-server'),
  'proxy-agent': konnectivity('proxy-agent'),
  // One runs in every pod, so two threads less and no heap growth matter.
  pause: {
    ref: `registry.k8s.io/pause:${ownVersion('pause')}`,
    tool: 'pause',
    path: '/pause',
    env: { GOMAXPROCS: '1', GOGC: '20' },
  },
  echo: { ref: `coppice.test/echo:${ownVersion('echo')}`, tool: 'echo', path: '/usr/local/bin/echo' },
} satisfies Record<string, CatalogEntry>;

export type ImageName = keyof typeof catalog;

/** Images built from tools, under their projects' published names. */
export const IMAGES: Readonly<Record<ImageName, CatalogEntry>> = catalog;

/** Image of a Kubernetes component at a version. Throws where there is none. */
export function kubernetesImageName(component: string, version: KubernetesVersion): ImageName {
  const tool = kubernetesTool(component, version);
  if (!(tool in catalog)) throw new Error(`${tool} has no image`);
  return tool as ImageName;
}

/**
 * Fetches the tool and builds its image. Resolves to the tar, for `ctr images import`. Throws the toolchain's errors.
 */
export async function toolImage(name: ImageName, toolchain: Toolchain): Promise<string> {
  const { ref, tool, path, env } = IMAGES[name];
  const files = await toolchain.ensure([tool]);
  return buildImage(
    {
      ref,
      files: [{ path, from: files[tool] }],
      directories: [{ path: '/tmp', mode: 0o1777 }],
      entrypoint: [path],
      env,
      labels: { 'org.opencontainers.image.source': 'coppice' },
    },
    { toolsDir: toolchain.dir },
  );
}
