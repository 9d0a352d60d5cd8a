import { randomBytes } from 'node:crypto';
import { mkdir, open, readdir, readFile, rename, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { InTurn } from '../../../kube/in-turn.ts';

interface Kept {
  size: number;
  /** Milliseconds since 1970. */
  usedAt: number;
}

interface CacheOptions {
  folder: string;
  /** Present size limit in bytes. */
  limit: () => number;
  /** Digests in hex of nodes' blobs. Called only when space is needed. */
  inUse: () => Promise<ReadonlySet<string>>;
}

const DRAFTS = 'drafts';
/** Precision of a file's time of use: otherwise each use would be a write. */
const USED_MS = 3600_000;

/**
 * Size-limited disk cache of registries' blobs, manifests and tags: the least recently used go first, but none that a
 * node has. A `scope` is a folder: content pulled with somebody's credentials is not given to others.
 */
export class PullCache {
  readonly #options: CacheOptions;
  #files: Promise<Map<string, Kept>> | undefined;
  readonly #turns = new InTurn();

  constructor(options: CacheOptions) {
    this.#options = options;
  }

  /** A file from the first of these scopes that has it. */
  async find(scopes: readonly string[], name: string): Promise<{ file: string; size: number } | undefined> {
    const files = await this.#index();
    for (const scope of scopes) {
      const path = join(scope, name);
      const kept = files.get(path);
      if (!kept) continue;
      const file = join(this.#options.folder, path);
      const info = await stat(file).catch(() => undefined);
      if (info?.size !== kept.size) {
        files.delete(path);
        continue;
      }
      const now = Date.now();
      if (now - kept.usedAt > USED_MS) await utimes(file, now / 1000, now / 1000).catch(() => {});
      kept.usedAt = now;
      return { file, size: kept.size };
    }
    return undefined;
  }

  async readJson<T>(scopes: readonly string[], name: string): Promise<T | undefined> {
    const found = await this.find(scopes, name);
    if (!found) return undefined;
    try {
      return JSON.parse(await readFile(found.file, 'utf8')) as T;
    } catch {
      return undefined;
    }
  }

  async writeJson(scope: string, name: string, value: unknown): Promise<void> {
    const text = JSON.stringify(value);
    const draft = await this.draft();
    await writeFile(draft, text, { mode: 0o600 });
    if (!(await this.keep(scope, name, draft, Buffer.byteLength(text)))) await rm(draft, { force: true });
  }

  /** Path of a new file that may be kept later. */
  async draft(): Promise<string> {
    await this.#index();
    return join(this.#options.folder, DRAFTS, randomBytes(8).toString('hex'));
  }

  /** Adds a draft if it fits within the limit. Resolves to whether it did; otherwise the draft stays. */
  keep(scope: string, name: string, draft: string, size: number): Promise<boolean> {
    return this.#turns.run(() => this.#keep(join(scope, name), draft, size));
  }

  async #keep(path: string, draft: string, size: number): Promise<boolean> {
    const { folder } = this.#options;
    const files = await this.#index();
    if (!(await this.#makeRoom(files, size - (files.get(path)?.size ?? 0)))) return false;
    // After a crash of the machine the name must not refer to a partial file, which is never verified again.
    const handle = await open(draft, 'r+');
    try {
      await handle.sync();
    } finally {
      await handle.close();
    }
    await mkdir(join(folder, path, '..'), { recursive: true, mode: 0o700 });
    await rename(draft, join(folder, path));
    files.set(path, { size, usedAt: Date.now() });
    return true;
  }

  async #makeRoom(files: Map<string, Kept>, bytes: number): Promise<boolean> {
    let tooMuch = bytes - this.#options.limit();
    for (const { size } of files.values()) tooMuch += size;
    if (tooMuch <= 0) return true;
    const inUse = await this.#options.inUse();
    const isUsed = (path: string) => inUse.has(/([0-9a-f]{64})(?:\.json)?$/.exec(path)?.[1] ?? '');
    const oldest = [...files].filter(([path]) => !isUsed(path)).sort(([, a], [, b]) => a.usedAt - b.usedAt);
    const going: string[] = [];
    for (const [path, { size }] of oldest) {
      if (tooMuch <= 0) break;
      going.push(path);
      tooMuch -= size;
    }
    // Nothing is evicted in vain.
    if (tooMuch > 0) return false;
    for (const path of going) {
      await rm(join(this.#options.folder, path), { force: true });
      files.delete(path);
    }
    return true;
  }

  #index(): Promise<Map<string, Kept>> {
    this.#files ??= this.#scan().catch((error) => {
      this.#files = undefined;
      throw error;
    });
    return this.#files;
  }

  async #scan(): Promise<Map<string, Kept>> {
    const { folder } = this.#options;
    // Remains of an earlier process.
    await rm(join(folder, DRAFTS), { recursive: true, force: true });
    await mkdir(join(folder, DRAFTS), { recursive: true, mode: 0o700 });
    const files = new Map<string, Kept>();
    for (const scope of await readdir(folder)) {
      if (scope === DRAFTS) continue;
      for (const name of await readdir(join(folder, scope)).catch(() => [])) {
        const info = await stat(join(folder, scope, name)).catch(() => undefined);
        if (info?.isFile()) files.set(join(scope, name), { size: info.size, usedAt: info.mtimeMs });
      }
    }
    return files;
  }
}
