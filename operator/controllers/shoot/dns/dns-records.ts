import { isDeepStrictEqual } from 'node:util';
import type { WantedName } from '../../../accounts/dns-account.ts';
import { CoppiceError, dependencyNotReady, errorText } from '../../../api/errors.ts';
import { keyOf } from '../../../kube/resources.ts';
import type { ControlPlane } from '../../../shoot/values.ts';
import { spreadInterval } from '../../spread.ts';
import type { Operation } from '../operation.ts';
import type { ShootState } from '../state.ts';
import { recordOf } from './dns-names.ts';
import {
  type DNSOutcome,
  type DNSState,
  nextLook,
  outcomeOf,
  passesByItself,
  rememberedOutcomes,
} from './dns-outcome.ts';

/** Timeout for deleting one record, milliseconds: all together must fit into their task. */
const REMOVAL_MS = 20_000;

/** Timeout of one record's check and change, milliseconds. */
const PATIENCE_MS = 60_000;

/**
 * Parallel record checks, in total and per account: a restarted operator checks all of them, and Route 53 allows five
 * requests per second and account ("Quotas", Amazon Route 53 Developer Guide). Waiting for a turn does not count as a
 * timeout.
 */
export const DNS_LOOKS = { total: 20, perGroup: 2 } as const;

/** How long a cloud that refuses the deletion of records may block a cluster's deletion, milliseconds. */
const GIVE_UP_MS = 10 * 60_000;

/** Address of the API server outside of the seed. */
const targetOf = ({ endpoint, addresses }: Pick<ControlPlane, 'endpoint' | 'addresses'>): string =>
  endpoint?.host ?? addresses.apiServer;

/** Results for the desired names. */
export const outcomesOf = ({ state, shoot, names }: Pick<Operation, 'state' | 'shoot' | 'names'>): DNSOutcome[] =>
  state.dns?.outcomes.filter(({ host }) => names.some((name) => name.host === host)) ??
  rememberedOutcomes(shoot, names);

/** Names with verified records. */
export const readyNames = (op: Pick<Operation, 'state' | 'shoot' | 'names'>): DNSOutcome[] =>
  outcomesOf(op).filter(({ ready }) => ready);

/**
 * Starts the update of the records if due, without awaiting it, so that a cloud's failure blocks nothing. The result is
 * stored in state.dns, and the shoot is requeued then.
 */
export async function beginRecords(op: Operation): Promise<void> {
  const { names, state, deps, shoot } = op;
  if (names.length === 0) {
    await endRecords(state);
    state.dns = undefined;
    return;
  }
  const target = targetOf(op.values);
  const wish = JSON.stringify([names.map((name) => ({ ...name, problem: undefined })), target]);
  const known = state.dns;
  if (known?.wish === wish && (known.running || deps.now() < known.lookAt)) return;
  const outcomes = outcomesOf(op);
  await endRecords(state);
  const same = known?.wish === wish;
  const next: DNSState = {
    wish,
    abort: new AbortController(),
    outcomes,
    failures: same ? known.failures : 0,
    lookAt: deps.now(),
  };
  state.dns = next;
  next.running = look(op, target, next).finally(() => {
    next.running = undefined;
    if (!next.abort.signal.aborted) deps.again(shoot);
  });
}

/** Aborts a running check. */
export async function endRecords(state: ShootState): Promise<void> {
  state.dns?.abort.abort(new Error('the wanted DNS records have changed meanwhile'));
  await state.dns?.running;
}

