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

/** Kubernetes programs of machines, including control plane machines. */
const MACHINE_PROGRAMS = ['kubelet', 'kube-proxy', 'kubeadm'] as const;
const [, ...OTHER_VERSIONS] = KUBERNETES_VERSIONS;

/** Images built together when one of them is requested. */
export interface OnDemand {
  /** Name for messages: `Kubernetes 1.35.4`. */
  readonly what: string;
  readonly names: readonly string[];
  /** Their programs that may have to be compiled. */
  tools(garden: Pick<GardenOfImages, 'state'>): ToolName[];
  /** Build steps of the images. */
  make(garden: Pick<GardenOfImages, 'toolchain' | 'state'>): (() => Promise<string>)[];
}

/** A Kubernetes version other than the garden's own. */
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

/** The image of one tool, with the tool's name. */
const imageOnDemand = (name: ImageName): OnDemand => ({
  what: `${name} ${TOOLS[IMAGES[name].tool].version}`,
  names: [IMAGES[name].ref],
  tools: () => [IMAGES[name].tool],
  make: ({ toolchain }) => [() => toolImage(name, toolchain)],
});

/** Images built on request, by full name. */
export const IMAGES_ON_DEMAND: ReadonlyMap<string, OnDemand> = new Map(
  [...OTHER_VERSIONS.map(versionOnDemand), imageOnDemand('metrics-server')].flatMap((one) =>
    one.names.map((name) => [name, one] as const),
  ),
);

/**
 * Tries once to build the requested images. They are not imported: nodes pull them from the mirror. Resolves to the
 * first error; undefined when all exist, or the signal aborted.
 */
export async function makeOnDemand(wanted: OnDemand, garden: GardenOfImages): Promise<Error | undefined> {
  // Requested together, so that the remaining time covers all. Failures are reported per image.
  garden.toolchain.ensure(wanted.tools(garden)).catch(() => {});
  const [first] = await makeEach(
    wanted.make(garden).map((make) => ({ what: wanted.what, make })),
    garden,
  );
  return first?.error;
}
