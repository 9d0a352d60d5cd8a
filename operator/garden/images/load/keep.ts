import { createHash, randomBytes } from 'node:crypto';
import { type FileHandle, mkdir, open, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { diskRoom, KEPT_FREE_BYTES } from '../../host/disk-room.ts';
import { padding, TAR_END, tarHeader } from '../tar.ts';
import { type ArchivedImage, entryContentOf, type Piece, readArchive } from './archive.ts';

/** Size limit of an entry in a tar header. */
const TAR_BYTES = 8 * 1024 ** 3;

interface Loaded {
  /** Full name of the image. */
  ref: string;
  /** Digest of its manifest. */
  digest: string;
}

/**
 * Stores an archive's images in the mirror's folder, replacing those of the same name.
 * @param as new name for an archive's only image; absent: names of the archive
 * @param folder of loaded images. Throws the fault of an invalid archive
 */
export async function keepImages(file: string, folder: string, as?: string): Promise<Loaded[]> {
  const handle = await open(file, 'r');
  try {
    const images = await readArchive(handle);
    const loaded: Loaded[] = [];
    for (const image of as === undefined ? images : [theOne(images, as)]) {
      const ref = as ?? image.ref;
      if (ref === undefined) throw new Error('it does not name its image: give the name with --as');
      await keepOne(handle, image, ref, folder);
      loaded.push({ ref, digest: image.manifest.digest });
    }
    return loaded;
  } finally {
    await handle.close();
  }
}

/** The image of a name: `docker save` without a tag saves all tags, and an image has an entry per tag. */
function theOne(images: readonly ArchivedImage[], name: string): ArchivedImage {
  const named = images.find(({ ref }) => ref === name);
  const different = new Set(images.map(({ manifest }) => manifest.digest)).size;
  if (!named && different > 1) throw new Error(`it has ${different} images, and --as can name only one`);
  return named ?? images[0]!;
}

async function keepOne(source: FileHandle, image: ArchivedImage, ref: string, folder: string): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const tooLarge = image.blobs.find((blob) => blob.size >= TAR_BYTES);
  if (tooLarge) throw new Error(`${ref} has a layer of ${tooLarge.size} bytes; the largest allowed is 8 GiB`);
  const size = image.blobs.reduce((sum, blob) => sum + blob.size, 0);
  if ((await diskRoom(folder)) - size < KEPT_FREE_BYTES)
    throw new Error(`the disk of ${folder} has no room for ${ref}`);
  const name = createHash('sha256').update(ref).digest('hex').slice(0, 16);
  const draft = join(folder, `.${name}.${randomBytes(4).toString('hex')}`);
  try {
    const target = await open(draft, 'wx', 0o600);
    try {
      await writeLayout(target, source, image, ref);
      await target.sync();
    } finally {
      await target.close();
    }
    await rename(draft, join(folder, `${name}.tar`));
  } finally {
    await rm(draft, { force: true });
  }
}

async function writeLayout(target: FileHandle, source: FileHandle, image: ArchivedImage, ref: string): Promise<void> {
  const write = async (name: string, size: number, content: AsyncIterable<Buffer> | Iterable<Buffer>) => {
    await target.write(tarHeader({ name, type: 'file', mode: 0o644, size }));
    for await (const chunk of content) await target.write(chunk);
    await target.write(Buffer.alloc(padding(size)));
  };
  const blobs = new Map([image.manifest, ...image.blobs].map((blob): [string, Piece] => [blob.digest, blob]));
  for (const [digest, blob] of blobs) {
    const content = 'data' in blob ? [blob.data] : entryContentOf(source, blob.entry);
    await write(`blobs/sha256/${digest.slice('sha256:'.length)}`, blob.size, checked(content, digest));
  }
  const { manifest, mediaType } = image;
  const annotations = { 'io.containerd.image.name': ref };
  const manifests = [{ mediaType, digest: manifest.digest, size: manifest.size, annotations }];
  const texts = {
    'index.json': { schemaVersion: 2, mediaType: 'application/vnd.oci.image.index.v1+json', manifests },
    'oci-layout': { imageLayoutVersion: '1.0.0' },
  };
  for (const [name, value] of Object.entries(texts)) {
    const data = Buffer.from(JSON.stringify(value));
    await write(name, data.length, [data]);
  }
  await target.write(TAR_END);
}

async function* checked(content: AsyncIterable<Buffer> | Iterable<Buffer>, digest: string): AsyncGenerator<Buffer> {
  const hash = createHash('sha256');
  for await (const chunk of content) {
    hash.update(chunk);
    yield chunk;
  }
  if (`sha256:${hash.digest('hex')}` !== digest) throw new Error(`its content of ${digest} does not match that digest`);
}
