import { controlPlaneMachineImage, machineImage } from '../../../providers/local/machine-image.ts';
import {
  KUBERNETES_VERSIONS,
  type KubernetesVersion,
  kubernetesTool,
  TOOLS,
  type ToolName,
} from '../toolchain/tools.ts';
import { IMAGES, type ImageName, kubernetesImageName, toolImage } from './catalog.ts';
import { buildControlPlaneMachineImage, buildMachineImage } from './machine-images.ts';
import { type GardenOfImages, KUBERNETES_COMPONENTS } from './seed-images.ts';
import { makeEach } from './wanted-files.ts';

/** Kubernetes' own programs of machines, those that run a control plane among them. */
const MACHINE_PROGRAMS = ['kubelet', 'kube-proxy', 'kubeadm'] as const;
const [, ...OTHER_VERSIONS] = KUBERNETES_VERSIONS;

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
    ...KUBERNETES_COMPONENTS.map((component) => IMAGES[kubernetesImageName(component, version)].ref),
    machineImage(version),
    controlPlaneMachineImage(version),
  ],
  tools: ({ state }) =>
    [...KUBERNETES_COMPONENTS, ...(state?.rootless ? [] : MACHINE_PROGRAMS)].map((program) =>
      kubernetesTool(program, version),
    ),
  make: ({ toolchain, state }) => [
    ...KUBERNETES_COMPONENTS.map((component) => () => toolImage(kubernetesImageName(component, version), toolchain)),
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

/**
 * Tries once to make what was asked for. Nothing is imported: who needs an image has it of the mirror. Resolves to why the first that is still
 * missing could not be made; undefined when none is, or the signal has ended it.
 */
export async function makeOnDemand(wanted: OnDemand, garden: GardenOfImages): Promise<Error | undefined> {
  // All at once: the time that is left is told of all of them then. Which one cannot be had is heard of by its image.
  garden.toolchain.ensure(wanted.tools(garden)).catch(() => {});
  const [first] = await makeEach(
    wanted.make(garden).map((make) => ({ what: wanted.what, make })),
    garden,
  );
  return first?.error;
}
