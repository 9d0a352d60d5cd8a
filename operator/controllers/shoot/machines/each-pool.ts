import { CoppiceError, errorText } from '../../../api/errors.ts';

/**
 * Runs the work for each pool; one failure does not prevent the others. Rejects at the end with what failed; an error
 * about sold-out machines names all such pools.
 */
export async function eachPool<Pool extends { name: string }>(
  pools: readonly Pool[],
  work: (pool: Pool) => Promise<void>,
  signal?: AbortSignal,
): Promise<void> {
  const failed: { pool: string; error: unknown }[] = [];
  for (const pool of pools) {
    await work(pool).catch((error: unknown) => failed.push({ pool: pool.name, error }));
    signal?.throwIfAborted();
  }
  if (failed.length > 0) throw failed.length === 1 ? failed[0]!.error : together(failed);
}

function together(failed: readonly { pool: string; error: unknown }[]): Error {
  const known = failed.flatMap(({ error }) => (error instanceof CoppiceError ? [error] : []));
  const told = known.find(({ code }) => code === 'ERR_INFRA_RESOURCES_DEPLETED') ?? known[0];
  const text = ({ pool, error }: { pool: string; error: unknown }) => {
    const message = error instanceof Error ? error.message : errorText(error);
    return message.includes(`pool ${pool}`) ? message : `pool ${pool}: ${message}`;
  };
  const message = failed.map(text).join('; ');
  if (!told) return new Error(message, { cause: failed[0]!.error });
  const shortages = known.flatMap((error) => error.shortages);
  return new CoppiceError(told.code, message, { advice: told.advice, cause: told, shortages });
}
