import type { WantedName } from '../../../accounts/dns-account.ts';
import { CoppiceError, errorText, isRetryable } from '../../../api/errors.ts';
import type { Shoot } from '../../../api/shoot.ts';
import { conditionBefore, type Said, say } from '../../conditions.ts';

const DNS_RECORDS_READY = 'DNSRecordsReady';

/** Result for one name. */
export interface DNSOutcome {
  host: string;
  domain: WantedName['domain'];
  /** Whether its record was verified and is not disproved since. */
  ready: boolean;
  /** Target of a correct record. */
  target?: string;
  /** `quiet`: not reported yet. */
  problem?: { message: string; codes: string[]; quiet?: true };
}

/** Memory about a shoot's records between reconciles. */
export interface DNSState {
  /** Key of the desired records. */
  readonly wish: string;
  readonly abort: AbortController;
  outcomes: DNSOutcome[];
  failures: number;
  lookAt: Date;
  /** Settles when the running check has ended. */
  running?: Promise<void> | undefined;
}

/** Errors that disprove an earlier success: a foreign record, or none possible. */
const DISPROVES: readonly string[] = ['ERR_INFRA_DEPENDENCIES', 'ERR_CONFIGURATION_PROBLEM'];

const MINUTE = 60_000;
/** Interval of checks, because others may change records. */
const LOOK_AGAIN_MS = 60 * MINUTE;
/** Back-off: causes are fixed outside of our sight (a zone is made, a foreign record removed, a permission granted). */
const MOST_BACKOFF_MS = 5 * MINUTE;
const FIRST_BACKOFF_MS = 5_000;

/**
 * Failures of an earlier correct record that are not reported yet: clouds throttle a restarted operator that checks all
 * clusters.
 */
const QUIET_FAILURES = 3;

/** Result of an attempt for a name. `before`: previous result; `failures`: earlier failed attempts. Pure. */
export function outcomeOf(
  { host, domain }: Pick<WantedName, 'host' | 'domain'>,
  result: { target: string } | { error: unknown },
  before: DNSOutcome | undefined,
  failures: number,
): DNSOutcome {
  if ('target' in result) return { host, domain, ready: true, target: result.target };
  const { error } = result;
  const codes = error instanceof CoppiceError ? [error.code] : [];
  const ready = before?.ready === true && !codes.some((code) => DISPROVES.includes(code));
  const quiet =
    ready && passesByItself(codes) && failures < QUIET_FAILURES && !(before.problem && !before.problem.quiet);
  return {
    host,
    domain,
    ready,
    ...(ready && before.target !== undefined && { target: before.target }),
    problem: { message: `${host}: ${errorText(error)}`, codes, ...(quiet && { quiet }) },
  };
}

/** Whether a retry may succeed: rate limits pass by themselves. */
export const passesByItself = (codes: readonly string[]): boolean =>
  isRetryable(codes) || codes.includes('ERR_INFRA_RATE_LIMITS_EXCEEDED');

/** Delay until the next check of the records, milliseconds. `failures`: failed attempts so far. Pure. */
export function nextLook(outcomes: readonly DNSOutcome[], failures: number): number {
  const problems = outcomes.flatMap(({ problem }) => problem ?? []);
  if (problems.length === 0) return LOOK_AGAIN_MS;
  const soon = problems.some(({ codes }) => passesByItself(codes));
  return soon ? Math.min(MOST_BACKOFF_MS, FIRST_BACKOFF_MS * 2 ** Math.min(failures - 1, 10)) : MOST_BACKOFF_MS;
}

/** Results from the status, for a restarted operator, so that it writes nothing that is written already. Pure. */
export function rememberedOutcomes(shoot: Shoot, names: readonly WantedName[]): DNSOutcome[] {
  const told = shoot.status?.advertisedAddresses ?? [];
  return names.map(({ host, domain }) => {
    const ready = told.some(({ name, url }) => name === domain && URL.parse(url)?.hostname === host);
    return { host, domain, ready };
  });
}

/** Condition DNSRecordsReady; undefined without names. Pure. */
export function recordsCondition(outcomes: readonly DNSOutcome[], shoot: Shoot): Said<'Shoot'> | undefined {
  if (outcomes.length === 0) return undefined;
  const problems = outcomes.flatMap(({ problem }) => (problem && !problem.quiet ? problem : []));
  if (problems.length > 0) {
    const codes = [...new Set(problems.flatMap((problem) => problem.codes))];
    const message = problems.map((problem) => problem.message).join('; ');
    return say(DNS_RECORDS_READY, false, 'RecordsNotReady', message, codes);
  }
  if (outcomes.every(({ target }) => target !== undefined)) {
    const message = outcomes.map(({ host, target }) => `${host} points to ${target}`).join('; ');
    return say(DNS_RECORDS_READY, true, 'RecordsReady', message);
  }
  // Not checked since the restart: keep the last condition.
  const before = conditionBefore('Shoot', shoot.status?.conditions, DNS_RECORDS_READY);
  return before ?? say(DNS_RECORDS_READY, 'Unknown', 'InProgress', 'the DNS records are being checked');
}
