import { request } from 'undici';
import { CoppiceError, dependencyNotReady, type ErrorCode } from '../operator/api/errors.ts';
import { type Patience, patienceAsked, patiently, saidOfProxy, toClouds } from './cloud-http.ts';

/** One answer must come within this time, milliseconds. */
const TIMEOUT = 30_000;

/** A request to an API of a cloud. */
export interface Call {
  method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  url: string;
  /** Bearer token. */
  token?: string;
  headers?: Record<string, string>;
  body?: string;
  /** What fails if this does, for the message: "Entra ID gives no token to client x". */
  what: string;
  signal: AbortSignal;
}

/**
 * The JSON that an endpoint answers; undefined for 404 where `absent` allows it, and for 202 and 204 without a body. Throws CoppiceErrors
 * by what the cloud says.
 */
export type JsonApi = <T>(call: Call, options?: { absent?: boolean }) => Promise<T | undefined>;

/** Calls APIs whose refusals `classify` understands: bodies, or `HTTP 403` where a body says nothing. */
export const jsonApi =
  (classify: (text: string) => ErrorCode | undefined): JsonApi =>
  async <T>(call: Call, options: { absent?: boolean } = {}) => {
    const isThrottled = ({ text }: Answer) => classify(text) === 'ERR_INFRA_RATE_LIMITS_EXCEEDED';
    const answer = await patiently(call.method ?? 'GET', call.signal, () => answerTo(call), isThrottled);
    const { status, text } = answer;
    if (status === 404 && options.absent) return undefined;
    if (status >= 300) throw refused(classify, call.what, answer);
    // What goes on by itself is accepted without a word; of what was taken away there is nothing to say.
    if (text === '' && (status === 202 || status === 204 || call.method === 'DELETE')) return undefined;
    try {
      return JSON.parse(text) as T;
    } catch {
      throw dependencyNotReady(`${call.what}: ${hostOf(call)} answered ${status} with something that is no JSON`);
    }
  };

/** An answer that was read. */
export interface Answer extends Patience {
  text: string;
}

/** What a refusal means, in the cloud's own words. A redirection is one, too: the token goes nowhere else. */
export function refused(classify: (text: string) => ErrorCode | undefined, what: string, answer: Answer): CoppiceError {
  const { status, text } = answer;
  const code = classify(text) ?? classify(`HTTP ${status}`) ?? 'ERR_RETRYABLE_INFRA_DEPENDENCIES';
  return new CoppiceError(code, `${what}: ${said(text) ?? `HTTP ${status}`}${patienceAsked(answer)}`);
}

/** A request that sends this as JSON, as far as it is the same for all. */
export const posted = (body: object) => ({
  method: 'POST' as const,
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify(body),
});

const hostOf = ({ url }: Call): string => new URL(url).host;

async function answerTo(call: Call): Promise<Answer> {
  const { method = 'GET', url, token, headers, body, signal } = call;
  try {
    const response = await request(url, {
      dispatcher: toClouds,
      method,
      headers: { ...headers, ...(token !== undefined && { authorization: `Bearer ${token}` }) },
      ...(body !== undefined && { body }),
      signal: AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT)]),
    });
    const { statusCode: status, headers: told } = response;
    return { status, headers: told, text: await response.body.text() };
  } catch (error) {
    signal.throwIfAborted();
    throw dependencyNotReady(`${call.what}: ${hostOf(call)} cannot be reached${saidOfProxy(error)}`, error);
  }
}

/** Longest part of an answer in an error, characters. */
const MOST = 300;

interface Refusal {
  error?: string | { code?: unknown; message?: string };
  error_description?: string;
  /** Some of Azure's services (DNS, AKS) have these without an `error` around them; Microsoft's own clients take both. */
  code?: unknown;
  message?: string;
}

/** What a cloud says of its refusal, on one line: code and message of an API's error, `error_description` of OAuth's. */
function said(text: string): string | undefined {
  try {
    const body = JSON.parse(text) as Refusal;
    const { error = body, error_description: description } = body;
    const code = typeof error === 'object' && typeof error.code === 'string' ? `${error.code}: ` : '';
    const sentence = typeof error === 'object' ? `${code}${error.message ?? ''}` : (description ?? error);
    // After its first line Microsoft only gives numbers by which it finds the request again.
    const line = sentence
      ?.split(/[\r\n]|Trace ID:/)[0]
      ?.replaceAll(/\s+/g, ' ')
      .trim();
    return line?.replace(/[.:]$/, '').slice(0, MOST) || undefined;
  } catch {
    return undefined;
  }
}
