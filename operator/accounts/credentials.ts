import { createHash } from 'node:crypto';
import type { CredentialsBinding } from '../api/credentialsbinding.ts';
import { configurationProblem, notYetConfigured } from '../api/errors.ts';
import type { WorkerCluster } from '../api/workercluster.ts';
import type { Secret } from '../kube/resources.ts';

/** Which credentials something uses: always of its own namespace. */
export type CredentialsUse = {
  namespace: string;
  /** Name of the CredentialsBinding that led there. */
  binding?: string;
} & (
  | {
      /** Name of the Secret. */
      secret: string;
      identity?: undefined;
      type?: undefined;
    }
  | {
      /** Name of the WorkloadIdentity. */
      identity: string;
      /** The provider that its binding names. */
      type?: string;
      secret?: undefined;
    }
);

/** What the credentials are in, for people. */
export const sourceOf = ({ namespace, secret, identity }: CredentialsUse): string =>
  identity === undefined ? `Secret ${namespace}/${secret}` : `WorkloadIdentity ${namespace}/${identity}`;

/** Stands for the account as long as nobody knows whose the credentials are. */
export const accountKeyOf = ({ namespace, secret, identity }: CredentialsUse): string =>
  identity === undefined ? `${namespace}/${secret}` : `${namespace}/workloadidentity/${identity}`;

/**
 * The Secret or WorkloadIdentity that a cluster's credentialsRef leads to. Nobody uses credentials of another namespace: whether somebody may
 * read a Secret there only the API server knows at the moment of the request (docs/decisions/0005). Throws CoppiceErrors.
 * @param bindings the CredentialsBinding of this name in this namespace
 */
export function credentialsOf(
  cluster: WorkerCluster,
  providerType: string,
  bindings: (namespace: string, name: string) => CredentialsBinding | undefined,
): CredentialsUse {
  const { credentialsRef: ref } = cluster.spec;
  const { namespace = '' } = cluster.metadata;
  if (!ref) throw configurationProblem('the cluster names no credentials', 'Name them in spec.credentialsRef.');
  if (ref.namespace !== undefined && ref.namespace !== namespace)
    throw foreign(`spec.credentialsRef names ${ref.namespace}/${ref.name}`, namespace);
  const binding = ref.kind === 'Secret' ? undefined : bindings(namespace, ref.name);
  if (!binding) {
    if (ref.kind === 'CredentialsBinding')
      throw notYetConfigured(`there is no CredentialsBinding ${namespace}/${ref.name}`, 'Make it, or name another.');
    return { namespace, secret: ref.name };
  }
  return usedByBindingFor(binding, { namespace, name: ref.name }, providerType);
}

/**
 * The same of the binding of this name, for one provider. Throws CoppiceErrors, also when there is none. `advice`: for one of another
 * provider.
 */
export function usedByBindingFor(
  binding: CredentialsBinding | undefined,
  { namespace, name }: { namespace: string; name: string },
  providerType: string,
  advice = 'Name a binding for the right provider.',
): CredentialsUse {
  const what = `CredentialsBinding ${namespace}/${name}`;
  if (!binding) throw notYetConfigured(`there is no ${what}`, 'Make it, or name another.');
  if (binding.provider.type === providerType) return usedByBinding(binding);
  throw configurationProblem(`${what} is for provider ${binding.provider.type}, not ${providerType}`, advice);
}

/** The Secret or WorkloadIdentity that a binding leads to. Throws CoppiceErrors. */
export function usedByBinding(binding: CredentialsBinding): CredentialsUse {
  const { name, namespace = '' } = binding.metadata;
  const { credentialsRef: ref } = binding;
  const what = `CredentialsBinding ${namespace}/${name}`;
  if (ref.namespace !== undefined && ref.namespace !== namespace)
    throw foreign(`${what} names ${ref.namespace}/${ref.name}`, namespace);
  if (ref.kind === 'WorkloadIdentity')
    return { namespace, identity: ref.name, type: binding.provider.type, binding: name };
  return { namespace, secret: ref.name, binding: name };
}

const foreign = (what: string, namespace: string) =>
  configurationProblem(
    `${what}, but credentials are used in their own namespace only`,
    `Put them into namespace ${namespace}.`,
  );

/** Credentials as a provider takes them. */
export interface Credentials {
  readonly use: CredentialsUse;
  /** Keys of the Secret, decoded; of a WorkloadIdentity what a Secret would hold. */
  readonly values: Readonly<Record<string, string>>;
  /** Changes when a value does that is not renewed by itself. Of no use for guessing them: it never leaves the process. */
  readonly version: string;
}

/** What a Secret holds. Throws when it is not there or empty. */
export function credentialsIn(secret: Secret | undefined, use: CredentialsUse): Credentials {
  const what = sourceOf(use);
  if (!secret) {
    // The name may have been meant for a binding: a credentialsRef without a kind finds either.
    const advice = `Make it, or name another${use.binding === undefined ? ' Secret, or a CredentialsBinding' : ''}.`;
    throw notYetConfigured(`there is no ${what} with credentials`, advice);
  }
  const entries = Object.entries(secret.data ?? {}).sort(([a], [b]) => (a < b ? -1 : 1));
  if (entries.length === 0)
    throw notYetConfigured(`${what} is empty`, 'Put the credentials of the cloud account into it.');
  return {
    use,
    values: Object.fromEntries(entries.map(([key, value]) => [key, Buffer.from(value, 'base64').toString()])),
    version: createHash('sha256').update(JSON.stringify(entries)).digest('hex').slice(0, 16),
  };
}
