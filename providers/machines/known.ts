import type { CloudContext } from '../cloud.ts';
import type { ProviderContext } from '../contract.ts';
import type { CloudMachine, MachineCloud } from './machine-cloud.ts';
import { type MachinesRecord, readRecord, removeRecord, saveRecord } from './record.ts';

/** Status follows the nodes of a cluster twice a second; a cloud is not asked so often. */
const FRESH_MS = 10_000;

/** What is kept in memory of one shoot's machines. All of it can be lost. */
interface Known {
  record?: MachinesRecord | undefined;
  isRead: boolean;
  listed?: { at: number; machines: readonly CloudMachine[] } | undefined;
  /** Names of machines that were ended: clouds go on showing them as running for a while. */
  removed: Set<string>;
}

/** The records of shoots and their machines as they were last seen, by shoot. */
export class KnownMachines {
  readonly #cloud: MachineCloud;
  readonly #known = new Map<string, Known>();

  constructor(cloud: MachineCloud) {
    this.#cloud = cloud;
  }

  #of({ uid }: ProviderContext): Known {
    const known = this.#known.get(uid) ?? { isRead: false, removed: new Set() };
    this.#known.set(uid, known);
    return known;
  }

  /** undefined: nothing was ever made for the shoot. */
  async record(ctx: ProviderContext): Promise<MachinesRecord | undefined> {
    const known = this.#of(ctx);
    if (!known.isRead) {
      known.record = await readRecord(ctx);
      known.isRead = true;
    }
    return known.record;
  }

  async save(ctx: ProviderContext, record: MachinesRecord): Promise<void> {
    const known = this.#of(ctx);
    // Whatever happens to the write: from here on it is not known what the record says.
    known.isRead = false;
    await saveRecord(ctx, record);
    Object.assign(known, { record, isRead: true });
  }

  async forget(ctx: ProviderContext): Promise<void> {
    await removeRecord(ctx);
    this.#known.delete(ctx.uid);
  }

  /** As the cloud tells of them now. */
  async look(ctx: ProviderContext, account: CloudContext, pools: readonly string[]): Promise<readonly CloudMachine[]> {
    const known = this.#of(ctx);
    const told = await this.#cloud.machines(account, pools);
    for (const name of known.removed) if (!told.some((machine) => machine.name === name)) known.removed.delete(name);
    const machines = told.map((machine) =>
      known.removed.has(machine.name) ? { ...machine, phase: 'Terminating' as const } : machine,
    );
    known.listed = { at: account.now().getTime(), machines };
    return machines;
  }

  /** As they were when they were last looked at. */
  seen(ctx: ProviderContext): readonly CloudMachine[] {
    return this.#of(ctx).listed?.machines ?? [];
  }

  isFresh(ctx: ProviderContext, now: Date): boolean {
    const { listed } = this.#of(ctx);
    return listed !== undefined && now.getTime() - listed.at < FRESH_MS;
  }

  /** Ends machines, of which none is to be counted again. */
  async remove(
    ctx: ProviderContext,
    account: CloudContext,
    pool: string,
    machines: readonly CloudMachine[],
  ): Promise<void> {
    if (machines.length === 0) return;
    const known = this.#of(ctx);
    known.listed = undefined;
    await this.#cloud.remove(account, pool, machines);
    for (const { name } of machines) known.removed.add(name);
  }
}
