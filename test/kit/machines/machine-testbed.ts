import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { Cgroups, readLayout } from '../../../operator/garden/host/cgroups.ts';
import { run } from '../../../operator/garden/host/command.ts';
import { isAlive, ownIdentity, type ProcessIdentity } from '../../../operator/garden/host/process-identity.ts';
import { Machine } from './machine.ts';
import { type MachinesCloud, SURROUNDINGS } from './surroundings.ts';
import { VPCNetwork } from './vpc.ts';

type CgroupLayout = ConstructorParameters<typeof Cgroups>[0];

const PREFIX = 'coppice-machines-';
const OWNER = 'owner.json';

interface Owner extends ProcessIdentity {
  cloud: MachinesCloud;
  seed: string;
  runc: string;
}

/** Everything that a test's machines have on this host, by the folder that it is all named after. */
export class MachineTestbed {
  readonly dir: string;
  readonly network: VPCNetwork;
  readonly cgroups: Cgroups;
  readonly #runc: string;

  private constructor(dir: string, { cloud, seed, runc }: Owner, layout: CgroupLayout) {
    this.dir = dir;
    const tag = basename(dir).slice(PREFIX.length).toLowerCase();
    this.network = new VPCNetwork(tag, seed, SURROUNDINGS[cloud]);
    this.cgroups = new Cgroups(layout, `${PREFIX}${tag}`);
    this.#runc = runc;
  }

  /** A new one, with its network; `seed` is the network namespace that its machines reach. */
  static async open(wanted: Pick<Owner, 'cloud' | 'seed' | 'runc'>): Promise<MachineTestbed> {
    const layout = (await readLayout())!;
    const dir = await mkdtemp(join(tmpdir(), PREFIX));
    const owner: Owner = { ...(await ownIdentity()), ...wanted };
    await writeFile(join(dir, OWNER), JSON.stringify(owner));
    const testbed = new MachineTestbed(dir, owner, layout);
    try {
      await testbed.cgroups.create();
      await testbed.network.open();
    } catch (error) {
      await testbed.close();
      throw error;
    }
    return testbed;
  }

  /** Takes away what test runs have left that were killed before they could. */
  static async sweep(): Promise<void> {
    for (const name of await readdir(tmpdir())) {
      if (!name.startsWith(PREFIX)) continue;
      const dir = join(tmpdir(), name);
      const owner = JSON.parse(await readFile(join(dir, OWNER), 'utf8').catch(() => 'null')) as Owner | null;
      if (!owner || (await isAlive(owner))) continue;
      const left = new MachineTestbed(dir, owner, (await readLayout())!);
      await left.close().catch((error: Error) => console.warn(`tests: ${dir} cannot be taken away: ${error.message}`));
    }
  }

  machine(options: { name: string; address: string; image: string; ca: string }): Machine {
    const { dir, network, cgroups } = this;
    return new Machine({ ...options, network, dir: join(dir, 'machines'), cgroups, runc: this.#runc });
  }

  async close(): Promise<void> {
    const names = await readdir(join(this.dir, 'machines')).catch(() => []);
    const ended = await Promise.allSettled(
      names.map((name) => this.machine({ name, address: '', image: '', ca: '' }).end()),
    );
    await this.cgroups.killAll();
    await this.cgroups.remove();
    const failed = ended.find((one) => one.status === 'rejected');
    if (failed) throw failed.reason;
    await this.network.close();
    await rm(this.dir, { recursive: true, force: true });
  }

  /** What is still there of it, one line each. */
  async leftOvers(): Promise<string[]> {
    const { dir, network, cgroups } = this;
    const [mounts, namespaces, links, folders] = await Promise.all([
      readFile('/proc/self/mountinfo', 'utf8'),
      run(['ip', 'netns', 'list']),
      run(['ip', '-o', 'link', 'show']),
      Promise.all([tmpdir(), ...cgroups.layout.hierarchies].map((folder) => readdir(folder))),
    ]);
    const names = [...`${mounts}\n${namespaces}\n${links}`.split('\n'), ...folders.flat()];
    return names.filter((line) =>
      [dir, basename(dir), network.namespace, cgroups.name].some((one) => line.includes(one)),
    );
  }
}
