import { globSync, readFileSync } from 'node:fs';

const ROOT = new URL('../../', import.meta.url).pathname;

/** A block of code of a page, fenced or indented. */
export interface CodeBlock {
  /** First word after the fence, such as `yaml`; empty where there is none. */
  language: string;
  /** Other words after the fence, such as `part-of=examples/burst/policy.yaml`. */
  info: string;
  code: string;
  /** Of its first line, from 1. */
  line: number;
}

export interface PageLink {
  text: string;
  target: string;
  line: number;
  picture: boolean;
}

export interface Page {
  path: string;
  text: string;
  bytes: number;
  words: number;
  /** What `#...` of a link may name. */
  anchors: ReadonlySet<string>;
  links: PageLink[];
  blocks: CodeBlock[];
  /** Code within a line. */
  spans: { code: string; line: number }[];
}

/** Paths of all Markdown pages that match these globs, relative to the repository. */
export const pagesOf = (...globs: string[]): string[] => globSync(globs, { cwd: ROOT }).sort();

export const readRepositoryFile = (path: string): string => readFileSync(`${ROOT}${path}`, 'utf8');

export function readPage(path: string): Page {
  const text = readRepositoryFile(path);
  return {
    path,
    text,
    bytes: Buffer.byteLength(text),
    words: text.split(/\s+/).filter(Boolean).length,
    ...parse(text),
  };
}

function parse(text: string): Pick<Page, 'anchors' | 'links' | 'blocks' | 'spans'> {
  const anchors = new Set<string>();
  const blocks: CodeBlock[] = [];
  // A span or a link may continue on the next line; code and comments become empty lines, so that line numbers hold.
  const prose: string[] = [];
  let open: CodeBlock | undefined;
  let fence: string | undefined;
  let paragraph = false;
  let list = false;
  for (const [index, line] of text
    .replace(/<!--[\s\S]*?-->/g, (comment) => comment.replace(/[^\n]/g, ''))
    .split('\n')
    .entries()) {
    const mark = /^\s*(`{3,}|~{3,})\s*(\S*)\s*(.*)$/.exec(line);
    if (fence !== undefined) {
      if (mark?.[1]?.startsWith(fence)) [fence, open] = [undefined, undefined];
      else open!.code += `${line}\n`;
      prose.push('');
      continue;
    }
    if (mark) {
      fence = mark[1];
      open = { language: mark[2]!, info: mark[3]!, code: '', line: index + 2 };
      blocks.push(open);
      prose.push('');
      paragraph = false;
      continue;
    }
    const indent = list ? 6 : 4;
    if (!paragraph && line.trim() !== '' && /^ */.exec(line)![0].length >= indent) {
      if (!open) {
        open = { language: '', info: '', code: '', line: index + 1 };
        blocks.push(open);
      }
      open.code += `${line.slice(indent)}\n`;
      prose.push('');
      continue;
    }
    if (line.trim() === '') {
      if (open) open.code += '\n';
      paragraph = false;
      prose.push('');
      continue;
    }
    open = undefined;
    const item = /^\s*([-*]|\d+\.) /.test(line);
    if (item) list = true;
    else if (!/^\s/.test(line)) list = list && paragraph;
    const heading = /^#{1,6} +(.*?)\s*$/.exec(line);
    paragraph = !heading;
    if (heading) anchors.add(anchorOf(heading[1]!, anchors));
    for (const [, id] of line.matchAll(/<a (?:id|name)="([^"]+)"/g)) anchors.add(id!);
    prose.push(line);
  }

  const whole = prose.join('\n');
  const lineAt = (at: number): number => whole.slice(0, at).split('\n').length;
  const spans = [...whole.matchAll(/(?<!`)(`+)(?!`)((?:(?!\n\n)[\s\S])+?)(?<!`)\1(?!`)/g)].map((match) => ({
    code: match[2]!.replace(/\s+/g, ' ').trim(),
    line: lineAt(match.index),
  }));
  const links = [
    ...whole.matchAll(/(!?)\[((?:[^[\]]|\[[^\]]*\])*)\]\((\S+?)(?:\s+"[^"]*")?\)/g),
    ...whole.matchAll(/<img\b()()[^>]*?\bsrc="([^"]+)"/g),
  ].map((match) => ({
    picture: match[1] === '!' || match[0].startsWith('<img'),
    text: match[2]!,
    target: match[3]!,
    line: lineAt(match.index),
  }));
  return { anchors, blocks, spans, links };
}

