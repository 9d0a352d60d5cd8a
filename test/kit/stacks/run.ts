import { randomBytes } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { RunEvent, RunReport } from '../../../providers/pulumi/run-events.ts';
import { isInCloud, type pendingOf, type StateResource } from '../../../providers/pulumi/stack-state.ts';
import type { Properties } from '../cloud/model.ts';
import { PartialFailure } from '../cloud/operations.ts';
import { withMarks } from '../cloud/property-values.ts';
import type { CloudProvider } from '../cloud/provider.ts';
import { ignoring, masked, topOf } from './changes.ts';
import { inTheClear, type Monitor, type Registration } from './program.ts';

type PendingOperation = ReturnType<typeof pendingOf>[number];

type RunStep = RunReport['failed'][number];

interface RunOptions {
  resources: readonly StateResource[];
  provider: CloudProvider;
  /** Tells what would be done, and does nothing. */
  isPlan: boolean;
  onEvent: (event: RunEvent) => void;
  /** Ends the run when what is under way is done. */
  signal: AbortSignal;
}

const never = <T>(): Promise<T> => new Promise(() => {});
const CREATING = ['create', 'create-replacement'];

/** What a state keeps while a step is under way, for those who find it after a crash. */
const PENDING: Record<string, PendingOperation['type']> = {
  create: 'creating',
  'create-replacement': 'creating',
  update: 'updating',
  delete: 'deleting',
  'delete-replaced': 'deleting',
};

/**
 * One run on the resources of a stack, as Pulumi's engine does it (pkg/resource/deploy: step generator and executor), as far as our
 * programs need it: same, create, update, replace, delete, refresh, ignored changes, failures, an end asked for, and its own death.
 * What it does not do: providers as resources, aliases, imports, protection, and replacing what depends on something that is replaced.
 */
export class StackRun implements Monitor {
  readonly #options: RunOptions;
  #base: StateResource[];
  readonly #news: StateResource[] = [];
  readonly #seen = new Set<string>();
  readonly #pending = new Map<string, PendingOperation>();
  readonly #underWay = new Set<Promise<unknown>>();
  readonly #over = Promise.withResolvers<never>();
  #isOver = false;
  #atDeath: { resources: StateResource[]; pending: PendingOperation[] } | undefined;

