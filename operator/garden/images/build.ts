import { createHash } from 'node:crypto';
import { mkdir, open, readdir, readFile, rename, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { constants, createZstdCompress } from 'node:zlib';
import { imageArchitecture } from '../host/architecture.ts';
import { ToolCache, toolsDirectory } from '../toolchain/cache.ts';
import { parseReference } from './reference.ts';
import { BLOCK, padding, TAR_END, type TarEntry, tarHeader } from './tar.ts';

export interface ImageFile {
  /** Absolute path in the image. */
  path: string;
  /** Source file on the host; otherwise `content`. */
  from?: string;
  content?: string;
  /** Default 0755 for `from`, 0644 for `content`. */
  mode?: number;
}

interface ImageSpec {
  /** Full name, `host/repository:tag`. */
  ref: string;
  files: ImageFile[];
  /** Empty folders, e.g. mount points. Parents of files are implicit. Default mode 0755. */
  directories?: { path: string; mode?: number }[];
  links?: { path: string; target: string }[];
  entrypoint: string[];
  /** Default arguments. */
  cmd?: string[];
  env?: Record<string, string>;
  /** Numeric: few of these images have a passwd file. Default root. */
  user?: string;
  /** UID and GID of all files; default root. */
  owner?: number;
  workingDir?: string;
  labels?: Record<string, string>;
}

/** Part of every cache key: increase it when the same spec yields other bytes. */
const FORMAT = 3;
const CHUNK = 1024 * 1024;
/**
 * Compared with an uncompressed layer, containerd imports kube-apiserver's image in two thirds of the time and writes a
 * third less; gzip is slower than no compression.
 */
const COMPRESSION = {
  params: { [constants.ZSTD_c_compressionLevel]: 1 },
  chunkSize: CHUNK,
  // One chunk at a time: output bytes otherwise depend on when the stream learns of its end.
  writableHighWaterMark: 1,
};
const DEFAULT_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
const LAYER_TYPE = 'application/vnd.oci.image.layer.v1.tar+zstd';
const CONFIG_TYPE = 'application/vnd.oci.image.config.v1+json';
const MANIFEST_TYPE = 'application/vnd.oci.image.manifest.v1+json';
const INDEX_TYPE = 'application/vnd.oci.image.index.v1+json';

/** Suffix of an image's file name. */
const DIGEST_TAR = /^[0-9a-f]{12}\.tar$/;
const NAMED_BY_DIGEST = /-[0-9a-f]{12}\.tar$/;
const IN_USE_MS = 24 * 3600_000;

const sha256 = (data: Buffer | string) => createHash('sha256').update(data).digest('hex');

/** Folder of images: `images` in the tools folder. The mirror serves it. */
export const imagesDirectory = (toolsDir = toolsDirectory()): string => join(toolsDir, 'images');

const building = new Map<string, Promise<string>>();

/**
 * Builds an image without a container tool: a tar of an OCI layout with one layer, for `ctr -n k8s.io images import`
 * and the mirror. Resolves to the tar's path, named by the image's digest. A spec with unchanged files (by size, date
 * and inode) is not built again.
 */
export async function buildImage(spec: ImageSpec, options: { toolsDir?: string } = {}): Promise<string> {
  const toolsDir = options.toolsDir ?? toolsDirectory();
  const key = await keyOf(spec, imagesDirectory(toolsDir));
  const id = join(toolsDir, key);
  let work = building.get(id);
  if (!work) {
    work = build(spec, toolsDir, key).finally(() => building.delete(id));
    building.set(id, work);
  }
  return work;
}

async function build(spec: ImageSpec, toolsDir: string, key: string): Promise<string> {
  const dir = imagesDirectory(toolsDir);
  const keyFile = join(dir, '.keys', key);
  const known = await readFile(keyFile, 'utf8').catch(() => undefined);
  if (known && (await isWhole(join(dir, known)))) {
    const file = join(dir, known.split(' ')[0]!);
    await markUsed(file);
    return file;
  }

  const { repository, tag } = parseReference(spec.ref);
  const workFolder = await new ToolCache(toolsDir).workFolder();
  try {
    const draft = join(workFolder, 'image.tar');
    const digest = await writeLayout(draft, spec);
    const prefix = `${repository.replaceAll('/', '_')}-${tag}-`;
    const name = `${prefix}${digest.slice(0, 12)}.tar`;
    const { size } = await stat(draft);
    await mkdir(join(dir, '.keys'), { recursive: true });
    await rename(draft, join(dir, name));
    await writeFile(join(workFolder, 'key'), `${name} ${size}`);
    await rename(join(workFolder, 'key'), keyFile);
    await removeEarlier(dir, prefix, name);
    return join(dir, name);
  } finally {
    await rm(workFolder, { recursive: true, force: true });
  }
}

/** Updates an image's date: images in use are kept, and the mirror serves the latest of a name. */
async function markUsed(file: string): Promise<void> {
  const now = new Date();
  // A user with read access only uses the file as it is.
  await utimes(file, now, now).catch(() => {});
}

/** Removes builds of earlier sources under a name: the mirror serves the newest, and others can be rebuilt. */
async function removeEarlier(dir: string, prefix: string, newest: string): Promise<void> {
  for (const other of await readdir(dir)) {
    const isEarlier = other.startsWith(prefix) && DIGEST_TAR.test(other.slice(prefix.length)) && other !== newest;
    const used = isEarlier ? await stat(join(dir, other)).catch(() => undefined) : undefined;
    // A garden with other sources may share this folder.
    if (used && Date.now() - used.mtimeMs > IN_USE_MS) await rm(join(dir, other), { force: true });
  }
}

/** `entry`: a tar's path, a blank and its size. */
async function isWhole(entry: string): Promise<boolean> {
  const blank = entry.lastIndexOf(' ');
  const info = await stat(entry.slice(0, blank)).catch(() => undefined);
  return info?.size === Number(entry.slice(blank + 1));
}

async function keyOf(spec: ImageSpec, images: string): Promise<string> {
  const sources = await Promise.all(
    spec.files.map(async ({ from }) => {
      if (from === undefined) return null;
      // The date of an image inside an image is its last use: each starting garden would rebuild the outer one.
      if (dirname(from) === images && NAMED_BY_DIGEST.test(from)) return [from];
      const { size, mtimeNs, ino } = await stat(from, { bigint: true });
      return [from, size, mtimeNs, ino].map(String);
    }),
  );
  return sha256(JSON.stringify([FORMAT, process.arch, spec, sources]));
}

/** Writes the whole layout and returns the manifest's digest in hex. Each source is read once. */
async function writeLayout(file: string, spec: ImageSpec): Promise<string> {
  const handle = await open(file, 'w');
  try {
    let position = 0;
    const write = async (data: Buffer) => {
      await handle.write(data, 0, data.length, position);
      position += data.length;
    };
    const writeBlob = async (name: string, data: Buffer) => {
      await write(tarHeader({ name, type: 'file', mode: 0o644, size: data.length }));
      await write(data);
      await write(Buffer.alloc(padding(data.length)));
    };
    const blob = (digest: string) => `blobs/sha256/${digest}`;

    // The layer's name is its digest, known only after the write: its header is filled in then.
    await write(Buffer.alloc(BLOCK));
    const plain = createHash('sha256');
    const packed = createHash('sha256');
    await pipeline(
      layer(spec),
      async function* (source: AsyncIterable<Buffer>) {
        for await (const chunk of source) {
          plain.update(chunk);
          yield chunk;
        }
      },
      createZstdCompress(COMPRESSION),
      async (source: AsyncIterable<Buffer>) => {
        for await (const chunk of source) {
          packed.update(chunk);
          await write(chunk);
        }
      },
    );
    const diffId = plain.digest('hex');
    const layerDigest = packed.digest('hex');
    const layerSize = position - BLOCK;
    await write(Buffer.alloc(padding(layerSize)));
    const layerHeader = tarHeader({ name: blob(layerDigest), type: 'file', mode: 0o644, size: layerSize });
    await handle.write(layerHeader, 0, BLOCK, 0);

    const config = Buffer.from(JSON.stringify(imageConfig(spec, diffId)));
    const layerOfImage = descriptor(LAYER_TYPE, layerDigest, layerSize);
    const manifest = Buffer.from(JSON.stringify(imageManifest(descriptorOf(CONFIG_TYPE, config), layerOfImage)));
    const index = Buffer.from(JSON.stringify(imageIndex(spec, descriptorOf(MANIFEST_TYPE, manifest))));
    const manifestDigest = sha256(manifest);
    await writeBlob(blob(sha256(config)), config);
    await writeBlob(blob(manifestDigest), manifest);
    await writeBlob('index.json', index);
    await writeBlob('oci-layout', Buffer.from('{"imageLayoutVersion":"1.0.0"}'));
    await write(TAR_END);
    return manifestDigest;
  } finally {
    await handle.close();
  }
}

const inArchive = (path: string): string => {
  if (!path.startsWith('/')) throw new Error(`${path} must be absolute in the image`);
  return path.slice(1).replace(/\/+$/, '');
};

/** The layer's tar in chunks. */
async function* layer(spec: ImageSpec): AsyncGenerator<Buffer> {
  const { owner } = spec;
  const folders = new Map<string, number>();
  for (const { path, mode } of spec.directories ?? []) folders.set(inArchive(path), mode ?? 0o755);
  for (const { path } of [...spec.files, ...(spec.links ?? []), ...(spec.directories ?? [])]) {
    const parts = inArchive(path).split('/').slice(0, -1);
    for (let i = 1; i <= parts.length; i++) {
      const folder = parts.slice(0, i).join('/');
      if (!folders.has(folder)) folders.set(folder, 0o755);
    }
  }
  for (const [name, mode] of [...folders].sort(([a], [b]) => (a < b ? -1 : 1))) {
    yield tarHeader({ name: `${name}/`, type: 'directory', mode, owner });
  }
  for (const { path, target } of spec.links ?? []) {
    yield tarHeader({ name: inArchive(path), type: 'symlink', mode: 0o777, target, owner });
  }
  for (const { path, from, content = '', mode } of spec.files) {
    const name = inArchive(path);
    if (from !== undefined) {
      yield* hostFile({ name, mode: mode ?? 0o755, owner }, from);
      continue;
    }
    const data = Buffer.from(content);
    yield tarHeader({ name, type: 'file', mode: mode ?? 0o644, size: data.length, owner });
    yield data;
    yield Buffer.alloc(padding(data.length));
  }
  yield TAR_END;
}

async function* hostFile(entry: Pick<TarEntry, 'name' | 'mode' | 'owner'>, from: string): AsyncGenerator<Buffer> {
  const source = await open(from, 'r');
  try {
    const { size } = await source.stat();
    yield tarHeader({ ...entry, type: 'file', size });
    let left = size;
    while (left > 0) {
      // A new buffer for each chunk: the compressor may still hold the previous one.
      const chunk = Buffer.allocUnsafe(Math.min(CHUNK, left));
      const { bytesRead } = await source.read(chunk, 0, chunk.length);
      if (bytesRead === 0) throw new Error(`${from} became shorter while it was read`);
      yield chunk.subarray(0, bytesRead);
      left -= bytesRead;
    }
    yield Buffer.alloc(padding(size));
  } finally {
    await source.close();
  }
}

const imageConfig = (spec: ImageSpec, diffId: string) => ({
  // No date: equal contents give the same image.
  created: '1970-01-01T00:00:00Z',
  architecture: imageArchitecture(),
  os: 'linux',
  config: {
    Entrypoint: spec.entrypoint,
    ...(spec.cmd === undefined ? {} : { Cmd: spec.cmd }),
    Env: Object.entries({ PATH: DEFAULT_PATH, ...spec.env }).map(([name, value]) => `${name}=${value}`),
    WorkingDir: spec.workingDir ?? '/',
    ...(spec.user === undefined ? {} : { User: spec.user }),
    ...(spec.labels === undefined ? {} : { Labels: spec.labels }),
  },
  rootfs: { type: 'layers', diff_ids: [`sha256:${diffId}`] },
  history: [{ created: '1970-01-01T00:00:00Z', created_by: 'coppice' }],
});

/** Reference to a part of an image. */
interface Descriptor {
  mediaType: string;
  digest: string;
  size: number;
}

const descriptor = (mediaType: string, digest: string, size: number): Descriptor => ({
  mediaType,
  digest: `sha256:${digest}`,
  size,
});
const descriptorOf = (mediaType: string, data: Buffer): Descriptor => descriptor(mediaType, sha256(data), data.length);

const imageManifest = (config: Descriptor, ...layers: Descriptor[]) => ({
  schemaVersion: 2,
  mediaType: MANIFEST_TYPE,
  config,
  layers,
});

/** Index of an archive with this one image. */
const imageIndex = ({ ref }: ImageSpec, manifest: Descriptor) => ({
  schemaVersion: 2,
  mediaType: INDEX_TYPE,
  manifests: [
    {
      ...manifest,
      platform: { os: 'linux', architecture: imageArchitecture() },
      annotations: {
        'io.containerd.image.name': ref,
        'org.opencontainers.image.ref.name': parseReference(ref).tag,
      },
    },
  ],
});
