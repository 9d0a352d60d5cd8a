import type { WantedName } from '../../../accounts/dns-account.ts';
import { CoppiceError, errorText, isRetryable } from '../../../api/errors.ts';
import type { Shoot } from '../../../api/shoot.ts';
import { conditionBefore, type Said, say } from '../../conditions.ts';

const DNS_RECORDS_READY = 'DNSRecordsReady';

/** What became of one name. */
export interface DNSOutcome {
  host: string;
  domain: WantedName['domain'];
  /** Whether its record was seen to be right, and nothing is known against it since. */
  ready: boolean;
  /** Where it leads, while it is right. */
  target?: string;
  /** `quiet`: not worth telling yet. */
  problem?: { message: string; codes: string[]; quiet?: true };
}

/** What the operator remembers of a shoot's records between reconciles. */
export interface DNSState {
  /** What the records are wanted to be like. */
  readonly wish: string;
  readonly abort: AbortController;
  outcomes: DNSOutcome[];
  failures: number;
  lookAt: Date;
  /** Settles when the look that is under way has ended. */
  running?: Promise<void> | undefined;
}

/** Something else than ours answers to the name, or nothing can: what was right before no longer is. */
const DISPROVES: readonly string[] = ['ERR_INFRA_DEPENDENCIES', 'ERR_CONFIGURATION_PROBLEM'];

const MINUTE = 60_000;
/** Somebody may have changed the record. */
const LOOK_AGAIN_MS = 60 * MINUTE;
/** What is wrong is put right outside of our sight: a zone is made, a foreign record goes, a permission is granted. */
const MOST_BACKOFF_MS = 5 * MINUTE;
const FIRST_BACKOFF_MS = 5_000;

/**
 * As many tries in vain of what was right before are nobody's news: clouds throttle operators that look at all clusters at once, as
 * one does that has just started.
 */
const QUIET_FAILURES = 3;

/** What an attempt says of a name. `before`: what was known of it; `failures`: how often it was tried in vain before. Pure. */
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

/** Whether trying again soon may help: rate limits pass by themselves. */
export const passesByItself = (codes: readonly string[]): boolean =>
  isRetryable(codes) || codes.includes('ERR_INFRA_RATE_LIMITS_EXCEEDED');

/** When to look at the records the next time, in milliseconds. `failures`: how often it was tried in vain by now. Pure. */
export function nextLook(outcomes: readonly DNSOutcome[], failures: number): number {
  const problems = outcomes.flatMap(({ problem }) => problem ?? []);
  if (problems.length === 0) return LOOK_AGAIN_MS;
  const soon = problems.some(({ codes }) => passesByItself(codes));
  return soon ? Math.min(MOST_BACKOFF_MS, FIRST_BACKOFF_MS * 2 ** Math.min(failures - 1, 10)) : MOST_BACKOFF_MS;
}

/** The outcomes that the status tells of, for an operator that has just started: it need not write what is written. Pure. */
export function rememberedOutcomes(shoot: Shoot, names: readonly WantedName[]): DNSOutcome[] {
  const told = shoot.status?.advertisedAddresses ?? [];
  return names.map(({ host, domain }) => {
    const ready = told.some(({ name, url }) => name === domain && URL.parse(url)?.hostname === host);
    return { host, domain, ready };
  });
}

/** Condition DNSRecordsReady; undefined where there are no names of ours. Pure. */
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
  // Not looked at yet since the operator started: the last word stands.
  const before = conditionBefore('Shoot', shoot.status?.conditions, DNS_RECORDS_READY);
  return before ?? say(DNS_RECORDS_READY, 'Unknown', 'InProgress', 'the DNS records are being checked');
}