  constructor(options: RunOptions) {
    this.#options = options;
    this.#base = [...options.resources];
    this.#over.promise.catch(() => {});
    options.signal.addEventListener('abort', () => this.#end(new Error('the run was canceled')), { once: true });
  }

  get isKilled(): boolean {
    return this.#atDeath !== undefined;
  }

  /** What the state has now; of a run that was killed, what it had then. */
  get state(): { resources: StateResource[]; pending: PendingOperation[] } {
    return (
      this.#atDeath ?? {
        resources: [...this.#news, ...this.#base],
        pending: structuredClone([...this.#pending.values()]),
      }
    );
  }

  /** What is under way in the cloud goes on there; nothing more becomes known of it here. */
  kill(): void {
    this.#atDeath ??= this.state;
    this.#end(new Error('the run was killed'));
  }

  /** Does it, and waits for all steps. Rejects when one has failed, or the run was ended. */
  async whole(work: () => Promise<void>): Promise<void> {
    try {
      if (this.#options.signal.aborted) this.#end(new Error('the run was canceled'));
      await Promise.race([work(), this.#over.promise]);
    } finally {
      if (!this.isKilled) await Promise.all(this.#underWay);
    }
  }

  /** Nothing more is begun. Who waits for something waits for ever: a program cannot go on without its engine. */
  #end(reason: Error): void {
    this.#isOver = true;
    this.#over.reject(reason);
  }

  /** Fails the run: by this text, on this resource if it is about one. */
  fail(text: string, urn?: string): void {
    this.#options.onEvent({ kind: 'error', text, ...(urn && { urn }) });
    this.#end(new Error(text));
  }

  /** Has what the state knows be as the cloud says. */
  async refresh(targets?: readonly string[]): Promise<void> {
    const { provider } = this.#options;
    const asked = this.#base.filter((one) => isInCloud(one) && (targets?.includes(one.urn) ?? true));
    await Promise.all(
      asked.map((old) =>
        this.#step('refresh', old, [], async (step) => {
          const [inputs, outputs] = [inTheClear(old.inputs), inTheClear(old.outputs)];
          const found = await provider.read(old.type, old.id!, outputs, inputs);
          const { initErrors: _, ...rest } = old;
          const now = found && {
            ...rest,
            id: found.id,
            ...this.#answered(old.type, found),
            inputs: withMarks(found.inputs),
          };
          const isSame = now && isDeepStrictEqual([inTheClear(now.inputs), inTheClear(now.outputs)], [inputs, outputs]);
          if (!isSame) step.isOutdated = true;
          this.#base = this.#base.flatMap((one) => (one === old ? (now ?? []) : one));
        }),
      ),
    );
  }

  /** Takes away what the state has and the program, if one was run, did not ask for. */
  async takeAwayTheRest(): Promise<void> {
    const doomed = this.#base.filter(({ urn, delete: isLeaving }) => isLeaving || !this.#seen.has(urn));
    const going = new Set(doomed.map(({ urn }) => urn));
    const left = doomed.reverse();
    while (left.length > 0) {
      const free = left.findIndex(({ urn }) => !left.some((other) => other.dependencies?.includes(urn)));
      const [old] = left.splice(Math.max(free, 0), 1);
      await this.#delete(old!, old!.delete ? 'delete-replaced' : 'delete', going);
    }
  }

  #delete(old: StateResource, operation: string, going: ReadonlySet<string>): Promise<void> {
    const staysOrGoesAlong = old.retainOnDelete === true || going.has(String(old.deletedWith));
    return this.#step(operation, old, [], async () => {
      if (isInCloud(old) && !staysOrGoesAlong && !this.#options.isPlan)
        await this.#options.provider.delete(old.type, old.id!, inTheClear(old.outputs));
      this.#base = this.#base.filter((one) => one !== old);
    });
  }

  async register(wanted: Registration): Promise<{ id?: string; outputs: Properties }> {
    const { urn, type, name, custom, parent, dependencies, retainOnDelete, deletedWith } = wanted;
    if (this.#isOver) return never();
    if (this.#seen.has(urn)) this.fail(`Duplicate resource URN '${urn}'; try giving it a unique name`, urn);
    this.#seen.add(urn);
    const old = this.#base.find((one) => one.urn === urn && !one.delete);
    const { provider } = this.#options;
    const check = (inputs: Properties, before: Properties) =>
      custom ? provider.check(type, name, inputs, before, randomBytes(16).toString('hex')) : inputs;
    const given = old ? ignoring(wanted.inputs, old.inputs ?? {}, wanted.ignoreChanges) : wanted.inputs;
    const next: StateResource = {
      urn,
      type,
      custom,
      inputs: check(given, old?.inputs ?? {}),
      dependencies,
      ...(parent && { parent }),
      ...(retainOnDelete && { retainOnDelete }),
      ...(deletedWith && { deletedWith }),
    };
    if (!old) return this.#create(next, 'create', []);
    if (!custom) return this.#keep(old, next);

    const { changes, deleteBeforeReplace } = provider.diff(type, inTheClear(old.inputs), inTheClear(next.inputs));
    const properties = [...new Set(changes.map(({ path }) => topOf(path)))];
    const isReplaced =
      changes.some(({ replaces }) => replaces) || properties.some((one) => wanted.replaceOnChanges.includes(one));
    if (!isReplaced) {
      const isWhole = properties.length === 0 && old.initErrors === undefined;
      return isWhole ? this.#keep(old, next) : this.#update(old, next, properties);
    }
    const successor = { ...next, inputs: check(given, {}) };
    if (wanted.deleteBeforeReplace ?? deleteBeforeReplace) await this.#delete(old, 'delete-replaced', new Set());
    else this.#base = this.#base.map((one) => (one === old ? { ...old, delete: true } : one));
    return this.#create(successor, 'create-replacement', properties);
  }

  #keep(old: StateResource, next: StateResource) {
    return this.#step('same', next, [], async () => this.#put(old, { ...next, ...madeOf(old) }));
  }

  #create(next: StateResource, operation: string, properties: string[]) {
    const { provider, isPlan } = this.#options;
    return this.#step(operation, next, properties, async () => {
      const inputs = inTheClear(next.inputs);
      if (!next.custom) return this.#put(undefined, { ...next, outputs: {} });
      if (isPlan) {
        const outputs = withMarks(provider.planCreate(next.type, inputs), provider.secrets(next.type));
        return this.#put(undefined, { ...next, outputs });
      }
      return this.#answer(undefined, next, () => provider.create(next.type, nameIn(next), inputs));
    });
  }

