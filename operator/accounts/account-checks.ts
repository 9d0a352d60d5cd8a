import type { AccountCheck, CloudContext, ManagedClusters } from '../../providers/cloud.ts';

/** Longest time a cloud may take to answer an identity call. */
const PATIENCE_MS = 60_000;
const MOST = 1000;

/**
 * Asks clouds to which account credentials belong. Equal questions share one call, however many clusters use the
 * credentials, until the credentials change. Failures are not cached.
 */
export class AccountChecks {
  readonly #known = new Map<string, Promise<AccountCheck>>();

  /** Rejects with the cloud's error; the next caller asks again. @param version of the credentials */
  check(clouds: ManagedClusters, ctx: CloudContext, version: string): Promise<AccountCheck> {
    const key = `${ctx.profile.metadata.name}/${ctx.region}/${version}`;
    const known = this.#known.get(key);
    if (known) return known;
    // The first caller's signal is not passed on: the answer is shared by all callers.
    const asked = clouds.checkAccount({ ...ctx, signal: AbortSignal.timeout(PATIENCE_MS) });
    this.#known.set(key, asked);
    // Missing permissions may be granted without a change of the credentials.
    asked.then(
      ({ missing }) => missing.length > 0 && this.#known.delete(key),
      () => this.#known.delete(key),
    );
    const [oldest] = this.#known.keys();
    if (this.#known.size > MOST && oldest !== undefined) this.#known.delete(oldest);
    return asked;
  }
}
