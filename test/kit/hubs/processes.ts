import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

const PATIENCE_MS = 120_000;
const LOOK_MS = 100;

/** Programs that a test runs beside itself, with a folder for their files and logs. None of them outlives the test. */
export class Processes {
  readonly directory: string;
  readonly #children = new Set<ChildProcess>();
  #ended: string | undefined;

  private constructor(directory: string) {
    this.directory = directory;
  }

  static async begin(name: string): Promise<Processes> {
    return new Processes(await mkdtemp(join(tmpdir(), `coppice-${name}-`)));
  }

  /** The name of a program that ended by itself: what waits for it waits in vain. */
  get ended(): string | undefined {
    return this.#ended;
  }

  /** @returns the path of a new file that only we can read */
  async file(name: string, text: string): Promise<string> {
    const path = join(this.directory, name);
    await writeFile(path, text, { mode: 0o600 });
    return path;
  }

  /** @param name of its log */
  run(
    binary: string,
    name: string,
    args: readonly string[],
    { env = {}, onExit }: { env?: Record<string, string>; onExit?: () => void } = {},
  ): ChildProcess {
    const log = createWriteStream(join(this.directory, `${name}.log`), { flags: 'a' });
    const child = spawn('setpriv', ['--pdeathsig=KILL', binary, ...args], {
      stdio: ['ignore', 'pipe', 'pipe'],
      cwd: this.directory,
      env: { ...process.env, ...env },
    });
    child.stdout.pipe(log, { end: false });
    child.stderr.pipe(log, { end: false });
    child.on('error', (error) => log.write(`${error}\n`));
    this.#children.add(child);
    child.once('exit', () => {
      this.#children.delete(child);
      if (!child.killed) this.#ended = name;
      onExit?.();
    });
    return child;
  }

  /**
   * What `look` finds, which may fail until then.
   * @param what is waited for, for the message @throws Error when a program has ended, or after two minutes
   */
  async wait<T>(what: string, look: () => Promise<T | undefined>): Promise<T> {
    const deadline = Date.now() + PATIENCE_MS;
    for (;;) {
      const found = await look().catch(() => undefined);
      if (found !== undefined) return found;
      const { ended, directory } = this;
      if (ended || Date.now() > deadline)
        throw new Error(`waited in vain for ${what}${ended ? `: ${ended} has ended` : ''}; logs: ${directory}`);
      await delay(LOOK_MS);
    }
  }

  async stop(): Promise<void> {
    const children = [...this.#children];
    const ended = children.map((child) => once(child, 'exit'));
    for (const child of children) child.kill('SIGKILL');
    await Promise.all(ended);
    if (!process.env.COPPICE_HUB_LOGS) await rm(this.directory, { recursive: true, force: true, maxRetries: 3 });
  }
}
