import { openProviders, type Providers } from '../../../providers/index.ts';
import {
  accountKeyOf,
  type CredentialsUse,
  credentialsOf,
  credentialsSourceOf,
  usedByBinding,
} from '../../accounts/credentials.ts';
import { IdentityTokens } from '../../accounts/identity-tokens.ts';
import { type CredentialsSource, obtainCredentials } from '../../accounts/obtain-credentials.ts';
import { calledOwner } from '../../accounts/orphans.ts';
import { stateBackend } from '../../accounts/state-backend.ts';
import { type CloudProfile, providerOf } from '../../api/cloudprofile.ts';
import type { CredentialsBinding } from '../../api/credentialsbinding.ts';
import { dnsCredentialsRef, dnsTypeOf } from '../../api/dns.ts';
import { errorText } from '../../api/errors.ts';
import type { Seed } from '../../api/seed.ts';
import { profileNameOf, type WorkerCluster } from '../../api/workercluster.ts';
import type { WorkloadIdentity } from '../../api/workloadidentity.ts';
import {
  clusterOfReceipt,
  type ManagedReceipt,
  managedReceiptIn,
  managedReceipts,
  RECEIPT_SELECTOR,
} from '../../controllers/managed/receipt.ts';
import {
  type FoundOrphan,
  findOrphans,
  removeOrphans,
  type SweepAccount,
  type SweepDependencies,
  stillThere,
} from '../../controllers/managed/sweep.ts';
import { dataDirectory, pulumiEngine, pulumiHome } from '../../garden/toolchain/pulumi-engine.ts';
import type { KubeClient } from '../../kube/client.ts';
import { silent } from '../../kube/log.ts';
import {
  CLOUDPROFILES,
  CREDENTIALSBINDINGS,
  NAMESPACES,
  SECRETS,
  SEEDS,
  type Secret,
  SHOOTS,
  WORKERCLUSTERS,
  WORKLOADIDENTITIES,
} from '../../kube/resources.ts';
import { connect } from '../connect.ts';
import type { Context } from '../context.ts';
import { CliError, EXIT } from '../errors.ts';
import { printObject } from '../output.ts';
import { formatAge } from '../render/age.ts';
import { renderTable } from '../render/table.ts';

/** Objects of the garden that tell where to search. */
interface Picture {
  profiles: CloudProfile[];
  bindings: CredentialsBinding[];
  clusters: WorkerCluster[];
  seeds: Seed[];
  receipts: ManagedReceipt[];
}

/** `coppice sweep [--provider P] [--region R] [--yes]`. */
export async function run(context: Context): Promise<number | undefined> {
  const { options, terminal, signal, env } = context;
  const { client } = await connect(context);
  const namespace = env.COPPICE_NAMESPACE ?? 'kube-system';
  const picture = await look(client, namespace, signal);
  const data = dataDirectory(env);
  const providers = openProviders({ engine: pulumiEngine(env, silent), home: pulumiHome(env), log: silent });
  try {
    const deps: SweepDependencies = {
      client,
      garden: (await client.get(NAMESPACES, 'kube-system', undefined, { signal })).metadata.uid ?? '',
      log: silent,
      now: () => new Date(),
      stateBackend: (profile, stop) => stateBackend({ garden: client, namespace, directory: data }, profile, stop),
      owners: async (stop) => {
        const kinds = await Promise.all([WORKERCLUSTERS, SHOOTS].map((kind) => client.list(kind, { signal: stop })));
        return kinds.flatMap(({ items }) => items.map(ownerOf));
      },
      described: ({ uid }) => picture.receipts.find(({ owner }) => owner.uid === uid)?.cluster,
    };
    const wanted = { provider: options.text('provider'), region: options.text('region') };
    const unopened: string[] = [];
    const accounts = await accountsOf(client, picture, providers, wanted, (gap) => void unopened.push(gap), signal);
    for (const gap of unopened) note(context, `could not check: ${gap}`);
    if (accounts.length === 0) {
      if (unopened.length > 0) return EXIT.failed;
      throw new CliError('neither a cluster nor a CredentialsBinding names credentials of a cloud', {
        exitCode: EXIT.notFound,
        advice: 'create a CredentialsBinding for the account, in any namespace',
      });
    }
    const { found, gaps } = await findOrphans(deps, accounts, signal);
    const isWhole = unopened.length + gaps.length === 0;
    if (!options.flag('yes')) {
      await show(context, found, isWhole);
      for (const gap of gaps) note(context, `could not check: ${gap}`);
      if (found.length > 0) terminal.note('Nothing was removed; to remove all of this, run "coppice sweep --yes".');
      return isWhole ? EXIT.ok : EXIT.failed;
    }
    const failures = await removeOrphans(deps, found, signal, (owner) =>
      terminal.note(`Removing what ${calledOwner(owner)} left behind ...`),
    );
    const after = await findOrphans(deps, accounts, signal);
    await forget(client, namespace, picture, after.found, found, signal);
    await show(context, after.found, isWhole && after.gaps.length === 0);
    for (const line of [...gaps, ...after.gaps]) note(context, `could not check: ${line}`);
    for (const { line } of failures) note(context, `not removed: ${line}`);
    for (const line of stillThere(after.found, failures)) note(context, `not removed: ${line}`);
    terminal.note(`${found.length - after.found.length} of ${found.length} resources were removed.`);
    return isWhole && after.found.length + failures.length === 0 ? EXIT.ok : EXIT.failed;
  } finally {
    await providers.close();
  }
}

