import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import type { ProgramRef, Programs } from '../../../providers/pulumi/program.ts';
import { STACK_TYPE, type StackState, stackResourcesOf } from '../../../providers/pulumi/stack-state.ts';
import { type RunTaskOptions, TaskFailure } from '../../../providers/pulumi/worker-process.ts';
import type { StackPlace, WorkerTask } from '../../../providers/pulumi/worker-protocol.ts';
import type { StackWorker, Workers } from '../../../providers/pulumi/workers.ts';
import { aws } from '../cloud/aws/model.ts';
import { azure } from '../cloud/azure/model.ts';
import type { PluginHost } from '../cloud/gate.ts';
import { gcp } from '../cloud/gcp/model.ts';
import type { FakeCloud } from '../cloud/index.ts';
import type { CloudModel } from '../cloud/model.ts';
import { createOperations } from '../cloud/operations.ts';
import { type CloudProvider, createProvider } from '../cloud/provider.ts';
import { openStore } from '../cloud/store.ts';
import { inTheClear, runProgram } from './program.ts';
import { StackRun } from './run.ts';
import { StateFile } from './state-files.ts';

const MODELS: Record<ProgramRef['provider'], CloudModel> = { aws, gcp, azure };

/**
 * Workers for a PulumiRunner that run programs in this process, over the fake cloud's operations, in milliseconds: see StackRun for
 * what they can do of what an engine does. All around the engine is the product's own: what is looked for, adopted, settled, told.
 */
export class InProcessWorkers implements Workers {
  readonly pids: number[] = [];
  readonly #cloud: FakeCloud;

  constructor(cloud: FakeCloud) {
    this.#cloud = cloud;
  }

  async acquire(affinity: string): Promise<StackWorker> {
    return { run: (place, task, options) => this.#run(affinity as ProgramRef['provider'], place, task, options) };
  }

  release(): void {}

  async close(): Promise<void> {}

  async #run(
    name: ProgramRef['provider'],
    place: StackPlace,
    task: WorkerTask,
    options: RunTaskOptions,
  ): Promise<unknown> {
    options.signal?.throwIfAborted();
    const file = new StateFile(place.environment.PULUMI_BACKEND_URL!, place.stackName);
    const state = file.read();
    if (task.do === 'export') return state;
    if (task.do === 'init') {
      if (state) throw new TaskFailure('engine', `error: stack '${place.stackName}' already exists`);
      return file.write({ version: 3, deployment: { resources: [] } });
    }
    if (!state) throw new TaskFailure('engine', `error: no stack named '${place.stackName}' found`);
    switch (task.do) {
      case 'import':
        return file.write(task.state);
      case 'unlock':
        return undefined;
      case 'outputs':
        return inTheClear(stackResourcesOf(state).find(({ type }) => type === STACK_TYPE)?.outputs);
      case 'remove':
        if (stackResourcesOf(state).length > 0)
          throw new TaskFailure('engine', `error: '${place.stackName}' still has resources; removal rejected`);
        return file.remove();
      case 'run':
        return this.#runOn(state, file, name, place, task, options);
    }
  }

  async #runOn(
    state: StackState,
    file: StateFile,
    name: ProgramRef['provider'],
    place: StackPlace,
    task: WorkerTask & { do: 'run' },
    { onEvent = () => {}, signal = new AbortController().signal }: RunTaskOptions,
  ): Promise<void> {
    const isPlan = task.command === 'preview';
    const { provider, problem } = this.#open(MODELS[name], place.environment, signal, () => run.kill());
    const run = new StackRun({ resources: stackResourcesOf(state), provider, isPlan, onEvent, signal });
    const save = () => {
      const { resources, pending } = run.state;
      file.write({ ...state, deployment: { ...state.deployment, resources, pending_operations: pending } });
      file.noteRun();
    };
    try {
      await run.whole(async () => {
        if (task.command === 'refresh' || task.refresh) await run.refresh(task.targets);
        if (task.command === 'refresh') return;
        if (task.command !== 'destroy') {
          if (problem !== undefined) run.fail(`pulumi:providers:${name} resource 'default' has a problem: ${problem}`);
          const { programs } = (await import(pathToFileURL(task.programs).href)) as { programs: Programs };
          const program = programs[task.program.layer]!;
          // A copy: over IPC, a program has one as well.
          const inputs: unknown = JSON.parse(JSON.stringify(task.inputs));
          await runProgram(() => program(inputs), { stack: place.stackName, isPlan }, run);
        }
        await run.takeAwayTheRest();
      });
    } catch (error) {
      if (!isPlan) save();
      if (run.isKilled) throw new TaskFailure('killed', 'the engine was ended by SIGKILL');
      throw new TaskFailure('engine', (error as Error).message);
    }
    if (!isPlan) save();
  }

  /** The provider as a plugin is that was started for this run; `problem`: why its configuration cannot be. */
  #open(
    model: CloudModel,
    environment: Record<string, string>,
    signal: AbortSignal,
    killEngine: () => void,
  ): { provider: CloudProvider; problem: string | undefined } {
    const store = openStore(this.#cloud.dir);
    const settings = model.settings({}, environment);
    const host: PluginHost = {
      now: Date.now,
      sleep: (ms) =>
        sleep(ms, undefined, { signal }).catch(() => {
          throw new Error('context canceled');
        }),
      exit: () => {
        throw new Error('error reading from server: EOF');
      },
      killEngine,
    };
    return {
      provider: createProvider(
        model,
        createOperations(model, store, () => settings, host),
      ),
      problem: model.checkConfiguration(settings, model.accountOf(settings, store.accounts())),
    };
  }
}