async function look(op: Operation, target: string, state: DNSState): Promise<void> {
  const { deps, shoot, names } = op;
  const outcomes = await Promise.all(
    names.map(async (name) => {
      const known = state.outcomes.find(({ host }) => host === name.host);
      // The target has changed: the old result does not count.
      const moved = known?.target !== undefined && known.target !== target;
      const before = moved ? { ...known, ready: false } : known;
      try {
        await keepRecord(op, name, target, state.abort.signal);
        return outcomeOf(name, { target }, before, 0);
      } catch (error) {
        return outcomeOf(name, { error }, before, state.failures);
      }
    }),
  );
  if (state.abort.signal.aborted) return;
  for (const { host, problem } of outcomes) {
    const before = state.outcomes.find((one) => one.host === host)?.problem;
    const said = before?.quiet ? undefined : before?.message;
    if (!problem || problem.quiet || problem.message === said) continue;
    deps.recordEvent(shoot, 'Warning', 'DNSRecordNotReady', problem.message);
    deps.log.warn({ shoot: keyOf(shoot), host }, problem.message);
  }
  const failed = outcomes.some(({ problem }) => problem);
  state.failures = failed ? state.failures + 1 : 0;
  state.lookAt = new Date(+deps.now() + spreadInterval(nextLook(outcomes, state.failures), names[0]?.host ?? ''));
  if (!isDeepStrictEqual(state.outcomes, outcomes)) state.outcomes = outcomes;
}

async function keepRecord(op: Operation, name: WantedName, target: string, ending: AbortSignal): Promise<void> {
  const { dns, ctx } = await inTime(ending, (signal) => op.deps.dns(op.shoot, name, signal));
  const tenant = op.shoot.metadata.namespace ?? '';
  const done = await op.deps.dnsTurns.acquire({ tenant, group: ctx.account.id, exclusive: name.host }, ending);
  try {
    await inTime(ending, async (signal) => {
      const call = { ...ctx, signal };
      const zone = await dns.zoneOf(call, name.host, name.choice);
      if (!zone) throw noZone(name);
      await dns.ensure(call, zone, recordOf(name.host, target));
    });
  } finally {
    done();
  }
}

async function inTime<T>(ending: AbortSignal, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const patience = AbortSignal.timeout(PATIENCE_MS);
  try {
    return await work(AbortSignal.any([ending, patience]));
  } catch (error) {
    if (patience.aborted && !ending.aborted) throw dependencyNotReady('its DNS provider did not answer in time', error);
    throw error;
  }
}

const noZone = ({ host, provider }: WantedName): CoppiceError =>
  new CoppiceError('ERR_CONFIGURATION_PROBLEM', `no DNS zone of the account (provider ${provider}) has it`, {
    advice: `Make a zone for a domain that ${host} ends with, or name credentials of the account that has it.`,
  });

/**
 * Deletes the records of a deleted shoot. When the cloud refuses permanently (credentials, permissions or provider are
 * gone), or for ten minutes, they stay and an Event says so: a name must not keep a cluster for ever. Rejects while a
 * retry may help.
 */
export async function removeRecords(op: Operation, ending: AbortSignal): Promise<void> {
  const { names, state, deps, shoot } = op;
  await endRecords(state);
  const outcomes: DNSOutcome[] = [];
  let again: unknown;
  const since = Date.parse(shoot.metadata.deletionTimestamp ?? '');
  const late = +deps.now() - since > GIVE_UP_MS;
  for (const name of names) {
    try {
      const signal = AbortSignal.any([ending, AbortSignal.timeout(REMOVAL_MS)]);
      const { dns, ctx } = await deps.dns(shoot, name, signal);
      // A deleted zone has no records.
      const zone = await dns.zoneOf(ctx, name.host, name.choice);
      if (zone) await dns.remove(ctx, zone, name.host);
    } catch (error) {
      ending.throwIfAborted();
      const codes = error instanceof CoppiceError ? [error.code] : [];
      if (!late && passesByItself(codes) && codes[0] !== 'ERR_RETRYABLE_CONFIGURATION_PROBLEM') {
        again = error;
        continue;
      }
      const message = `the record of ${name.host} may be left behind: ${errorText(error)}`;
      outcomes.push({ host: name.host, domain: name.domain, ready: false, problem: { message, codes } });
      deps.recordEvent(shoot, 'Warning', 'DNSRecordLeftBehind', message);
      deps.log.warn({ shoot: keyOf(shoot), host: name.host }, message);
    }
  }
  state.dns = { wish: '', abort: new AbortController(), outcomes, failures: 0, lookAt: deps.now() };
  // Retry any temporary error, including throttling.
  if (again) throw dependencyNotReady(errorText(again), again);
}