  #update(old: StateResource, next: StateResource, properties: string[]) {
    const { provider, isPlan } = this.#options;
    return this.#step('update', { ...next, ...madeOf(old) }, properties, async () => {
      const [known, inputs] = [inTheClear(old.outputs), inTheClear(next.inputs)];
      if (isPlan) {
        const outputs = withMarks(provider.planUpdate(known, inputs), provider.secrets(next.type));
        return this.#put(old, { ...next, ...madeOf(old), outputs });
      }
      return this.#answer(old, next, () => provider.update(next.type, old.id!, known, inputs));
    });
  }

  /** What the cloud answers goes into the state, also when it was not made well. */
  async #answer(
    old: StateResource | undefined,
    next: StateResource,
    ask: () => Promise<{ id: string; outputs: Properties }>,
  ) {
    try {
      const answer = await ask();
      return this.#put(old, { ...next, id: answer.id, ...this.#answered(next.type, answer) });
    } catch (error) {
      if (error instanceof PartialFailure) {
        const { answer, message } = error;
        this.#put(old, { ...next, id: answer.id, ...this.#answered(next.type, answer), initErrors: [message] });
      }
      throw error;
    }
  }

  #answered(type: string, { outputs }: { outputs: Properties }): Pick<StateResource, 'outputs'> {
    return { outputs: withMarks(outputs, this.#options.provider.secrets(type)) };
  }

  #put(old: StateResource | undefined, now: StateResource): { id?: string; outputs: Properties } {
    this.#base = this.#base.filter((one) => one !== old);
    this.#news.push(now);
    return { ...(now.id !== undefined && { id: now.id }), outputs: now.outputs ?? {} };
  }

  async invoke(token: string, args: Properties): Promise<Properties> {
    if (this.#isOver) return never();
    try {
      return await this.#options.provider.invoke(token, args);
    } catch (error) {
      const text = `invocation of ${token} returned an error: ${(error as Error).message}`;
      // That something is not there may be what the program wants to know; nothing else is for it to judge.
      if (/\b404\b|NotFound/.test(text)) throw new Error(text, { cause: error });
      this.fail(text);
      return never();
    }
  }

  outputs(urn: string, outputs: Properties): void {
    const component = this.#news.find((one) => one.urn === urn);
    if (component) component.outputs = withMarks(outputs);
    this.#options.onEvent({ kind: 'outputs', outputs: masked(withMarks(outputs)) as Properties });
  }

  /** One step, from when it is told to when it is done. It never ends when the run does before it. */
  async #step<T>(
    operation: string,
    resource: StateResource,
    properties: string[],
    work: (step: RunStep) => Promise<T>,
  ) {
    if (this.#isOver) return never<T>();
    const { onEvent, isPlan } = this.#options;
    const { urn, type, custom, parent, inputs } = resource;
    const step: RunStep = {
      operation,
      resource: {
        urn,
        type,
        custom,
        ...(parent && { parent }),
        ...(CREATING.includes(operation) && inputs && { inputs: masked(inputs) as Properties }),
      },
      properties,
    };
    const pending = PENDING[operation];
    if (pending && custom && !isPlan) this.#pending.set(urn, { type: pending, resource });
    onEvent({ kind: 'started', step });
    const doing = work(step).then(
      (result) => {
        if (this.isKilled) return undefined;
        this.#pending.delete(urn);
        onEvent({ kind: 'done', step });
        return result;
      },
      (error: Error) => {
        if (this.isKilled) return;
        this.#pending.delete(urn);
        onEvent({ kind: 'failed', step });
        this.fail(error.message, urn);
      },
    );
    this.#underWay.add(doing);
    const result = await doing;
    this.#underWay.delete(doing);
    return this.#isOver && result === undefined ? never<T>() : (result as T);
  }
}

const madeOf = ({ id, outputs }: StateResource): Pick<StateResource, 'id' | 'outputs'> => ({
  ...(id !== undefined && { id }),
  ...(outputs && { outputs }),
});

const nameIn = ({ urn }: StateResource): string => urn.split('::').slice(3).join('::');