/** As GitHub makes it: lower case, no punctuation, spaces as hyphens, and a number where there is one of that name already. */
function anchorOf(heading: string, taken: ReadonlySet<string>): string {
  const plain = heading
    .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .trim()
    .replace(/\s/g, '-');
  let anchor = plain;
  for (let count = 1; taken.has(anchor); count++) anchor = `${plain}-${count}`;
  return anchor;
}

/** Words of each command of a shell line; comments, redirections, assignments and words such as `do` are left out. */
export function shellCommands(line: string): string[][] {
  const commands: string[][] = [[]];
  let word: string | undefined;
  let quote: string | undefined;
  const endWord = (): void => {
    if (word !== undefined) commands.at(-1)!.push(word);
    word = undefined;
  };
  for (let at = 0; at < line.length; at++) {
    const char = line[at]!;
    if (quote) {
      if (char === quote) quote = undefined;
      else word += char;
    } else if (char === "'" || char === '"') {
      quote = char;
      word ??= '';
    } else if (char === '\\') word = (word ?? '') + (line[++at] ?? '');
    else if (char === '#' && word === undefined) break;
    else if (/[\s;|&()]/.test(char) && !(char === '&' && /[<>]$/.test(word ?? ''))) {
      endWord();
      if (!/\s/.test(char) && commands.at(-1)!.length > 0) commands.push([]);
    } else word = (word ?? '') + char;
  }
  endWord();
  return commands.map(withoutShell).filter((words) => words.length > 0);
}

const SHELL_WORDS = new Set([
  '$',
  'do',
  'then',
  'while',
  'until',
  'if',
  '!',
  'sudo',
  'time',
  'env',
  'exec',
  'nohup',
  '{',
  '}',
]);

function withoutShell(words: readonly string[]): string[] {
  const start = words.findIndex((word) => !SHELL_WORDS.has(word) && !/^[A-Z_][A-Z0-9_]*=/.test(word));
  if (start < 0) return [];
  const kept: string[] = [];
  for (let at = start; at < words.length; at++) {
    const redirection = /^\d*(>>?|<)(&?)(.*)$/.exec(words[at]!);
    if (!redirection) kept.push(words[at]!);
    else if (redirection[3] === '') at++;
  }
  return kept;
}

/** Commands that a page shows: each line of code that begins with one of these programs, and each such span of code in a line. */
export function commandsOf(
  page: Page,
  programs: ReadonlySet<string>,
): { words: string[]; line: number; inText: boolean }[] {
  const lines = page.blocks
    .filter(({ language }) => ['', 'sh', 'bash', 'shell', 'console'].includes(language))
    .flatMap(({ code, line }) => {
      const joined = code.replace(/\\\n\s*/g, (newline) => ' '.repeat(newline.length - 1));
      return joined
        .split('\n')
        .map((text, index) => ({ text: text.replace(/^\$ /, ''), line: line + index, inText: false }));
    });
  const spans = page.spans.map(({ code, line }) => ({ text: code, line, inText: true }));
  return [...lines, ...spans].flatMap(({ text, line, inText }) =>
    shellCommands(text.trim())
      .filter(([program]) => programs.has(program!))
      .map((words) => ({ words, line, inText })),
  );
}

/** Rows of each table of a page whose first line has this heading: the cells by heading. */
export function tableRows(text: string, heading: string): Record<string, string>[] {
  const rows: Record<string, string>[] = [];
  let headings: string[] | undefined;
  for (const line of text.split('\n')) {
    if (!/^\s*\|/.test(line)) {
      headings = undefined;
      continue;
    }
    const cells = line
      .trim()
      .replace(/^\||\|$/g, '')
      .split(/(?<!\\)\|/)
      .map((cell) => cell.trim());
    if (!headings) headings = cells;
    else if (headings.includes(heading) && !/^:?-+:?$/.test(cells[0]!))
      rows.push(Object.fromEntries(headings.map((name, index) => [name, cells[index] ?? ''])));
  }
  return rows;
}
