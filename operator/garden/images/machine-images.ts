import { dirname } from 'node:path';
import {
  controlPlaneMachineImage,
  type MachineTools,
  machineImage,
  machineImageFiles,
} from '../../../providers/local/machine-image.ts';
import type { Toolchain } from '../toolchain/toolchain.ts';
import { KUBERNETES_VERSIONS, type KubernetesVersion, kubernetesTool } from '../toolchain/tools.ts';
import { buildImage } from './build.ts';
import { toolImage } from './catalog.ts';

const CNI_PLUGINS = ['bridge', 'host-local', 'loopback', 'portmap', 'ptp'] as const;
const [OWN_VERSION] = KUBERNETES_VERSIONS;

/** Builds the machine image of a version. Resolves to its tar. */
export const buildMachineImage = (toolchain: Toolchain, version: KubernetesVersion = OWN_VERSION): Promise<string> =>
  buildImageOfMachines(machineImage(version), version, toolchain);

/** Builds the control plane machine image of a version. Resolves to its tar. */
export async function buildControlPlaneMachineImage(
  toolchain: Toolchain,
  version: KubernetesVersion = OWN_VERSION,
): Promise<string> {
  const tool = kubernetesTool('kubeadm', version);
  const files = await toolchain.ensure([tool]);
  return buildImageOfMachines(controlPlaneMachineImage(version), version, toolchain, { kubeadm: files[tool] });
}

async function buildImageOfMachines(
  ref: string,
  version: KubernetesVersion,
  toolchain: Toolchain,
  more: Pick<MachineTools, 'kubeadm'> = {},
): Promise<string> {
  const [kubelet, kubeProxy] = [kubernetesTool('kubelet', version), kubernetesTool('kube-proxy', version)];
  const [files, pause] = await Promise.all([
    toolchain.ensure([kubelet, kubeProxy, 'runc', ...CNI_PLUGINS]),
    toolImage('pause', toolchain),
  ]);
  const tools: MachineTools = {
    kubelet: files[kubelet],
    kubeProxy: files[kubeProxy],
    ...more,
    runc: files.runc,
    cni: dirname(files.bridge),
    cniPlugins: [...CNI_PLUGINS],
    images: [pause],
  };
  return buildImage(
    {
      ref,
      files: machineImageFiles(tools).map(({ source, path, mode }) => ({ from: source, path, mode })),
      entrypoint: ['/opt/coppice/bin/kubelet'],
    },
    { toolsDir: toolchain.dir },
  );
}
