import { createHash } from 'node:crypto';
import type { FileHandle } from 'node:fs/promises';
import { posix } from 'node:path';
import { imageArchitecture } from '../../host/architecture.ts';
import { manifestType } from '../manifest-type.ts';
import { fullReference } from '../reference.ts';
import { BLOCK, padding } from '../tar.ts';

/** A file in an archive. */
interface ArchiveEntry {
  /** Byte offset of its content, and its length. */
  offset: number;
  size: number;
}

/** Longer names do not occur in image archives. */
const LONGEST_NAME = 64 * 1024;
const MOST_ENTRIES = 1_000_000;

/** Files of a tar by name, as Docker, Podman, containerd and GNU tar write them; links are resolved. */
async function archiveEntries(handle: FileHandle): Promise<Map<string, ArchiveEntry>> {
  const files = new Map<string, ArchiveEntry>();
  const links = new Map<string, string>();
  const { size: total } = await handle.stat();
  let next: { name?: string; size?: number; target?: string } = {};
  for (let position = 0, count = 0; position + BLOCK <= total; count++) {
    const header = await readAt(handle, position, BLOCK);
    if (header[0] === 0) break;
    if (header.toString('latin1', 257, 262) !== 'ustar' || count > MOST_ENTRIES)
      throw new Error('it is not a tar archive');
    const type = String.fromCharCode(header[156]!);
    const size = next.size ?? number(header, 124, 12);
    const offset = position + BLOCK;
    if (!Number.isSafeInteger(size) || offset + size > total) throw new Error('the archive is incomplete');
    position = offset + size + padding(size);
    if ('xLK'.includes(type)) {
      if (size > LONGEST_NAME) throw new Error('it is not an archive of images');
      const data = await readAt(handle, offset, size);
      if (type === 'x') next = { ...next, ...extended(data) };
      else next = { ...next, [type === 'L' ? 'name' : 'target']: text(data, 0, data.length) };
      continue;
    }
    const prefix = header[262] === 0 ? text(header, 345, 155) : '';
    const short = text(header, 0, 100);
    const name = posix.normalize(next.name ?? (prefix ? `${prefix}/${short}` : short));
    const target = next.target ?? text(header, 157, 100);
    // Written by old Docker: a layer shared by two images is a link in the second's folder.
    if (type === '2') links.set(name, posix.join(posix.dirname(name), target));
    else if (type === '1') links.set(name, posix.normalize(target));
    else if (type === '0' || type === '\0') files.set(name, { offset, size });
    next = {};
  }
  for (const [name, target] of links) {
    const found = files.get(target) ?? files.get(links.get(target) ?? '');
    if (found) files.set(name, found);
  }
  return files;
}

/** Reads part of a file. Throws where the file is shorter. */
async function readAt(handle: FileHandle, position: number, size: number): Promise<Buffer> {
  const { buffer, bytesRead } = await handle.read(Buffer.alloc(size), 0, size, position);
  if (bytesRead < size) throw new Error('the archive is incomplete');
  return buffer;
}

const text = (data: Buffer, from: number, length: number) =>
  data.toString('utf8', from, from + length).replace(/\0.*$/s, '');

/** Octal text, or binary for 8 GiB and more. */
function number(header: Buffer, from: number, length: number): number {
  if ((header[from]! & 0x80) === 0) return Number.parseInt(text(header, from, length).trim() || '0', 8);
  let value = header[from]! & 0x7f;
  for (const byte of header.subarray(from + 1, from + length)) value = value * 256 + byte;
  return value;
}

/**
 * Records `LENGTH KEY=VALUE
 * ` of a POSIX header.
 */
function extended(data: Buffer): { name?: string; size?: number; target?: string } {
  const found: { name?: string; size?: number; target?: string } = {};
  for (let position = 0; position < data.length; ) {
    const blank = data.indexOf(0x20, position);
    const length = Number(data.toString('latin1', position, blank));
    if (blank < 0 || !(length > 0)) break;
    const record = data.toString('utf8', blank + 1, position + length - 1);
    const value = record.slice(record.indexOf('=') + 1);
    if (record.startsWith('path=')) found.name = value;
    if (record.startsWith('linkpath=')) found.target = value;
    if (record.startsWith('size=')) found.size = Number(value);
    position += length;
  }
  return found;
}

