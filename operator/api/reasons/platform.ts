import { explained, RECONCILE_FAILED } from './explanation.ts';

const IN_USE = {
  profile: explained(
    'True: deletion waits for what uses the profile: WorkerCluster ...',
    'The CloudProfile was deleted, and stays as long as clusters use it.',
    'Without their profile, clusters could not be changed or removed.',
    'Delete the clusters that the message names, or change their spec.cloudProvider where that is possible.',
  ),
  binding: explained(
    'True: deletion waits for clusters that use the binding',
    'The CredentialsBinding was deleted, and stays for clusters that need it.',
    'Without credentials nobody could remove their resources in the cloud.',
    'Delete the clusters that name it in spec.credentialsRef, or give them another binding.',
  ),
  seed: explained(
    'True: deletion waits for the shoots that the seed hosts: ...',
    'The Seed was deleted, and stays as long as it hosts control planes.',
    'Without the Seed nobody could remove their control planes.',
    'Delete the clusters that the message names, for example `coppice delete CLUSTER -n NAMESPACE --wait`.',
  ),
} as const;

export const SEED = {
  Ready: {
    SeedReady: explained(
      'True: the seed answers and can host control planes',
      'New clusters may be placed on this seed.',
      'The operator reaches its API server, and it is the cluster that it was.',
      'Nothing: the operator asks the seed again every five minutes.',
    ),
    NotUsable: explained(
      'False: what is wrong with the seed, with its code',
      'No cluster is placed there, and those that it hosts cannot be changed.',
      'Its kubeconfig is missing or refused, or leads to another cluster than before.',
      'Repair the Secret that spec.kubeconfigRef of the Seed names, as the message says.',
    ),
    NotReachable: explained(
      'False: the seed does not answer: ...',
      'Clusters on the seed may run on; the operator cannot look at them or change them.',
      'The seed is down, its kubeconfig is out of date, or the network between is broken.',
      'Try `kubectl get nodes` with the kubeconfig of the seed, and repair what fails there.',
    ),
    ...RECONCILE_FAILED,
  },
  NetworkPoliciesEnforced: {
    Enforced: explained(
      'True: a test showed that the network enforces NetworkPolicies',
      'Control planes of different clusters are isolated from each other.',
      'The operator tried it with two pods.',
      'Nothing: the operator tries it again from time to time.',
    ),
    NotEnforced: explained(
      'False: a pod reached another one although a NetworkPolicy forbade it',
      'Pods of all clusters in this seed can reach each other.',
      'The network plugin of the seed does not enforce NetworkPolicies.',
      'Install a network plugin that enforces NetworkPolicies in the seed, such as Calico or Cilium.',
    ),
    NotTried: explained(
      'Unknown: nobody has tried yet whether the network of the seed enforces NetworkPolicies',
      'The operator has just begun to use the seed.',
      'The first trial begins half a minute after the first contact.',
      'Nothing: the operator tries it within a minute.',
    ),
    CouldNotTry: explained(
      'Unknown: the operator could not try whether ...',
      'Nobody knows whether control planes are isolated.',
      'Pods of the trial did not start: no room, no image, or a policy against them.',
      'Repair what the message names in the seed; the operator tries again within an hour.',
    ),
  },
  AddressesKnown: {
    NameNotResolved: explained(
      "False: the operator finds no address of ..., which the Seed's kubeconfig names",
      'Machines of provider local may reach the API server of the seed.',
      'NetworkPolicies need addresses, and the name does not resolve.',
      "Name the seed's ranges in spec.networks.blockCIDRs of the Seed.",
    ),
    RangesNamed: explained(
      'Unknown: ... Machines of provider local do not reach it if it is in spec.networks.blockCIDRs',
      'Whether the seed is protected depends on the ranges that you named.',
      'The name in its kubeconfig does not resolve at the operator.',
      'Check that spec.networks.blockCIDRs of the Seed contains the address of its API server.',
    ),
    NoLocalMachines: explained(
      'Unknown: ... This operator makes no machines of provider local',
      'The address is unknown, and nothing on the seed could misuse that.',
      'Only machines of provider local could reach it.',
      'Nothing: the operator needs the address only if you allow local machines.',
    ),
  },
  BackupBucketsReady: {
    BucketReady: explained(
      'True: bucket ... is there',
      'Snapshots of etcd can be stored.',
      'The operator made or found the bucket of spec.backup.',
      'Nothing: the operator looks at the bucket again once in a while.',
    ),
    BucketNotReady: explained(
      "False: the cloud's error about the bucket",
      'No snapshot is stored for clusters of this seed.',
      'Credentials, the region or the name of the bucket are wrong, or the cloud does not answer.',
      'Correct spec.backup of the Seed, or renew the Secret of its credentials.',
    ),
  },
  BackupBucketsDrifted: {
    ChangedByOthers: explained(
      'True: what others changed of the bucket',
      'The bucket is less safe than the operator made it.',
      'Somebody changed its versioning, encryption, retention or access.',
      'Set the settings that the message names back in the account of the bucket.',
    ),
    NotReadable: explained(
      'Unknown: settings of the bucket: the error',
      'Nobody knows whether the bucket is still as safe as it was made.',
      'The credentials may not read settings of buckets.',
      'Grant the credentials of spec.backup the right to read the settings of the bucket.',
    ),
  },
  AllFieldsActedOn: {
    KeptOnly: explained(
      'False: these fields are stored without effect: ...',
      "Fields of Gardener's Seed are in the spec that Coppice does not act on.",
      'The schema accepts them, so that manifests of Gardener can be applied.',
      'Remove these fields from the Seed if you count on their effect.',
    ),
  },
  Deleting: { InUse: IN_USE.seed },
  Reconciled: RECONCILE_FAILED,
} as const;

