/** Condition of a Seed, as Gardener names it: whether there is a bucket for backups. */
export const BUCKETS_READY = 'BackupBucketsReady';
/** Condition of a Shoot, as etcd-druid's Etcd has it: whether its etcd is backed up. */
export const BACKUP_READY = 'BackupReady';
