import { createHash } from 'node:crypto';
import { CoppiceError } from '../operator/api/errors.ts';
import { unlessAborted } from '../operator/kube/clock.ts';
import { claimsOf } from '../operator/pki/token-claims.ts';

/**
 * What a cloud gave is given out while it is good for this long, milliseconds: most runs of the engine end sooner, and it cannot be
 * told of newer credentials while it runs. Clouds give an hour.
 */
const GOOD_FOR_MS = 25 * 60_000;
const MOST = 1000;
/** An exchange that several wait for is nobody's to give up, milliseconds. */
const EXCHANGE_MS = 2 * 60_000;

/** What a cloud gave for a token, and until when (RFC 3339). */
export interface Exchanged<T> {
  value: T;
  expiresAt: string;
}

/**
 * Keeps what clouds gave for keys and tokens, so that not every request to a cloud costs an exchange before it. In memory only. Those who ask
 * at the same time share one exchange.
 */
export class Exchanges<T> {
  readonly #kept = new Map<string, Exchanged<T>>();
  readonly #running = new Map<string, Promise<T>>();

  /**
   * @param proof everything that the exchange depends on, the secret and where it is shown among it
   * @param signal of who asks: it goes away without ending the exchange of the others
   * @param exchange asks the cloud; what it rejects with is not remembered
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
    // Whoever has asked may be gone when it fails.
    running.catch(() => {});
    this.#running.set(key, running);
    return running;
  }
}

/** A refusal of an exchange that only a change in the cloud (or of who asks) will overcome, and not by itself. */
const DISTRUST: readonly string[] = [
  'ERR_INFRA_UNAUTHENTICATED',
  'ERR_INFRA_UNAUTHORIZED',
  'ERR_CONFIGURATION_PROBLEM',
];

/**
 * An error of an exchange, saying what the cloud must trust, where that is what is wrong.
 * @param who in the cloud is to trust the token, for example `role arn:...`
 * @param how to make it do so, in the cloud's words
 */
export function distrusted(error: unknown, token: string, who: string, how: string): unknown {
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
