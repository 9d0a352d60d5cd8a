import type { IncomingHttpHeaders } from 'node:http';
import { Agent, type Dispatcher } from 'undici';
import { type Clock, sleep, systemClock } from '../operator/kube/clock.ts';
import { passFenceToSend } from '../operator/kube/http/fence.ts';
import { environmentConnector, ProxyError } from '../operator/kube/http/http-proxy.ts';

/**
 * HTTP dispatcher for the clouds' APIs, with the proxy of the environment. Plain http never uses the proxy, because it
 * is for local servers such as Google's metadata server. No HTTP/2: undici 8.12 cancels a request (a timeout suffices)
 * in the one way that sends Node 24.21 into an endless loop while part of the request is unsent
 * (test/unit/kube/transport.test.ts).
 */
export const toClouds: Dispatcher = new Agent({ allowH2: false, connect: environmentConnector({ allowH2: false }) });

/** Suffix of an error about a request without answer: the proxy's error, if any. */
export const saidOfProxy = (error: unknown): string => (error instanceof ProxyError ? `: ${error.message}` : '');

/** Longest Retry-After that is waited for, milliseconds; a longer one is an error at once. */
export const LONGEST_PAUSE_MS = 30_000;
/** Most attempts of a request. */
const ATTEMPTS = 3;
/** Pause before the second attempt without Retry-After, milliseconds; doubled before the third. */
const FIRST_PAUSE_MS = 250;

/** The part of an answer that decides about a retry. */
export interface Patience {
  status: number;
  headers: IncomingHttpHeaders;
}

/** Clock and randomness, replaced in tests. */
interface Circumstances {
  clock?: Clock;
  /** Milliseconds since 1970: Retry-After may be a date. */
  now?: () => number;
  /** In [0, 1). */
  random?: () => number;
}

/** Retry-After in milliseconds (RFC 9110, 10.2.3: seconds, or a date); undefined: absent. */
export function retryAfter({ headers }: Pick<Patience, 'headers'>, now: number): number | undefined {
  const said = headers['retry-after']?.trim() ?? '';
  if (/^\d+$/.test(said)) return Number(said) * 1000;
  // Date.parse accepts negative and fractional numbers, which are no dates.
  const moment = /[A-Za-z]/.test(said) ? Date.parse(said) : Number.NaN;
  return Number.isNaN(moment) ? undefined : Math.max(0, moment - now);
}

/** Suffix of an error message: the time in Retry-After, if any. */
export function patienceAsked(answer: Patience, now = Date.now()): string {
  const wait = retryAfter(answer, now);
  return wait === undefined ? '' : ` (asks to wait for ${Math.ceil(wait / 1000)} s)`;
}

/**
 * Sends a request with retries when throttled: at most three attempts, with the pause that the cloud asks for. 503 is
 * retried too, except for POST, which may have created something. Resolves with the last answer.
 * @param isThrottled recognises further throttling answers
 */
export async function sendPatiently<Answer extends Patience>(
  method: string,
  signal: AbortSignal,
  attempt: () => Promise<Answer>,
  isThrottled: (answer: Answer) => boolean = () => false,
  { clock = systemClock, now = Date.now, random = Math.random }: Circumstances = {},
): Promise<Answer> {
  for (let sent = 1; ; sent++) {
    passFenceToSend(method, 'to a cloud');
    const answer = await attempt();
    const { status } = answer;
    const isLater = status === 429 || (status === 503 && method !== 'POST') || (status >= 400 && isThrottled(answer));
    if (!isLater || sent === ATTEMPTS) return answer;
    const pause = retryAfter(answer, now()) ?? FIRST_PAUSE_MS * 2 ** (sent - 1);
    if (pause > LONGEST_PAUSE_MS) return answer;
    // Jitter upwards: other throttled clients were told the same pause.
    await sleep(pause * (1 + random() / 4), signal, clock);
    signal.throwIfAborted();
  }
}
