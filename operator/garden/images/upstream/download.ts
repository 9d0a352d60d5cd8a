import { createHash } from 'node:crypto';
import { type FileHandle, open, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { diskRoom, KEPT_FREE_BYTES } from '../../host/disk-room.ts';
import { PullError } from './errors.ts';

/** A registry's answer: a blob from `offset` on. */
export interface BlobSource {
  /** Bytes from `offset` to the end, where the registry states it. */
  length?: number | undefined;
  /** Start of the bytes: a registry without range support starts at zero. */
  offset: number;
  body: AsyncIterable<Buffer>;
}

export interface DownloadOptions {
  /** `sha256:...`. */
  digest: string;
  /** Name for error messages. */
  name: string;
  /** File being written. */
  draft: string;
  open: (offset: number, signal: AbortSignal) => Promise<BlobSource>;
  /** Receives the complete verified file; resolves to whether it was moved elsewhere. Otherwise it is removed. */
  keep: (draft: string, size: number) => Promise<boolean>;
  limits?: Partial<typeof LIMITS>;
}

const LIMITS = {
  /** Size limit of a blob. */
  bytes: 32 * 1024 ** 3,
  /** Free disk space that a pull must leave: a full disk stops the whole garden. */
  roomBytes: KEPT_FREE_BYTES,
  totalMs: 2 * 3600_000,
  /** How often an interrupted transfer is resumed. */
  resumes: 5,
  /** How long a transfer without readers continues. */
  unreadMs: 10_000,
};
const ROOM_STEP = 64 * 1024 ** 2;
const PIECE = 64 * 1024;

/**
 * A blob being downloaded to a file, shared by all concurrent readers. The last byte is withheld until the digest has
 * been verified.
 */
export class Download {
  readonly #options: DownloadOptions;
  readonly #limits: typeof LIMITS;
  readonly #stop = new AbortController();
  readonly #begun = Promise.withResolvers<void>();
  #handle: FileHandle | undefined;
  #size: number | undefined;
  #written = 0;
  #isWhole = false;
  #hasEnded = false;
  #error: unknown;
  #readers = 0;
  #news = Promise.withResolvers<void>();
  #unread: NodeJS.Timeout | undefined;
  /** Resolves when the download has ended, with or without success. */
  readonly ended: Promise<void>;

  constructor(options: DownloadOptions) {
    this.#options = options;
    this.#limits = { ...LIMITS, ...options.limits };
    this.#begun.promise.catch(() => {});
    this.ended = this.#run()
      .catch((error) => {
        this.#error = error;
      })
      .finally(() => this.#end());
  }

  /** Total size in bytes, where the registry states it. Rejects when the blob is unavailable. */
  async size(): Promise<number | undefined> {
    await this.#begun.promise;
    return this.#size;
  }

  /** Bytes from `start` to `end` (exclusive; absent: to the end), as they arrive. */
  async *read(start = 0, end = Number.POSITIVE_INFINITY): AsyncGenerator<Buffer> {
    await this.#begun.promise;
    this.#readers++;
    clearTimeout(this.#unread);
    try {
      for (let position = start; position < end; ) {
        const news = this.#news.promise;
        const ready = Math.min(end, this.#isWhole ? this.#written : this.#written - 1);
        if (position < ready) {
          const piece = Buffer.allocUnsafe(Math.min(PIECE, ready - position));
          const { bytesRead } = await this.#handle!.read(piece, 0, piece.length, position);
          if (bytesRead === 0) throw new Error(`${this.#options.draft} became shorter while it was read`);
          position += bytesRead;
          yield piece.subarray(0, bytesRead);
          continue;
        }
        if (this.#isWhole) return;
        if (this.#error !== undefined) throw this.#error;
        await news;
      }
    } finally {
      this.#readers--;
      if (this.#readers === 0) this.#whenUnread();
    }
  }

  /** Delayed: a client that asked for the size may read next. */
  #whenUnread(): void {
    clearTimeout(this.#unread);
    const end = () => {
      if (this.#hasEnded) this.#handle?.close().catch(() => {});
      else
        this.#stop.abort(
          new PullError(503, `the download of ${this.#options.name} was cancelled, because no request waits for it`),
        );
    };
    this.#unread = setTimeout(end, this.#limits.unreadMs).unref();
  }

  async #run(): Promise<void> {
    const { digest, draft, keep, name } = this.#options;
    const late = new PullError(504, `${name} took more than two hours to download: use "coppice load" instead`);
    const tooLong = setTimeout(() => this.#stop.abort(late), this.#limits.totalMs).unref();
    try {
      const hash = createHash('sha256');
      this.#handle = await open(draft, 'wx+', 0o600);
      for (let resumed = 0; ; ) {
        const before = this.#written;
        try {
          await this.#transfer(hash);
          break;
        } catch (error) {
          this.#stop.signal.throwIfAborted();
          if (error instanceof PullError && !error.isOffline) throw error;
          // No progress: the node retries with backoff.
          if (this.#written === before || ++resumed > this.#limits.resumes) throw error;
        }
      }
      if (`sha256:${hash.digest('hex')}` !== digest)
        throw new PullError(502, `the registry sent other content than ${digest} for ${name}, which was refused`);
      const isKept = await keep(draft, this.#written);
      if (!isKept) await rm(draft, { force: true });
      this.#isWhole = true;
    } catch (error) {
      await rm(draft, { force: true });
      throw error;
    } finally {
      clearTimeout(tooLong);
    }
  }

  async #transfer(hash: { update(data: Buffer): unknown }): Promise<void> {
    const { signal } = this.#stop;
    const source = await this.#options.open(this.#written, signal);
    if (source.length !== undefined) this.#size = source.offset + source.length;
    await this.#needRoom(source.length ?? 0);
    this.#begun.resolve();
    let position = source.offset;
    for await (const chunk of source.body) {
      signal.throwIfAborted();
      // A registry without range support sends received bytes again.
      const news = chunk.subarray(Math.max(0, this.#written - position));
      position += chunk.length;
      if (news.length === 0) continue;
      const step = Math.floor(this.#written / ROOM_STEP);
      await this.#handle!.write(news, 0, news.length, this.#written);
      hash.update(news);
      this.#written += news.length;
      if (this.#written > Math.min(this.#size ?? this.#limits.bytes, this.#limits.bytes))
        throw new PullError(502, `${this.#options.name} is longer than the registry announced, and was refused`);
      if (Math.floor(this.#written / ROOM_STEP) !== step) await this.#needRoom(0);
      this.#tell();
    }
    if (this.#size !== undefined && this.#written < this.#size)
      throw new PullError(502, `the download of ${this.#options.name} was interrupted`, { isOffline: true });
  }

  async #needRoom(bytes: number): Promise<void> {
    const { draft, name } = this.#options;
    if (bytes > this.#limits.bytes)
      throw new PullError(502, `${name} is larger than this garden accepts: ${bytes} bytes`);
    if ((await diskRoom(dirname(draft))) - bytes >= this.#limits.roomBytes) return;
    throw new PullError(
      507,
      `the disk of this machine has no room for ${name}: free some space, and it is pulled again`,
    );
  }

  #tell(): void {
    const { resolve } = this.#news;
    this.#news = Promise.withResolvers<void>();
    resolve();
  }

  #end(): void {
    this.#hasEnded = true;
    if (this.#error !== undefined) this.#begun.reject(this.#error);
    else this.#begun.resolve();
    this.#tell();
    if (this.#readers === 0) this.#whenUnread();
  }
}