const ownerOf = ({
  metadata: { uid = '', name, namespace = '' },
}: {
  metadata: { uid?: string; name: string; namespace?: string };
}) => ({
  uid,
  name,
  namespace,
});

const note = ({ terminal }: Context, text: string): void =>
  terminal.note(`${terminal.notePaint('bad', 'error:')} ${text}`);

async function look(client: KubeClient, namespace: string, signal: AbortSignal): Promise<Picture> {
  const [profiles, bindings, clusters, seeds, secrets] = await Promise.all([
    client.list<CloudProfile>(CLOUDPROFILES, { signal }),
    client.list<CredentialsBinding>(CREDENTIALSBINDINGS, { signal }),
    client.list<WorkerCluster>(WORKERCLUSTERS, { signal }),
    client.list<Seed>(SEEDS, { signal }),
    // Only this namespace: anybody could have written receipts in tenants' namespaces.
    client.list<Secret>(SECRETS, { labelSelector: RECEIPT_SELECTOR, namespace, signal }),
  ]);
  return {
    profiles: profiles.items,
    bindings: bindings.items,
    clusters: clusters.items,
    seeds: seeds.items,
    receipts: secrets.items.flatMap((secret) => managedReceiptIn(secret) ?? []),
  };
}

type DNSRef = { kind?: string | undefined; name: string };

/**
 * Clouds that each credential leads to: by bindings, clusters and their DNS names, domains of seeds, and receipts of deleted clusters.
 */
function usesOf({
  profiles,
  bindings,
  clusters,
  seeds,
  receipts,
}: Picture): Map<string, { profile: CloudProfile; use: CredentialsUse }> {
  const uses = new Map<string, { profile: CloudProfile; use: CredentialsUse }>();
  const add = (profile: CloudProfile | undefined, find: () => CredentialsUse) => {
    if (!profile) return;
    try {
      const use = find();
      uses.set(`${profile.metadata.name}/${accountKeyOf(use)}`, { profile, use });
    } catch {
      // Skip what leads to no cloud; its own status says so.
    }
  };
  const named = (name: string) => profiles.find((profile) => profile.metadata.name === name);
  const binding = (namespace: string, name: string) =>
    bindings.find(({ metadata }) => metadata.namespace === namespace && metadata.name === name);
  for (const each of bindings) {
    for (const profile of profiles.filter(({ spec }) => spec.type === each.provider.type))
      add(profile, () => usedByBinding(each));
  }
  for (const cluster of clusters) {
    const profile = named(profileNameOf(cluster));
    if (cluster.spec.credentialsRef && profile) add(profile, () => credentialsOf(cluster, profile.spec.type, binding));
  }
  const zones = (type: string | undefined, namespace: string, ref: DNSRef | undefined) => {
    const cloud = type && dnsTypeOf(type).provider;
    if (!ref) return;
    for (const profile of profiles.filter(({ spec }) => spec.type === cloud))
      add(profile, () => {
        if (ref.kind === 'WorkloadIdentity') return { namespace, identity: ref.name, type: profile.spec.type };
        if (ref.kind !== 'CredentialsBinding') return { namespace, secret: ref.name };
        return usedByBinding(binding(namespace, ref.name)!);
      });
  };
  for (const { metadata, spec } of clusters)
    for (const provider of spec.dns?.providers ?? [])
      zones(provider.type, metadata.namespace ?? '', dnsCredentialsRef(provider));
  for (const { internal } of seeds.flatMap(({ spec }) => spec.dns ?? []))
    zones(internal?.type, internal?.credentialsRef?.namespace ?? 'kube-system', internal?.credentialsRef);
  for (const receipt of receipts) add(named(receipt.profile), () => receipt.credentials);
  return uses;
}

