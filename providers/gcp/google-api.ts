import { request } from 'undici';
import { CoppiceError, dependencyNotReady } from '../../operator/api/errors.ts';
import { http1 } from '../http1.ts';
import { classify } from './errors.ts';

/** Where Google is: scheme and host, without a slash at the end. */
export interface Endpoints {
  oauth: string;
  /** Security Token Service: takes tokens of others. */
  sts: string;
  iamCredentials: string;
  /** The metadata server of a machine at Google. */
  metadata: string;
  resourceManager: string;
  cloudAsset: string;
  compute: string;
  container: string;
  dns: string;
  kms: string;
  iam: string;
  storage: string;
}

/** Hosts as the APIs' discovery documents name them (googleapis/google-api-go-client, <api>/v1/<api>-api.json, rootUrl). */
export const GOOGLE: Endpoints = {
  oauth: 'https://oauth2.googleapis.com',
  sts: 'https://sts.googleapis.com',
  iamCredentials: 'https://iamcredentials.googleapis.com',
  metadata: 'http://metadata.google.internal',
  resourceManager: 'https://cloudresourcemanager.googleapis.com',
  cloudAsset: 'https://cloudasset.googleapis.com',
  compute: 'https://compute.googleapis.com',
  container: 'https://container.googleapis.com',
  dns: 'https://dns.googleapis.com',
  kms: 'https://cloudkms.googleapis.com',
  iam: 'https://iam.googleapis.com',
  storage: 'https://storage.googleapis.com',
};

/** One answer must come within this time, milliseconds. */
const TIMEOUT = 30_000;

export interface Call {
  method?: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  url: string;
  /** Bearer token. */
  token?: string;
  headers?: Record<string, string>;
  body?: string;
  /** What fails if this does, for the message: "Google gives no token to a@b". */
  what: string;
  signal: AbortSignal;
}

/** The JSON that an endpoint answers; undefined for 204, and for 404 where `absent` allows it. Throws CoppiceErrors by what Google says. */
export async function call<T>(
  { method = 'GET', url, token, headers, body, what, signal }: Call,
  options: { absent?: boolean } = {},
): Promise<T | undefined> {
  const answer = await fetched();
  if (answer.status === 404 && options.absent) return undefined;
  if (answer.status >= 300) throw refused(what, answer.status, answer.text);
  if (answer.status === 204) return undefined;
  try {
    return JSON.parse(answer.text) as T;
  } catch {
    throw dependencyNotReady(`${what}: ${new URL(url).host} answered ${answer.status} with something that is no JSON`);
  }

  async function fetched(): Promise<{ status: number; text: string }> {
    try {
      const response = await request(url, {
        dispatcher: http1,
        method,
        headers: { ...headers, ...(token !== undefined && { authorization: `Bearer ${token}` }) },
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

/** What Google's refusal means. */
export function refused(what: string, status: number, text: string): CoppiceError {
  const code = classify(text) ?? classify(`HTTP ${status}`) ?? 'ERR_RETRYABLE_INFRA_DEPENDENCIES';
  return new CoppiceError(code, `${what}: ${said(text) ?? `HTTP ${status}`}`);
}

/** Longest part of an answer in an error, characters. */
const MOST = 300;

/** What Google says of its refusal, on one line: `message` of an API's error, `error_description` of OAuth's. */
function said(text: string): string | undefined {
  try {
    const { error, error_description } = JSON.parse(text) as {
      error?: string | { message?: string };
      error_description?: string;
    };
    const sentence = typeof error === 'object' ? error.message : (error_description ?? error);
    return sentence?.replaceAll(/\s+/g, ' ').trim().replace(/\.$/, '').slice(0, MOST) || undefined;
  } catch {
    return undefined;
  }
}
