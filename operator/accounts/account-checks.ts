import type { AccountCheck, CloudContext, ManagedClusters } from '../../providers/cloud.ts';

/** A cloud that has not said by then who somebody is will not say it. */
const PATIENCE_MS = 60_000;
const MOST = 1000;

/**
 * Asks clouds who credentials are. Equal questions are asked once, however many clusters have them, until the credentials change. Refusals
 * are not remembered.
 */
export class AccountChecks {
  readonly #known = new Map<string, Promise<AccountCheck>>();

  /** @param version of the credentials. Rejects with what the cloud says; then the next one asks again. */
  check(clouds: ManagedClusters, ctx: CloudContext, version: string): Promise<AccountCheck> {
    const key = `${ctx.profile.metadata.name}/${ctx.region}/${version}`;
    const known = this.#known.get(key);
    if (known) return known;
    // Not with the signal of the one who happens to ask first: the answer is for all.
    const asked = clouds.checkAccount({ ...ctx, signal: AbortSignal.timeout(PATIENCE_MS) });
    this.#known.set(key, asked);
    // What is missing may be granted, without any change of the credentials.
    asked.then(
      ({ missing }) => missing.length > 0 && this.#known.delete(key),
      () => this.#known.delete(key),
    );
    const [oldest] = this.#known.keys();
    if (this.#known.size > MOST && oldest !== undefined) this.#known.delete(oldest);
    return asked;
  }
}
