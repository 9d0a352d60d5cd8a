import { ProxyError } from '../../../kube/http/http-proxy.ts';

/** Why an image cannot be pulled, as the pod's status shows it: what happened to which image, and advice. */
export class PullError extends Error {
  override readonly name = 'PullError';
  /** HTTP status of the mirror's answer. */
  readonly status: number;
  /** Whether the registry was unreachable; cached content may then be used. */
  readonly isOffline: boolean;

  constructor(status: number, message: string, options: { isOffline?: boolean; cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.status = status;
    this.isOffline = options.isOffline ?? false;
  }
}

const CERTIFICATE = /CERT|SELF_SIGNED|UNABLE_TO_(?:VERIFY|GET_ISSUER)|ERR_TLS_CERT|DEPTH_ZERO/;

interface NetworkFailure {
  code?: string;
  message?: string;
  cause?: unknown;
}

/** A network failure as a message with advice. */
export function offlineError(host: string, failure: unknown, hasProxy: boolean): PullError {
  if (failure instanceof PullError) return failure;
  const { code = '', message = '', cause } = failure as NetworkFailure;
  if (cause instanceof PullError) return cause;
  if (CERTIFICATE.test(code)) {
    const text = `this machine does not trust the certificate of ${host} (${code}). Add its certificate authority to the system's trust store, or set SSL_CERT_FILE, and run "coppice stop" and "coppice up"`;
    return new PullError(502, text, { cause: failure });
  }
  const why = failure instanceof ProxyError ? message : code || message || 'no answer';
  const how = hasProxy ? 'check HTTPS_PROXY and NO_PROXY' : "check the machine's network, or set HTTPS_PROXY";
  const text = `this machine cannot reach ${host} (${why}): ${how}, or load the image with "coppice load"`;
  return new PullError(502, text, { isOffline: true, cause: failure });
}
