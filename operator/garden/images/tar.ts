/** Size of a tar header and unit of padding, in bytes. */
export const BLOCK = 512;

export interface TarEntry {
  /**
   * Without a leading slash; a folder's ends with one. At most 100 bytes, or 255 when split at a slash into 155 and
   * 100.
   */
  name: string;
  type: 'file' | 'directory' | 'symlink';
  mode: number;
  size?: number;
  /** Target of a symlink. */
  target?: string;
  /** UID and GID; default root. */
  owner?: number;
}

const TYPE_FLAGS = { file: '0', symlink: '2', directory: '5' } as const;
const NAME_BYTES = 100;
const PREFIX_BYTES = 155;

const octal = (value: number, width: number) => `${value.toString(8).padStart(width - 1, '0')}\0`;

/** A name split for the header: the part that exceeds the first field, up to a slash, goes into the second. */
function divided(name: string): { name: string; prefix: string } {
  if (Buffer.byteLength(name) <= NAME_BYTES) return { name, prefix: '' };
  for (let slash = name.indexOf('/'); slash > 0; slash = name.indexOf('/', slash + 1)) {
    const [prefix, rest] = [name.slice(0, slash), name.slice(slash + 1)];
    if (rest && Buffer.byteLength(rest) <= NAME_BYTES && Buffer.byteLength(prefix) <= PREFIX_BYTES)
      return { name: rest, prefix };
  }
  throw new Error(`${name} is longer than a tar's header can say`);
}

/** The ustar header of an entry, without a date, so that equal contents give equal archives. */
export function tarHeader(entry: TarEntry): Buffer {
  const { name, prefix } = divided(entry.name);
  if (Buffer.byteLength(entry.target ?? '') > NAME_BYTES)
    throw new Error(`${entry.target} is longer than tar's ${NAME_BYTES} bytes`);
  const header = Buffer.alloc(BLOCK);
  header.write(name, 0);
  header.write(octal(entry.mode, 8), 100);
  header.write(octal(entry.owner ?? 0, 8), 108);
  header.write(octal(entry.owner ?? 0, 8), 116);
  header.write(octal(entry.size ?? 0, 12), 124);
  header.write(octal(0, 12), 136);
  header.write('        ', 148);
  header.write(TYPE_FLAGS[entry.type], 156);
  header.write(entry.target ?? '', 157);
  header.write('ustar\x0000', 257);
  header.write(prefix, 345);
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
  return header;
}

/** Number of padding bytes after content of this size. */
export const padding = (size: number): number => (BLOCK - (size % BLOCK)) % BLOCK;

/** End of an archive. */
export const TAR_END = Buffer.alloc(2 * BLOCK);

/** Name and size in a header; undefined at the archive's end. */
export function readTarHeader(header: Buffer): { name: string; size: number } | undefined {
  if (header.length < BLOCK || header[0] === 0) return undefined;
  const text = (from: number, to: number) => header.toString('utf8', from, to).replace(/\0.*$/s, '');
  return { name: text(0, NAME_BYTES), size: Number.parseInt(text(124, 136).trim() || '0', 8) };
}
