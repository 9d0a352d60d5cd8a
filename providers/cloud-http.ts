import type { IncomingHttpHeaders } from 'node:http';
import { Agent, type Dispatcher } from 'undici';
import { type Clock, sleep, systemClock } from '../operator/kube/clock.ts';
import { passFenceToSend } from '../operator/kube/http/fence.ts';
import { environmentConnector, ProxyError } from '../operator/kube/http/http-proxy.ts';

/**
 * How the clouds' APIs are reached: by the proxy of the environment, as API servers are. What is asked without TLS is near, as the metadata
 * server of a machine at Google, in whose place a proxy would ask its own.
 * Not over HTTP/2: undici 8.12 gives a request up (a time limit is enough) in the one way that keeps Node 24.21
 * in an endless loop while a part of the request is unsent (test/unit/kube/transport.test.ts).
 */
export const toClouds: Dispatcher = new Agent({ allowH2: false, connect: environmentConnector({ allowH2: false }) });

/** For the end of a message about a request that got no answer: what became of the proxy, where it was that. */
export const saidOfProxy = (error: unknown): string => (error instanceof ProxyError ? `: ${error.message}` : '');

/** The most that is waited because an answer asks for it, milliseconds; what asks for more is an error at once, and tried again much later. */
export const LONGEST_PAUSE_MS = 30_000;
/** How often a request is sent. */
const ATTEMPTS = 3;
/** Before the second attempt, where the cloud does not say how long to wait, milliseconds; twice as long before the third. */
const FIRST_PAUSE_MS = 250;

/** The part of an answer that says whether to come again, and when. */
export interface Patience {
  status: number;
  headers: IncomingHttpHeaders;
}

/** What stands in for time and chance in tests. */
export interface Circumstances {
  clock?: Clock;
  /** Milliseconds since 1970: Retry-After may name a moment. */
  now?: () => number;
  /** In [0, 1). */
  random?: () => number;
}

/** How long the answer asks to wait, milliseconds (RFC 9110, 10.2.3: seconds, or a moment); undefined: it does not say. */
export function retryAfter({ headers }: Pick<Patience, 'headers'>, now: number): number | undefined {
  const said = headers['retry-after']?.trim() ?? '';
  if (/^\d+$/.test(said)) return Number(said) * 1000;
  // A negative or broken number is no moment, though Date.parse takes it for one.
  const moment = /[A-Za-z]/.test(said) ? Date.parse(said) : Number.NaN;
  return Number.isNaN(moment) ? undefined : Math.max(0, moment - now);
}

/** For the end of a message: how long the cloud asks to wait, where it does. */
export function patienceAsked(answer: Patience, now = Date.now()): string {
  const wait = retryAfter(answer, now);
  return wait === undefined ? '' : ` (asks to wait for ${Math.ceil(wait / 1000)} s)`;
}

/**
 * Sends a request, and again when the cloud says that there were too many: at most three times, after the time that it asks for.
 * A service that is not available (503) did not do what it was asked, unless it was to make something: POST is not sent again.
 * Resolves to the last answer, whatever it says.
 * @param isThrottled what else says that there were too many
 */
export async function patiently<Answer extends Patience>(
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
    // Whoever is told to wait a second is not alone: they come back apart, and none too early.
    await sleep(pause * (1 + random() / 4), signal, clock);
    signal.throwIfAborted();
  }
}
