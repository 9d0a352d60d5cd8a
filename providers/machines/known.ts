import { InTurn } from '../../operator/kube/in-turn.ts';
import type { CloudContext } from '../cloud.ts';
import type { ProviderContext } from '../contract.ts';
import type { CloudMachine, MachineCloud } from './machine-cloud.ts';
import { type MachinesReceipt, machineReceipts, RECEIPT_NAME } from './receipt.ts';

/** Age of a list after which the cloud is asked again: status updates come twice a second. */
const FRESH_MS = 10_000;

/** Cached facts about one shoot's machines. All of it can be lost. */
interface Known<Kept> {
  receipt?: Kept | undefined;
  isRead: boolean;
  /** Number of started and ended writes. */
  writes: number;
  listed?: { at: number; machines: readonly CloudMachine[] } | undefined;
  /** Ended machines and their pools: clouds show them as running for a while. */
  removed: Map<string, string>;
  /** Serialises removals. */
  removing: InTurn;
}

/** Receipts of shoots and their machines as last seen, by shoot. */
export class KnownMachines<Kept extends object = MachinesReceipt> {
  readonly #cloud: MachineCloud;
  readonly #receiptName: string;
  readonly #known = new Map<string, Known<Kept>>();

  constructor(cloud: MachineCloud, receiptName = RECEIPT_NAME) {
    this.#cloud = cloud;
    this.#receiptName = receiptName;
  }

  #of({ uid }: ProviderContext): Known<Kept> {
    const known: Known<Kept> = this.#known.get(uid) ?? {
      isRead: false,
      writes: 0,
      removed: new Map(),
      removing: new InTurn(),
    };
    this.#known.set(uid, known);
    return known;
  }

  /** undefined: nothing was made for the shoot. */
  async receipt(ctx: ProviderContext): Promise<Kept | undefined> {
    const known = this.#of(ctx);
    while (!known.isRead) {
      const { writes } = known;
      const receipt = await machineReceipts<Kept>(ctx).read(this.#receiptName);
      // Status reads run beside writes: a result from before a write must not count as newer.
      if (known.writes === writes) Object.assign(known, { receipt, isRead: true });
    }
    return known.receipt;
  }

  /** @param before see Receipts.save */
  async save(ctx: ProviderContext, receipt: Kept, before: Kept | undefined): Promise<void> {
    const known = this.#of(ctx);
    // Whatever happens to the write, the receipt's content is unknown from here on.
    const forgetRead = () => Object.assign(known, { isRead: false, writes: known.writes + 1 });
    forgetRead();
    try {
      await machineReceipts<Kept>(ctx).save(this.#receiptName, receipt, before);
    } finally {
      forgetRead();
    }
    Object.assign(known, { receipt, isRead: true });
  }

  async forget(ctx: ProviderContext): Promise<void> {
    await machineReceipts(ctx).remove(this.#receiptName);
    this.#known.delete(ctx.uid);
  }

  /** Reads machines from the cloud. */
  async look(ctx: ProviderContext, account: CloudContext, pools: readonly string[]): Promise<readonly CloudMachine[]> {
    const known = this.#of(ctx);
    const told = await this.#cloud.machines(account, pools);
    for (const [name, pool] of known.removed)
      if (pools.includes(pool) && !told.some((machine) => machine.name === name)) known.removed.delete(name);
    const machines = told.map((machine) =>
      known.removed.has(machine.name) ? { ...machine, phase: 'Terminating' as const } : machine,
    );
    // Machines of other pools stay as last seen.
    const others = this.seen(ctx).filter(
      ({ name, pool }) => !pools.includes(pool) && !told.some((one) => one.name === name),
    );
    const at = others.length > 0 ? (known.listed?.at ?? 0) : account.now().getTime();
    known.listed = { at, machines: [...others, ...machines] };
    return machines;
  }

  /** Serialises removals per shoot: pools that lose machines at the same time write one receipt. */
  removeInTurn<T>(ctx: ProviderContext, remove: () => Promise<T>): Promise<T> {
    return this.#of(ctx).removing.run(remove);
  }

  /** Machines as last seen. */
  seen(ctx: ProviderContext): readonly CloudMachine[] {
    return this.#of(ctx).listed?.machines ?? [];
  }

  isFresh(ctx: ProviderContext, now: Date): boolean {
    const { listed } = this.#of(ctx);
    return listed !== undefined && now.getTime() - listed.at < FRESH_MS;
  }

  /** Ends machines, which are not counted any more. */
  async remove(
    ctx: ProviderContext,
    account: CloudContext,
    pool: string,
    machines: readonly CloudMachine[],
  ): Promise<void> {
    if (machines.length === 0) return;
    const known = this.#of(ctx);
    // The old list stays as a fallback if the cloud cannot be asked next.
    if (known.listed) known.listed.at = 0;
    await this.#cloud.remove(account, pool, machines);
    const names = machines.map(({ name }) => name);
    for (const name of names) known.removed.set(name, pool);
    const gone = (machine: CloudMachine) => names.includes(machine.name);
    if (known.listed)
      known.listed.machines = known.listed.machines.map((one) => (gone(one) ? { ...one, phase: 'Terminating' } : one));
  }
}
