import { setTimeout as sleep } from 'node:timers/promises';
import { controlPlaneMachineImage, machineImage } from '../../../providers/local/machine-image.ts';
import { kubectlForPerson } from '../toolchain/kubectl.ts';
import type { Toolchain } from '../toolchain/toolchain.ts';
import { KUBERNETES_VERSIONS } from '../toolchain/tools.ts';
import { IMAGES, type ImageName, toolImage } from './catalog.ts';
import type { ImageImporter } from './importer.ts';
import { buildControlPlaneMachineImage, buildMachineImage } from './machine-images.ts';
import { againAfterMs, type Making, makeEach, type WantedFile } from './wanted-files.ts';

const [OWN_VERSION] = KUBERNETES_VERSIONS;
/** Components of every control plane that are Kubernetes' own, in the order in which a first cluster needs them. */
export const KUBERNETES_COMPONENTS = ['kube-apiserver', 'kube-controller-manager', 'kube-scheduler'] as const;
/** Images of what every control plane in the seed runs, in that order. */
export const SEED_IMAGES: ImageName[] = ['etcd', ...KUBERNETES_COMPONENTS];

/** Made after the garden is up, so that pods may ask for them before they are there. */
export const EXPECTED_IMAGES: string[] = [
  ...([...SEED_IMAGES, 'coredns', 'kwok', 'local-path-provisioner'] satisfies ImageName[]).map(
    (name) => IMAGES[name].ref,
  ),
  machineImage(OWN_VERSION),
  controlPlaneMachineImage(OWN_VERSION),
];

/** Of an embedded garden, what its images are made with. */
export interface GardenOfImages extends Making {
  readonly toolchain: Toolchain;
  /** A seed that was made without root has no machines. */
  readonly state?: { readonly rootless?: true } | undefined;
}

interface SeedFile extends WantedFile {
  /** Who is given it: the seed's containerd, whoever asks the mirror, or the person at this machine. */
  readonly to: 'containerd' | 'mirror' | 'person';
}

/** What a new garden makes, in the order in which a first cluster needs it. */
function seedFiles({ toolchain, state }: Pick<GardenOfImages, 'toolchain' | 'state'>): SeedFile[] {
  const image = (name: ImageName, to: SeedFile['to']): SeedFile => ({
    what: `image ${name}`,
    make: () => toolImage(name, toolchain),
    to,
  });
  const controlPlane = SEED_IMAGES.map((name) => image(name, 'containerd'));
  const kwok = image('kwok', 'containerd');
  // Wanted as soon as a first cluster is Ready.
  const kubectl: SeedFile = { what: 'kubectl', make: () => kubectlForPerson(toolchain), to: 'person' };
  // A machine needs root: without, tools for it and for what runs on it would be made for nothing.
  if (state?.rootless) return [...controlPlane, kwok, kubectl];
  return [
    ...controlPlane,
    { what: 'the image of machines', make: () => buildMachineImage(toolchain), to: 'containerd' },
    image('coredns', 'mirror'),
    kubectl,
    // Late, because only simulated nodes need it and it takes minutes where it must be built.
    kwok,
    // Machines ask for it once their cluster is Ready.
    image('local-path-provisioner', 'mirror'),
    // Last, because few gardens see a control plane on machines.
    {
      what: 'the image of machines with a control plane',
      make: () => buildControlPlaneMachineImage(toolchain),
      to: 'mirror',
    },
  ];
}

/**
 * Images that pods will want. Until one is here, containerd gets it from the mirror, if that has it. One that cannot be made or
 * imported, for want of room perhaps, is tried again after all others.
 */
export async function fillImages(importer: ImageImporter, garden: GardenOfImages): Promise<void> {
  const { signal, say } = garden;
  const isImage = ({ to }: SeedFile) => to !== 'person';
  let missing = seedFiles(garden);
  for (let rounds = 1; ; rounds++) {
    const lackedImages = missing.some(isImage);
    const failed = await makeEach(missing, garden, async (file, { to }) => {
      if (to === 'containerd') await importer.import(file);
    });
    if (signal.aborted) return;
    missing = failed.map(({ wanted }) => wanted);
    if (lackedImages && !missing.some(isImage)) say('images', 'the seed has all its images', { fraction: 1 });
    if (missing.length === 0) return;
    await sleep(againAfterMs(rounds), undefined, { signal }).catch(() => {});
  }
}
