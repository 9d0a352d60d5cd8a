import type {
  CloudContext,
  ManagedCluster,
  ManagedClusters,
  Owner,
  StateBackend,
  TaggedResource,
} from '../../../providers/cloud.ts';
import type { DNSContext, ProviderDNS } from '../../../providers/dns.ts';
import { accountKeyOf, type Credentials, sourceOf } from '../../accounts/credentials.ts';
import { calledOwner, type KnownOwner, type Orphan, orphanedOwners, orphans } from '../../accounts/orphans.ts';
import type { CloudProfile } from '../../api/cloudprofile.ts';
import { errorText } from '../../api/errors.ts';
import { technicalID } from '../../api/names.ts';
import type { KubeClient } from '../../kube/client.ts';
import type { Log } from '../../kube/log.ts';
import { clusterIn } from './wish.ts';

/** What a sweep works with. */
export interface SweepDependencies {
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
/** Region of what is in none. */
const GLOBAL = 'global';

/** An orphan, and by whose credentials it was found. */
export interface FoundOrphan extends Orphan {
  readonly by: SweepAccount;
}

/** What a sweep found; `gaps`: one line for each place that could not be looked at. */
interface Sweep {
  readonly found: readonly FoundOrphan[];
  readonly gaps: readonly string[];
}

/** Lists what bears our tags but belongs to no cluster. Changes nothing. */
export async function findOrphans(
  deps: SweepDependencies,
  accounts: readonly SweepAccount[],
  signal: AbortSignal,
): Promise<Sweep> {
  const gaps: string[] = [];
  const seen: { by: SweepAccount; tagged: TaggedResource[] }[] = [];
  for (const by of accounts) {
    for (const region of by.regions) {
      try {
        seen.push({ by, tagged: (await by.clouds.tagged?.(await context(deps, by, region, signal))) ?? [] });
      } catch (error) {
        signal.throwIfAborted();
        gaps.push(`${by.profile.metadata.name} ${region} with ${sourceOf(by.credentials.use)}: ${errorText(error)}`);
      }
    }
    try {
      const claimed = (await by.dns?.claimed(dnsContext(deps, by, signal))) ?? [];
      const tagged = claimed.map(({ name, owner }) => ({ id: name, type: RECORD, region: GLOBAL, owner }));
      seen.push({ by, tagged });
    } catch (error) {
      signal.throwIfAborted();
      gaps.push(`DNS of ${by.profile.metadata.name} with ${sourceOf(by.credentials.use)}: ${errorText(error)}`);
    }
  }
  // After what is in the clouds, so that what was made meanwhile finds its owner.
  const known = await deps.owners(signal);
  const found = new Map<string, FoundOrphan>();
  for (const { by, tagged } of seen) {
    for (const orphan of orphans(tagged, known, deps.garden, deps.now(), by.profile)) {
      // Two Secrets may lead to one account.
      const key = `${by.profile.spec.type}/${orphan.region}/${orphan.id}`;
      if (!found.has(key)) found.set(key, { ...orphan, by });
    }
  }
  return { found: [...found.values()], gaps };
}

/** Something that could not be taken away. */
interface Unremoved {
  /** Whose it is; absent for records. */
  uid?: string;
  /** What it is, and why. */
  line: string;
}

/** Takes away what was found, owner by owner. An owner that has come back since is left alone. */
export async function removeOrphans(
  deps: SweepDependencies,
  found: readonly FoundOrphan[],
  signal: AbortSignal,
  told: (owner: Owner) => void = () => {},
): Promise<Unremoved[]> {
  const failures: Unremoved[] = [];
  for (const orphaned of Map.groupBy(found, ({ by }) => keyOf(by)).values()) {
    const { by } = orphaned[0]!;
    for (const owner of orphanedOwners(orphaned)) {
      for (const region of regionsOf(owner, orphaned)) {
        const known = await deps.owners(signal);
        if (known.some((one) => isOf(one, owner))) continue;
        told(owner);
        try {
          const ctx = { ...(await context(deps, by, region, signal)), owner: { ...owner, garden: deps.garden } };
          const described = deps.described(owner);
          const place = described ?? clusterIn(region, by.profile);
          if (described || !by.clouds.destroyLeftOvers) await by.clouds.destroy(ctx, place);
          else await by.clouds.destroyLeftOvers(ctx, place);
        } catch (error) {
          signal.throwIfAborted();
          const { uid } = owner;
          failures.push({ uid, line: `what ${calledOwner(owner)} left in ${region}: ${errorText(error)}` });
        }
      }
    }
  }
  return [...failures, ...(await removeRecords(deps, found, signal))];
}

/**
 * One line for each thing that is there still though nothing went wrong: pure.
 * @param left what was found once more after `removeOrphans`, which had these failures
 */
export function stillThere(left: readonly FoundOrphan[], failures: readonly Unremoved[]): string[] {
  const explained = new Set(failures.map(({ uid }) => uid));
  return left
    .filter(({ type, owner }) => type !== RECORD && (owner.uid === undefined || !explained.has(owner.uid)))
    .map((orphan) => {
      const what = `${orphan.type} ${orphan.id} in ${orphan.region}`;
      if (orphan.owner.uid === undefined)
        return `${what}: its tags do not say which cluster it was of; remove it by hand`;
      return `${what}: it is nothing that Coppice itself makes, or the cloud's lists are late; sweep again in some minutes, then remove it by hand`;
    });
}

/** Whether the cluster is of the owner's name: also of an owner of whom nothing but the technical ID is told. */
const isOf = ({ namespace, name }: KnownOwner, owner: Owner): boolean =>
  (namespace === owner.namespace && name === owner.name) || technicalID(namespace, name) === owner.technicalID;

/** Where to take away what an owner left. What is in no region (GLOBAL) goes with what is in one. */
function regionsOf({ uid }: Owner, orphaned: readonly FoundOrphan[]): string[] {
  const theirs = orphaned.filter((orphan) => orphan.owner.uid === uid);
  const regions = new Set(theirs.map(({ region }) => region).filter((region) => region !== GLOBAL));
  return regions.size > 0 ? [...regions] : theirs.slice(0, 1).flatMap(({ by }) => by.regions.slice(0, 1));
}

/** The same for records, one by one: whose one is, is asked of its zone again. */
async function removeRecords(
  deps: SweepDependencies,
  found: readonly FoundOrphan[],
  signal: AbortSignal,
): Promise<Unremoved[]> {
  const failures: Unremoved[] = [];
  const records = found.filter(({ type }) => type === RECORD);
  for (const [by, theirs] of Map.groupBy(records, (one) => one.by)) {
    try {
      const ctx = dnsContext(deps, by, signal);
      const names = new Set(theirs.map(({ id }) => id));
      const claimed = (await by.dns!.claimed(ctx)).filter(({ name }) => names.has(name));
      const known = new Set((await deps.owners(signal)).map(({ namespace, name }) => `${namespace}/${name}`));
      for (const { zone, name, owner } of claimed) {
        if (owner.garden !== deps.garden || known.has(`${owner.namespace}/${owner.name}`)) continue;
        await by.dns!.remove({ ...ctx, owner }, zone, name);
      }
    } catch (error) {
      signal.throwIfAborted();
      failures.push({ line: `records ${theirs.map(({ id }) => id).join(', ')}: ${errorText(error)}` });
    }
  }
  return failures;
}

const dnsContext = (
  deps: SweepDependencies,
  { profile, credentials: { use, values }, regions }: SweepAccount,
  signal: AbortSignal,
): Omit<DNSContext, 'owner'> => ({
  account: { id: accountKeyOf(use), credentials: values },
  objects: { client: deps.client, namespace: use.namespace },
  profile,
  region: profile.spec.defaults?.region ?? regions[0] ?? 'us-east-1',
  log: deps.log,
  signal,
  now: () => deps.now(),
});

const keyOf = ({ profile, credentials: { use } }: SweepAccount): string =>
  `${profile.metadata.name}/${accountKeyOf(use)}`;

async function context(
  deps: SweepDependencies,
  { profile, credentials }: SweepAccount,
  region: string,
  signal: AbortSignal,
): Promise<Omit<CloudContext, 'owner'>> {
  return {
    account: { id: accountKeyOf(credentials.use), credentials: credentials.values },
    region,
    profile,
    state: await deps.stateBackend(profile, signal),
    log: deps.log,
    signal,
    now: () => deps.now(),
  };
}
