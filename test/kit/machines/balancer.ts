import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { VPCNetwork } from './vpc.ts';

const MAIN = fileURLToPath(new URL('balancer-main.ts', import.meta.url));

/** A network load balancer in front of the machines of a private network. It ends with this process at the latest. */
export class Balancer {
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess) {
    this.#child = child;
  }

  /** @param instances file with the instances that there are, as NetworkServices keeps it */
  static async start(
    network: VPCNetwork,
    { address, port, instances }: { address: string; port: number; instances: string },
  ): Promise<Balancer> {
    const command = [...network.enter, process.execPath, MAIN, address, `${port}`, instances];
    const child = spawn(command[0]!, command.slice(1), { stdio: ['pipe', 'pipe', 'inherit'] });
    const ended = once(child, 'exit').then(() => Promise.reject(new Error('the load balancer did not start')));
    await Promise.race([once(createInterface({ input: child.stdout }), 'line'), ended]);
    return new Balancer(child);
  }

  async close(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const ended = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await ended;
  }
}
