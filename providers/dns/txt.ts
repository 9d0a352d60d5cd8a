/** Longest part of a TXT text (RFC 1035, 3.3: the length is one octet). */
const LONGEST = 255;

/** TXT value in zone file form, as for Route 53 and Cloud DNS: quoted, split when long. */
export const quoteTxt = (text: string): string =>
  (text.match(new RegExp(`.{1,${LONGEST}}`, 'gs')) ?? [''])
    .map((piece) => `"${piece.replaceAll(/["\\]/g, '\\$&')}"`)
    .join(' ');

/** Text of a TXT value in zone file form. */
export function unquoteTxt(value: string): string {
  const pieces = [...value.matchAll(/"((?:\\.|[^"\\])*)"/gs)].map(([, piece]) => piece!.replaceAll(/\\(.)/gs, '$1'));
  return pieces.length > 0 ? pieces.join('') : value;
}
