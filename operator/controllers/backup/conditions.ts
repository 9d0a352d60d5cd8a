/** Condition of a Seed, named as in Gardener: whether its backup bucket exists. */
export const BUCKETS_READY = 'BackupBucketsReady';
/** Condition of a Seed while its bucket's security settings have drifted. */
export const BUCKETS_DRIFTED = 'BackupBucketsDrifted';
/** Condition of a Shoot, named as in etcd-druid: whether its etcd is backed up. */
export const BACKUP_READY = 'BackupReady';
