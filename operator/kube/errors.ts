/** Body of an API server's refusal (metav1.Status). */
export interface Status {
  kind?: string;
  status?: string;
  message?: string;
  reason?: string;
  code?: number;
  details?: {
    name?: string;
    kind?: string;
    retryAfterSeconds?: number;
    causes?: { reason?: string; message?: string; field?: string }[];
  };
}

const LONGEST_MESSAGE = 4000;
const LONGEST_REASON = 100;

/** The API server answered with a refusal. */
export class KubeApiError extends Error {
  override readonly name = 'KubeApiError';
  /** HTTP status. */
  readonly status: number;
  /** metav1.Status.reason, for example `AlreadyExists`; '' when the body was no Status. */
  readonly reason: string;
  readonly details: Status['details'];
  readonly request: string;
  /** Seconds to wait before a retry, from header Retry-After. Absent: the server named none. */
  readonly retryAfterSeconds: number | undefined;

  constructor(request: string, status: number, body: Status | string, retryAfterSeconds?: number) {
    const known: Status = typeof body === 'string' ? {} : body;
    // The message may end in an object's status, which has room for 32 KiB; a tenant's API server may send any text.
    const text = typeof body === 'string' ? body.trim().slice(0, 500) : body.message?.slice(0, LONGEST_MESSAGE);
    const reason = (known.reason ?? '').slice(0, LONGEST_REASON);
    super(`${request}: ${status} ${reason}${text ? `: ${text}` : ''}`.replace(/\s+:/g, ':'));
    this.request = request;
    this.status = status;
    this.reason = reason;
    this.details = known.details;
    this.retryAfterSeconds = retryAfterSeconds ?? known.details?.retryAfterSeconds;
  }

  get isNotFound(): boolean {
    return this.status === 404;
  }
  /** Another client wrote in between, or (apply) owns the field. "AlreadyExists" is a 409 too, but not a conflict. */
  get isConflict(): boolean {
    return this.status === 409 && this.reason !== 'AlreadyExists';
  }
  get isAlreadyExists(): boolean {
    return this.status === 409 && this.reason === 'AlreadyExists';
  }
  /** Schema, CEL or admission policy refused: the same request will never pass. */
  get isInvalid(): boolean {
    return this.status === 422 || this.status === 400;
  }
  /** The resource version or continue token has expired: list again. */
  get isGone(): boolean {
    return this.status === 410;
  }
  get isForbidden(): boolean {
    return this.status === 403;
  }
  get isUnauthorized(): boolean {
    return this.status === 401;
  }
  get isTooManyRequests(): boolean {
    return this.status === 429;
  }
  /** The namespace is being deleted: the API server refuses new objects in it. */
  get isNamespaceTerminating(): boolean {
    return this.details?.causes?.some((cause) => cause.reason === 'NamespaceTerminating') ?? false;
  }
}

/** No usable answer: refused, reset, timed out, bad certificate. Whether a write took effect is unknown. */
export class KubeUnreachableError extends Error {
  override readonly name = 'KubeUnreachableError';
  /** Node's or undici's code, for example ECONNREFUSED. */
  readonly code: string;

  constructor(request: string, cause: unknown) {
    const code = (cause as { code?: string } | undefined)?.code ?? '';
    // With several addresses, Node's message is empty and the reasons are in `errors`.
    const text = (cause instanceof Error && cause.message) || code || String(cause);
    super(`${request}: ${text}`, { cause });
    this.code = code;
  }
}

/** Whether the error is a 404 of the API server. */
export function isNotFound(error: unknown): boolean {
  return error instanceof KubeApiError && error.isNotFound;
}

/** Whether a retry can succeed without any change by a person. */
export function isTransient(error: unknown): boolean {
  if (error instanceof KubeUnreachableError) return true;
  return error instanceof KubeApiError && (error.status === 429 || error.status >= 500 || error.isConflict);
}
