import { NETWORK_POLICIES_ENFORCED } from '../../api/conditions.ts';
import type { Seed } from '../../api/seed.ts';
import type { KubeClient } from '../../kube/client.ts';
import type { Log } from '../../kube/log.ts';
import { conditionBefore, type Said, say } from '../conditions.ts';
import { type TrialResult, tryNetworkPolicies } from './network-trial.ts';

/** Delay of the first trial: the first clusters of a new seed come first. */
const FIRST_MS = 30_000;
/** Interval of trials: networks change rarely, and each costs two pods. */
const RENEW_MS = 24 * 3600_000;
/** Retry after an impossible trial, first soon, because a busy machine is the usual cause. */
const AGAIN_MS = 3600_000;
const SOON_MS = 60_000;
const SOON_TIMES = 3;

/** State of a seed's network, and the next check. */
export interface NetworkLook {
  readonly condition: Said<'Seed'>;
  /** RFC 3339: last trial. */
  readonly triedAt?: string;
  readonly requeueAfterMs: number;
}

interface Options {
  readonly gardenID: string;
  readonly log: Log;
  readonly now: () => Date;
  /** Called with a seed after news. */
  readonly news: (seed: string) => void;
  readonly attempt?: typeof tryNetworkPolicies;
}

interface Seen {
  readonly since: number;
  isTrying: boolean;
  /** Consecutive impossible trials of this operator. */
  failures: number;
  news?: { readonly result: TrialResult; readonly at: string };
}

/** Tests whether seeds' networks enforce NetworkPolicies: a while after first contact, then daily. */
export class NetworkTrials {
  readonly #options: Options;
  readonly #seen = new Map<string, Seen>();

  constructor(options: Options) {
    this.#options = options;
  }

  /** Returns the known state, and starts a due trial without awaiting it. */
  look(seed: Seed, client: KubeClient, signal: AbortSignal): NetworkLook {
    const now = +this.#options.now();
    const { name, uid } = seed.metadata;
    const key = `${name}/${uid}`;
    const seen = this.#seen.get(key) ?? { since: now, isTrying: false, failures: 0 };
    this.#seen.set(key, seen);
    const triedAt = seen.news?.at ?? seed.status?.networkTriedAt;
    const before = conditionBefore('Seed', seed.status?.conditions, NETWORK_POLICIES_ENFORCED);
    const condition = seen.news ? conditionOf(seen.news.result) : (before ?? NOT_TRIED);
    const dueAt = dueTime(triedAt, condition, seen);
    if (now >= dueAt && !seen.isTrying) {
      seen.isTrying = true;
      void this.#try(name, key, client, signal);
    }
    return {
      condition,
      ...(triedAt && { triedAt }),
      requeueAfterMs: seen.isTrying ? RENEW_MS : Math.max(1_000, dueAt - now),
    };
  }

  async #try(name: string, key: string, client: KubeClient, signal: AbortSignal): Promise<void> {
    const { attempt = tryNetworkPolicies, gardenID, now, news, log } = this.#options;
    const seen = this.#seen.get(key)!;
    try {
      const result = await attempt({ client, gardenID, signal });
      seen.news = { result, at: now().toISOString() };
      seen.failures = result.enforced === 'Unknown' ? seen.failures + 1 : 0;
      log.info({ seed: name, ...result }, 'it was tried whether the network of a seed enforces NetworkPolicies');
      news(name);
    } catch {
      // Only an abort rejects: the operator is shutting down.
    } finally {
      seen.isTrying = false;
    }
  }
}

/** Time of the next trial, ms. */
function dueTime(
  triedAt: string | undefined,
  { status }: Pick<Said<'Seed'>, 'status'>,
  { since, failures }: Pick<Seen, 'since' | 'failures'>,
): number {
  if (triedAt === undefined) return since + FIRST_MS;
  const again = failures > SOON_TIMES ? AGAIN_MS : SOON_MS * 3 ** Math.max(0, failures - 1);
  return Date.parse(triedAt) + (status === 'Unknown' ? again : RENEW_MS);
}

const NOT_TRIED = say(
  NETWORK_POLICIES_ENFORCED,
  'Unknown',
  'NotTried',
  'nobody has tried yet whether the network of the seed enforces NetworkPolicies; the operator does so half a minute after it first reaches a seed',
);

/** Condition of a trial's result on the Seed. Pure. */
function conditionOf(result: TrialResult): Said<'Seed'> {
  const type = NETWORK_POLICIES_ENFORCED;
  if (result.enforced === 'Unknown')
    return say(
      type,
      'Unknown',
      'CouldNotTry',
      `the operator could not try whether the network of the seed enforces NetworkPolicies: ${result.because}. It tries again within ten minutes at first, later once an hour`,
    );
  return result.enforced
    ? say(
        type,
        true,
        'Enforced',
        'a test showed that the network enforces NetworkPolicies: control planes of different clusters are isolated from each other',
      )
    : say(
        type,
        false,
        'NotEnforced',
        'a pod reached another one although a NetworkPolicy forbade it: pods of all clusters in this seed reach each other. Install a network plugin that enforces NetworkPolicies',
      );
}
