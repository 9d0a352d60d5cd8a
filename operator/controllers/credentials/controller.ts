import type { CloudContext, ManagedClusters } from '../../../providers/cloud.ts';
import type { AccountChecks } from '../../accounts/account-checks.ts';
import {
  accountKeyOf,
  type CredentialsUse,
  credentialsIn,
  credentialsSourceOf,
  usedByBinding,
} from '../../accounts/credentials.ts';
import { namingIdentity } from '../../accounts/identity.ts';
import { subjectOf } from '../../accounts/identity-tokens.ts';
import { stateBackend } from '../../accounts/state-backend.ts';
import { type AccountsSide, credentialsSecret, usedCredentials } from '../../accounts/used-credentials.ts';
import type { CloudProfile } from '../../api/cloudprofile.ts';
import { findCondition } from '../../api/conditions.ts';
import type { CredentialsBinding, CredentialsBindingStatus } from '../../api/credentialsbinding.ts';
import { dnsCredentialsRef } from '../../api/dns.ts';
import { CoppiceError, configurationProblem, errorText, isRetryable, notYetConfigured } from '../../api/errors.ts';
import { LABELS, ROLES } from '../../api/group.ts';
import type { KubeObject } from '../../api/meta.ts';
import { fitName } from '../../api/names.ts';
import type { WorkerCluster } from '../../api/workercluster.ts';
import type { WorkloadIdentity, WorkloadIdentityStatus } from '../../api/workloadidentity.ts';
import type { ReconcileResult } from '../../kube/controller.ts';
import { KubeApiError } from '../../kube/errors.ts';
import type { Informer } from '../../kube/informer.ts';
import { CREDENTIALSBINDINGS, SECRETS, WORKLOADIDENTITIES } from '../../kube/resources.ts';
import { retryDelayMs } from '../backoff.ts';
import { type Said, say, withConditions } from '../conditions.ts';
import { tellFailure } from '../failure.ts';
import { hold } from '../finalizer.ts';
import { writeStatus } from '../status-writer.ts';

/** Dependencies of the controller of credentials. */
export interface CredentialsDependencies extends AccountsSide {
  readonly checks: AccountChecks;
  readonly profiles: Informer<CloudProfile>;
  /** Managed service of a profile, with credentials. */
  clouds(profile: CloudProfile): ManagedClusters | undefined;
  /** The cloud accepts a binding that it refused before. */
  accepted(binding: CredentialsBinding): void;
}

/** Selects Secrets with used credentials. */
export const CREDENTIALS_SELECTOR = `${LABELS.role}=${ROLES.credentials}`;

/** Label of such a Secret from its first use. */
const MARK = { [LABELS.role]: ROLES.credentials };

/** Interval of asking a cloud whether it trusts an identity: no event tells. */
const ASK_AGAIN_MS = 2 * 60_000;

/**
 * Reconciles all credentials of a namespace: whether the cloud accepts each binding, what a cloud must trust for each
 * WorkloadIdentity, and finalizers on bindings, Secrets and identities in use, because clusters cannot be deleted
 * without credentials. Labelled Secrets are watched.
 */
