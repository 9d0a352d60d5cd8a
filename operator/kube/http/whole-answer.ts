import { afterLoopTime } from '../clock.ts';
import { bodyTextOf, type ResponseHead, type SizeLimit } from './exchange.ts';

/** Time for an aborted write to finish. */
const LINGER_MS = 2_000;

/**
 * A delayed signal for a write: a sent request may take effect even if the caller aborts, and the caller would then act
 * on outdated state (for example, a namespace created after its deletion had checked for it).
 */
export function delayedAbort(signal: AbortSignal | undefined): { signal: AbortSignal; done(): void } {
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

/** The body of an answer, within a time limit. */
export async function inTime(response: ResponseHead, ms: number, bound: SizeLimit): Promise<string> {
  let late: Error | undefined;
  const forget = afterLoopTime(ms, () => {
    late = Object.assign(new Error(`no whole answer within ${ms / 1000} s`), { code: 'ETIMEDOUT' });
    response.drop();
  });
  try {
    return await bodyTextOf(response, bound);
  } catch (error) {
    throw late ?? error;
  } finally {
    forget();
  }
}

/** The body parsed as JSON, or as text for other content types. */
export function parseBody(text: string, response: ResponseHead): unknown {
  if (!String(response.headers['content-type'] ?? '').startsWith('application/json')) return text;
  return text === '' ? {} : JSON.parse(text);
}
