import { basename, join } from 'node:path';

/** Local paths of the tools of a machine image. */
export interface MachineTools {
  kubelet: string;
  kubeProxy: string;
  /** For images of control plane machines. */
  kubeadm?: string;
  /** Copied into the image if outside of /usr; else used through the host's /usr. containerd is in RUNTIME_FOLDER. */
  runc: string;
  /** Folder of the CNI plugins. */
  cni: string;
  /** File names in `cni`; needed only outside of /usr. */
  cniPlugins?: string[];
  /** Image archives that every machine imports on start, for example the pause image. */
  images?: string[];
}

/** A file of an image. */
interface ImageFile {
  /** Local path. */
  source: string;
  /** Absolute path in the image. */
  path: string;
  mode: number;
}

/** Machine image of a Kubernetes version ("1.36.3"), built from machineImageFiles. */
export const machineImage = (kubernetesVersion: string): string => `coppice.local/machine:v${kubernetesVersion}`;

const onEveryHost = (path: string): boolean => path.startsWith('/usr/') && !path.startsWith('/usr/local/');

/** Image of control plane machines of a Kubernetes version: a machine image with kubeadm. */
export const controlPlaneMachineImage = (kubernetesVersion: string): string =>
  `coppice.local/control-plane-machine:v${kubernetesVersion}`;

/** Files of a machine image. The entry script is in the pool's Secret instead. */
export function machineImageFiles(tools: MachineTools): ImageFile[] {
  const program = (source: string, name = basename(source)): ImageFile => ({
    source,
    path: `/opt/coppice/bin/${name}`,
    mode: 0o755,
  });
  const plugins = onEveryHost(`${tools.cni}/`) ? [] : (tools.cniPlugins ?? []);
  return [
    program(tools.kubelet, 'kubelet'),
    program(tools.kubeProxy, 'kube-proxy'),
    ...(tools.kubeadm ? [program(tools.kubeadm, 'kubeadm')] : []),
    ...(onEveryHost(tools.runc) ? [] : [program(tools.runc, 'runc')]),
    ...plugins.map((name) => ({ source: join(tools.cni, name), path: `/opt/coppice/cni/${name}`, mode: 0o755 })),
    ...(tools.images ?? []).map((source) => ({ source, path: `/opt/coppice/images/${basename(source)}`, mode: 0o644 })),
  ];
}
