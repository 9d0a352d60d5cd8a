import { fileURLToPath } from 'node:url';
import type { ImageMirror } from '../../../providers/local/mirror-hosts.ts';
import { IMAGE_MIRROR_CERTIFICATE } from '../control-plane/certificates.ts';
import { readText } from '../host/files.ts';
import { imagesDirectory } from '../images/build.ts';
import { IMAGES_ON_DEMAND } from '../images/on-demand-catalog.ts';
import { EXPECTED_IMAGES } from '../images/seed-images.ts';
import { childEnvironment, registryEnvironment } from '../processes/child-environment.ts';
import type { ProcessSpec } from '../processes/supervisor.ts';
import type { GardenState } from '../state/state.ts';
import type { GardenOfSeed } from './garden-of-seed.ts';

const MIRROR = fileURLToPath(new URL('../images/mirror-main.ts', import.meta.url));
const MIRROR_PORT = 5000;
/** Name of the mirror's process. */
export const IMAGE_MIRROR = 'image-mirror';
/** Small young generation: 70 MiB less after serving 600 MB of images. */
const MIRROR_YOUNG_GENERATION = '--max-semi-space-size=1';

/** Mirror of the seed's containerd for images that are not imported yet. */
const mirrorURL = ({ nodeAddress }: GardenState['ranges']): string => `https://${nodeAddress}:${MIRROR_PORT}`;

/** The mirror as configured in containerd, with the garden's CA. */
export async function mirrorOf({ directory, state }: Pick<GardenOfSeed, 'directory' | 'state'>): Promise<ImageMirror> {
  const ca = await readText(directory.pki('ca.crt'));
  return { url: mirrorURL(state.ranges), ...(ca !== undefined && { ca }) };
}

/**
 * The image mirror. It listens in the seed's network and contacts registries from the host's, with its proxy and
 * certificates.
 */
export function imageMirror(
  { directory, state, toolchain }: Pick<GardenOfSeed, 'directory' | 'state' | 'toolchain'>,
  enter: readonly string[],
): ProcessSpec {
  const { nodeAddress, pods, nodes, services } = state.ranges;
  const values = {
    listen: `${nodeAddress}:${MIRROR_PORT}`,
    enter: JSON.stringify(enter),
    // Excludes the host's end of the link: programs of the host's users connect from there, and images may be for
    // root alone.
    peers: [pods, `${nodeAddress}/32`].join(','),
    'on-demand': [...IMAGES_ON_DEMAND.keys()].join(','),
    asked: directory.path('seed', 'asked'),
    expect: EXPECTED_IMAGES.map((ref) => ref.replace(/^[^/]+\//, '')).join(','),
    cache: directory.path('seed', 'pulled'),
    settings: directory.registriesFile,
    seed: directory.path('seed'),
    kubeconfig: directory.kubeconfigFile('admin'),
    own: [pods, nodes, services].join(','),
    cert: directory.pki(`${IMAGE_MIRROR_CERTIFICATE}.crt`),
    key: directory.pki(`${IMAGE_MIRROR_CERTIFICATE}.key`),
  };
  const dirs = [directory.loadedImages, imagesDirectory(toolchain.dir)];
  return {
    name: IMAGE_MIRROR,
    command: [
      process.execPath,
      MIRROR_YOUNG_GENERATION,
      MIRROR,
      ...dirs.flatMap((dir) => ['--dir', dir]),
      ...Object.entries(values).flatMap(([name, value]) => [`--${name}`, value]),
    ],
    env: { ...childEnvironment(), ...registryEnvironment() },
    inputs: [values.cert],
  };
}
