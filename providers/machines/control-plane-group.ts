import { CoppiceError, notYetConfigured } from '../../operator/api/errors.ts';
import type { Change, CloudContext, ControlPlanePool, EndpointOutputs, ManagedClusters } from '../cloud.ts';
import type {
  ControlPlaneEndpoint,
  ControlPlaneGroup,
  ControlPlaneGroupBootstrap,
  ControlPlaneGroupSeen,
  ControlPlanePart,
  Machine,
  Pool,
  ProviderContext,
} from '../contract.ts';
import { controlPlaneLayers, type WantedControlPlane } from '../pulumi/control-plane-layers.ts';
import type { StackRunner } from '../pulumi/stack-runner.ts';
import { accountOf, sameAccount } from './account.ts';
import { controlPlaneUserData } from './control-plane-data.ts';
import { harmsNoControlPlane } from './drift.ts';
import { KnownMachines } from './known.ts';
import type { CloudMachine, MachineCloud } from './machine-cloud.ts';
import { CONTROL_PLANE_RECEIPT_NAME, type ControlPlaneReceipt } from './receipt.ts';
import { hashOf, isControlPlaneAlive, networkFor, networkOf } from './wanted.ts';

/** Port of API servers on machines, and of their load balancer. */
const PORT = 6443;
/** A first machine that does not exist after this time will not come by itself. */
const MISSING_MS = 5 * 60_000;
/** Ubuntu's default disk is too small for etcd, logs and images. */
const DISK_GIB = 32;

/** Control plane machines of a cluster, as one group behind an endpoint. */
export class OwnControlPlane implements ControlPlaneGroup {
  readonly #managed: ManagedClusters;
  readonly #cloud: MachineCloud;
  readonly #layers: ReturnType<typeof controlPlaneLayers>;
  readonly #known: KnownMachines<ControlPlaneReceipt>;
  readonly #otherZones: (ctx: ProviderContext) => Promise<string[] | undefined>;

  /** @param otherZones zones of the cluster's other machines in the network */
  constructor(
    managed: ManagedClusters,
    cloud: MachineCloud,
    runner: StackRunner,
    otherZones: (ctx: ProviderContext) => Promise<string[] | undefined>,
  ) {
    this.#managed = managed;
    this.#cloud = cloud;
    this.#layers = controlPlaneLayers(runner, cloud.layers);
    this.#known = new KnownMachines(cloud, CONTROL_PLANE_RECEIPT_NAME);
    this.#otherZones = otherZones;
  }

  /** undefined: the control plane is not on machines in this cloud. */
  receipt(ctx: ProviderContext): Promise<ControlPlaneReceipt | undefined> {
    return this.#known.receipt(ctx);
  }

