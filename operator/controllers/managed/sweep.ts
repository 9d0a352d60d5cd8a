import type {
  CloudContext,
  ManagedClusters,
  Owner,
  StateBackend,
  TaggedResource,
  WantedCluster,
} from '../../../providers/cloud.ts';
import type { DNSContext, ProviderDNS } from '../../../providers/dns.ts';
import { accountKeyOf, type Credentials, credentialsSourceOf } from '../../accounts/credentials.ts';
import { calledOwner, type KnownOwner, listOrphans, type Orphan, orphanedOwners } from '../../accounts/orphans.ts';
import type { CloudProfile } from '../../api/cloudprofile.ts';
import { errorText } from '../../api/errors.ts';
import { technicalID } from '../../api/names.ts';
import type { KubeClient } from '../../kube/client.ts';
import type { Log } from '../../kube/log.ts';
import { clusterIn } from './wish.ts';

/** Dependencies of a sweep. */
export interface SweepDependencies {
  /** UID of the garden's namespace kube-system. */
  readonly garden: string;
  readonly client: KubeClient;
  readonly log: Log;
  now(): Date;
  stateBackend(profile: CloudProfile, signal: AbortSignal): Promise<StateBackend>;
  /** All clusters at the time of the call. */
  owners(signal: AbortSignal): Promise<KnownOwner[]>;
  /** Recorded description of a deleted cluster, if any. */
  described(owner: Owner): WantedCluster | undefined;
}

/** Credentials and place of a sweep. */
export interface SweepAccount {
  readonly profile: CloudProfile;
  readonly clouds: ManagedClusters;
  readonly credentials: Credentials;
  readonly regions: readonly string[];
  /** DNS of the account, whose records are swept too. */
  readonly dns?: ProviderDNS | undefined;
}

/** Pseudo type of a DNS record among cloud resources. */
const RECORD = 'dns:record';
/** Pseudo region of global resources. */
const GLOBAL = 'global';

/** An orphan with the credentials that found it. */
export interface FoundOrphan extends Orphan {
  readonly by: SweepAccount;
}

/** Result of a sweep; `gaps`: one line per unreadable place. */
interface Sweep {
  readonly found: readonly FoundOrphan[];
  readonly gaps: readonly string[];
}

/** Lists resources with our tags and without a cluster. Changes nothing. */
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
        gaps.push(
          `${by.profile.metadata.name} ${region} with ${credentialsSourceOf(by.credentials.use)}: ${errorText(error)}`,
        );
      }
    }
    try {
      const claimed = (await by.dns?.claimed(dnsContext(deps, by, signal))) ?? [];
      const tagged = claimed.map(({ name, owner }) => ({ id: name, type: RECORD, region: GLOBAL, owner }));
      seen.push({ by, tagged });
    } catch (error) {
      signal.throwIfAborted();
      gaps.push(
        `DNS of ${by.profile.metadata.name} with ${credentialsSourceOf(by.credentials.use)}: ${errorText(error)}`,
      );
    }
  }
  // List owners after the clouds, so that new resources find theirs.
  const known = await deps.owners(signal);
  const found = new Map<string, FoundOrphan>();
  for (const { by, tagged } of seen) {
    for (const orphan of listOrphans(tagged, known, deps.garden, deps.now(), by.profile)) {
      // Two Secrets may lead to one account.
      const key = `${by.profile.spec.type}/${orphan.region}/${orphan.id}`;
      if (!found.has(key)) found.set(key, { ...orphan, by });
    }
  }
  return { found: [...found.values()], gaps };
}

/** A resource that could not be deleted. */
interface Unremoved {
  /** UID of its owner; absent for records. */
  uid?: string;
  /** Description with the reason. */
  line: string;
}

/** Deletes orphans owner by owner. Skips owners that exist again. */
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
 * Lines about remaining orphans without an error: pure.
 * @param left orphans found again after `removeOrphans`, which had these failures
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

/** Whether the cluster has the owner's name, or technical ID if only that is known. */
const isOf = ({ namespace, name }: KnownOwner, owner: Owner): boolean =>
  (namespace === owner.namespace && name === owner.name) || technicalID(namespace, name) === owner.technicalID;

/** Regions in which to delete an owner's orphans. Global ones are deleted with a region's. */
function regionsOf({ uid }: Owner, orphaned: readonly FoundOrphan[]): string[] {
  const theirs = orphaned.filter((orphan) => orphan.owner.uid === uid);
  const regions = new Set(theirs.map(({ region }) => region).filter((region) => region !== GLOBAL));
  return regions.size > 0 ? [...regions] : theirs.slice(0, 1).flatMap(({ by }) => by.regions.slice(0, 1));
}

/** Deletes orphaned records one by one, after asking the zone for the owner again. */
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