export const CLOUDPROFILE = {
  Ready: {
    Usable: explained(
      'True: provider ... makes the machines',
      'Clusters can name this profile in spec.cloudProvider.',
      'The operator has the provider of the profile.',
      'Nothing: the operator reads the profile anew whenever it changes.',
    ),
    NoProvider: explained(
      'False: this operator has no provider "..."',
      'No cluster can be made with this profile.',
      'spec.provider, or spec.type without it, names a provider that does not exist.',
      'Correct spec.provider: local, simulated, aws, gcp or azure.',
    ),
    NotAllowed: explained(
      'False: machines of provider local are not allowed here',
      'This operator makes no machines of provider local.',
      'They are privileged pods of the seed, and administrators must allow them.',
      'Have an administrator set localMachines.allowed of the chart, or use another profile.',
    ),
    ...RECONCILE_FAILED,
  },
  Simulated: {
    NoCloudCredentials: explained(
      'True: SIMULATED: clusters of this profile ...',
      'Clusters of this profile that name no credentials have nodes that only look like nodes.',
      'Its provider is simulated, so that nothing costs money.',
      'For real machines, name credentials in spec.credentialsRef of the cluster.',
    ),
  },
  TenantsSeparated: {
    NoBoundary: explained(
      'False: machines of provider local are privileged pods ...',
      'Who has a cluster of this profile can take over the node of the seed.',
      'Machines are privileged pods on the nodes of the seed.',
      'Give clusters of this profile only to people whom you trust with the seed.',
    ),
  },
  Deleting: { InUse: IN_USE.profile },
  Reconciled: RECONCILE_FAILED,
} as const;

export const CREDENTIALSBINDING = {
  Ready: {
    Accepted: explained(
      'True: the cloud accepts the credentials, for account ...',
      'Clusters can name this binding in spec.credentialsRef.',
      'The operator asked the cloud whose they are.',
      'Nothing: the operator asks again whenever the Secret changes.',
    ),
    Refused: explained(
      'False: the error of the cloud, or what is missing',
      'Clusters of this binding cannot be made or changed; those that run go on.',
      'A key is wrong, expired or revoked, or the Secret lacks a field.',
      'Correct the Secret that the binding names; look up its fields in the page on clouds.',
    ),
    ...RECONCILE_FAILED,
  },
  AllFieldsActedOn: {
    KeptOnly: explained(
      'False: stored without effect: quotas (...)',
      'The quotas of the binding limit nothing.',
      'In Coppice a Quota limits its own namespace, whichever credentials are used.',
      'Create a Quota in the namespace of the clusters, and remove quotas from the binding.',
    ),
  },
  Deleting: { InUse: IN_USE.binding },
  Reconciled: RECONCILE_FAILED,
} as const;

export const WORKLOADIDENTITY = {
  Ready: {
    TokenIssued: explained(
      'True: the cloud must trust tokens of ServiceAccount ...',
      'The operator can issue tokens by which a cloud knows this identity.',
      'The ServiceAccount of the identity is there.',
      'Let the cloud trust the issuer and subject that the message names, if you have not yet.',
    ),
    NoToken: explained(
      'False: the error',
      'The operator cannot issue tokens, so no cloud accepts this identity.',
      'The garden has no public issuer, or the ServiceAccount cannot be made.',
      'Repair what the message names: the issuer of the garden, or the rights of the operator.',
    ),
    ...RECONCILE_FAILED,
  },
  Reconciled: RECONCILE_FAILED,
} as const;

export const QUOTA = {
  Ready: {
    Enforced: explained(
      'True: it limits the clusters of namespace ...',
      'Clusters of the namespace cannot grow beyond the metrics.',
      'The Quota is for its own namespace.',
      'Nothing: the operator counts each cluster of the namespace when it changes.',
    ),
    ScopeNotActedOn: explained(
      'False: a quota for ... is stored without effect: it limits nothing',
      'This Quota limits nothing.',
      'spec.scope names another kind than Project.',
      'Remove spec.scope of the Quota, or set its kind to Project.',
    ),
    ...RECONCILE_FAILED,
  },
  WithinLimits: {
    WithinLimits: explained(
      'True: nothing is above its limit',
      'The clusters of the namespace use no more than the Quota allows.',
      'No metric is above its limit.',
      'Nothing: the operator refuses what would exceed a limit; see `coppice describe quota NAME`.',
    ),
    AboveLimit: explained(
      'False: above the limit: nodes 5 of 3; what there is stays, nothing of it can grow',
      'Clusters stay as they are, and none can grow or be created.',
      'The limit was lowered, or the clusters were there before the Quota.',
      'Make clusters smaller with `coppice scale CLUSTER --nodes 3`, delete some, or raise the metric of the Quota.',
    ),
  },
  EverythingCounted: {
    NotKnown: explained(
      'False: not counted: ...',
      'The sums of this Quota are too low.',
      'A price is not known, or is in another currency, or a size cannot be read.',
      'Add the price to the machine type in the CloudProfile, in the currency of the Quota.',
    ),
  },
  AllFieldsActedOn: {
    KeptOnly: explained(
      'False: stored without effect: ...',
      'Metrics or fields of the Quota limit nothing.',
      "They are Gardener's, and Coppice does not count them.",
      'Use the metrics in the reference page of Quota, and remove the ones that the message names.',
    ),
  },
  Reconciled: RECONCILE_FAILED,
} as const;
