import type { CloudContext, ManagedClusters } from '../../../providers/cloud.ts';
import type { CloudProfile } from '../../api/cloudprofile.ts';
import type { CredentialsBinding, CredentialsBindingStatus } from '../../api/credentialsbinding.ts';
import { CoppiceError, configurationProblem, errorText, isRetryable, notYetConfigured } from '../../api/errors.ts';
import { FINALIZER, LABELS, ROLES } from '../../api/group.ts';
import { fitted } from '../../api/names.ts';
import type { WorkerCluster } from '../../api/workercluster.ts';
import type { Informer } from '../../kube/informer.ts';
import { CREDENTIALSBINDINGS, SECRETS, type Secret } from '../../kube/resources.ts';
import { say, withConditions } from '../conditions.ts';
import { credentialsSecret, type GardenSide } from '../managed/garden-world.ts';
import { stateBackend } from '../managed/state-backend.ts';
import { writeStatus } from '../status-writer.ts';
import { type CredentialsUse, credentialsIn, secretOfBinding } from './resolve.ts';

/** What the controller of credentials works with. */
export interface CredentialsWorld extends GardenSide {
  readonly profiles: Informer<CloudProfile>;
  /** The managed service of a profile, for somebody who has credentials. */
  clouds(profile: CloudProfile): ManagedClusters | undefined;
}

/** Selects Secrets with credentials that are marked as used. */
export const CREDENTIALS_SELECTOR = `${LABELS.role}=${ROLES.credentials}`;

/**
 * Looks at all credentials of one namespace: says of each binding whether the cloud accepts it, and keeps bindings and Secrets
 * from going while clusters use them, because without credentials nobody can take a cluster away. Marked Secrets are watched.
 */
export async function reconcileCredentials(
  world: CredentialsWorld,
  namespace: string,
  signal: AbortSignal,
): Promise<void> {
  const clusters = world.clusters.list().filter((cluster) => cluster.metadata.namespace === namespace);
  const bindings = world.bindings.list().filter((binding) => binding.metadata.namespace === namespace);
  let failure: unknown;
  const named = usedNames(clusters, new Set(bindings.map((binding) => binding.metadata.name)));
  for (const secret of world.credentials.list()) {
    const { name, namespace: its } = secret.metadata;
    const wanted = named.secrets.has(name) || bindings.some((binding) => leadsTo(binding) === name);
    if (its === namespace && !wanted) await hold(world, SECRETS, world.credentials, secret, false, signal);
  }
  for (const name of named.secrets) {
    const secret = await credentialsSecret(world, { namespace, secret: name }, signal);
    if (secret) await hold(world, SECRETS, world.credentials, secret, true, signal);
    // Nothing tells of one that is made later: it bears no mark yet.
    else failure = notYetConfigured(`there is no Secret ${namespace}/${name} with credentials`);
  }
  for (const binding of bindings) {
    const used = named.bindings.has(binding.metadata.name);
    await hold(world, CREDENTIALSBINDINGS, world.bindings, binding, used, signal);
    if (binding.metadata.deletionTimestamp && !used) continue;
    failure = (await reconcileBinding(world, binding, used, signal)) ?? failure;
  }
  if (failure) throw failure;
}

/** Which bindings and Secrets clusters name themselves. */
export function usedNames(
  clusters: readonly WorkerCluster[],
  bindings: ReadonlySet<string>,
): { bindings: Set<string>; secrets: Set<string> } {
  const used = { bindings: new Set<string>(), secrets: new Set<string>() };
  for (const { spec, metadata } of clusters) {
    const elsewhere = (spec.fallback ?? []).flatMap((place) => place.credentialsRef ?? []);
    for (const ref of [...(spec.credentialsRef ? [spec.credentialsRef] : []), ...elsewhere]) {
      if ('namespace' in ref && ref.namespace !== undefined && ref.namespace !== metadata.namespace) continue;
      const isBinding = ref.kind === 'CredentialsBinding' || (ref.kind === undefined && bindings.has(ref.name));
      (isBinding ? used.bindings : used.secrets).add(ref.name);
    }
  }
  return used;
}

const leadsTo = (binding: CredentialsBinding): string | undefined => {
  try {
    return secretOfBinding(binding).secret;
  } catch {
    return undefined;
  }
};

