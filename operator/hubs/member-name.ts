import { createHash } from 'node:crypto';

/** Of the hash in a name: 50 bits, so that nobody finds a second cluster with the same name by trying. */
const HASH = 10;
const ALPHABET = 'abcdefghijklmnopqrstuvwxyz234567';

/**
 * Name of a cluster in a hub: an RFC 1123 label of at most `limit` characters. `<namespace>--<name>` where that is short and can be read
 * back in one way only; else both are cut and a hash of the whole follows.
 */
export function memberName(namespace: string, name: string, limit: number): string {
  const plain = `${namespace}--${name}`;
  if (plain.length <= limit && !namespace.includes('--') && !name.includes('--')) return plain;
  const room = limit - HASH - 2;
  const half = Math.floor(room / 2);
  const first = cut(namespace, Math.max(half, room - name.length));
  // A plain name has two dashes in a row, and this one has none.
  return `${first}-${cut(name, room - first.length)}-${hash(`${namespace}/${name}`)}`;
}

const cut = (text: string, length: number): string =>
  text.replaceAll(/-+/g, '-').slice(0, Math.max(1, length)).replace(/-+$/, '') || 'x';

const hash = (text: string): string =>
  [...createHash('sha256').update(text).digest().subarray(0, HASH)].map((byte) => ALPHABET[byte % 32]).join('');
