import { CoppiceError } from '../../operator/api/errors.ts';
import type { Change, CloudContext, ManagedClusters } from '../cloud.ts';
import type { Pool, ProviderContext } from '../contract.ts';
import { machineLayers, type WantedMachines } from '../pulumi/layers.ts';
import type { StackRunner } from '../pulumi/stack-runner.ts';
import { sameAccount } from './account.ts';
import { withoutOwn } from './drift.ts';
import { KnownMachines } from './known.ts';
import type { CloudMachine, MachineCloud } from './machine-cloud.ts';
import type { MachinesReceipt } from './receipt.ts';
import { aliveIn, hashOf, networkOf } from './wanted.ts';

/** Machine groups in a cloud. Each change is recorded in the shoot's receipt first. */
export class MachineGroups {
  readonly known: KnownMachines;
  readonly #managed: ManagedClusters;
  readonly #cloud: MachineCloud;
  readonly #layers: ReturnType<typeof machineLayers>;

  constructor(managed: ManagedClusters, cloud: MachineCloud, runner: StackRunner) {
    this.#managed = managed;
    this.#cloud = cloud;
    this.#layers = machineLayers(runner, cloud.layers);
    this.known = new KnownMachines(cloud);
  }

  /** Applies the groups, unless unchanged since the last run. @param refresh what to compare with the cloud first */
  async apply(
    ctx: ProviderContext,
    account: CloudContext,
    wanted: WantedMachines,
    refresh: 'nothing' | 'groups' | 'all' = 'nothing',
  ): Promise<void> {
    const receipt = await this.known.receipt(ctx);
    const hashes = this.#hashesOf(wanted);
    if (receipt?.applied === hashes.applied && refresh === 'nothing') return;
    const id = await sameAccount(this.#managed, account, receipt);
    const begun: MachinesReceipt = { ...receipt, account: id, wanted };
    delete begun.applied;
    await this.known.save(ctx, begun, receipt);
    const below = refresh === 'all' ? 'mended' : receipt?.network === hashes.network ? 'kept' : 'made';
    await this.#layers.apply({ ...account, refresh: refresh !== 'nothing' }, wanted, below);
    const { shrunk: _, ...made } = begun;
    await this.known.save(ctx, { ...made, ...hashes }, begun);
  }

  /**
   * Whether everything wanted was applied, by this version of the programs: differences of another version are no
   * drift.
   */
  isSettled({ applied, network, wanted }: MachinesReceipt): boolean {
    const hashes = this.#hashesOf(wanted);
    return applied === hashes.applied && network === hashes.network;
  }

  /** Two versions of a program may make different things of equal inputs. */
  #hashesOf(wanted: WantedMachines): Required<Pick<MachinesReceipt, 'applied' | 'network'>> {
    const { version } = this.#managed;
    return { applied: hashOf([version, wanted]), network: hashOf([version, networkOf(wanted)]) };
  }

  /** Ends machines. The smaller size of their group is recorded first. */
  async end(
    ctx: ProviderContext,
    account: CloudContext,
    pool: string,
    machines: readonly CloudMachine[],
  ): Promise<void> {
    if (machines.length === 0) return;
    const receipt = await this.known.receipt(ctx);
    if (receipt && !receipt.shrunk?.includes(pool)) {
      await this.known.save(ctx, { ...receipt, shrunk: [...(receipt.shrunk ?? []), pool] }, receipt);
    }
    await this.known.remove(ctx, account, pool, machines);
  }

  /** Machines from before hashes existed are assumed to match the then requested description. */
  async noteUnmarked(ctx: ProviderContext, { pools }: WantedMachines, now: Date): Promise<void> {
    const receipt = await this.known.receipt(ctx);
    const unmarked: NonNullable<MachinesReceipt['unmarked']> = {};
    for (const { name: pool, hash } of pools) {
      const before = receipt?.wanted.pools.find((one) => one.name === pool);
      if (before && before.hash === undefined && hash !== undefined) {
        unmarked[pool] = { hash, madeBefore: now.toISOString() };
      }
    }
    if (Object.keys(unmarked).length === 0) return;
    await this.known.save(ctx, { ...receipt!, unmarked: { ...receipt!.unmarked, ...unmarked } }, receipt);
  }

  /** Reports why a cloud gives fewer machines than wanted; the cloud keeps trying by itself. */
  async reportFailure(ctx: ProviderContext, account: CloudContext, pools: readonly Pool[]): Promise<void> {
    if (!this.#cloud.failure) return;
    const seen = this.known.seen(ctx);
    for (const { name: pool, count } of pools) {
      if (aliveIn(seen, pool).length >= count) continue;
      const text = await this.#cloud.failure(account, pool);
      if (text === undefined) continue;
      const code = this.#cloud.layers.classify({ text }) ?? 'ERR_RETRYABLE_INFRA_DEPENDENCIES';
      throw new CoppiceError(code, `pool ${pool} does not get its machines: ${text}`);
    }
  }

  /**
   * Drift without our own changes; undefined: a run is in progress.
   * @param withNetwork whether to compare the network too
   */
  async drift(
    ctx: ProviderContext,
    account: CloudContext,
    receipt: MachinesReceipt,
    withNetwork: boolean,
  ): Promise<Change[] | undefined> {
    await sameAccount(this.#managed, account, receipt);
    const found = await this.#layers.drift(account, receipt.wanted, withNetwork);
    const now = await this.known.receipt(ctx);
    if (!found || now?.applied !== receipt.applied) return undefined;
    return withoutOwn(found, this.#cloud.group, [...(receipt.shrunk ?? []), ...(now?.shrunk ?? [])]);
  }

  /** Deletes the groups, then runs `between`, then deletes the network. */
  destroy(account: CloudContext, { wanted }: MachinesReceipt, between: () => Promise<void>): Promise<void> {
    return this.#layers.destroy(account, wanted, between);
  }
}
