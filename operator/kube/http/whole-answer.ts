import { afterLoopTime } from '../clock.ts';
import { type Answer, type Bound, textOf } from './exchange.ts';

/** How long a write that is to be given up may still take. */
const LINGER_MS = 2_000;

/**
 * The signal of a write, later: what is under way may be carried out though nobody listens, and who stopped it would then act on a world
 * that changes behind their back (a namespace that was made after its deletion had looked for it).
 */
export function lingering(signal: AbortSignal | undefined): { signal: AbortSignal; done(): void } {
  const late = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  const onAbort = () => {
    timer = setTimeout(() => late.abort(signal?.reason), LINGER_MS);
  };
  signal?.addEventListener('abort', onAbort);
  return {
    signal: late.signal,
    done() {
      clearTimeout(timer);
      signal?.removeEventListener('abort', onAbort);
    },
  };
}

/** The body of an answer that may be slow, but not for ever. */
export async function inTime(response: Answer, ms: number, bound: Bound): Promise<string> {
  let late: Error | undefined;
  const forget = afterLoopTime(ms, () => {
    late = Object.assign(new Error(`no whole answer within ${ms / 1000} s`), { code: 'ETIMEDOUT' });
    response.drop();
  });
  try {
    return await textOf(response, bound);
  } catch (error) {
    throw late ?? error;
  } finally {
    forget();
  }
}

/** Parsed when it is JSON, else as text. */
export function parseBody(text: string, response: Answer): unknown {
  if (!String(response.headers['content-type'] ?? '').startsWith('application/json')) return text;
  return text === '' ? {} : JSON.parse(text);
}
