import { readdir } from 'node:fs/promises';
import { join } from 'node:path';

const CONTENT = 'io.containerd.content.v1.content/blobs/sha256';
/** Path below the mount at a machine's /var. */
const MACHINE = join('lib', 'containerd', CONTENT);

/**
 * Digests in hex of the blobs on a garden's nodes: the seed's own, and machines', whose disks are folders in the seed.
 * @param seed the seed's folder in the garden's state
 */
export async function nodeBlobs(seed: string): Promise<Set<string>> {
  const pods = join(seed, 'kubelet', 'pods');
  const volumes = join(seed, 'volumes');
  const folders = [
    join(seed, 'containerd', CONTENT),
    ...(await names(pods)).map((pod) => join(pods, pod, 'volumes', 'kubernetes.io~empty-dir', 'var', MACHINE)),
    ...(await names(volumes)).map((volume) => join(volumes, volume, MACHINE)),
  ];
  return new Set((await Promise.all(folders.map(names))).flat());
}

const names = (folder: string): Promise<string[]> => readdir(folder).catch(() => []);