/** A blob of an image: a part of the archive, or generated text. */
export type Piece = { digest: string; size: number } & ({ entry: ArchiveEntry } | { data: Buffer });

/** An image in an archive, for this platform. */
export interface ArchivedImage {
  /** Full name, `host/repository:tag`; undefined where the archive has none. */
  ref: string | undefined;
  manifest: Piece & { data: Buffer };
  mediaType: string;
  blobs: Piece[];
}

interface Descriptor {
  mediaType?: string;
  digest: string;
  size: number;
  platform?: { os?: string; architecture?: string };
  annotations?: Record<string, string>;
}
interface Manifest {
  mediaType?: string;
  config: Descriptor;
  layers: Descriptor[];
}

const MANIFEST = 'application/vnd.oci.image.manifest.v1+json';
const JSON_BYTES = 16 * 1024 ** 2;
const PIECE = 1024 * 1024;
const DIGEST = /^sha256:[0-9a-f]{64}$/;
const DEEPEST = 4;
/** Annotation of a manifest's subject: BuildKit adds build attestations as manifests. */
const ATTESTATION = 'vnd.docker.reference.type';

/**
 * Images of an archive written by `docker save`, `podman save`, `ctr images export` or an OCI tool. Throws for other
 * files.
 */
export async function readArchive(handle: FileHandle): Promise<ArchivedImage[]> {
  const entries = await archiveEntries(handle);
  const archive = { handle, entries };
  const index = await json<{ manifests?: Descriptor[] }>(archive, 'index.json');
  // Docker writes both since version 25; before, its index was empty.
  if (index?.manifests?.length) return Promise.all(forHere(index.manifests).map((one) => ofLayout(archive, one)));
  const list = await json<DockerImage[]>(archive, 'manifest.json');
  if (!Array.isArray(list) || list.length === 0)
    throw new Error('it contains no images, neither from Docker nor in an OCI layout');
  return (await Promise.all(list.map((one) => ofDocker(archive, one)))).flat();
}

interface Archive {
  handle: FileHandle;
  entries: ReadonlyMap<string, ArchiveEntry>;
}

async function json<T>({ handle, entries }: Archive, name: string): Promise<T | undefined> {
  const entry = entries.get(name);
  if (!entry) return undefined;
  if (entry.size > JSON_BYTES) throw new Error(`its ${name} is too large`);
  return JSON.parse(String(await readAt(handle, entry.offset, entry.size))) as T;
}

const blobName = (digest: string): string => {
  if (!DIGEST.test(digest))
    throw new Error(`it refers to a blob as ${JSON.stringify(digest)}, which is not a SHA-256 digest`);
  return `blobs/sha256/${digest.slice('sha256:'.length)}`;
};

/** Whether nodes of this machine run the manifest's image. Attestations are no images. */
function isForHere({ platform, annotations }: Descriptor): boolean {
  if (annotations?.[ATTESTATION] !== undefined) return false;
  return !platform || (platform.architecture === imageArchitecture() && platform.os === 'linux');
}

/** Manifests of an index for this platform; all, where none of a name matches. */
function forHere(manifests: readonly Descriptor[]): Descriptor[] {
  const byName = Map.groupBy(manifests, (one) => nameOf(one) ?? '');
  return [...byName.values()].flatMap((group) => (group.some(isForHere) ? group.filter(isForHere) : group.slice(0, 1)));
}

/** The image's name from containerd and Docker, or a tag alone. */
const nameOf = ({ annotations }: Descriptor): string | undefined =>
  annotations?.['io.containerd.image.name'] ?? annotations?.['org.opencontainers.image.ref.name'];

/** A full name as in pods, without a digest beside the tag; undefined for a tag, image ID or digest alone. */
function refOf(name: string | undefined): string | undefined {
  const tagged = name?.replace(/@sha256:[0-9a-f]+$/, '');
  const hasTag = tagged === name || /:[^/]*$/.test(tagged ?? '');
  if (!tagged || !hasTag || !/[/:]/.test(tagged) || DIGEST.test(tagged)) return undefined;
  try {
    return fullReference(tagged);
  } catch {
    return undefined;
  }
}

