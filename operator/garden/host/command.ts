import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Readable } from 'node:stream';

/** A failed command. */
export class CommandError extends Error {
  override readonly name = 'CommandError';
  readonly stderr: string;
  /** Whether the command does not exist. */
  isNotInstalled = false;

  constructor(command: readonly string[], stderr: string, how: string) {
    const said = stderr.trim().split('\n').slice(-3).join('; ');
    super(`${command.join(' ')}: ${said || how}`);
    this.stderr = stderr;
  }
}

/** Running commands of this process. */
const running = new Set<ChildProcess>();
let isOver = false;

/**
 * Ends this process's running commands and prevents new ones, before the process exits. They lead their own process
 * groups, so signals to this process do not reach them, and an image import would outlive the garden by seconds.
 */
export async function endCommands(): Promise<void> {
  isOver = true;
  const ended = [...running].map((child) => once(child, 'exit'));
  for (const { pid } of running) {
    try {
      if (pid !== undefined) process.kill(-pid, 'SIGKILL');
    } catch {
      // Already ended, but not yet reported.
    }
  }
  await Promise.allSettled(ended);
}

/** Options of a command. */
interface RunOptions {
  input?: string;
  /** Default: 60 s. */
  timeoutMs?: number;
  /** Consumes standard output instead of the caller. Its rejection ends the command. */
  output?: (stdout: Readable) => Promise<void>;
}

/** Runs a command and resolves to its standard output. Throws CommandError when it fails or does not exist. */
export function run(command: readonly string[], options: RunOptions = {}): Promise<string> {
  const [file = '', ...args] = command;
  if (isOver) return Promise.reject(new CommandError(command, '', 'the process that runs it ends'));
  return new Promise((resolve, reject) => {
    const child = spawn(file, args, {
      stdio: ['pipe', 'pipe', 'pipe'],
      timeout: options.timeoutMs ?? 60_000,
      // Ctrl-C during a stop must not interrupt the commands of the stop.
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
    // A command that ignores its input may exit before the write.
    child.stdin.on('error', () => {});
    child.stdin.end(options.input ?? '');
  });
}
