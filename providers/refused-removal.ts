import { CoppiceError, type ErrorCode } from '../operator/api/errors.ts';

/** Errors after which a cloud has certainly done nothing. After any other error it may have begun. */
const NOTHING_DONE: readonly ErrorCode[] = [
  'ERR_INFRA_UNAUTHORIZED',
  'ERR_INFRA_DEPENDENCIES',
  'ERR_CONFIGURATION_PROBLEM',
];

/** Awaits a request to end machines. @returns why the cloud refused; undefined: it accepted. Rejects when unknown. */
export async function removalRefusalOf(asked: Promise<unknown>): Promise<CoppiceError | undefined> {
  try {
    await asked;
    return undefined;
  } catch (error) {
    if (!(error instanceof CoppiceError) || !NOTHING_DONE.includes(error.code)) throw error;
    // Not a fault of the spec: clouds answer this also while another operation on the pool runs, which ends by itself.
    return error.code === 'ERR_CONFIGURATION_PROBLEM'
      ? new CoppiceError('ERR_INFRA_DEPENDENCIES', error.message, { cause: error })
      : error;
  }
}
