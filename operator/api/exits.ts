import { type Explanation, explained } from './reasons/explanation.ts';

/** Exit codes that scripts may rely on. */
export const EXIT = { ok: 0, failed: 1, usage: 2, notFound: 3, timedOut: 4, interrupted: 130 } as const;

export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** By exit code: the text of `coppice help` (`see`), the meaning, and what to do. */
export const EXITS: Readonly<Record<ExitCode, Explanation>> = {
  [EXIT.ok]: explained(
    'success',
    'The command did what it was asked for.',
    'Nothing failed. With --wait the result was seen, else it was only asked for.',
    'Nothing: the operator works on. To see the result, run `coppice get`.',
  ),
  [EXIT.failed]: explained(
    'the operation failed',
    'The command could not do what it was asked for.',
    'The last line on standard error says what failed, and what to do.',
    'Do what the last line says; if the operator failed, read more with `coppice logs`.',
  ),
  [EXIT.usage]: explained(
    'the command line is wrong',
    'Nothing was done: the command line has an unknown word, option or value.',
    'A typo, or an option that another command takes.',
    'Compare with `coppice help COMMAND`, and write the line again.',
  ),
  [EXIT.notFound]: explained(
    'the named object does not exist',
    'There is no object of that name in that namespace, or no garden here.',
    'The name, the namespace or the context is another one.',
    'List all objects with `coppice get all -A`, or start a garden with `coppice up --detach`.',
  ),
  [EXIT.timedOut]: explained(
    'not done within --timeout',
    'The command gave up waiting; the operator goes on.',
    'The work takes longer than the timeout, or is stuck.',
    'See how far it is with `coppice describe NAME`, then wait again with a longer --timeout.',
  ),
  [EXIT.interrupted]: explained(
    'interrupted (Ctrl-C)',
    'The command was ended from outside; what it had asked for goes on.',
    'Somebody pressed Ctrl-C, or a signal ended the process.',
    'Start the command again if you still want its result.',
  ),
};
