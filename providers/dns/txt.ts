/** Longest piece of a text in a TXT record (RFC 1035, 3.3: one octet says how long it is). */
const LONGEST = 255;

/** A text as zone files have it, and so Route 53 and Cloud DNS: in quotes, in pieces where it is long. */
export const quoted = (text: string): string =>
  (text.match(new RegExp(`.{1,${LONGEST}}`, 'gs')) ?? [''])
    .map((piece) => `"${piece.replaceAll(/["\\]/g, '\\$&')}"`)
    .join(' ');

/** The text of a value in that form. */
export function unquoted(value: string): string {
  const pieces = [...value.matchAll(/"((?:\\.|[^"\\])*)"/gs)].map(([, piece]) => piece!.replaceAll(/\\(.)/gs, '$1'));
  return pieces.length > 0 ? pieces.join('') : value;
}
