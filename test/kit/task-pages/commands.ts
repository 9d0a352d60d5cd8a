import { globSync } from 'node:fs';
import { type Page, pagesOf, readPage, readRepositoryFile } from '../pages.ts';
import { ELSEWHERE, stepsOf } from '../transcripts/steps.ts';
import { PAGES } from '../transcripts/walk.ts';

/** Why a command of a task page may run in no test, as the fence says it: ```` ```sh not-run=account ````. */
export const NOT_RUN = ['account', 'registry', 'second-machine', 'kubernetes-1.35', 'hour'] as const;

/** A command that a task page shows in a block of code. */
export interface TaskCommand {
  page: string;
  /** Of its first line, from 1. */
  line: number;
  /** As it stands, with its comment, its continued lines and its here-document. */
  text: string;
  /** In one line and without its comment: how tests name it. */
  name: string;
  /** What the page shows that it prints; absent where the page shows nothing. */
  output?: string;
  /** The mark of its block. */
  notRun?: string;
}

export const TASK_PAGES = pagesOf('docs/tasks/*.md');

/** Commands of a task page. An indented block there holds commands and nothing else; a fence says what it holds. */
export function commandsOfTask(page: Page): TaskCommand[] {
  return page.blocks.flatMap(({ language, info, code, line }, index) => {
    if (language !== '' && language !== 'sh') return [];
    const [, notRun] = /\bnot-run=(\S*)/.exec(info) ?? [];
    const commands = split(code).map(({ text, at }) => ({
      page: page.path,
      line: line + at,
      text,
      name: nameOf(text),
      ...(notRun !== undefined && { notRun }),
    }));
    const next = page.blocks[index + 1];
    const isOutput = next?.language === 'text' && next.line === line + code.split('\n').length + 1;
    const last = commands.at(-1);
    return isOutput && last ? [...commands.slice(0, -1), { ...last, output: next.code.trimEnd() }] : commands;
  });
}

/** Commands of a block: lines that end in a backslash, those of a here-document, and those of a loop belong to the one that begins there. */
function split(code: string): { text: string; at: number }[] {
  const commands: { text: string; at: number }[] = [];
  let end: string | undefined;
  let goesOn = false;
  for (const [at, line] of code.split('\n').entries()) {
    const last = commands.at(-1);
    if (last && (goesOn || end !== undefined)) last.text += `\n${line}`;
    else if (line.trim() !== '' && !/^\s*#/.test(line)) commands.push({ text: line, at });
    else continue;
    if (end === undefined) end = endOf(line);
    else if (line.trim() === end) end = undefined;
    goesOn = end === undefined && line.endsWith('\\');
  }
  return commands;
}

/** The line with which a here-document or a loop ends that begins in this line. */
function endOf(line: string): string | undefined {
  if (/^for .*\bdo$/.test(line)) return 'done';
  return /<<-?\s*['"]?(\w+)/.exec(line)?.[1];
}

const nameOf = (text: string): string =>
  text
    .replace(/\\\n/g, ' ')
    .replace(/\s+#\s.*$/gm, '')
    .replace(/\s+/g, ' ')
    .trim();

/** All commands of all task pages. */
export const taskCommands = (): TaskCommand[] => TASK_PAGES.flatMap((path) => commandsOfTask(readPage(path)));

/** Commands that README and Getting started show as well: test/e2e/first-pages.test.ts runs those. */
export const firstPageCommands = (): ReadonlySet<string> =>
  new Set([
    ...Object.keys(ELSEWHERE),
    ...PAGES.flatMap((path) => stepsOf(readRepositoryFile(path))).flatMap(({ commands }) => commands),
  ]);

const CALL = /\b(?:command|args)OnPage\(\s*'([^']+)',\s*'((?:[^'\\]|\\.)*)'/g;
const CALL_OF_PAGE = /\bcommandsOnPage\(\s*'([^']+)'/g;

/** What tests of a garden take from task pages, by `commandOnPage`, `argsOnPage` or `commandsOnPage`, and run. */
export const takenByTests = (): { test: string; page: string; name: string }[] =>
  globSync('test/{e2e,kit}/**/*.ts').flatMap((test) => {
    const text = readRepositoryFile(test);
    const named = [...text.matchAll(CALL)].map(([, page, name]) => [page!, name!.replace(/\\(.)/g, '$1')] as const);
    const whole = [...text.matchAll(CALL_OF_PAGE)].flatMap(([, page]) =>
      commandsOfTask(readPage(page!)).map(({ name }) => [page!, name] as const),
    );
    return [...named, ...whole].map(([page, name]) => ({ test, page, name }));
  });

/** Subcommands of coppice that need an API server and nothing else. */
const BY_API = new Set([
  ...['apply', 'burst', 'delete', 'describe', 'get', 'hibernate', 'hubs', 'kubeconfig', 'rehearse', 'scale', 'upgrade'],
  ...['wait', 'wake'],
]);
const PROGRAMS = new Set(['cd', 'git', 'grep', 'jq', 'kubectl', 'openssl', 'sed']);

/** Whether WALKED can run it: it needs an API server at most, and changes nothing of this machine. */
export function isWalked({ name }: TaskCommand): boolean {
  const firsts = name
    .replace(/<<.*$/, '')
    .replace(/^for .*?; do /, '')
    .replace(/; done$/, '')
    .split(/\s(?:&&|\|\|?|;)\s/)
    .map((command) => command.trim().split(' '));
  return firsts.every(([program, subcommand]) =>
    program === 'coppice' ? BY_API.has(subcommand!) && !/--(follow|garden)\b/.test(name) : PROGRAMS.has(program!),
  );
}

/** The test that runs what needs an API server at most. */
export const WALKED = 'test/integration/api/task-pages.test.ts';

/** Where each command of the task pages runs; undefined: nowhere, and no mark says why. */
export function whereItRuns(): (command: TaskCommand) => string | undefined {
  const taken = new Map(takenByTests().map(({ test, page, name }) => [`${page} ${name}`, test]));
  const first = firstPageCommands();
  return (command) => {
    if (command.notRun !== undefined) return `not-run=${command.notRun}`;
    return (
      taken.get(`${command.page} ${command.name}`) ??
      (first.has(command.name) ? 'test/e2e/first-pages.test.ts' : undefined) ??
      (isWalked(command) ? WALKED : undefined)
    );
  };
}
