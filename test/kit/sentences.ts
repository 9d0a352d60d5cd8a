/** The most words of a sentence that a field engineer understands at first reading. */
const MOST_WORDS = 25;

/**
 * Sentences of a text that are too long. A sentence ends at a full stop, a question mark or an exclamation mark, and nowhere else: neither at
 * a colon nor at a semicolon.
 */
export const tooLong = (text: string): string[] =>
  text
    .split(/(?<=[.!?][)"'*_]*)\s+/)
    .map((sentence) => [sentence.split(/\s+/).filter((word) => /\w/.test(word)).length, sentence] as const)
    .filter(([words]) => words > MOST_WORDS)
    .map(([words, sentence]) => `${words} words: ${sentence}`);

/**
 * What people read as prose in a Markdown page: each paragraph, each item of a list, and of a table's cells each entry that ends at a semicolon.
 * Code, output and headings are left out.
 */
export function proseOf(page: string): string[] {
  const prose: string[] = [];
  let fence = false;
  let open: string | undefined;
  const close = (): void => {
    if (open !== undefined) prose.push(readable(open));
    open = undefined;
  };
  for (const line of page.replace(/<!--[\s\S]*?-->/g, '').split('\n')) {
    if (/^\s*```/.test(line)) fence = !fence;
    // A block of code is fenced, or it is indented and continues no paragraph.
    if (fence || /^\s*(```|#|$)/.test(line) || (open === undefined && /^ {4}/.test(line))) close();
    else if (/^\s*\|/.test(line)) {
      close();
      prose.push(...readable(line).split(/(?<!\\)\||;/));
    } else if (/^\s*([-*]|\d+\.) /.test(line)) {
      close();
      open = line.replace(/^\s*([-*]|\d+\.) /, '');
    } else open = open === undefined ? line : `${open} ${line.trim()}`;
  }
  close();
  return prose;
}

/** Code and the target of a link are one word each. */
const readable = (text: string): string =>
  text
    .replace(/\]\([^)]*\)/g, ']')
    .replace(/`[^`]*`/g, '`code`')
    .trim();
