import { afterAll, expect, it } from 'vitest';
import { readPage } from '../../kit/pages.ts';
import { NOT_RUN, TASK_PAGES, takenByTests, taskCommands, whereItRuns } from '../../kit/task-pages/commands.ts';

const MOST_MARKS = 25;
/** Commands are in blocks without one, and of sh. */
const LANGUAGES = new Set(['', 'sh', 'text', 'yaml', 'csv', 'json']);
const COMMANDS = taskCommands();
const MARKED = COMMANDS.filter(({ notRun }) => notRun !== undefined);
const described = ({ page, line, name }: { page: string; line: number; name: string }) => `${page}:${line}: ${name}`;

it('each command of a task page runs in a test, or its fence says not-run=REASON', () => {
  const where = whereItRuns();
  // A test of a garden runs what it takes by argsOnPage or commandOnPage; one that needs an API server at most runs by itself.
  expect(COMMANDS.filter((command) => where(command) === undefined).map(described)).toEqual([]);
});

it('fences of task pages have language sh for commands, or another listed language', () => {
  const languages = TASK_PAGES.flatMap((path) =>
    readPage(path).blocks.map(({ language, line }) => [language, `${path}:${line}: ${language}`] as const),
  );
  expect(languages.filter(([language]) => !LANGUAGES.has(language)).map(([, where]) => where)).toEqual([]);
});

it('commands that tests take from task pages exist there, without a not-run mark', () => {
  const shown = new Map(COMMANDS.map((command) => [`${command.page} ${command.name}`, command]));
  const taken = takenByTests().map(({ test, page, name }) => ({ test, command: `${page} ${name}` }));
  expect(taken.filter(({ command }) => shown.get(command)?.notRun !== undefined)).toEqual([]);
  expect(taken.filter(({ command }) => !shown.has(command))).toEqual([]);
});

it(`at most ${MOST_MARKS} commands of task pages run nowhere, each for a listed reason`, () => {
  expect(MARKED.filter(({ notRun }) => !(NOT_RUN as readonly string[]).includes(notRun!)).map(described)).toEqual([]);
  expect(MARKED.length).toBeLessThanOrEqual(MOST_MARKS);
});

afterAll(() => {
  const list = MARKED.map(({ page, line, notRun }) => `${page.replace('docs/tasks/', '')}:${line} ${notRun}`).join(
    ', ',
  );
  console.log(`${COMMANDS.length} commands of task pages, ${MARKED.length} of which run nowhere: ${list}`);
});
