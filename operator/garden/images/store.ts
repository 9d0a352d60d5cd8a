import { type FileHandle, open, readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { BLOCK, padding, readTarHeader } from './tar.ts';

/** A part of a layout's tar: any blob. */
export interface Blob {
  file: string;
  /** Byte offset of its start, and its length. */
  offset: number;
  size: number;
}

export interface ImageManifest extends Blob {
  digest: string;
  mediaType: string;
}

interface Layout {
  mtimeMs: number;
  size: number;
  blobs: Map<string, Blob>;
  /** By the image's full name. */
  manifests: Map<string, ImageManifest>;
}

/** Images in a folder of layout tars, read in place. Added and removed files are noticed at the next look-up. */
export class ImageStore {
  readonly #dir: string;
  readonly #layouts = new Map<string, Layout>();
  #scanning: Promise<void> | undefined;

  constructor(dir: string) {
    this.#dir = dir;
  }

  /** A blob by digest (`sha256:...`); manifests are blobs too, and include their media type. */
  async blob(digest: string): Promise<Blob | ImageManifest | undefined> {
    return this.#lookup((layout) => {
      for (const manifest of layout.manifests.values()) if (manifest.digest === digest) return manifest;
      return layout.blobs.get(digest);
    });
  }

  /** A manifest by tag. Without a registry any matches. */
  async manifest(registry: string | undefined, repository: string, tag: string): Promise<ImageManifest | undefined> {
    const rest = `/${repository}:${tag}`;
    return this.#lookup((layout) => {
      if (registry !== undefined) return layout.manifests.get(registry + rest);
      for (const [ref, manifest] of layout.manifests) {
        if (ref.slice(ref.indexOf('/')) === rest) return manifest;
      }
      return undefined;
    });
  }

  async #lookup<T>(find: (layout: Layout) => T | undefined): Promise<T | undefined> {
    this.#scanning ??= this.#scan().finally(() => {
      this.#scanning = undefined;
    });
    await this.#scanning;
    // Several builds may have the same name: the newest is served.
    const newestFirst = [...this.#layouts.values()].sort((a, b) => b.mtimeMs - a.mtimeMs);
    for (const layout of newestFirst) {
      const found = find(layout);
      if (found) return found;
    }
    return undefined;
  }

  async #scan(): Promise<void> {
    const names = (await readdir(this.#dir).catch(() => [])).filter((name) => name.endsWith('.tar'));
    for (const known of this.#layouts.keys()) if (!names.includes(known)) this.#layouts.delete(known);
    for (const name of names) {
      const file = join(this.#dir, name);
      const info = await stat(file).catch(() => undefined);
      const known = this.#layouts.get(name);
      if (!info || (known?.mtimeMs === info.mtimeMs && known.size === info.size)) continue;
      const layout = await readLayout(file, info).catch(() => undefined);
      if (layout) this.#layouts.set(name, layout);
      else this.#layouts.delete(name);
    }
  }
}

interface IndexFile {
  manifests: { digest: string; mediaType: string; annotations?: Record<string, string> }[];
}

async function readLayout(file: string, info: { mtimeMs: number; size: number }): Promise<Layout> {
  const handle = await open(file, 'r');
  try {
    const blobs = new Map<string, Blob>();
    let index: IndexFile | undefined;
    for (let position = 0; ; ) {
      const header = readTarHeader(await readAt(handle, position, BLOCK));
      if (!header) break;
      const offset = position + BLOCK;
      const digest = /^blobs\/sha256\/([0-9a-f]{64})$/.exec(header.name)?.[1];
      if (digest) blobs.set(`sha256:${digest}`, { file, offset, size: header.size });
      if (header.name === 'index.json')
        index = JSON.parse(String(await readAt(handle, offset, header.size))) as IndexFile;
      position = offset + header.size + padding(header.size);
    }
    const manifests = new Map<string, ImageManifest>();
    for (const { digest, mediaType, annotations } of index?.manifests ?? []) {
      const ref = annotations?.['io.containerd.image.name'];
      const blob = blobs.get(digest);
      if (ref && blob) manifests.set(ref, { ...blob, digest, mediaType });
    }
    return { mtimeMs: info.mtimeMs, size: info.size, blobs, manifests };
  } finally {
    await handle.close();
  }
}

async function readAt(handle: FileHandle, position: number, size: number): Promise<Buffer> {
  const { buffer, bytesRead } = await handle.read(Buffer.alloc(size), 0, size, position);
  return buffer.subarray(0, bytesRead);
}
