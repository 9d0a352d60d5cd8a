// DER encoding of the few ASN.1 types in a certificate. Issuing with @peculiar/x509 takes 4.6 ms of CPU per
// certificate, and a shoot needs a dozen before its first answer; this takes 0.6 ms, most of it for the key
// (docs/decisions/0040).

const TAG = {
  boolean: 1,
  integer: 2,
  bitString: 3,
  octetString: 4,
  oid: 6,
  utf8: 12,
  utcTime: 23,
  generalizedTime: 24,
};
const CONSTRUCTED = { sequence: 0x30, set: 0x31 };

/** An element with an arbitrary tag. */
export function element(tag: number, ...parts: Buffer[]): Buffer {
  const body = Buffer.concat(parts);
  const size = body.length;
  const length = size < 128 ? [size] : size < 256 ? [0x81, size] : [0x82, size >> 8, size & 255];
  return Buffer.concat([Buffer.from([tag, ...length]), body]);
}

export const sequence = (...parts: Buffer[]): Buffer => element(CONSTRUCTED.sequence, ...parts);
export const set = (...parts: Buffer[]): Buffer => element(CONSTRUCTED.set, ...parts);
export const octetString = (body: Buffer): Buffer => element(TAG.octetString, body);
export const utf8 = (text: string): Buffer => element(TAG.utf8, Buffer.from(text));
export const yes = (): Buffer => element(TAG.boolean, Buffer.from([0xff]));

/** A non-negative integer from big-endian bytes. */
export function integer(bytes: Buffer): Buffer {
  const needsZero = (bytes[0] ?? 0) >= 0x80;
  return element(TAG.integer, ...(needsZero ? [Buffer.from([0])] : []), bytes);
}

/** A bit string of whole bytes, or of named bits when `unused` low bits of the last byte are omitted. */
export const bitString = (body: Buffer, unused = 0): Buffer => element(TAG.bitString, Buffer.from([unused]), body);

/** An object identifier, for example `2.5.4.3`. */
export function oid(text: string): Buffer {
  const [first = 0, second = 0, ...rest] = text.split('.').map(Number);
  const bytes = [first * 40 + second];
  for (const arc of rest) {
    const groups = [arc & 0x7f];
    for (let value = arc >>> 7; value > 0; value >>>= 7) groups.unshift((value & 0x7f) | 0x80);
    bytes.push(...groups);
  }
  return element(TAG.oid, Buffer.from(bytes));
}

/** A certificate time in whole seconds: UTCTime with a two-digit year until 2049, GeneralizedTime afterwards. */
export function derTime(date: Date): Buffer {
  const digits = date.toISOString().replace(/[-:T]|\.\d+/g, '');
  if (date.getUTCFullYear() < 2050) return element(TAG.utcTime, Buffer.from(digits.slice(2)));
  return element(TAG.generalizedTime, Buffer.from(digits));
}

/** The direct children of the constructed element at `start` of `der`, each with its header. */
export function childElements(der: Buffer, start = 0): Buffer[] {
  const outer = bounds(der, start);
  const found: Buffer[] = [];
  for (let at = outer.body; at < outer.end; ) {
    const { end } = bounds(der, at);
    found.push(der.subarray(at, end));
    at = end;
  }
  return found;
}

/** Content of an element, without its header. */
export function elementContent(der: Buffer): Buffer {
  const { body, end } = bounds(der, 0);
  return der.subarray(body, end);
}

function bounds(der: Buffer, start: number): { body: number; end: number } {
  const first = der[start + 1] ?? 0;
  if (first < 0x80) return { body: start + 2, end: start + 2 + first };
  const bytes = first & 0x7f;
  const body = start + 2 + bytes;
  return { body, end: body + der.readUIntBE(start + 2, bytes) };
}
