import type { IncomingHttpHeaders } from 'node:http';
import type { Readable } from 'node:stream';
import { request } from 'undici';
import { dependencyNotReady } from '../operator/api/errors.ts';
import type { BackupContent } from './backup.ts';
import { saidOfProxy, sendPatiently, toClouds } from './cloud-http.ts';

/** A request with a possibly large body or answer. */
export interface Transfer {
  method: 'GET' | 'PUT' | 'POST' | 'DELETE';
  url: string | URL;
  headers: Record<string, string>;
  content?: BackupContent | undefined;
  /** The action, for the error message. */
  what: string;
  signal: AbortSignal;
}

/** Answer to a transfer. Read or destroy the body, or its connection stays in use. */
export interface Transferred {
  status: number;
  headers: IncomingHttpHeaders;
  body: Readable & { text(): Promise<string> };
}

/** Longest pause within a transfer before the peer counts as dead, milliseconds. */
const IDLE_MS = 60_000;
/** Time for a cloud to store a complete upload before it answers, milliseconds. */
const STORED_MS = 10 * 60_000;

/**
 * Sends a request without holding its body in memory. Rejects with ERR_RETRYABLE_INFRA_DEPENDENCIES when there is no
 * answer.
 */
export function transfer(asked: Transfer): Promise<Transferred> {
  let last: Transferred | undefined;
  return sendPatiently(asked.method, asked.signal, async () => {
    // Discard the body of an answer that is not the last.
    last?.body.resume();
    last = await transferOnce(asked);
    return last;
  });
}

async function transferOnce({ method, url, headers, content, what, signal }: Transfer): Promise<Transferred> {
  const body = content?.open();
  try {
    const answer = await request(url, {
      dispatcher: toClouds,
      method,
      headers: { ...headers, ...(content && { 'content-length': String(content.size) }) },
      ...(body && { body }),
      headersTimeout: content ? STORED_MS : IDLE_MS,
      bodyTimeout: IDLE_MS,
      signal,
    });
    return { status: answer.statusCode, headers: answer.headers, body: answer.body };
  } catch (error) {
    signal.throwIfAborted();
    throw dependencyNotReady(`${what}: ${new URL(url).host} cannot be reached${saidOfProxy(error)}`, error);
  } finally {
    // A refusal may arrive before the whole body was sent.
    body?.destroy();
  }
}
