import type { BackupBuckets, BackupContext, Provider } from '../../providers/contract.ts';
import type { CloudProfile } from '../api/cloudprofile.ts';
import type { CredentialsBinding } from '../api/credentialsbinding.ts';
import { configurationProblem, notYetConfigured } from '../api/errors.ts';
import { backupBucketName } from '../api/names.ts';
import type { Seed } from '../api/seed.ts';
import { accountKeyOf, type Credentials, type CredentialsUse, usedByBindingFor } from './credentials.ts';

/** What openBucket needs to reach a seed's bucket. */
export interface BucketSource {
  /** See gardenIdentity. */
  readonly gardenID: string;
  /** Directory that outlives the operator, if any. */
  readonly directory: string | undefined;
  profiles(): readonly CloudProfile[] | Promise<readonly CloudProfile[]>;
  provider(profile: CloudProfile, withAccount: boolean): Provider | undefined;
  binding(namespace: string, name: string): CredentialsBinding | undefined | Promise<CredentialsBinding | undefined>;
  /** Rejects with CoppiceErrors. */
  credentials(use: CredentialsUse, signal: AbortSignal): Promise<Credentials>;
  now(): Date;
}

/** A bucket with the context of its calls. */
export interface OpenBucket {
  readonly buckets: BackupBuckets;
  readonly ctx: BackupContext;
}

/**
 * The bucket of a seed's `spec.backup`, with fresh credentials. Makes no call to a cloud. Rejects with CoppiceErrors.
 */
export async function openBucket(source: BucketSource, seed: Seed, signal: AbortSignal): Promise<OpenBucket> {
  const { backup } = seed.spec;
  const { name, uid = '' } = seed.metadata;
  if (!backup)
    throw configurationProblem(`Seed ${name} has no spec.backup`, 'Set it, to say where backups are stored.');
  const profile = profileFor(await source.profiles(), backup.provider);
  const provider = profile && source.provider(profile, backup.credentialsRef !== undefined);
  if (!profile || !provider)
    throw notYetConfigured(
      `spec.backup.provider of Seed ${name} is ${backup.provider}, and there is no CloudProfile of that name or type`,
      'Make one: it says where the services of the cloud are. Or name another provider.',
    );
  if (!provider.backups)
    throw configurationProblem(`provider ${provider.name} has no buckets for backups`, 'Name another provider.');
  const account = { id: '', credentials: {} as Readonly<Record<string, string>> };
  if (provider.backups.inCloud) {
    const use = await credentialsUse(source, seed, backup);
    account.id = accountKeyOf(use);
    account.credentials = (await source.credentials(use, signal)).values;
  }
  return {
    buckets: provider.backups,
    ctx: {
      bucket: { name: backupBucketName(uid), seed: name, seedUID: uid, garden: source.gardenID },
      region: backup.region ?? seed.spec.provider.region,
      account,
      profile,
      directory: source.directory,
      signal,
      now: () => source.now(),
    },
  };
}

/** The profile named like the provider, else the first profile of that provider. */
function profileFor(profiles: readonly CloudProfile[], provider: string): CloudProfile | undefined {
  const sorted = [...profiles].sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1));
  return sorted.find(({ metadata }) => metadata.name === provider) ?? sorted.find(({ spec }) => spec.type === provider);
}

/** Seeds are cluster-scoped, so they name the namespace of their credentials; only administrators write Seeds. */
async function credentialsUse(
  source: BucketSource,
  seed: Seed,
  { credentialsRef: ref, provider }: NonNullable<Seed['spec']['backup']>,
): Promise<CredentialsUse> {
  if (!ref)
    throw configurationProblem(
      `spec.backup of Seed ${seed.metadata.name} names no credentials for ${provider}`,
      'Name a Secret, a CredentialsBinding or a WorkloadIdentity in spec.backup.credentialsRef.',
    );
  const { kind, name, namespace } = ref;
  if (kind === 'Secret') return { namespace, secret: name };
  if (kind === 'WorkloadIdentity') return { namespace, identity: name };
  return usedByBindingFor(await source.binding(namespace, name), ref, provider);
}
