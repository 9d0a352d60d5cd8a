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
/** Kubernetes components of every control plane, in the order in which a first cluster needs them. */
export const KUBERNETES_COMPONENTS = ['kube-apiserver', 'kube-controller-manager', 'kube-scheduler'] as const;
/** Images of every control plane in the seed, in that order. */
export const SEED_IMAGES: ImageName[] = ['etcd', ...KUBERNETES_COMPONENTS];

/** Images built after the garden is up; pods may request them before. */
export const EXPECTED_IMAGES: string[] = [
  ...([...SEED_IMAGES, 'coredns', 'kwok', 'local-path-provisioner'] satisfies ImageName[]).map(
    (name) => IMAGES[name].ref,
  ),
  machineImage(OWN_VERSION),
  controlPlaneMachineImage(OWN_VERSION),
];

/** The parts of an embedded garden needed to build images. */
export interface GardenOfImages extends Making {
  readonly toolchain: Toolchain;
  /** A rootless seed has no machines. */
  readonly state?: { readonly rootless?: true } | undefined;
}

interface SeedFile extends WantedFile {
  /** Recipient: the seed's containerd, clients of the mirror, or the person at this machine. */
  readonly to: 'containerd' | 'mirror' | 'person';
}

/** Files that a new garden builds, in the order in which a first cluster needs them. */
function seedFiles({ toolchain, state }: Pick<GardenOfImages, 'toolchain' | 'state'>): SeedFile[] {
  const image = (name: ImageName, to: SeedFile['to']): SeedFile => ({
    what: `image ${name}`,
    make: () => toolImage(name, toolchain),
    to,
  });
  const controlPlane = SEED_IMAGES.map((name) => image(name, 'containerd'));
  const kwok = image('kwok', 'containerd');
  // Needed as soon as a first cluster is Ready.
  const kubectl: SeedFile = { what: 'kubectl', make: () => kubectlForPerson(toolchain), to: 'person' };
  // Machines need root: without it their tools and images would be useless.
  if (state?.rootless) return [...controlPlane, kwok, kubectl];
  return [
    ...controlPlane,
    { what: 'the image of machines', make: () => buildMachineImage(toolchain), to: 'containerd' },
    image('coredns', 'mirror'),
    kubectl,
    // Late, because only simulated nodes need it, and compiling it takes minutes.
    kwok,
    // Machines pull it once their cluster is Ready.
    image('local-path-provisioner', 'mirror'),
    // Last, because few gardens run a control plane on machines.
    {
      what: 'the image of machines with a control plane',
      make: () => buildControlPlaneMachineImage(toolchain),
      to: 'mirror',
    },
  ];
}

/**
 * Builds and imports the images that pods need. Until one is imported, containerd pulls it from the mirror, if
 * available there. Failed ones, for example on a full disk, are retried after all others.
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
