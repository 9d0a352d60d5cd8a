import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Readable } from 'node:stream';

/** A command that ended badly. */
export class CommandError extends Error {
  override readonly name = 'CommandError';
  readonly stderr: string;
  /** Whether the command was not found at all. */
  isNotInstalled = false;

  constructor(command: readonly string[], stderr: string, how: string) {
    const said = stderr.trim().split('\n').slice(-3).join('; ');
    super(`${command.join(' ')}: ${said || how}`);
    this.stderr = stderr;
  }
}

/** Commands of this process that have not ended. */
const running = new Set<ChildProcess>();
let isOver = false;

/**
 * Ends the commands of this process that still run, and lets no other begin: for a process that ends itself. They lead groups of their own,
 * so no signal to this process reaches them, and one that imports an image would outlive the garden by seconds.
 */
export async function endCommands(): Promise<void> {
  isOver = true;
  const ended = [...running].map((child) => once(child, 'exit'));
  for (const { pid } of running) {
    try {
      if (pid !== undefined) process.kill(-pid, 'SIGKILL');
    } catch {
      // It has ended, and is only not heard of yet.
    }
  }
  await Promise.allSettled(ended);
}

/** How a command is run. */
interface RunOptions {
  input?: string;
  /** Default: 60 s. */
  timeoutMs?: number;
  /** Takes standard output in place of the caller. The command is ended when that rejects. */
  output?: (stdout: Readable) => Promise<void>;
}

/** Runs a command to its end and resolves to its standard output. Throws CommandError when it fails or is not there. */
export function run(command: readonly string[], options: RunOptions = {}): Promise<string> {
  const [file = '', ...args] = command;
  if (isOver) return Promise.reject(new CommandError(command, '', 'the process that runs it ends'));
  return new Promise((resolve, reject) => {
    const child = spawn(file, args, {
      stdio: ['pipe', 'pipe', 'pipe'],
      timeout: options.timeoutMs ?? 60_000,
      // A Ctrl-C while a garden is stopped must not end in the middle what takes it down.
      detached: true,
    });
    running.add(child);
    child.once('exit', () => running.delete(child));
    let stdout = '';
    let stderr = '';
    const output = options.output?.(child.stdout).catch((error: Error) => {
      child.kill('SIGKILL');
      reject(error);
    });
    if (!output)
      child.stdout.setEncoding('utf8').on('data', (text: string) => {
        stdout += text;
      });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      stderr += text;
    });
    child.on('error', (error: NodeJS.ErrnoException) => {
      const failure = new CommandError(command, '', error.message);
      failure.isNotInstalled = error.code === 'ENOENT';
      running.delete(child);
      reject(failure);
    });
    child.on('close', (code, signal) => {
      if (code === 0) void Promise.resolve(output).then(() => resolve(stdout));
      else reject(new CommandError(command, stderr, signal ? `ended by ${signal}` : `exit code ${code}`));
    });
    // A command that does not read its input may be gone before it is written.
    child.stdin.on('error', () => {});
    child.stdin.end(options.input ?? '');
  });
}
