import { request } from 'undici';
import { CoppiceError, dependencyNotReady, type ErrorCode } from '../../operator/api/errors.ts';
import { classify } from './errors.ts';

/** Where Azure is: https://host, without a slash at the end. */
export interface Endpoints {
  /** Entra ID. */
  login: string;
  /** Azure Resource Manager. */
  management: string;
}

export const PUBLIC_CLOUD: Endpoints = {
  login: 'https://login.microsoftonline.com',
  management: 'https://management.azure.com',
};

/** One answer must come within this time, milliseconds. */
const TIMEOUT = 30_000;

export interface Call {
  method: 'GET' | 'POST';
  url: string;
  headers?: Record<string, string>;
  body?: string;
  /** What is asked for, for the message when it is refused: "Entra ID refuses a token". */
  what: string;
  signal: AbortSignal;
}

/** The JSON that an endpoint answers; undefined for 404 where `absent` allows it. Throws CoppiceErrors by what Azure says. */
export async function call<T>(
  { method, url, headers, body, what, signal }: Call,
  options: { absent?: boolean } = {},
): Promise<T | undefined> {
  const answer = await fetched();
  if (answer.status === 404 && options.absent) return undefined;
  if (answer.status >= 300) throw refused(what, answer.status, answer.text);
  try {
    return JSON.parse(answer.text) as T;
  } catch {
    throw dependencyNotReady(`${what}: ${new URL(url).host} answered ${answer.status} with something that is no JSON`);
  }

  async function fetched(): Promise<{ status: number; text: string }> {
    try {
      const response = await request(url, {
        method,
        ...(headers && { headers }),
        ...(body !== undefined && { body }),
        signal: AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT)]),
      });
      return { status: response.statusCode, text: await response.body.text() };
    } catch (error) {
      signal.throwIfAborted();
      throw dependencyNotReady(`${what}: ${new URL(url).host} cannot be reached`, error);
    }
  }
}

function refused(what: string, status: number, text: string): CoppiceError {
  const code: ErrorCode = classify(text) ?? classify(`HTTP ${status}`) ?? 'ERR_RETRYABLE_INFRA_DEPENDENCIES';
  return new CoppiceError(code, `${what}: ${said(text) ?? `HTTP ${status}`}`);
}

/** Longest part of an answer in an error, characters. */
const MOST = 300;

/** What Azure says of its refusal, on one line, without the numbers by which Microsoft finds the request again. */
function said(text: string): string | undefined {
  const parsed = parse(text) as { error?: string | { code?: string; message?: string }; error_description?: string };
  const { error, error_description } = parsed ?? {};
  const sentence =
    typeof error === 'object' ? [error.code, error.message].filter(Boolean).join(': ') : error_description;
  const line = (sentence || (typeof error === 'string' ? error : undefined))?.split(/[\r\n]|Trace ID:/)[0]?.trim();
  return line?.replace(/\.$/, '').slice(0, MOST);
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
