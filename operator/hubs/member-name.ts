import { createHash } from 'node:crypto';

/** Length of the hash in a name: 50 bits, so that a second cluster with the same name cannot be found by trial. */
const HASH = 10;
const ALPHABET = 'abcdefghijklmnopqrstuvwxyz234567';

/**
 * Name of a cluster in a hub: an RFC 1123 label of at most `limit` characters. `<namespace>--<name>` where that fits
 * and can be parsed unambiguously; otherwise both are truncated and a hash of the whole is appended.
 */
export function memberName(namespace: string, name: string, limit: number): string {
  const plain = `${namespace}--${name}`;
  if (plain.length <= limit && !namespace.includes('--') && !name.includes('--')) return plain;
  const room = limit - HASH - 2;
  const half = Math.floor(room / 2);
  const first = cut(namespace, Math.max(half, room - name.length));
  // A plain name has two dashes in a row; this one has none.
  return `${first}-${cut(name, room - first.length)}-${hash(`${namespace}/${name}`)}`;
}

const cut = (text: string, length: number): string =>
  text.replaceAll(/-+/g, '-').slice(0, Math.max(1, length)).replace(/-+$/, '') || 'x';

const hash = (text: string): string =>
  [...createHash('sha256').update(text).digest().subarray(0, HASH)].map((byte) => ALPHABET[byte % 32]).join('');
