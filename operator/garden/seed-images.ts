import { basename, dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  controlPlaneMachineImage,
  type MachineTools,
  machineImage,
  machineImageFiles,
} from '../../providers/local/machine-image.ts';
import { run } from './command.ts';
import { readJson, writeAtomic } from './files.ts';
import { buildImage } from './images/build.ts';
import { IMAGES, type ImageName, toolImage } from './images/catalog.ts';
import { SEED_PATHS } from './mounts.ts';
import type { Toolchain } from './toolchain/toolchain.ts';
import { TOOLS } from './toolchain/tools.ts';

/** Images of what every control plane in the seed runs, in the order in which a first cluster needs them. */
export const SEED_IMAGES: ImageName[] = ['etcd', 'kube-apiserver', 'kube-controller-manager', 'kube-scheduler'];

const CNI_PLUGINS = ['bridge', 'host-local', 'loopback', 'portmap', 'ptp'] as const;
const RUNTIME = ['containerd', 'containerd-shim-runc-v2', 'ctr', 'runc'] as const;

/** Makes the image of this version's machines. Resolves to its tar. */
export const buildMachineImage = (toolchain: Toolchain): Promise<string> =>
  buildImageOfMachines(machineImage(TOOLS.kubelet.version), toolchain);

/** Makes the image of this version's machines that run a control plane. Resolves to its tar. */
export async function buildControlPlaneMachineImage(toolchain: Toolchain): Promise<string> {
  const { kubeadm } = await toolchain.ensure(['kubeadm']);
  return buildImageOfMachines(CONTROL_PLANE_MACHINE_IMAGE, toolchain, { kubeadm });
}

/** Name of that image. */
export const CONTROL_PLANE_MACHINE_IMAGE: string = controlPlaneMachineImage(TOOLS.kubelet.version);

async function buildImageOfMachines(
  ref: string,
  toolchain: Toolchain,
  more: Pick<MachineTools, 'kubeadm'> = {},
): Promise<string> {
  const [files, pause] = await Promise.all([
    toolchain.ensure(['kubelet', 'kube-proxy', ...RUNTIME, ...CNI_PLUGINS]),
    toolImage('pause', toolchain),
  ]);
  const tools: MachineTools = {
    kubelet: files.kubelet,
    kubeProxy: files['kube-proxy'],
    ...more,
    runtime: RUNTIME.map((name) => files[name]),
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

/** Imports images into the seed's containerd, and remembers which: a tar is named by its digest, so each once. */
export class ImageImporter {
  readonly #enter: readonly string[];
  readonly #ctr: string;
  readonly #memory: string;
  #imported: Record<string, true> | undefined;

  constructor(options: { enter: readonly string[]; ctr: string; memory: string }) {
    this.#enter = options.enter;
    this.#ctr = options.ctr;
    this.#memory = options.memory;
  }

  async import(tar: string): Promise<void> {
    this.#imported ??= (await readJson<Record<string, true>>(this.#memory)) ?? {};
    const name = basename(tar);
    if (this.#imported[name]) return;
    const ctr = [...this.#enter, this.#ctr, '--address', SEED_PATHS.socket, '--namespace', 'k8s.io'];
    await run([...ctr, 'images', 'import', tar], { timeoutMs: 300_000 });
    this.#imported[name] = true;
    await writeAtomic(this.#memory, JSON.stringify(this.#imported));
  }
}

/** Made after the garden is up, so that pods may ask for them before they are there. */
export const EXPECTED_IMAGES: string[] = [
  ...([...SEED_IMAGES, 'coredns', 'kwok'] satisfies ImageName[]).map((name) => IMAGES[name].ref),
  CONTROL_PLANE_MACHINE_IMAGE,
];
/** Images that are missing, for the first time and at most: to try may be to build for minutes. */
const IMAGES_AGAIN_MS = 30_000;
const IMAGES_LATEST_MS = 15 * 60_000;

/** Of an embedded garden, what its images are made with. */
interface GardenOfImages {
  readonly toolchain: Toolchain;
  readonly state: { readonly rootless?: true };
  readonly signal: AbortSignal;
  readonly say: (stage: string, message: string, more?: { fraction: number }) => void;
}

/**
 * Images that pods will want. Until one is here, containerd gets it from the mirror, if that has it. One that cannot be made or
 * imported, for want of room perhaps, is tried again after all others.
 */
export async function fillImages(
  importer: ImageImporter,
  { toolchain, state, signal, say }: GardenOfImages,
): Promise<void> {
  const tool = (name: ImageName) => () => toolImage(name, toolchain);
  // A machine needs root, and tools for it are then made for nothing.
  const hasMachines = !state.rootless;
  let missing = [
    ...SEED_IMAGES.map((name) => ({ make: tool(name), here: true })),
    ...(hasMachines
      ? [
          { make: () => buildMachineImage(toolchain), here: true },
          // Wanted by machines, which ask the mirror for it.
          { make: tool('coredns'), here: false },
        ]
      : []),
    // Late, because only simulated nodes need it and it takes minutes where it must be built.
    { make: tool('kwok'), here: true },
    // Last, and not imported: few gardens see a control plane on machines, whose seed then asks the mirror for it.
    ...(hasMachines ? [{ make: () => buildControlPlaneMachineImage(toolchain), here: false }] : []),
  ];
  for (let waitMs = IMAGES_AGAIN_MS; ; waitMs = Math.min(waitMs * 2, IMAGES_LATEST_MS)) {
    const failed: typeof missing = [];
    for (const image of missing) {
      if (signal.aborted) return;
      try {
        const tar = await image.make();
        if (image.here) await importer.import(tar);
      } catch (error) {
        if (signal.aborted) return;
        failed.push(image);
        say('images', `an image is missing, it is tried again: ${(error as Error).message}`);
      }
    }
    missing = failed;
    if (missing.length === 0) break;
    await sleep(waitMs, undefined, { signal }).catch(() => {});
  }
  say('images', 'all images are in the seed', { fraction: 1 });
}
