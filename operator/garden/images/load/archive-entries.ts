import type { FileHandle } from 'node:fs/promises';
import { posix } from 'node:path';
import { BLOCK, padding } from '../tar.ts';

/** A file in an archive. */
export interface ArchiveEntry {
  /** Byte offset of its content, and its length. */
  offset: number;
  size: number;
}

/** Longer names do not occur in image archives. */
const LONGEST_NAME = 64 * 1024;
const MOST_ENTRIES = 1_000_000;

/** Files of a tar by name, as Docker, Podman, containerd and GNU tar write them; links are resolved. */
export async function archiveEntries(handle: FileHandle): Promise<Map<string, ArchiveEntry>> {
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
    // // Written by old Docker: a layer shared by two images is a link in the second's folder.
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
export async function readAt(handle: FileHandle, position: number, size: number): Promise<Buffer> {
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
