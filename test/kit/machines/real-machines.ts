import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { coppiceHome } from '../../../operator/garden/toolchain/cache.ts';
import type { Account, FakeCloud, LaunchedInstance } from '../cloud/index.ts';
import { testTools } from '../tools.ts';
import { Balancer } from './balancer.ts';
import { machineImage } from './image.ts';
import type { Machine } from './machine.ts';
import { MachineTestbed } from './machine-testbed.ts';
import { publishedImages, publishedReleases } from './releases.ts';
import { NetworkServices } from './services.ts';
import type { MachinesCloud } from './surroundings.ts';
import type { VPCNetwork } from './vpc.ts';

/** Where disks and archives are kept. */
export const machinesCache = (): string => join(coppiceHome(), 'cache', 'machines');

const LOOK_MS = 300;

/** What the instances of a fake AWS or Google are made of. */
export interface RealMachines {
  network: VPCNetwork;
  /** Of the instances that are switched on. */
  names(): string[];
  /** Throws when there is none of this name. */
  machine(name: string): Machine;
  /** Pulls the plug of one as a failing host does: the cloud notices, and its group makes another, at Google under the same name. */
  kill(name: string): Promise<void>;
  /** The last words of each machine's system, for a test that failed. */
  journals(): Promise<string>;
  /** Takes all machines and their network away. Resolves to what is left on this host all the same, one line each. */
  close(): Promise<string[]>;
}

/**
 * Switches a machine on for every instance of the account's groups, told what its template says at that moment, and takes it away when
 * the instance has ended. What goes wrong with one is said on standard error.
 * @param account of AWS or Google
 * @param seed network namespace of the garden's seed, the only place outside that machines reach
 * @param balanced port of a load balancer at `network.outside`, in front of those that are ready there; absent: there is none
 */
export async function realMachines(
  cloud: FakeCloud,
  { account, region, seed, balanced }: { account: Account; region: string; seed: string; balanced?: number },
): Promise<RealMachines> {
  await MachineTestbed.sweep();
  const cache = machinesCache();
  const image = await machineImage(cache);
  const releases = await publishedReleases(cache);
  const images = await publishedImages();
  const { runc } = await testTools('runc');
  const cloudName = account.cloud as MachinesCloud;
  const testbed = await MachineTestbed.open({ cloud: cloudName, seed, runc });
  const closing = async (error: Error) => {
    await testbed.close();
    throw error;
  };
  const services = await NetworkServices.start(testbed.network, {
    dir: testbed.dir,
    cloud: cloudName,
    releases,
    images,
  }).catch(closing);
  const balancer =
    balanced === undefined ? undefined : await balance(testbed.network, balanced, services.instances).catch(closing);

  /** By id of the instance: another one may have its name. */
  const machines = new Map<string, Machine>();
  let told: readonly LaunchedInstance[] = [];
  const look = async () => {
    const there = await cloud.instances(account, region);
    for (const [id, machine] of machines) {
      if (there.some((one) => one.id === id)) continue;
      await machine.end();
      machines.delete(id);
    }
    // What a machine was launched with stays, whatever its launch template says later.
    told = there.map((one) => told.find(({ id }) => id === one.id) ?? one);
    await services.tell(told);
    for (const { id, name, address } of told) {
      if (machines.has(id)) continue;
      const machine = testbed.machine({ name, address, image, ca: services.ca });
      machines.set(id, machine);
      await machine.boot().catch(async (error: unknown) => {
        // The next look tries again.
        machines.delete(id);
        await machine.end();
        throw error;
      });
    }
  };
  const stop = new AbortController();
  const following = (async () => {
    while (!stop.signal.aborted) {
      await look().catch((error: Error) => console.warn(`machines of the fake cloud: ${error.message}`));
      await sleep(LOOK_MS);
    }
  })();

  const names = () => [...machines.values()].map(({ options }) => options.name);
  const machine = (name: string) => {
    const found = [...machines.values()].find(({ options }) => options.name === name);
    if (!found) throw new Error(`there is no machine ${name}: ${names().join(', ')}`);
    return found;
  };
  return {
    network: testbed.network,
    names,
    machine,
    kill: (name) => cloud.loseInstance(account, region, machine(name).options.name),
    async journals() {
      const said = [...machines.values()].map(async (one) => {
        const text = await one.run(['journalctl', '--no-pager', '--lines=60']).catch((error: Error) => error.message);
        return `--- ${one.options.name}\n${text}`;
      });
      return (await Promise.all(said)).join('\n');
    },
    async close() {
      stop.abort();
      await following;
      await balancer?.close();
      await services.close();
      await testbed.close();
      return testbed.leftOvers();
    },
  };
}

async function balance(network: VPCNetwork, port: number, instances: string): Promise<Balancer> {
  await network.admit(port);
  return Balancer.start(network, { address: network.outside, port, instances });
}
