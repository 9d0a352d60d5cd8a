import { chmod, mkdtemp, readdir, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { CloudProfile } from '../../../operator/api/cloudprofile.ts';
import { awsProvider } from '../../../providers/aws/index.ts';
import { storageAccountName } from '../../../providers/azure/blob-storage.ts';
import { azureProvider } from '../../../providers/azure/index.ts';
import { BACKUP_TAGS } from '../../../providers/bucket-objects.ts';
import type { BackupBucket, BackupBuckets, BackupContext, Provider } from '../../../providers/contract.ts';
import { gcpProvider } from '../../../providers/gcp/index.ts';
import type { StackRunner } from '../../../providers/pulumi/stack-runner.ts';
import { type CloudName, fakeCloud, type WebEndpoints } from '../cloud/index.ts';
import { openStore } from '../cloud/store.ts';
import { bucketStore } from '../cloud/web/bucket-store.ts';
import type { BucketTestbed } from './buckets.ts';

/** Directories of this machine: nothing is faked. */
export async function directoryTestbed(provider: Provider): Promise<BucketTestbed> {
  const directory = await mkdtemp(join(tmpdir(), 'coppice-buckets-'));
  const root = ({ name }: BackupBucket) => join(directory, 'backups', provider.name, name);
  return {
    buckets: provider.backups!,
    context: (bucket) => contextFor(bucket, provider.name, 'local', { id: '', credentials: {} }, directory),
    async faults(bucket) {
      const paths = [
        root(bucket),
        ...(await readdir(root(bucket), { recursive: true })).map((one) => join(root(bucket), one)),
      ];
      const modes = await Promise.all(paths.map(async (path) => ({ path, mode: (await stat(path)).mode & 0o077 })));
      return modes.filter(({ mode }) => mode !== 0).map(({ path }) => `others may use ${path}`);
    },
    change: (bucket, how) => chmod(root(bucket), how === 'spoil' ? 0o755 : 0o700),
    namesAreEverybodys: false,
    troubles: [],
    heal: () => {},
    close: () => rm(directory, { recursive: true, force: true }),
  };
}

/** What of a cloud the testbed must know. */
interface Face {
  cloud: CloudName;
  region: string;
  open(web: WebEndpoints): BackupBuckets;
  /** What a bucket must have been told, by the name under which the cloud keeps it. */
  bucketName(bucket: BackupBucket): string;
  safe: Record<string, (settings: Record<string, any>) => boolean>;
  tags(settings: Record<string, any>): string;
  /** What somebody may do to it who means well. */
  spoil(settings: Record<string, any>): void;
  /** Takes away the tag by which the provider knows that all is set. */
  unmark(settings: Record<string, any>): void;
}

const noRunner = {} as StackRunner;

const FACES: Record<'aws' | 'gcp' | 'azure', Face> = {
  aws: {
    cloud: 'aws',
    region: 'eu-central-1',
    open: (web) => awsProvider(noRunner, web.aws).backups!,
    bucketName: ({ name }) => name,
    safe: {
      private: ({ publicAccessBlock }) => (publicAccessBlock?.match(/>true</g) ?? []).length === 4,
      encrypted: ({ encryption }) => /<SSEAlgorithm>AES256</.test(encryption),
      versioned: ({ versioning }) => /Enabled/.test(versioning),
      'rid of old versions': ({ lifecycle }) => /<NoncurrentDays>7</.test(lifecycle),
      'reached by TLS only': ({ policy }) => {
        const [statement] = JSON.parse(policy ?? '{"Statement":[{}]}').Statement;
        return statement.Effect === 'Deny' && statement.Condition?.Bool?.['aws:SecureTransport'] === 'false';
      },
    },
    tags: ({ tagging }) => String(tagging),
    spoil(settings) {
      delete settings.publicAccessBlock;
      settings.versioning = '<VersioningConfiguration><Status>Suspended</Status></VersioningConfiguration>';
    },
    unmark(settings) {
      delete settings.tagging;
    },
  },
  gcp: {
    cloud: 'gcp',
    region: 'europe-west3',
    open: (web) => gcpProvider(noRunner, web.gcp).backups!,
    bucketName: ({ name }) => name,
    safe: {
      private: ({ iamConfiguration: iam }) =>
        iam?.publicAccessPrevention === 'enforced' && iam.uniformBucketLevelAccess?.enabled,
      versioned: ({ versioning }) => versioning?.enabled,
      'rid of old versions': ({ lifecycle }) => lifecycle?.rule?.[0]?.condition?.daysSinceNoncurrentTime === 7,
    },
    tags: ({ labels }) => JSON.stringify(labels),
    spoil(settings) {
      settings.iamConfiguration.publicAccessPrevention = 'inherited';
      settings.versioning.enabled = false;
    },
    unmark({ labels }) {
      delete labels[BACKUP_TAGS.settings];
    },
  },
  azure: {
    cloud: 'azure-native',
    region: 'westeurope',
    open: (web) => azureProvider(noRunner, web.azure).backups!,
    bucketName: storageAccountName,
    safe: {
      private: ({ properties, '/blobServices/default/containers/backups': container }) =>
        properties?.allowBlobPublicAccess === false && container?.properties?.publicAccess === 'None',
      'without keys': ({ properties }) => properties?.allowSharedKeyAccess === false,
      encrypted: ({ properties }) => properties?.encryption?.services?.blob?.enabled,
      'reached by TLS only': ({ properties }) =>
        properties?.supportsHttpsTrafficOnly && properties.minimumTlsVersion === 'TLS1_2',
      versioned: ({ '/blobServices/default': service }) => service?.properties?.isVersioningEnabled,
      'rid of old versions': ({ '/managementPolicies/default': policy }) =>
        policy?.properties?.policy?.rules?.[0]?.definition?.actions?.version?.delete?.daysAfterCreationGreaterThan ===
        7,
    },
    tags: ({ tags }) => JSON.stringify(tags),
    spoil({ properties, '/blobServices/default': service }) {
      properties.allowBlobPublicAccess = true;
      service.properties.isVersioningEnabled = false;
    },
    unmark({ tags }) {
      delete tags[BACKUP_TAGS.settings];
    },
  },
};

/** The real provider over a fake cloud with nothing in it. */
export async function fakeBucketTestbed(name: keyof typeof FACES): Promise<BucketTestbed> {
  const face = FACES[name];
  const cloud = await fakeCloud();
  const web = await cloud.web();
  const buckets = face.open(web);
  const stored = bucketStore(openStore(cloud.dir), face.cloud);
  return {
    buckets,
    ...(name === 'aws' && { endpoint: web.aws('s3', face.region)! }),
    context: (bucket, number = 1) => contextFor(bucket, name, face.region, cloud.account(face.cloud, number)),
    writes: () =>
      cloud.requests().filter(({ type }) => /Put|Delete|Create|^(?:PUT|POST|PATCH|DELETE) /.test(type)).length,
    async faults(bucket) {
      const { settings } = stored.get(face.bucketName(bucket))!;
      const wrong = Object.entries(face.safe).filter(([, holds]) => !holds(settings));
      const untagged = [bucket.seed, bucket.seedUID, bucket.garden].filter((tag) => !face.tags(settings).includes(tag));
      return [...wrong.map(([what]) => `not ${what}`), ...untagged.map((tag) => `no tag ${tag}`)];
    },
    change: async (bucket, how) => {
      const there = stored.get(face.bucketName(bucket))!;
      face[how](there.settings);
      stored.save(there);
    },
    ...(name !== 'azure' && {
      async trap(bucket: BackupBucket) {
        const { id } = cloud.account(face.cloud, 2);
        stored.make(bucket.name, id, face.region, { open: true });
        return async () => JSON.stringify(stored.get(bucket.name));
      },
    }),
    // Resource groups are the subscription's own, and the account's name is made of the group's.
    namesAreEverybodys: true,
    troubles: [
      {
        what: 'revoked credentials',
        code: 'ERR_INFRA_UNAUTHENTICATED',
        begin: () => cloud.faults.set({ revoked: [cloud.account(face.cloud).key] }),
      },
      {
        what: 'too many requests',
        code: 'ERR_INFRA_RATE_LIMITS_EXCEEDED',
        begin: () => cloud.faults.set({ throttle: { perSecond: 0, retryAfter: 0 } }),
      },
    ],
    heal: () => cloud.faults.clear(),
    close: () => cloud.close(),
  };
}

const contextFor = (
  bucket: BackupBucket,
  provider: string,
  region: string,
  account: BackupContext['account'],
  directory?: string,
): BackupContext => ({
  bucket,
  region,
  account,
  profile: { metadata: { name: provider }, spec: { type: provider } } as unknown as CloudProfile,
  directory,
  signal: new AbortController().signal,
  now: () => new Date(),
});
