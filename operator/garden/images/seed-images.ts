import { basename, dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  controlPlaneMachineImage,
  type MachineTools,
  machineImage,
  machineImageFiles,
} from '../../../providers/local/machine-image.ts';
import { run } from '../host/command.ts';
import { readJson, writeAtomic } from '../host/files.ts';
import { SEED_PATHS } from '../host/mounts.ts';
import { kubectlForPerson } from '../toolchain/kubectl.ts';
import type { Toolchain } from '../toolchain/toolchain.ts';
import {
  KUBERNETES_VERSIONS,
  type KubernetesVersion,
  kubernetesTool,
  TOOLS,
  type ToolName,
} from '../toolchain/tools.ts';
import { buildImage } from './build.ts';
import { IMAGES, type ImageName, kubernetesImageName, toolImage } from './catalog.ts';

/** Components of every control plane that are Kubernetes' own, in the order in which a first cluster needs them. */
const COMPONENTS = ['kube-apiserver', 'kube-controller-manager', 'kube-scheduler'] as const;
/** Images of what every control plane in the seed runs, in that order. */
export const SEED_IMAGES: ImageName[] = ['etcd', ...COMPONENTS];

/** Kubernetes' own programs of machines, those that run a control plane among them. */
const MACHINE_PROGRAMS = ['kubelet', 'kube-proxy', 'kubeadm'] as const;
const CNI_PLUGINS = ['bridge', 'host-local', 'loopback', 'portmap', 'ptp'] as const;
const [OWN_VERSION, ...OTHER_VERSIONS] = KUBERNETES_VERSIONS;

/** Makes the image of a version's machines. Resolves to its tar. */
export const buildMachineImage = (toolchain: Toolchain, version: KubernetesVersion = OWN_VERSION): Promise<string> =>
  buildImageOfMachines(machineImage(version), version, toolchain);

/** Makes the image of a version's machines that run a control plane. Resolves to its tar. */
async function buildControlPlaneMachineImage(
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
  ...([...SEED_IMAGES, 'coredns', 'kwok', 'local-path-provisioner'] satisfies ImageName[]).map(
    (name) => IMAGES[name].ref,
  ),
  machineImage(OWN_VERSION),
  controlPlaneMachineImage(OWN_VERSION),
];
/** Images that are made together, once somebody asks for one of them. */
export interface OnDemand {
  /** What they are, for people: `Kubernetes 1.35.4`. */
  readonly what: string;
  readonly names: readonly string[];
  /** Programs of them that may have to be built. */
  tools(garden: Pick<GardenOfImages, 'state'>): ToolName[];
  /** How each is made. */
  make(garden: Pick<GardenOfImages, 'toolchain' | 'state'>): (() => Promise<string>)[];
}

/** Another version of Kubernetes than the garden's own. */
const versionOnDemand = (version: KubernetesVersion): OnDemand => ({
  what: `Kubernetes ${version}`,
  names: [
    ...COMPONENTS.map((component) => IMAGES[kubernetesImageName(component, version)].ref),
    machineImage(version),
    controlPlaneMachineImage(version),
  ],
  tools: ({ state }) =>
    [...COMPONENTS, ...(state?.rootless ? [] : MACHINE_PROGRAMS)].map((program) => kubernetesTool(program, version)),
  make: ({ toolchain, state }) => [
    ...COMPONENTS.map((component) => () => toolImage(kubernetesImageName(component, version), toolchain)),
    ...(state?.rootless
      ? []
      : [() => buildMachineImage(toolchain, version), () => buildControlPlaneMachineImage(toolchain, version)]),
  ],
});

/** One image of a tool, called as the tool is. */
const imageOnDemand = (name: ImageName): OnDemand => ({
  what: `${name} ${TOOLS[IMAGES[name].tool].version}`,
  names: [IMAGES[name].ref],
  tools: () => [IMAGES[name].tool],
  make: ({ toolchain }) => [() => toolImage(name, toolchain)],
});

/** What is made only once somebody asks for it, by full names of images. */
export const IMAGES_ON_DEMAND: ReadonlyMap<string, OnDemand> = new Map(
  [...OTHER_VERSIONS.map(versionOnDemand), imageOnDemand('metrics-server')].flatMap((one) =>
    one.names.map((name) => [name, one] as const),
  ),
);
/** Images that are missing, for the first time and at most: to try may be to build for minutes. */
const IMAGES_AGAIN_MS = 30_000;
const IMAGES_LATEST_MS = 15 * 60_000;

