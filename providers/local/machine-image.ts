import { basename, join } from 'node:path';

/** Where the tools that a machine is made of lie on this computer. */
export interface MachineTools {
  kubelet: string;
  kubeProxy: string;
  /** For the image of machines that run a control plane. */
  kubeadm?: string;
  /** Comes into the image from outside /usr; else it is seen through the host's /usr. containerd is in neither: see RUNTIME_FOLDER. */
  runc: string;
  /** Folder of the CNI plugins. */
  cni: string;
  /** Names of files in `cni`; only needed when it is outside /usr. */
  cniPlugins?: string[];
  /** Image archives that every machine imports when it starts, for example the pause image. */
  images?: string[];
}

/** One file of an image. */
export interface ImageFile {
  /** On this computer. */
  source: string;
  /** In the image, absolute. */
  path: string;
  mode: number;
}

/** Image of the machines of this Kubernetes version ("1.36.3"), as built from machineImageFiles. */
export const machineImage = (kubernetesVersion: string): string => `coppice.local/machine:v${kubernetesVersion}`;

const onEveryHost = (path: string): boolean => path.startsWith('/usr/') && !path.startsWith('/usr/local/');

/** Image of machines of this Kubernetes version that run a control plane: such a machine, and kubeadm. */
export const controlPlaneMachineImage = (kubernetesVersion: string): string =>
  `coppice.local/control-plane-machine:v${kubernetesVersion}`;

/** What the image of a machine consists of. Its entry script is not in it: it comes with the pool's Secret. */
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
