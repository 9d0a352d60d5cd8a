import { CommandError } from '../../../operator/garden/host/command.ts';

const ABSENT = /Cannot find device|No such file or directory|does not exist/;

/** For removals: what is not there is removed. */
export async function ignoringAbsent(work: Promise<unknown>): Promise<void> {
  await work.catch((error: unknown) => {
    if (!(error instanceof CommandError && ABSENT.test(error.stderr))) throw error;
  });
}
