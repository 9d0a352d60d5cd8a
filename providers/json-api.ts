import { request } from 'undici';
import { CoppiceError, dependencyNotReady, type ErrorCode } from '../operator/api/errors.ts';
import { type Patience, patienceAsked, saidOfProxy, sendPatiently, toClouds } from './cloud-http.ts';

/** Timeout of an answer, milliseconds. */
const TIMEOUT = 30_000;

/** A request to a cloud's API. */
export interface Call {
  method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  url: string;
  /** Bearer token. */
  token?: string;
  headers?: Record<string, string>;
  body?: string;
  /** The action, for the error message: "Entra ID gives no token to client x". */
  what: string;
  signal: AbortSignal;
}

/**
 * Resolves with the answer's JSON; undefined for 404 if `absent` allows it, and for 202 and 204 without body. Throws
 * CoppiceErrors by the cloud's error.
 */
type JsonApi = <T>(call: Call, options?: { absent?: boolean }) => Promise<T | undefined>;

/** A client for APIs whose errors `classify` understands: bodies, or `HTTP 403` for an empty body. */
export const jsonApi =
  (classify: (text: string) => ErrorCode | undefined): JsonApi =>
  async <T>(call: Call, options: { absent?: boolean } = {}) => {
    const isThrottled = ({ text }: JsonAnswer) => classify(text) === 'ERR_INFRA_RATE_LIMITS_EXCEEDED';
    const answer = await sendPatiently(call.method ?? 'GET', call.signal, () => answerTo(call), isThrottled);
    const { status, text } = answer;
    if (status === 404 && options.absent) return undefined;
    if (status >= 300) throw jsonRefusal(classify, call.what, answer);
    // Accepted asynchronous operations and deletions have no body.
    if (text === '' && (status === 202 || status === 204 || call.method === 'DELETE')) return undefined;
    try {
      return JSON.parse(text) as T;
    } catch {
      throw dependencyNotReady(`${call.what}: ${hostOf(call)} answered ${status} with something that is no JSON`);
    }
  };

/** An answer with its text. */
export interface JsonAnswer extends Patience {
  text: string;
}

/**
 * Error of a refusal, in the cloud's words. A redirect counts as a refusal, because the token must not go elsewhere.
 */
export function jsonRefusal(
  classify: (text: string) => ErrorCode | undefined,
  what: string,
  answer: JsonAnswer,
): CoppiceError {
  const { status, text } = answer;
  const code = classify(text) ?? classify(`HTTP ${status}`) ?? 'ERR_RETRYABLE_INFRA_DEPENDENCIES';
  return new CoppiceError(code, `${what}: ${said(text) ?? `HTTP ${status}`}${patienceAsked(answer)}`);
}

/** A POST with a JSON body. */
export const posted = (body: object) => ({
  method: 'POST' as const,
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify(body),
});

const hostOf = ({ url }: Call): string => new URL(url).host;

async function answerTo(call: Call): Promise<JsonAnswer> {
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
  /** Some Azure services (DNS, AKS) omit the outer `error`; Microsoft's clients accept both. */
  code?: unknown;
  message?: string;
}

/** The cloud's error on one line: code and message, or OAuth's `error_description`. */
function said(text: string): string | undefined {
  try {
    const body = JSON.parse(text) as Refusal;
    const { error = body, error_description: description } = body;
    const code = typeof error === 'object' && typeof error.code === 'string' ? `${error.code}: ` : '';
    const sentence = typeof error === 'object' ? `${code}${error.message ?? ''}` : (description ?? error);
    // Microsoft's later lines only contain trace ids.
    const line = sentence
      ?.split(/[\r\n]|Trace ID:/)[0]
      ?.replaceAll(/\s+/g, ' ')
      .trim();
    return line?.replace(/[.:]$/, '').slice(0, MOST) || undefined;
  } catch {
    return undefined;
  }
}
