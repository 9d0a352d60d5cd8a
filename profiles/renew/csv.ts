/**
 * The rows of a CSV text (RFC 4180: quoted fields may hold commas, quotes and line ends), one at a time, whatever its length:
 * no more of it is kept than the row under way.
 */
export async function* csvRows(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string[]> {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const chunk of chunks) {
    rest += decoder.decode(chunk, { stream: true });
    let from = 0;
    for (let end = endOfRow(rest, from); end !== -1; end = endOfRow(rest, from)) {
      yield fieldsOf(rest.slice(from, end));
      from = end + 1;
    }
    rest = rest.slice(from);
  }
  rest += decoder.decode();
  if (rest !== '') yield fieldsOf(rest);
}

/** Index of the line end that ends the row from there, which is one outside of quotes; -1 when there is none yet. */
function endOfRow(text: string, from: number): number {
  let quoted = false;
  for (let at = from; at < text.length; at++) {
    const character = text.charCodeAt(at);
    if (character === 34) quoted = !quoted;
    else if (character === 10 && !quoted) return at;
  }
  return -1;
}

function fieldsOf(line: string): string[] {
  const row = line.endsWith('\r') ? line.slice(0, -1) : line;
  const fields: string[] = [];
  for (let at = 0; ; at++) {
    const quoted = row[at] === '"';
    let end = row.indexOf(quoted ? '"' : ',', quoted ? at + 1 : at);
    while (quoted && end !== -1 && row[end + 1] === '"') end = row.indexOf('"', end + 2);
    const field = row.slice(quoted ? at + 1 : at, end === -1 ? undefined : end);
    fields.push(quoted && field.includes('""') ? field.replaceAll('""', '"') : field);
    at = quoted && end !== -1 ? row.indexOf(',', end) : end;
    if (at === -1) return fields;
  }
}
