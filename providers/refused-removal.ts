import { CoppiceError, type ErrorCode } from '../operator/api/errors.ts';

/** What a cloud says that has understood a request and does nothing of it. After any other error it may have begun. */
const NOTHING_DONE: readonly ErrorCode[] = [
  'ERR_INFRA_UNAUTHORIZED',
  'ERR_INFRA_DEPENDENCIES',
  'ERR_CONFIGURATION_PROBLEM',
];

/** Asks a cloud to end machines. @returns why it does not; undefined: it does. Rejects where that is not known. */
export async function refusalOf(asked: Promise<unknown>): Promise<CoppiceError | undefined> {
  try {
    await asked;
    return undefined;
  } catch (error) {
    if (!(error instanceof CoppiceError) || !NOTHING_DONE.includes(error.code)) throw error;
    // No spec is wrong: clouds also say so while something else is done to a pool, which ends by itself.
    return error.code === 'ERR_CONFIGURATION_PROBLEM'
      ? new CoppiceError('ERR_INFRA_DEPENDENCIES', error.message, { cause: error })
      : error;
  }
}
