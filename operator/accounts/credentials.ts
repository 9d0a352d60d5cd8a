import { createHash } from 'node:crypto';
import type { CredentialsBinding } from '../api/credentialsbinding.ts';
import { configurationProblem, notYetConfigured } from '../api/errors.ts';
import type { WorkerCluster } from '../api/workercluster.ts';
import type { Secret } from '../kube/resources.ts';

/** The Secret or WorkloadIdentity with the credentials of an object, always in the object's own namespace. */
export type CredentialsUse = {
  namespace: string;
  /** Name of the CredentialsBinding that refers to them. */
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
      /** Provider that the binding names. */
      type?: string;
      secret?: undefined;
    }
);

/** The object that holds the credentials, for messages. */
export const credentialsSourceOf = ({ namespace, secret, identity }: CredentialsUse): string =>
  identity === undefined ? `Secret ${namespace}/${secret}` : `WorkloadIdentity ${namespace}/${identity}`;

/** Key used in place of the account while the account of the credentials is unknown. */
export const accountKeyOf = ({ namespace, secret, identity }: CredentialsUse): string =>
  identity === undefined ? `${namespace}/${secret}` : `${namespace}/workloadidentity/${identity}`;

/**
 * The Secret or WorkloadIdentity that a cluster's credentialsRef resolves to. Credentials of another namespace are
 * never used: only the API server can tell, at the time of a request, whether a person may read a Secret there
 * (docs/decisions/0005). Throws CoppiceErrors.
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
 * The same for a binding of a required provider. Throws CoppiceErrors, also when the binding is missing. `advice`: what
 * to do when the binding is of another provider.
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

/** The Secret or WorkloadIdentity that a binding refers to. Throws CoppiceErrors. */
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

/** Credentials in the form that providers take. */
export interface Credentials {
  readonly use: CredentialsUse;
  /** Decoded keys of the Secret; for a WorkloadIdentity, the keys that a Secret would hold. */
  readonly values: Readonly<Record<string, string>>;
  /**
   * Changes when a value changes, except values that are renewed automatically. Never leaves the process, so it cannot
   * be used to guess the values.
   */
  readonly version: string;
}

/** Credentials from a Secret. Throws when the Secret is missing or empty. */
export function credentialsIn(secret: Secret | undefined, use: CredentialsUse): Credentials {
  const what = credentialsSourceOf(use);
  if (!secret) {
    // The name may have been meant for a binding: a credentialsRef without a kind matches either.
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