export async function reconcileCredentials(
  deps: CredentialsDependencies,
  namespace: string,
  signal: AbortSignal,
): Promise<ReconcileResult | undefined> {
  const clusters = deps.clusters.list().filter((cluster) => cluster.metadata.namespace === namespace);
  const bindings = deps.bindings.list().filter((binding) => binding.metadata.namespace === namespace);
  let failure: unknown;
  const named = usedNames(clusters, new Set(bindings.map((binding) => binding.metadata.name)));
  for (const secret of deps.credentials.list()) {
    const { name, namespace: its } = secret.metadata;
    const wanted = named.secrets.has(name) || bindings.some((binding) => leadsTo(binding)?.secret === name);
    if (its === namespace && !wanted) await hold(deps, SECRETS, deps.credentials, secret, false, { signal });
  }
  for (const name of named.secrets) {
    const secret = await credentialsSecret(deps, namespace, name, signal);
    if (secret) await hold(deps, SECRETS, deps.credentials, secret, true, { labels: MARK, signal });
    // A Secret made later causes no event, because it has no label yet.
    else failure = notYetConfigured(`there is no Secret ${namespace}/${name} with credentials`);
  }
  for (const identity of deps.identities.list().filter(({ metadata }) => metadata.namespace === namespace)) {
    const held = bindings.some((binding) => leadsTo(binding)?.identity === identity.metadata.name);
    try {
      await hold(deps, WORKLOADIDENTITIES, deps.identities, identity, held, { signal });
      if (!identity.metadata.deletionTimestamp || held)
        failure = (await reconcileIdentity(deps, identity, signal)) ?? failure;
    } catch (error) {
      failure = await told(deps, deps.identities, identity, error, signal);
    }
  }
  let askAgain = false;
  for (const binding of bindings) {
    const used = named.bindings.has(binding.metadata.name);
    try {
      await hold(deps, CREDENTIALSBINDINGS, deps.bindings, binding, used, { signal });
      if (binding.metadata.deletionTimestamp && !used) continue;
      const outcome = await reconcileBinding(deps, binding, used, signal);
      if (outcome.isRetryable) failure = outcome.failure;
      else if (outcome.failure && (outcome.passes || leadsTo(binding)?.identity !== undefined)) askAgain = true;
    } catch (error) {
      failure = await told(deps, deps.bindings, binding, error, signal);
    }
  }
  if (failure) throw failure;
  return askAgain ? { requeueAfterMs: ASK_AGAIN_MS } : undefined;
}

/** An object's error goes to its own status and does not block the others of its namespace. */
async function told<T extends KubeObject>(
  deps: CredentialsDependencies,
  cache: Informer<T>,
  object: T,
  error: unknown,
  signal: AbortSignal,
): Promise<unknown> {
  if (signal.aborted) throw error;
  if (!(error instanceof KubeApiError && error.isConflict)) await tellFailure(deps, cache, object, error);
  return error;
}

/** Reports whether an identity has tokens, and what a cloud must trust. @returns retryable failures */
async function reconcileIdentity(
  deps: CredentialsDependencies,
  identity: WorkloadIdentity,
  signal: AbortSignal,
): Promise<unknown> {
  let failure: unknown;
  let issuer: string | undefined;
  let ready: Said<'WorkloadIdentity'>;
  try {
    // Cached tokens do not show whether the ServiceAccount still exists.
    const { metadata } = await deps.tokens.ensureAccount(identity, signal);
    const token = await deps.tokens.token(identity);
    issuer = token.issuer;
    const trusted = `issuer ${issuer}, subject ${token.subject}, audience ${token.audiences.join(' or ')}`;
    ready = say(
      'Ready',
      true,
      'TokenIssued',
      `the cloud must trust tokens of ServiceAccount ${metadata.name}: ${trusted}`,
    );
  } catch (error) {
    if (signal.aborted) throw error;
    failure = error;
    const codes = error instanceof CoppiceError ? [error.code] : [];
    ready = say('Ready', false, 'NoToken', errorText(error), codes);
  }
  const status: WorkloadIdentityStatus = {
    ...identity.status,
    conditions: withConditions<'WorkloadIdentity'>(identity.status?.conditions, [ready], deps.now()),
    sub: subjectOf(identity),
    ...(issuer !== undefined && { issuer }),
    observedGeneration: identity.metadata.generation,
  };
  await writeStatus(deps.garden, deps.identities, identity, status, signal);
  return failure instanceof CoppiceError && !failure.retryable ? undefined : failure;
}

/** Bindings and Secrets that clusters name directly. */
export function usedNames(
  clusters: readonly WorkerCluster[],
  bindings: ReadonlySet<string>,
): { bindings: Set<string>; secrets: Set<string> } {
  const used = { bindings: new Set<string>(), secrets: new Set<string>() };
  for (const { spec, metadata } of clusters) {
    const elsewhere = (spec.fallback ?? []).flatMap((place) => place.credentialsRef ?? []);
    const zones = (spec.dns?.providers ?? []).flatMap((provider) => dnsCredentialsRef(provider) ?? []);
    for (const ref of [...(spec.credentialsRef ? [spec.credentialsRef] : []), ...elsewhere, ...zones]) {
      if ('namespace' in ref && ref.namespace !== undefined && ref.namespace !== metadata.namespace) continue;
      const isBinding = ref.kind === 'CredentialsBinding' || (ref.kind === undefined && bindings.has(ref.name));
      (isBinding ? used.bindings : used.secrets).add(ref.name);
    }
  }
  return used;
}

