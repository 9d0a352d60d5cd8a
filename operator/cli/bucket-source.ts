import { openProviders, providerFor } from '../../providers/index.ts';
import type { BucketSource } from '../accounts/bucket-account.ts';
import { IdentityTokens } from '../accounts/identity-tokens.ts';
import { type CredentialsSource, obtainCredentials } from '../accounts/obtain-credentials.ts';
import type { CloudProfile } from '../api/cloudprofile.ts';
import type { CredentialsBinding } from '../api/credentialsbinding.ts';
import type { WorkloadIdentity } from '../api/workloadidentity.ts';
import { dataDirectory } from '../garden/toolchain/pulumi-engine.ts';
import type { KubeClient } from '../kube/client.ts';
import { silent } from '../kube/log.ts';
import {
  CLOUDPROFILES,
  CREDENTIALSBINDINGS,
  NAMESPACES,
  SECRETS,
  type Secret,
  WORKLOADIDENTITIES,
} from '../kube/resources.ts';

/** Access to the backup buckets of seeds, with the rights of the person at the terminal. */
export async function bucketSource(
  client: KubeClient,
  env: Record<string, string | undefined>,
  signal: AbortSignal,
): Promise<BucketSource> {
  // Buckets need no Pulumi program, so nothing calls the engine.
  const providers = openProviders({ engine: () => Promise.reject(new Error('no engine')), home: '', log: silent });
  const tokens = new IdentityTokens(client, () => new Date());
  const source: CredentialsSource = {
    secret: (namespace, name) => client.getOrUndefined<Secret>(SECRETS, name, namespace, { signal }),
    identity: (namespace, name) =>
      client.getOrUndefined<WorkloadIdentity>(WORKLOADIDENTITIES, name, namespace, { signal }),
    tokens,
  };
  const { metadata } = await client.get(NAMESPACES, 'kube-system', undefined, { signal });
  return {
    gardenID: metadata.uid ?? '',
    directory: dataDirectory(env),
    profiles: async () => (await client.list<CloudProfile>(CLOUDPROFILES, { signal })).items,
    // Without credentials only an operator that simulates clouds has a bucket.
    provider: (profile, withAccount) => providerFor(profile, providers, { simulate: !withAccount, withAccount }),
    binding: (namespace, name) =>
      client.getOrUndefined<CredentialsBinding>(CREDENTIALSBINDINGS, name, namespace, { signal }),
    credentials: (use) => obtainCredentials(source, use, signal),
    now: () => new Date(),
  };
}
