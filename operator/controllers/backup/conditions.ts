/** Condition of a Seed, as Gardener names it: whether there is a bucket for backups. */
export const BUCKETS_READY = 'BackupBucketsReady';
/** Condition of a Seed, only while it is so: its bucket is no longer as safe as it was made. */
export const BUCKETS_DRIFTED = 'BackupBucketsDrifted';
/** Condition of a Shoot, as etcd-druid's Etcd has it: whether its etcd is backed up. */
export const BACKUP_READY = 'BackupReady';
