import { createHash } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { padding, TAR_END, tarHeader } from '../garden/images/tar.ts';

/** A file of a release archive. */
export interface ArchivedFile {
  /** Path in the archive, without a leading slash. */
  name: string;
  /** The host's file to read, or else `content`. */
  from?: string;
  content?: string;
  isExecutable?: boolean;
}

const EXECUTABLE = 0o755;
const READABLE = 0o644;

/**
 * Writes a gzipped tar. Entries are sorted and have no dates, owners or modes of the host: equal contents give equal bytes.
 * Folders have no entries of their own: tar and Helm create them.
 */
export async function writeArchive(path: string, files: readonly ArchivedFile[]): Promise<void> {
  const sorted = [...files].sort((a, b) => (a.name < b.name ? -1 : 1));
  // One piece after the other, as in images/build.ts: the moment at which the stream learns of its end would change the bytes.
  await pipeline(tarOf(sorted), createGzip(), createWriteStream(path, { mode: READABLE }));
}

async function* tarOf(files: readonly ArchivedFile[]): AsyncGenerator<Buffer> {
  for (const { name, from, content = '', isExecutable = false } of files) {
    const data = from === undefined ? Buffer.from(content) : await readFile(from);
    yield tarHeader({ name, type: 'file', mode: isExecutable ? EXECUTABLE : READABLE, size: data.length });
    yield data;
    yield Buffer.alloc(padding(data.length));
  }
  yield TAR_END;
}

/** SHA-256 of a file, in hex. */
export const digestOfFile = async (path: string): Promise<string> =>
  createHash('sha256')
    .update(await readFile(path))
    .digest('hex');

/** Lines of `sha256sum`, which `sha256sum --check` reads, sorted by name. */
export const checksumLines = (digests: ReadonlyMap<string, string>): string =>
  [...digests]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, digest]) => `${digest}  ${name}\n`)
    .join('');