  async endpoint(ctx: ProviderContext, pool: Pool): Promise<ControlPlaneEndpoint> {
    const receipt = await this.#known.receipt(ctx);
    const zones = [pool.zones, receipt?.wanted.zones ?? [], (await this.#otherZones(ctx)) ?? []];
    const wanted: WantedControlPlane = { ...receipt?.wanted, ...networkFor(ctx, zones), port: PORT };
    const hash = hashOf([this.#managed.version, networkOf(wanted)]);
    if (receipt?.endpoint && receipt.reached === hash) return placeOf(receipt.endpoint);
    const account = await accountOf(ctx);
    const { reached: _, ...before } = receipt ?? {};
    const begun: ControlPlaneReceipt = {
      ...before,
      account: await sameAccount(this.#managed, account, receipt),
      wanted,
    };
    const missing = (await this.#cloud.controlPlane?.missing(account)) ?? [];
    if (missing.length > 0)
      throw new CoppiceError(
        'ERR_INFRA_UNAUTHORIZED',
        `the credentials (account ${begun.account}) lack ${missing.join(', ')}: give them these, or have the control plane hosted`,
      );
    await this.#known.save(ctx, begun, receipt);
    const endpoint = await this.#layers.endpoint(account, wanted);
    await this.#known.save(ctx, { ...begun, endpoint, reached: hash }, begun);
    return placeOf(endpoint);
  }

  async observe(ctx: ProviderContext, pool: string): Promise<ControlPlaneGroupSeen> {
    const receipt = await this.#known.receipt(ctx);
    const asked = receipt?.wanted.pool?.desired ?? 0;
    if (asked === 0) return { asked, machines: [] };
    const seen = await this.#look(ctx, pool);
    // Credentials of another account list no machines although none is lost.
    if (seen.length === 0) await sameAccount(this.#managed, await accountOf(ctx), receipt);
    refuseEarlierKeys(ctx, seen);
    const isShort = seen.filter(isControlPlaneAlive).length < asked;
    const failure = isShort ? await this.#cloud.failure?.(await accountOf(ctx), pool) : undefined;
    return { asked, machines: machinesOf(ctx, seen), ...(failure !== undefined && { failure }) };
  }

  async list(ctx: ProviderContext, pool: string): Promise<Machine[]> {
    const receipt = await this.#known.receipt(ctx);
    if (!receipt?.wanted.pool) return [];
    try {
      const account = await accountOf(ctx);
      if (!this.#known.isFresh(ctx, account.now())) await this.#look(ctx, pool);
    } catch (error) {
      ctx.log.warn({ err: error, shoot: ctx.shootName }, 'machines could not be listed: they are told as last seen');
    }
    return machinesOf(ctx, this.#known.seen(ctx));
  }

  async reconcile(ctx: ProviderContext, pool: Pool, bootstrap: ControlPlaneGroupBootstrap): Promise<void> {
    const receipt = await this.#known.receipt(ctx);
    if (!receipt?.endpoint) throw new Error('the control plane has no endpoint yet');
    const account = await accountOf(ctx);
    const { endpoint } = receipt;
    const like = async (count: number) => {
      const wantedOf = await wantedPool(this.#cloud, ctx, account, { ...pool, count }, bootstrap, receipt);
      const wanted = { ...receipt.wanted, pool: wantedOf };
      return { wanted, hash: hashOf([this.#managed.version, wanted, endpoint]) };
    };
    const isApplied = ({ hash }: { hash: string }) => receipt.applied === hash && !receipt.isStale;
    const now = account.now();
    const asked = await like(pool.count);
    // Once a cluster has begun, a missing machine may hold its state, and a list may be stale: only `end` removes
    // machines.
    const isSettled = 'join' in bootstrap.first || now.getTime() - Date.parse(receipt.appliedAt ?? '') < MISSING_MS;
    if (isApplied(asked) && isSettled) return;
    const seen =
      this.#known.isFresh(ctx, now) && !receipt.isStale ? this.#known.seen(ctx) : await this.#look(ctx, pool.name);
    const alive = seen.filter(isControlPlaneAlive).length;
    // A group that is shrunk by number chooses its victims itself.
    const { wanted, hash } = alive > pool.count ? await like(alive) : asked;
    const isMissing = receipt.applied !== undefined && alive < pool.count && !isSettled;
    if (isApplied({ hash }) && !isMissing) return;
    const { applied: _, isStale: __, ending = [], ...rest } = receipt;
    const isStale = receipt.isStale || isMissing;
    const begun: ControlPlaneReceipt = { ...rest, account: await sameAccount(this.#managed, account, receipt), wanted };
    const marked = { ...begun, isStale, ending };
    await this.#known.save(ctx, marked, receipt);
    if (isStale) await this.#forget(account, pool.name, ending, seen);
    await this.#layers.machines({ ...account, refresh: isStale }, wanted, endpoint);
    await this.#known.save(ctx, { ...begun, applied: hash, appliedAt: account.now().toISOString() }, marked);
  }

  async mend(ctx: ProviderContext, pool: string, part: ControlPlanePart): Promise<Change[] | undefined> {
    const receipt = await this.#known.receipt(ctx);
    const { pool: wanted } = receipt?.wanted ?? {};
    if (!receipt?.endpoint || !wanted || wanted.holdsKeys || !this.#isReached(receipt)) return undefined;
    const account = await accountOf(ctx);
    await sameAccount(this.#managed, account, receipt);
    // A run sets the number of machines: it ends none only while that matches the existing number.
    const seen = part === 'machines' && this.#isMade(receipt) ? await this.#look(ctx, pool) : [];
    const fits = part === 'endpoint' || (seen.every(isControlPlaneAlive) && seen.length === wanted.desired);
    const touchesGroup = (planned: readonly Change[]): boolean =>
      planned.some(({ resource }) => resource.startsWith(`${this.#cloud.group.type} `));
    const remade = this.#cloud.controlPlane?.remade ?? [];
    const left = await this.#layers.mend(
      account,
      { ...receipt.wanted, pool: wanted },
      receipt.endpoint,
      part,
      // At Google the load balancer's backend is in the group's layer: it is repaired even while machines change.
      (planned) => harmsNoControlPlane(planned, this.#cloud.group, remade) && (fits || !touchesGroup(planned)),
    );
    return fits || left.length === 0 ? left : undefined;
  }

  async end(ctx: ProviderContext, pool: string, names: readonly string[]): Promise<void> {
    const receipt = await this.#known.receipt(ctx);
    if (!receipt?.wanted.pool) return;
    const seen = await this.#look(ctx, pool);
    const staying = seen.filter((machine) => isControlPlaneAlive(machine) && !names.includes(machine.name)).length;
    const wanted = { ...receipt.wanted, pool: { ...receipt.wanted.pool, desired: staying, maximum: staying } };
    const { applied: _, ...rest } = receipt;
    const ending = [...new Set([...(receipt.ending ?? []), ...names])].sort();
    // Written first: a surplus machine is noticed and ended again, a missing one would be awaited in vain.
    await this.#known.save(ctx, { ...rest, wanted, isStale: true, ending }, receipt);
    const account = await accountOf(ctx);
    await this.#known.remove(
      ctx,
      account,
      pool,
      seen.filter((machine) => isControlPlaneAlive(machine) && names.includes(machine.name)),
    );
    // Includes machines that somebody else stopped or is ending.
    const gone = ending.filter(
      (name) => !seen.some((machine) => machine.name === name && isControlPlaneAlive(machine)),
    );
    if (gone.length > 0) await this.#forget(account, pool, gone, seen);
  }

  /** Drift in the cloud including the network; undefined: a run is in progress. */
  async drift(ctx: ProviderContext, account: CloudContext): Promise<Change[] | undefined> {
    const receipt = await this.#known.receipt(ctx);
    if (!receipt?.endpoint || !receipt.wanted.pool || !this.#isMade(receipt)) return undefined;
    await sameAccount(this.#managed, account, receipt);
    const { pool } = receipt.wanted;
    const found = await this.#layers.drift(account, { ...receipt.wanted, pool }, receipt.endpoint);
    const now = await this.#known.receipt(ctx);
    return now && this.#isMade(now) && now.applied === receipt.applied ? found : undefined;
  }

  /** Deletes machines and endpoint; missing ones are fine. */
  async destroy(ctx: ProviderContext, account: CloudContext): Promise<void> {
    const receipt = await this.#known.receipt(ctx);
    if (receipt) await this.#layers.destroy(account, receipt.wanted);
  }

  /** Like destroy, with the network and the receipt. */
  async deleteAll(ctx: ProviderContext): Promise<void> {
    const receipt = await this.#known.receipt(ctx);
    if (receipt) {
      const account = await accountOf(ctx);
      await this.#layers.destroy(account, receipt.wanted);
      await this.#layers.destroyNetwork(account, receipt.wanted);
    }
    await this.#known.forget(ctx);
  }

  async #look(ctx: ProviderContext, pool: string): Promise<CloudMachine[]> {
    const machines = await this.#known.look(ctx, await accountOf(ctx), [pool]);
    return [...machines].sort((a, b) => a.createdAt.localeCompare(b.createdAt) || a.name.localeCompare(b.name));
  }

  async #forget(
    account: CloudContext,
    pool: string,
    names: readonly string[],
    seen: readonly CloudMachine[],
  ): Promise<void> {
    const alive = seen.filter(isControlPlaneAlive).map(({ name }) => name);
    const gone = names.filter((name) => !alive.includes(name));
    await this.#cloud.controlPlane?.forget(
      account,
      pool,
      gone,
      seen.map(({ name }) => name),
    );
  }

  #isReached({ reached, wanted }: ControlPlaneReceipt): boolean {
    return reached === hashOf([this.#managed.version, networkOf(wanted)]);
  }

  /** Whether the group is as last requested, by this version of the programs. */
  #isMade(one: ControlPlaneReceipt): boolean {
    const { applied, wanted, endpoint, isStale } = one;
    const isApplied = applied !== undefined && applied === hashOf([this.#managed.version, wanted, endpoint]);
    return isApplied && !isStale && this.#isReached(one);
  }
}

const placeOf = ({ host, port }: EndpointOutputs) => ({ host, port });

/** Revision of the encryption keys that a machine was made with. */
const revisionOf = ({ hash }: CloudMachine): number => Number(hash ?? 0);

/**
 * @throws when machines know newer keys than the seed, as after restoring the seed: replacements could not read Secrets
 */
function refuseEarlierKeys(
  { encryptionRevision = 0, namespace }: ProviderContext,
  seen: readonly CloudMachine[],
): void {
  const newer = seen.find((machine) => isControlPlaneAlive(machine) && revisionOf(machine) > encryptionRevision);
  if (newer)
    throw notYetConfigured(
      `Secret ${namespace}/pki of the seed has earlier keys of Secrets than machine ${newer.name}`,
      "Bring the Secret's newest text back, or no Secret of the cluster can be read any more.",
    );
}

/** Outdated by encryption keys alone: nodes report the Kubernetes version. */
function machinesOf({ encryptionRevision = 0 }: ProviderContext, seen: readonly CloudMachine[]): Machine[] {
  return seen.map((one) => {
    const { hash: _, ...machine } = one;
    const isOutdated = isControlPlaneAlive(one) && revisionOf(one) !== encryptionRevision;
    return { ...machine, ready: machine.phase === 'Running', ...(isOutdated && { outdated: true }) };
  });
}

async function wantedPool(
  cloud: MachineCloud,
  ctx: ProviderContext,
  account: CloudContext,
  pool: Pool,
  bootstrap: ControlPlaneGroupBootstrap,
  receipt: ControlPlaneReceipt,
): Promise<ControlPlanePool> {
  if (pool.spot)
    throw new CoppiceError(
      'ERR_CONFIGURATION_PROBLEM',
      'a control plane cannot be on machines that the cloud takes away',
    );
  const type = ctx.profile.spec.machineTypes.find(({ name }) => name === pool.machineType);
  const architecture = type?.architecture === 'arm64' ? 'arm64' : 'amd64';
  const before = receipt.wanted.pool;
  // The newest image changes over time: a pool keeps its first one.
  const kept = before?.architecture === architecture ? before : undefined;
  const { image, rootDevice } = kept ?? (await cloud.image(account, architecture));
  return {
    name: pool.name,
    machineType: pool.machineType,
    // A group at its minimum refuses to release a machine.
    minimum: 0,
    maximum: pool.count,
    desired: pool.count,
    spot: false,
    gpu: 0,
    architecture,
    labels: {},
    taints: [],
    zones: [...pool.zones].sort(),
    diskGiB: DISK_GIB,
    image,
    ...(rootDevice !== undefined && { rootDevice }),
    ...(ctx.encryptionRevision !== undefined && { hash: String(ctx.encryptionRevision) }),
    userData: controlPlaneUserData(ctx, pool, bootstrap),
    holdsKeys: 'begin' in bootstrap.first,
  };
}
