import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';

export interface Ran {
  code: number;
  /** Standard output and standard error, as they came. */
  output: string;
}

/** A shell in which commands run one after the other, as a person types them: aliases and variables hold. */
export class Shell {
  readonly #child: ChildProcess;
  #said = '';
  #heard: () => void = () => {};

  constructor(cwd: string, env: NodeJS.ProcessEnv) {
    this.#child = spawn('bash', ['--noprofile', '--norc'], { cwd, env, stdio: ['pipe', 'pipe', 'pipe'] });
    for (const stream of [this.#child.stdout!, this.#child.stderr!])
      stream.setEncoding('utf8').on('data', (text: string) => {
        this.#said += text;
        this.#heard();
      });
    this.#child.once('exit', () => this.#heard());
    this.#child.stdin!.write('shopt -s expand_aliases\nexec 2>&1\n');
  }

  /** Runs one command, with its here-document if it has one, to its end. Rejects if the shell ends, or after `timeoutMs`. */
  async run(command: string, timeoutMs = 300_000): Promise<Ran> {
    const mark = randomUUID();
    const end = new RegExp(`${mark} (\\d+)\\n`);
    this.#said = '';
    this.#child.stdin!.write(`{ ${command}\n} </dev/null\nprintf '%s %d\\n' ${mark} $?\n`);
    const began = performance.now();
    for (;;) {
      const found = end.exec(this.#said);
      if (found) return { code: Number(found[1]), output: this.#said.slice(0, found.index) };
      const left = timeoutMs - (performance.now() - began);
      if (left <= 0 || this.#child.exitCode !== null)
        throw new Error(`${command}: ${left <= 0 ? 'did not end' : 'the shell ended'}:\n${this.#said}`);
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, left);
        this.#heard = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
  }

  kill(): void {
    this.#child.kill('SIGKILL');
  }

  async end(): Promise<void> {
    if (this.#child.exitCode !== null) return;
    this.#child.stdin!.end('exit\n');
    await once(this.#child, 'exit');
  }
}
