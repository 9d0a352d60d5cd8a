import type {
  CloudContext,
  ManagedCluster,
  ManagedClusters,
  Owner,
  StateBackend,
  TaggedResource,
} from '../../../providers/cloud.ts';
import type { DNSContext, ProviderDNS } from '../../../providers/dns.ts';
import type { CloudProfile } from '../../api/cloudprofile.ts';
import { errorText } from '../../api/errors.ts';
import type { KubeClient } from '../../kube/client.ts';
import type { Log } from '../../kube/log.ts';
import { accountKeyOf, type Credentials, sourceOf } from '../credentials/resolve.ts';
import { type KnownOwner, type Orphan, orphanedOwners, orphans } from './orphans.ts';
import { clusterIn } from './wish.ts';

/** What a sweep works with. */
export interface SweepWorld {
  /** UID of the garden's namespace kube-system. */
  readonly garden: string;
  readonly client: KubeClient;
  readonly log: Log;
  now(): Date;
  stateBackend(profile: CloudProfile, signal: AbortSignal): Promise<StateBackend>;
  /** All clusters that there are when it is asked. */
  owners(signal: AbortSignal): Promise<KnownOwner[]>;
  /** How a cluster that is no more was described, where that is remembered. */
  described(owner: Owner): ManagedCluster | undefined;
}

/** Credentials to look with, and where. */
export interface SweepAccount {
  readonly profile: CloudProfile;
  readonly clouds: ManagedClusters;
  readonly credentials: Credentials;
  readonly regions: readonly string[];
  /** The account's zones, where records are looked for as well. */
  readonly dns?: ProviderDNS | undefined;
}

/** Type of a record in a DNS zone, among what a cloud has. */
const RECORD = 'dns:record';

/** An orphan, and by whose credentials it was found. */
export interface FoundOrphan extends Orphan {
  readonly by: SweepAccount;
}

/** What a sweep found; `gaps`: one line for each place that could not be looked at. */
export interface Sweep {
  readonly found: readonly FoundOrphan[];
  readonly gaps: readonly string[];
}

/** Lists what bears our tags but belongs to no cluster. Changes nothing. */
export async function findOrphans(
  world: SweepWorld,
  accounts: readonly SweepAccount[],
  signal: AbortSignal,
): Promise<Sweep> {
  const gaps: string[] = [];
  const seen: { by: SweepAccount; tagged: TaggedResource[] }[] = [];
  for (const by of accounts) {
    for (const region of by.regions) {
      try {
        seen.push({ by, tagged: (await by.clouds.tagged?.(await context(world, by, region, signal))) ?? [] });
      } catch (error) {
        signal.throwIfAborted();
        gaps.push(`${by.profile.metadata.name} ${region} with ${sourceOf(by.credentials.use)}: ${errorText(error)}`);
      }
    }
    try {
      const claimed = (await by.dns?.claimed(dnsContext(world, by, signal))) ?? [];
      const tagged = claimed.map(({ name, owner }) => ({ id: name, type: RECORD, region: 'global', owner }));
      seen.push({ by, tagged });
    } catch (error) {
      signal.throwIfAborted();
      gaps.push(`DNS of ${by.profile.metadata.name} with ${sourceOf(by.credentials.use)}: ${errorText(error)}`);
    }
  }
  // After what is in the clouds, so that what was made meanwhile finds its owner.
  const known = await world.owners(signal);
  const found = new Map<string, FoundOrphan>();
  for (const { by, tagged } of seen) {
    for (const orphan of orphans(tagged, known, world.garden, world.now(), by.profile)) {
      // Two Secrets may lead to one account.
      const key = `${by.profile.spec.type}/${orphan.region}/${orphan.id}`;
      if (!found.has(key)) found.set(key, { ...orphan, by });
    }
  }
  return { found: [...found.values()], gaps };
}

/**
 * Takes away what was found, owner by owner. An owner that has come back since is left alone.
 * @returns one line for each that could not be taken away
 */
export async function removeOrphans(
  world: SweepWorld,
  found: readonly FoundOrphan[],
  signal: AbortSignal,
  told: (owner: Owner) => void = () => {},
): Promise<string[]> {
  const failures: string[] = [];
  const places = Map.groupBy(found, ({ by, region }) => `${keyOf(by)}/${region}`);
  for (const orphaned of places.values()) {
    const { by, region } = orphaned[0]!;
    for (const owner of orphanedOwners(orphaned)) {
      const known = await world.owners(signal);
      if (known.some(({ namespace, name }) => namespace === owner.namespace && name === owner.name)) continue;
      told(owner);
      try {
        const ctx = { ...(await context(world, by, region, signal)), owner: { ...owner, garden: world.garden } };
        await by.clouds.destroy(ctx, world.described(owner) ?? clusterIn(region, by.profile));
      } catch (error) {
        signal.throwIfAborted();
        failures.push(`what ${owner.namespace}/${owner.name} left in ${region}: ${errorText(error)}`);
      }
    }
  }
  return [...failures, ...(await removeRecords(world, found, signal))];
}

/** The same for records, one by one: whose one is, is asked of its zone again. */
async function removeRecords(world: SweepWorld, found: readonly FoundOrphan[], signal: AbortSignal): Promise<string[]> {
  const failures: string[] = [];
  const records = found.filter(({ type }) => type === RECORD);
  for (const [by, theirs] of Map.groupBy(records, (one) => one.by)) {
    try {
      const ctx = dnsContext(world, by, signal);
      const names = new Set(theirs.map(({ id }) => id));
      const claimed = (await by.dns!.claimed(ctx)).filter(({ name }) => names.has(name));
      const known = new Set((await world.owners(signal)).map(({ namespace, name }) => `${namespace}/${name}`));
      for (const { zone, name, owner } of claimed) {
        if (owner.garden !== world.garden || known.has(`${owner.namespace}/${owner.name}`)) continue;
        await by.dns!.remove({ ...ctx, owner }, zone, name);
      }
    } catch (error) {
      signal.throwIfAborted();
      failures.push(`records ${theirs.map(({ id }) => id).join(', ')}: ${errorText(error)}`);
    }
  }
  return failures;
}

const dnsContext = (
  world: SweepWorld,
  { profile, credentials: { use, values }, regions }: SweepAccount,
  signal: AbortSignal,
): Omit<DNSContext, 'owner'> => ({
  account: { id: accountKeyOf(use), credentials: values },
  objects: { client: world.client, namespace: use.namespace },
  profile,
  region: profile.spec.defaults?.region ?? regions[0] ?? 'us-east-1',
  log: world.log,
  signal,
  now: () => world.now(),
});

const keyOf = ({ profile, credentials: { use } }: SweepAccount): string =>
  `${profile.metadata.name}/${accountKeyOf(use)}`;

async function context(
  world: SweepWorld,
  { profile, credentials }: SweepAccount,
  region: string,
  signal: AbortSignal,
): Promise<Omit<CloudContext, 'owner'>> {
  return {
    account: { id: accountKeyOf(credentials.use), credentials: credentials.values },
    region,
    profile,
    state: await world.stateBackend(profile, signal),
    log: world.log,
    signal,
    now: () => world.now(),
  };
}
