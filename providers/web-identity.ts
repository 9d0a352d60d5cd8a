import { createHash } from 'node:crypto';
import { CoppiceError } from '../operator/api/errors.ts';
import { unlessAborted } from '../operator/kube/clock.ts';
import { claimsOf } from '../operator/pki/token-claims.ts';

/**
 * Shortest remaining validity of cached credentials, milliseconds: most engine runs end sooner, and a running engine
 * cannot get new ones. Clouds issue an hour.
 */
const GOOD_FOR_MS = 25 * 60_000;
const MOST = 1000;
/** Timeout of an exchange, which no single waiter can abort, milliseconds. */
const EXCHANGE_MS = 2 * 60_000;

/** Credentials that a cloud issued for a token, with expiry (RFC 3339). */
export interface Exchanged<T> {
  value: T;
  expiresAt: string;
}

/**
 * Cache of issued credentials, so that not every request costs an exchange. In memory only. Simultaneous callers share
 * one exchange.
 */
export class Exchanges<T> {
  readonly #kept = new Map<string, Exchanged<T>>();
  readonly #running = new Map<string, Promise<T>>();

  /**
   * @param proof all inputs of the exchange, including the secret and its target
   * @param signal of this caller: an abort does not end the shared exchange
   * @param exchange asks the cloud; failures are not cached
   */
  async get(
    proof: readonly string[],
    { now, signal }: { now: Date; signal: AbortSignal },
    exchange: (signal: AbortSignal) => Promise<Exchanged<T>>,
  ): Promise<T> {
    signal.throwIfAborted();
    const key = createHash('sha256').update(JSON.stringify(proof)).digest('base64');
    const known = this.#kept.get(key);
    if (known && Date.parse(known.expiresAt) - +now >= GOOD_FOR_MS) return known.value;
    const running = this.#running.get(key) ?? this.#begin(key, exchange);
    return unlessAborted(running, signal);
  }

  #begin(key: string, exchange: (signal: AbortSignal) => Promise<Exchanged<T>>): Promise<T> {
    const run = async () => {
      const got = await exchange(AbortSignal.timeout(EXCHANGE_MS));
      this.#kept.delete(key);
      this.#kept.set(key, got);
      const [oldest] = this.#kept.keys();
      if (this.#kept.size > MOST && oldest !== undefined) this.#kept.delete(oldest);
      return got.value;
    };
    const running = run().finally(() => this.#running.delete(key));
    // All callers may be gone when it fails.
    running.catch(() => {});
    this.#running.set(key, running);
    return running;
  }
}

/** Refusals of an exchange that only a change in the cloud, or by the caller, resolves. */
const DISTRUST: readonly string[] = [
  'ERR_INFRA_UNAUTHENTICATED',
  'ERR_INFRA_UNAUTHORIZED',
  'ERR_CONFIGURATION_PROBLEM',
];

/**
 * Adds to an exchange's error what the cloud must trust, if trust is the cause.
 * @param who the principal that must trust the token, for example `role arn:...`
 * @param how how to configure it, in the cloud's words
 */
export function explainDistrust(error: unknown, token: string, who: string, how: string): unknown {
  if (!(error instanceof CoppiceError) || !DISTRUST.includes(error.code)) return error;
  const { issuer, subject, audiences } = claimsOf(token) ?? {};
  const trusted = issuer
    ? `issuer ${issuer}, subject ${subject}, audience ${audiences?.join(' or ')}`
    : 'issuer, subject and audience of the token';
  return new CoppiceError('ERR_INFRA_UNAUTHENTICATED', error.message, {
    advice: `Have ${who} trust ${trusted} (${how}).`,
    cause: error.cause ?? error,
  });
}
