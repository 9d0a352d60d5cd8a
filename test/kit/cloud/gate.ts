import { type Failure, latencyOf, nextFailure, readFaults, takeRequest } from './faults.ts';
import type { Attempt, Caller, CloudModel, Settings } from './model.ts';
import { lackedOf, neededBy } from './needs/index.ts';
import type { Store } from './store.ts';

/** The cloud's answer is an error; the message is what the provider plugin prints. */
export class CloudError extends Error {
  override readonly name = 'CloudError';
}

/** What the plugin touches besides the store. */
export interface PluginHost {
  now(): number;
  /** Rejects when the plugin is told to stop (Pulumi's Cancel). */
  sleep(ms: number): Promise<void>;
  /** Ends the plugin's process without another word. */
  exit(): never;
  /** Kills the engine that started the plugin. */
  killEngine(): void;
}

export interface Gate {
  /** Lets a request in, or says as the cloud would why not; `work` does what was asked for. */
  request<T>(attempt: Omit<Attempt, 'caller'>, work: (admitted: Admitted) => Promise<T>): Promise<T>;
}

/** A request that was let in. */
export interface Admitted {
  attempt: Attempt & { caller: Caller };
  /** How long the cloud takes for it, milliseconds. */
  latencyMs: number;
  /** To be called when the cloud has done it: throws or ends the process if that is the fault of the hour. */
  done: (onPartial: (message: string) => never) => Promise<void>;
}

// As often as a real provider's back-off tries at the beginning.
const RETRY_MS = 50;

/** Checks that stand before every operation: credentials, throttling, permissions, regions, and the failures that a test wants. */
export function createGate(model: CloudModel, store: Store, settings: () => Settings, host: PluginHost): Gate {
  const callerOf = (attempt: Attempt): Caller => {
    const known = settings();
    const account = model.accountOf(known, store.accounts());
    if (!account || readFaults(store).revoked?.includes(account.key)) {
      throw new CloudError(model.errors.unauthenticated(attempt));
    }
    return {
      account: account.id,
      principal: account.principal,
      region: known.region,
      defaultTags: known.defaultTags,
    };
  };

  const throttle = async (attempt: Attempt, account: string): Promise<void> => {
    const deadline = host.now() + (readFaults(store).throttle?.retryForMs ?? 0);
    for (;;) {
      const limit = readFaults(store).throttle;
      if (!limit || (await takeRequest(store, account, limit.perSecond, host.now()))) return;
      if (host.now() >= deadline) throw new CloudError(model.errors.throttled(attempt));
      await host.sleep(RETRY_MS);
    }
  };

  const strike = async (
    attempt: Attempt,
    when: Failure['when'],
    log: (outcome: string) => void,
    onPartial: (message: string) => never,
  ): Promise<void> => {
    const failure = await nextFailure(store, { ...attempt, when });
    if (!failure) return;
    const message = failure.message ?? model.errors.internal(attempt);
    if (failure.how === 'error') throw new CloudError(message);
    if (failure.how === 'partial') onPartial(message);
    if (failure.how === 'engine') return host.killEngine();
    log('lost');
    host.exit();
  };

  const neverPartial = (message: string): never => {
    throw new CloudError(message);
  };

  return {
    async request(anonymous, work) {
      const log = store.logRequest({
        cloud: model.name,
        account: model.accountOf(settings(), store.accounts())?.id ?? '',
        ...anonymous,
      });
      try {
        const caller = callerOf(anonymous);
        const attempt = { ...anonymous, caller };
        await throttle(attempt, caller.account);
        const faults = readFaults(store);
        if (faults.closedRegions?.includes(attempt.region)) throw new CloudError(model.errors.closed(attempt));
        if (faults.denied?.includes(model.errors.action(attempt))) throw new CloudError(model.errors.denied(attempt));
        const lacked = lackedOf(store, model.name, neededBy(model.name, attempt));
        if (lacked) throw new CloudError(`${model.errors.denied(attempt)} [no list of permissions has ${lacked}]`);
        await strike(attempt, 'before', log, neverPartial);
        const result = await work({
          attempt,
          latencyMs: latencyOf(faults, attempt.type, attempt.operation),
          done: (onPartial) => strike(attempt, 'after', log, onPartial),
        });
        log('ok');
        return result;
      } catch (error) {
        log(error instanceof Error ? error.message : String(error));
        throw error;
      }
    },
  };
}