async function accountsOf(
  client: KubeClient,
  picture: Picture,
  providers: Providers,
  wanted: { provider: string | undefined; region: string | undefined },
  told: (gap: string) => void,
  signal: AbortSignal,
): Promise<SweepAccount[]> {
  const accounts: SweepAccount[] = [];
  const source: CredentialsSource = {
    secret: (namespace, name) => client.getOrUndefined<Secret>(SECRETS, name, namespace, { signal }),
    identity: (namespace, name) =>
      client.getOrUndefined<WorkloadIdentity>(WORKLOADIDENTITIES, name, namespace, { signal }),
    tokens: new IdentityTokens(client, () => new Date()),
  };
  for (const { profile, use } of usesOf(picture).values()) {
    const { managed: clouds, dns } = providers.named(providerOf(profile)) ?? {};
    if (!clouds?.tagged) continue;
    if (
      wanted.provider !== undefined &&
      wanted.provider !== profile.spec.type &&
      wanted.provider !== profile.metadata.name
    )
      continue;
    const credentials = await obtainCredentials(source, use, signal).catch((error: unknown) => {
      signal.throwIfAborted();
      told(`${profile.metadata.name} with ${credentialsSourceOf(use)}: ${errorText(error)}`);
    });
    if (!credentials) continue;
    const regions = profile.spec.regions.map(({ name }) => name);
    accounts.push({
      profile,
      clouds,
      credentials,
      // DNS records have no region.
      ...(wanted.region === undefined ? { regions, dns } : { regions: [wanted.region] }),
    });
  }
  return accounts;
}

/** Deletes receipts of clusters that have nothing left. */
async function forget(
  client: KubeClient,
  namespace: string,
  { receipts, clusters }: Picture,
  left: readonly FoundOrphan[],
  found: readonly FoundOrphan[],
  signal: AbortSignal,
): Promise<void> {
  const swept = new Set(found.map(({ owner }) => owner.uid));
  for (const { uid } of left.map(({ owner }) => owner)) swept.delete(uid);
  const stored = managedReceipts(client, namespace);
  for (const receipt of receipts) {
    const { uid } = receipt.owner;
    if (!swept.has(uid) || clusters.some(({ metadata }) => metadata.uid === uid)) continue;
    await stored.remove(clusterOfReceipt(receipt), signal);
  }
}

/** @param isWhole whether every place could be searched */
async function show({ options, terminal }: Context, found: readonly FoundOrphan[], isWhole: boolean): Promise<void> {
  const format = options.text('output');
  if (format === 'json' || format === 'yaml') {
    await printObject(terminal, format, { orphans: found.map(plain) });
    return;
  }
  if (found.length === 0) {
    terminal.note(
      isWhole
        ? 'No orphans: every cloud resource with the tags of this garden belongs to a cluster.'
        : 'No orphans were found where it could be checked.',
    );
    return;
  }
  const rows = found.map(({ by, region, type, id, owner, ageMs, price }) => [
    by.profile.metadata.name,
    region,
    type,
    id,
    `${owner.namespace ?? '?'}/${owner.name ?? owner.technicalID ?? '?'}`,
    ageMs === undefined ? '<unknown>' : formatAge(ageMs),
    price ? `${price.hourly} ${price.currency}/h` : '<unknown>',
  ]);
  const width = terminal.width === undefined ? {} : { width: terminal.width };
  const header = ['PROVIDER', 'REGION', 'TYPE', 'ID', 'OWNER', 'AGE', 'PRICE'];
  terminal.print(...renderTable(header, rows, { ...width, paint: terminal.paint }));
}

/** An orphan for JSON, without its credentials. */
const plain = ({ by, ageMs, ...orphan }: FoundOrphan) => ({
  provider: by.profile.metadata.name,
  ...orphan,
  ...(ageMs !== undefined && { ageSeconds: Math.round(ageMs / 1000) }),
});
