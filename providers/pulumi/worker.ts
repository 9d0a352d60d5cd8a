/**
 * Process for programs, apart from the operator: effects of a program or an SDK (handlers for uncaught errors, memory
 * leaks, crashes) stay here. Started by worker-process.ts.
 */
import { pathToFileURL } from 'node:url';
import { LocalWorkspace, Stack } from '@pulumi/pulumi/automation/index.js';
import type { Programs } from './program.ts';
import { runEventOf } from './run-events.ts';
import { removeLocks } from './stack-locks.ts';
import type { StackState } from './stack-state.ts';
import { automationCommand, EngineFailure, isNoStack, runEngine } from './worker-engine.ts';
import type { FromWorker, StackPlace, ToWorker, WorkerTask } from './worker-protocol.ts';

// State of file:// backends and other files: readable by the owner only.
process.umask(0o077);

const send = (message: FromWorker): void => {
  if (process.connected) process.send!(message);
};

let underWay: { id: number; stopping: AbortController } | undefined;

process.on('message', (message: ToWorker) => {
  if ('stop' in message) {
    if (underWay?.id === message.stop) underWay.stopping.abort();
    return;
  }
  void attempt(message.id, message.place, message.task);
});

// The operator is gone: end gracefully, so that no lock and no half-made resource is left.
process.on('disconnect', () => {
  if (underWay) underWay.stopping.abort();
  else process.exit(0);
});

async function attempt(id: number, place: StackPlace, task: WorkerTask): Promise<void> {
  const stopping = new AbortController();
  underWay = { id, stopping };
  const rss = () => process.memoryUsage.rss();
  try {
    const value = await perform(id, place, task, stopping.signal);
    send({ id, ok: true, value, rss: rss() });
  } catch (error) {
    const { kind, output } =
      error instanceof EngineFailure ? error : { kind: 'program' as const, output: String(error) };
    send({ id, ok: false, kind, output, rss: rss() });
  } finally {
    underWay = undefined;
    if (!process.connected) process.exit(0);
  }
}

async function perform(id: number, place: StackPlace, task: WorkerTask, signal: AbortSignal): Promise<unknown> {
  const stack = ['--stack', place.stackName];
  switch (task.do) {
    case 'export':
      return runEngine(place, ['stack', 'export', ...stack], { signal }).then(
        ({ stdout }) => JSON.parse(stdout) as StackState,
        (error) => {
          if (isNoStack(error)) return undefined;
          throw error;
        },
      );
    case 'init': {
      const provider = place.secretsProvider ? ['--secrets-provider', place.secretsProvider] : [];
      // Selecting writes a file that all stacks share, and races.
      await runEngine(place, ['stack', 'init', place.stackName, '--no-select', ...provider], { signal });
      return undefined;
    }
    case 'import':
      await runEngine(place, ['stack', 'import', ...stack], { signal, input: JSON.stringify(task.state) });
      return undefined;
    case 'unlock':
      await runEngine(place, ['cancel', '--yes', ...stack], { signal }).catch((error: unknown) => {
        // A worker killed while creating the stack left only a lock, and the engine unlocks existing stacks only.
        if (!isNoStack(error)) throw error;
        removeLocks(place);
      });
      return undefined;
    case 'outputs':
      return JSON.parse(
        (await runEngine(place, ['stack', 'output', '--json', '--show-secrets', ...stack], { signal })).stdout,
      );
    case 'remove':
      await runEngine(place, ['stack', 'rm', place.stackName, '--yes', '--remove-backups'], { signal });
      return undefined;
    case 'run':
      return runProgram(id, place, task, signal);
  }
}

async function runProgram(
  id: number,
  place: StackPlace,
  task: WorkerTask & { do: 'run' },
  signal: AbortSignal,
): Promise<void> {
  const { programs } = (await import(pathToFileURL(task.programs).href)) as { programs: Programs };
  const program = programs[task.program.layer];
  if (!program) throw new Error(`${task.program.provider} has no program for the layer ${task.program.layer}`);
  const workspace = await LocalWorkspace.create({
    workDir: place.workDir,
    pulumiHome: place.environment.PULUMI_HOME,
    envVars: place.environment,
    pulumiCommand: automationCommand(place, signal),
    program: async () => program(task.inputs),
  });
  const stack = await Stack.select(place.stackName, workspace);
  await stack[task.command]({
    color: 'never',
    suppressOutputs: true,
    suppressProgress: true,
    ...(task.refresh && { refresh: true }),
    ...(task.targets && { target: task.targets }),
    onEvent: (event) => {
      const told = runEventOf(event);
      if (told) send({ id, event: told });
    },
  });
}

send({ ready: true });