/** Puts our finalizer and mark on an object, or takes the finalizer off; no write when it is so already. */
async function hold<T extends Secret | CredentialsBinding>(
  { garden }: CredentialsWorld,
  resource: typeof SECRETS,
  cache: Informer<T>,
  object: T,
  held: boolean,
  signal: AbortSignal,
): Promise<void> {
  const { name, namespace, finalizers = [], labels, deletionTimestamp, resourceVersion } = object.metadata;
  const isHeld = finalizers.includes(FINALIZER);
  const isMarked = labels?.[LABELS.role] === ROLES.credentials || object.kind !== 'Secret';
  if (isHeld === held && (isMarked || !held)) return;
  // To what is on its way out no finalizer can be added.
  if (held && deletionTimestamp) return;
  const others = finalizers.filter((finalizer) => finalizer !== FINALIZER);
  const metadata = {
    finalizers: held ? [...others, FINALIZER] : others,
    ...(held && object.kind === 'Secret' && { labels: { [LABELS.role]: ROLES.credentials } }),
    resourceVersion,
  };
  cache.absorb(await garden.mergePatch<T>(resource, name, namespace, { metadata }, { signal }));
}

/** @returns what is worth another try. */
async function reconcileBinding(
  world: CredentialsWorld,
  binding: CredentialsBinding,
  used: boolean,
  signal: AbortSignal,
): Promise<unknown> {
  let account: string | undefined;
  let failure: unknown;
  try {
    account = await accountOf(world, binding, signal);
  } catch (error) {
    if (signal.aborted) throw error;
    failure = error;
  }
  const codes = failure instanceof CoppiceError ? [failure.code] : [];
  const status: CredentialsBindingStatus = {
    ...binding.status,
    conditions: withConditions(
      binding.status?.conditions,
      [
        failure
          ? say('Ready', false, 'Refused', errorText(failure), codes)
          : say('Ready', true, 'Accepted', `the cloud accepts the credentials, for account ${account}`),
        unactedQuotas(binding),
        binding.metadata.deletionTimestamp && used
          ? say('Deleting', true, 'InUse', 'deletion waits for clusters that use the binding')
          : undefined,
      ],
      world.now(),
    ),
    ...(account && { account }),
    observedGeneration: binding.metadata.generation,
  };
  await writeStatus(world.garden, world.bindings, binding, status, signal);
  return failure && isRetryable(codes) ? failure : undefined;
}

/** Quotas count by project here, whichever credentials its clusters use: see docs/decisions/0010. */
export function unactedQuotas({
  quotas = [],
  metadata,
}: Pick<CredentialsBinding, 'quotas' | 'metadata'>): ReturnType<typeof say> | undefined {
  if (quotas.length === 0) return undefined;
  const names = quotas.map(({ name, namespace = metadata.namespace }) => `${namespace}/${name}`).join(', ');
  const what = `kept but not acted on: quotas (${names}); a Quota limits the project whose namespace it is in`;
  return say('AllFieldsActedOn', false, 'KeptOnly', what);
}

/** Whose the credentials of a binding are, as the cloud says. Throws what is wrong with them. */
async function accountOf(world: CredentialsWorld, binding: CredentialsBinding, signal: AbortSignal): Promise<string> {
  const { name, namespace = '', uid = '' } = binding.metadata;
  const { type } = binding.provider;
  const profile = world.profiles.get(type) ?? world.profiles.list().find((known) => known.spec.type === type);
  const clouds = profile && world.clouds(profile);
  if (!profile || !clouds)
    throw configurationProblem(`no CloudProfile of type ${type} has a service that takes credentials`);
  const use: CredentialsUse = secretOfBinding(binding);
  const secret = await credentialsSecret(world, use, signal);
  if (secret) await hold(world, SECRETS, world.credentials, secret, true, signal);
  const credentials = credentialsIn(secret, use);
  const ctx: CloudContext = {
    // Nothing is made for it: it only says who asks.
    owner: { technicalID: fitted(`binding--${namespace}--${name}`), uid, name, namespace, garden: world.gardenID },
    account: { id: `${namespace}/${use.secret}`, credentials: credentials.values },
    region: profile.spec.defaults?.region ?? profile.spec.regions[0]?.name ?? '',
    profile,
    state: await stateBackend(world.state, profile, signal),
    log: world.log,
    signal,
    now: () => world.now(),
  };
  const account = await world.checks.check(clouds, ctx, credentials.version);
  if (account.missing.length > 0) {
    throw new CoppiceError(
      'ERR_INFRA_UNAUTHORIZED',
      `the credentials in Secret ${namespace}/${use.secret} (account ${account.id}) lack ${account.missing.join(', ')}`,
    );
  }
  return account.id;
}