async function ofLayout(archive: Archive, top: Descriptor): Promise<ArchivedImage> {
  const ref = refOf(nameOf(top));
  const what = ref ?? nameOf(top) ?? top.digest;
  if (!isForHere(top)) throw notForHere(what);
  const { digest } = await manifestOf(archive, top, what);
  const entry = archive.entries.get(blobName(digest))!;
  const data = await readAt(archive.handle, entry.offset, entry.size);
  const manifest = JSON.parse(String(data)) as Manifest;
  const mediaType = manifestType(data);
  if (mediaType === undefined) throw new Error(`its manifest of ${what} has an unknown type`);
  const blobs = [manifest.config, ...manifest.layers].map((blob): Piece => {
    const found = archive.entries.get(blobName(blob.digest));
    if (!found) throw new Error(`it lacks ${blob.digest} of ${what}: save the image again, for this platform alone`);
    return { digest: blob.digest, size: found.size, entry: found };
  });
  return { ref, manifest: { digest, size: data.length, data }, mediaType, blobs };
}

/** The archive's manifest for this platform, resolved from an index. */
async function manifestOf(archive: Archive, from: Descriptor, what: string, depth = 0): Promise<Descriptor> {
  const found = await json<Partial<Manifest> & { manifests?: Descriptor[] }>(archive, blobName(from.digest));
  if (found?.config && found.layers) return from;
  const here = (found?.manifests ?? []).filter(({ digest }) => archive.entries.has(blobName(digest)));
  const next = here.find((one) => one.platform && isForHere(one)) ?? here.find(isForHere);
  if (!next || depth > DEEPEST) throw notForHere(what);
  return manifestOf(archive, next, what, depth + 1);
}

const notForHere = (what: string): Error => new Error(`it has no ${what} for linux/${imageArchitecture()}`);

interface DockerImage {
  Config: string;
  RepoTags?: string[] | null;
  Layers: string[];
}

/** An image in Docker's own format: its layers are named by file and get the digests of their contents. */
async function ofDocker(archive: Archive, { Config, RepoTags, Layers }: DockerImage): Promise<ArchivedImage[]> {
  const what = RepoTags?.[0] ?? Config;
  const piece = async (name: string): Promise<Piece & { type: string }> => {
    const entry = archive.entries.get(name);
    if (!entry) throw new Error(`it lacks ${name} of ${what}`);
    const packed = await compressionOf(archive.handle, entry);
    const type = packed ? `+${packed}` : '';
    return { digest: await digestOf(archive.handle, entry), size: entry.size, entry, type };
  };
  const config = await piece(Config);
  const layers: (Piece & { type: string })[] = [];
  for (const name of Layers) layers.push(await piece(name));
  const describe = (mediaType: string, { digest, size }: Piece) => ({ mediaType, digest, size });
  const data = Buffer.from(
    JSON.stringify({
      schemaVersion: 2,
      mediaType: MANIFEST,
      config: describe('application/vnd.oci.image.config.v1+json', config),
      layers: layers.map((layer) => describe(`application/vnd.oci.image.layer.v1.tar${layer.type}`, layer)),
    }),
  );
  const digest = `sha256:${createHash('sha256').update(data).digest('hex')}`;
  const image = { manifest: { digest, size: data.length, data }, mediaType: MANIFEST, blobs: [config, ...layers] };
  const refs = RepoTags?.length ? RepoTags.map(fullReference) : [undefined];
  return refs.map((ref) => ({ ref, ...image }));
}

/** Compression of a part of a file, by its first bytes. */
export async function compressionOf(
  handle: FileHandle,
  { offset, size }: ArchiveEntry,
): Promise<'gzip' | 'zstd' | undefined> {
  const start = size < 4 ? Buffer.alloc(4) : await readAt(handle, offset, 4);
  if (start.readUInt16BE(0) === 0x1f8b) return 'gzip';
  return start.readUInt32LE(0) === 0xfd2fb528 ? 'zstd' : undefined;
}

/** Content of an entry in chunks. */
export async function* entryContentOf(handle: FileHandle, { offset, size }: ArchiveEntry): AsyncGenerator<Buffer> {
  for (let position = 0; position < size; position += PIECE) {
    yield await readAt(handle, offset + position, Math.min(PIECE, size - position));
  }
}

async function digestOf(handle: FileHandle, entry: ArchiveEntry): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of entryContentOf(handle, entry)) hash.update(chunk);
  return `sha256:${hash.digest('hex')}`;
}