/** Of an embedded garden, what its images are made with. */
interface GardenOfImages {
  readonly toolchain: Toolchain;
  /** A seed that was made without root has no machines. */
  readonly state?: { readonly rootless?: true } | undefined;
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
  const kwok = { make: tool('kwok'), here: true };
  // A machine needs root: without, tools for it and for what runs on it would be made for nothing.
  const hasMachines = !state?.rootless;
  const missing = [
    ...SEED_IMAGES.map((name) => ({ make: tool(name), here: true })),
    ...(hasMachines
      ? [
          { make: () => buildMachineImage(toolchain), here: true },
          // Wanted by machines, which ask the mirror for it.
          { make: tool('coredns'), here: false },
        ]
      : [kwok]),
    // No image, but wanted as soon as a first cluster is Ready.
    { make: () => kubectlForPerson(toolchain), here: false, what: 'kubectl' },
    ...(hasMachines
      ? [
          // Late, because only simulated nodes need it and it takes minutes where it must be built.
          kwok,
          // Machines ask the mirror for it, once their cluster is Ready.
          { make: tool('local-path-provisioner'), here: false },
          // Last, and not imported: few gardens see a control plane on machines, whose seed then asks the mirror for it.
          { make: () => buildControlPlaneMachineImage(toolchain), here: false },
        ]
      : []),
  ];
  await makeAll(missing, (tar) => importer.import(tar), { signal, say });
}

/**
 * Tries once to make what was asked for. Nothing is imported: who needs an image has it of the mirror. Resolves to why the first that is still
 * missing could not be made; undefined when none is, or the signal has ended it.
 */
export async function makeOnDemand(wanted: OnDemand, garden: GardenOfImages): Promise<Error | undefined> {
  // All at once: the time that is left is told of all of them then. Which one cannot be had is heard of by its image.
  garden.toolchain.ensure(wanted.tools(garden)).catch(() => {});
  const missing = wanted.make(garden).map((make) => ({ make, here: false }));
  const [first] = await makeRound(missing, async () => {}, garden);
  return first?.error;
}

/** How long to wait, in ms, before images are tried again that are missing after so many rounds. */
export const againAfterMs = (rounds: number): number => Math.min(IMAGES_AGAIN_MS * 2 ** (rounds - 1), IMAGES_LATEST_MS);

interface MissingImage {
  readonly make: () => Promise<string>;
  /** Whether the seed's containerd is given it. */
  readonly here: boolean;
  /** What it is, where it is no image of the seed. */
  readonly what?: string;
}

async function makeAll(
  images: readonly MissingImage[],
  take: (tar: string) => Promise<void>,
  garden: Pick<GardenOfImages, 'signal' | 'say'>,
): Promise<void> {
  let missing = images;
  for (let rounds = 1; ; rounds++) {
    const isImageMissing = missing.some(({ what }) => what === undefined);
    missing = (await makeRound(missing, take, garden)).map(({ image }) => image);
    if (garden.signal.aborted) return;
    if (isImageMissing && missing.every(({ what }) => what !== undefined))
      garden.say('images', 'the seed has all its images', { fraction: 1 });
    if (missing.length === 0) return;
    await sleep(againAfterMs(rounds), undefined, { signal: garden.signal }).catch(() => {});
  }
}

/** Tries each once. Resolves to those that are still missing, and why; to none once the signal is aborted. */
async function makeRound(
  images: readonly MissingImage[],
  take: (tar: string) => Promise<void>,
  { signal, say }: Pick<GardenOfImages, 'signal' | 'say'>,
): Promise<{ image: MissingImage; error: Error }[]> {
  const failed: { image: MissingImage; error: Error }[] = [];
  for (const image of images) {
    if (signal.aborted) return [];
    try {
      const tar = await image.make();
      if (image.here) await take(tar);
    } catch (error) {
      if (signal.aborted) return [];
      failed.push({ image, error: error as Error });
      say('images', `${image.what ?? 'an image'} is missing, and the garden tries again: ${(error as Error).message}`);
    }
  }
  return failed;
}
