import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { createCA, issue } from '../../../operator/pki/certificates.ts';
import type { LaunchedInstance } from '../cloud/index.ts';
import { NAMES, type Releases } from './internet.ts';
import type { MachinesCloud } from './surroundings.ts';
import type { VPCNetwork } from './vpc.ts';

const MAIN = fileURLToPath(new URL('services-main.ts', import.meta.url));

/** What the process of a private network's services reads. */
export interface ServicesConfig {
  cloud: MachinesCloud;
  cert: string;
  key: string;
  releases: Releases;
  /** Folder of images that the registries have. */
  images: string;
  /** File with the instances that there are. */
  instances: string;
}

/** Servers that machines of a private network reach: metadata, resolver, internet. They end with this process at the latest. */
export class NetworkServices {
  /** PEM of the authority that the internet's certificate is of. */
  readonly ca: string;
  /** File with the instances that there are. */
  readonly instances: string;
  readonly #child: ChildProcess;

  private constructor(ca: string, instances: string, child: ChildProcess) {
    this.ca = ca;
    this.instances = instances;
    this.#child = child;
  }

  static async start(
    network: VPCNetwork,
    { dir, cloud, releases, images }: { dir: string; cloud: MachinesCloud; releases: Releases; images: string },
  ): Promise<NetworkServices> {
    const ca = await createCA({ commonName: 'internet of the tests', days: 2 });
    const { cert, key } = await issue(ca, { commonName: NAMES[0]!, dnsNames: [...NAMES], usages: ['server'], days: 2 });
    const instances = join(dir, 'instances.json');
    const config: ServicesConfig = { cloud, cert, key, releases, images, instances };
    await writeFile(instances, '[]');
    await writeFile(join(dir, 'services.json'), JSON.stringify(config), { mode: 0o600 });
    const command = [...network.enter, process.execPath, MAIN, join(dir, 'services.json')];
    const child = spawn(command[0]!, command.slice(1), { stdio: ['pipe', 'pipe', 'inherit'] });
    const ended = once(child, 'exit').then(() =>
      Promise.reject(new Error("the private network's services did not start")),
    );
    await Promise.race([once(createInterface({ input: child.stdout }), 'line'), ended]);
    return new NetworkServices(ca.cert, instances, child);
  }

  /** From now on these, and no others, are told of themselves. */
  async tell(instances: readonly LaunchedInstance[]): Promise<void> {
    await writeFile(`${this.instances}.draft`, JSON.stringify(instances), { mode: 0o600 });
    await rename(`${this.instances}.draft`, this.instances);
  }

  async close(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const ended = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await ended;
  }
}
