import { readPage, shellCommands } from '../pages.ts';
import { commandsOfTask, type TaskCommand } from './commands.ts';

/**
 * A command of a task page, for a shell, so that a test runs what the page shows. test/unit/house/task-commands.test.ts finds the call.
 * @param name the command in one line, without its comment
 * @param instead words of it by what the test has in their place, such as the name of a cluster
 * Throws when the page does not show the command, or the command does not have such a word.
 */
export function commandOnPage(page: string, name: string, instead: Readonly<Record<string, string>> = {}): string {
  return replaceWords(findCommand(page, name).name, instead);
}

function findCommand(page: string, name: string): TaskCommand {
  const found = commandsOfTask(readPage(page)).find((command) => command.name === name);
  if (!found) throw new Error(`${page} does not show the command ${name}`);
  return found;
}

/** What the page shows that this command prints. Throws as commandOnPage(). */
export function outputOnPage(page: string, name: string): string {
  const { output } = findCommand(page, name);
  if (output === undefined) throw new Error(`${page} does not show what ${name} prints`);
  return output;
}

/** All commands of a task page, as they stand, for a test that runs them one after the other. */
export const commandsOnPage = (page: string): string[] => commandsOfTask(readPage(page)).map(({ text }) => text);

/** Its words after the program. */
export const argsOnPage = (page: string, name: string, instead: Readonly<Record<string, string>> = {}): string[] =>
  shellCommands(commandOnPage(page, name, instead))[0]!.slice(1);

/** The text with other words: whole ones, so that `demo` stays in `demo.db`. Throws when it does not have one of them. */
function replaceWords(text: string, instead: Readonly<Record<string, string>>): string {
  let replaced = text;
  for (const [word, by] of Object.entries(instead)) {
    const whole = new RegExp(`(?<![\\w.-])${word.replace(/[.*+?^$()[\]{}|\\]/g, '\\$&')}(?![\\w.-])`, 'g');
    if (!whole.test(text)) throw new Error(`${text} does not have the word ${word}`);
    replaced = replaced.replace(whole, () => by);
  }
  return replaced;
}
