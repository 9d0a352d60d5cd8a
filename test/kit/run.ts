import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFile, cp, mkdtemp, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** bin/coppice of this checkout. */
export const COPPICE = fileURLToPath(new URL('../../bin/coppice', import.meta.url));

export interface CommandResult {
  /** Exit code; -1 when a signal ended it. */
  code: number;
  stdout: string;
  stderr: string;
}

export interface RunOptions {
  env?: NodeJS.ProcessEnv;
  input?: string;
  /** Default 2 minutes. */
  timeoutMs?: number;
  /** Gets the process, which ends with the command. */
  onStart?: (child: ChildProcess) => void;
  /** Gets each line of standard error as it comes. */
  onStderr?: (line: string) => void;
}

/** Runs a command to its end. Never rejects because of its exit code; a command that cannot be started rejects. */
export async function runCommand(
  file: string,
  args: readonly string[],
  options: RunOptions = {},
): Promise<CommandResult> {
  const child = startCommand(file, args, options);
  options.onStart?.(child);
  let stdout = '';
  let stderr = '';
  let line = '';
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
  });
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
    const lines = (line + text).split('\n');
    line = lines.pop() ?? '';
    for (const whole of lines) options.onStderr?.(whole);
  });
  const timer = setTimeout(() => child.kill('SIGKILL'), options.timeoutMs ?? 120_000);
  try {
    const [code] = (await once(child, 'close')) as [number | null];
    return { code: code ?? -1, stdout, stderr };
  } finally {
    clearTimeout(timer);
  }
}

/**
 * Makes another version of Coppice, which differs from this checkout in a comment.
 * @returns its bin/coppice, in a folder that the caller removes
 */
export async function copyOfCoppice(): Promise<string> {
  const root = fileURLToPath(new URL('../..', import.meta.url));
  const copy = await mkdtemp(join(tmpdir(), 'coppice-other-'));
  for (const name of ['bin', 'operator', 'providers', 'profiles', 'package.json'])
    await cp(join(root, name), join(copy, name), { recursive: true });
  await symlink(join(root, 'node_modules'), join(copy, 'node_modules'));
  await appendFile(join(copy, 'operator', 'main.ts'), '// of another version\n');
  return join(copy, 'bin', 'coppice');
}

/** Starts a command that goes on; the caller ends it. */
export function startCommand(file: string, args: readonly string[], options: RunOptions = {}): ChildProcess {
  const child = spawn(file, [...args], { stdio: ['pipe', 'pipe', 'pipe'], env: options.env ?? process.env });
  // A command that does not read its input may be gone before it is written.
  child.stdin.on('error', () => {});
  child.stdin.end(options.input ?? '');
  return child;
}

type Own = { home: string; tools: string };

/** bin/coppice on a state directory, with nothing of the caller's own clusters in its environment. */
export const runCoppice = (args: readonly string[], options: RunOptions & Own): Promise<CommandResult> =>
  runCommand(COPPICE, args, owned(options));

/** The same, started as one that goes on; the caller ends it. */
export const startCoppice = (args: readonly string[], options: RunOptions & Own): ChildProcess =>
  startCommand(COPPICE, args, owned(options));

/** Options for bin/coppice on a state directory. */
export function owned({ home, tools, ...options }: RunOptions & Own): RunOptions {
  const { KUBECONFIG: _, COPPICE_KUBECONFIG: __, ...own } = process.env;
  const env = { ...own, NO_COLOR: '1', COPPICE_HOME: home, COPPICE_TOOLS: tools, ...options.env };
  return { ...options, env };
}
