import { createHash } from 'node:crypto';
import type { CredentialsBinding } from '../../api/credentialsbinding.ts';
import { configurationProblem, notYetConfigured } from '../../api/errors.ts';
import type { WorkerCluster } from '../../api/workercluster.ts';
import type { Secret } from '../../kube/resources.ts';

/** Which credentials something uses: always of its own namespace. */
export interface CredentialsUse {
  namespace: string;
  /** Name of the Secret. */
  secret: string;
  /** Name of the CredentialsBinding that led there. */
  binding?: string;
}

/**
 * The Secret that a cluster's credentialsRef leads to. Nobody uses credentials of another namespace: whether somebody may
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
  if (binding.provider.type !== providerType) {
    throw configurationProblem(
      `CredentialsBinding ${namespace}/${ref.name} is for provider ${binding.provider.type}, not ${providerType}`,
      'Name a binding for the right provider.',
    );
  }
  return secretOfBinding(binding);
}

/** The Secret that a binding leads to. Throws CoppiceErrors. */
export function secretOfBinding(binding: CredentialsBinding): CredentialsUse {
  const { name, namespace = '' } = binding.metadata;
  const { credentialsRef: ref } = binding;
  const what = `CredentialsBinding ${namespace}/${name}`;
  if (ref.kind === 'WorkloadIdentity') {
    throw configurationProblem(
      `${what} names a WorkloadIdentity, which is not available yet`,
      'Name a Secret instead.',
    );
  }
  if (ref.namespace !== undefined && ref.namespace !== namespace)
    throw foreign(`${what} names ${ref.namespace}/${ref.name}`, namespace);
  return { namespace, secret: ref.name, binding: name };
}

const foreign = (what: string, namespace: string) =>
  configurationProblem(
    `${what}, but credentials are used in their own namespace only`,
    `Put the Secret into namespace ${namespace}.`,
  );

/** Credentials as a provider takes them. */
export interface Credentials {
  readonly use: CredentialsUse;
  /** Keys of the Secret, decoded. */
  readonly values: Readonly<Record<string, string>>;
  /** Changes when a value does. Of no use for guessing them: it never leaves the process. */
  readonly version: string;
}

/** What a Secret holds. Throws when it is not there or empty. */
export function credentialsIn(secret: Secret | undefined, use: CredentialsUse): Credentials {
  const what = `Secret ${use.namespace}/${use.secret}`;
  if (!secret) throw notYetConfigured(`there is no ${what} with credentials`, 'Make it, or name another.');
  const entries = Object.entries(secret.data ?? {}).sort(([a], [b]) => (a < b ? -1 : 1));
  if (entries.length === 0)
    throw notYetConfigured(`${what} is empty`, 'Put the credentials of the cloud account into it.');
  return {
    use,
    values: Object.fromEntries(entries.map(([key, value]) => [key, Buffer.from(value, 'base64').toString()])),
    version: createHash('sha256').update(JSON.stringify(entries)).digest('hex').slice(0, 16),
  };
}