const leadsTo = (binding: CredentialsBinding): CredentialsUse | undefined => {
  try {
    return usedByBinding(binding);
  } catch {
    return undefined;
  }
};

/** @returns why the binding is not ready, and whether to retry */
async function reconcileBinding(
  deps: CredentialsDependencies,
  binding: CredentialsBinding,
  used: boolean,
  signal: AbortSignal,
): Promise<{ failure?: unknown; isRetryable?: boolean; passes?: boolean }> {
  let account: string | undefined;
  let failure: unknown;
  try {
    account = await accountOf(deps, binding, signal);
  } catch (error) {
    if (signal.aborted) throw error;
    failure = error;
  }
  const codes = failure instanceof CoppiceError ? [failure.code] : [];
  const status: CredentialsBindingStatus = {
    ...binding.status,
    conditions: withConditions<'CredentialsBinding'>(
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
      deps.now(),
    ),
    ...(account && { account }),
    observedGeneration: binding.metadata.generation,
  };
  const before = findCondition(binding.status?.conditions, 'Ready');
  await writeStatus(deps.garden, deps.bindings, binding, status, signal);
  if (!failure && before?.status === 'False') deps.accepted(binding);
  // Temporary failures are retried with longer back-off than the queue's, which would prolong throttling.
  const passes = codes.some((code) => retryDelayMs(code, 1, 0) !== undefined);
  return failure ? { failure, isRetryable: isRetryable(codes), passes } : {};
}

/** Quotas count by namespace, independent of credentials: see docs/decisions/0010. */
export function unactedQuotas({
  quotas = [],
  metadata,
}: Pick<CredentialsBinding, 'quotas' | 'metadata'>): Said<'CredentialsBinding'> | undefined {
  if (quotas.length === 0) return undefined;
  const names = quotas.map(({ name, namespace = metadata.namespace }) => `${namespace}/${name}`).join(', ');
  const what = `stored without effect: quotas (${names}); a Quota limits its own namespace`;
  return say('AllFieldsActedOn', false, 'KeptOnly', what);
}

/** Account of a binding's credentials, as reported by the cloud. Throws their fault. */
async function accountOf(
  deps: CredentialsDependencies,
  binding: CredentialsBinding,
  signal: AbortSignal,
): Promise<string> {
  const { name, namespace = '', uid = '' } = binding.metadata;
  const { type } = binding.provider;
  const profile = deps.profiles.get(type) ?? deps.profiles.list().find((known) => known.spec.type === type);
  const clouds = profile && deps.clouds(profile);
  if (!profile || !clouds)
    throw configurationProblem(`no CloudProfile of type ${type} has a service that takes credentials`);
  const use = usedByBinding(binding);
  const secret = use.secret === undefined ? undefined : await credentialsSecret(deps, namespace, use.secret, signal);
  if (secret) await hold(deps, SECRETS, deps.credentials, secret, true, { labels: MARK, signal });
  // Read once: a Secret that appeared between two reads would be used without its label, and its changes missed.
  const credentials = use.secret === undefined ? await usedCredentials(deps, use, signal) : credentialsIn(secret, use);
  const ctx: CloudContext = {
    // Nothing is created for this owner: it only identifies the caller.
    owner: { technicalID: fitName(`binding--${namespace}--${name}`), uid, name, namespace, garden: deps.gardenID },
    account: { id: accountKeyOf(use), credentials: credentials.values },
    region: profile.spec.defaults?.region ?? profile.spec.regions[0]?.name ?? '',
    profile,
    state: await stateBackend(deps.state, profile, signal),
    log: deps.log,
    signal,
    now: () => deps.now(),
  };
  const account = await deps.checks.check(clouds, ctx, credentials.version).catch((error: unknown) => {
    throw namingIdentity(error, use);
  });
  if (account.missing.length > 0) {
    throw new CoppiceError(
      'ERR_INFRA_UNAUTHORIZED',
      `the credentials in ${credentialsSourceOf(use)} (account ${account.id}) lack ${account.missing.join(', ')}`,
    );
  }
  return account.id;
}
