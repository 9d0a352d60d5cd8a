/** The API group of every Coppice kind. */
export const GROUP = 'multi-cluster.demo.io';
/** The one served and stored version, of all kinds but those that name another. */
export const VERSION = 'v1';
/** `apiVersion` of every Coppice object whose kind names no other version. */
export const API_VERSION = `${GROUP}/${VERSION}`;
/** Version of kinds that are new and may still change. */
export const ALPHA_VERSION = 'v1alpha1';
/** `apiVersion` of objects of these kinds. */
export const ALPHA_API_VERSION = `${GROUP}/${ALPHA_VERSION}`;
/** The field manager of every server-side apply; also the User-Agent's first word. */
export const FIELD_MANAGER = 'coppice';
/** `spec.controllerName` of the AdmissionChecks of Kueue that the operator answers for. */
export const ADMISSION_CONTROLLER = `${GROUP}/burst`;
/** The field manager of its answers: Kueue's own are applied to the same lists, and neither may take away the other's entries. */
export const ADMISSION_FIELD_MANAGER = 'coppice-admission';
/** Held by the operator on an object until everything made for it is gone. */
export const FINALIZER = `${GROUP}/coppice`;

/** Label keys that Coppice sets. */
export const LABELS = {
  /** Name of the WorkerCluster an object was made for, or that somebody asks for a kubeconfig of. */
  workerCluster: `${GROUP}/worker-cluster`,
  /** Namespace of that WorkerCluster, on what lies in another one. */
  workerClusterNamespace: `${GROUP}/worker-cluster-namespace`,
  /** UID of that WorkerCluster. */
  workerClusterUID: `${GROUP}/worker-cluster-uid`,
  /** What names in clouds and of stacks are made of: `shoot--<namespace>--<name>`, with a hash where that is too long. */
  technicalID: `${GROUP}/technical-id`,
  /** Name of the Shoot an object in a seed belongs to. */
  shoot: `${GROUP}/shoot`,
  /** Namespace (in the garden) of that Shoot. */
  shootNamespace: `${GROUP}/shoot-namespace`,
  /** Name of the worker pool; on machines, machine ReplicaSets and the nodes themselves. */
  pool: `${GROUP}/pool`,
  /** On nodes of a pool's second or later choice of machine type or zones: the pool as the spec names it. */
  alternativeOf: `${GROUP}/alternative-of`,
  /** What an object is for: `controlplane`, `machine`, `system`, or a record of the operator (`burst-record`, `membership-record`). */
  role: `${GROUP}/role`,
  /** Name of the seed that hosts a shoot. */
  seed: `${GROUP}/seed`,
  /** Cloud provider of a cluster, as in `spec.cloudProvider`. */
  provider: `${GROUP}/provider`,
  /** `"true"` on a WorkerCluster for work that finds no room elsewhere: people or a BurstPolicy set it, and hubs see it. */
  burst: `${GROUP}/burst`,
  /** On a WorkerCluster that was made for a BurstPolicy: name of the policy. */
  burstPolicy: `${GROUP}/burst-policy`,
  /** On the same: name of the candidate that it was made from. */
  burstCandidate: `${GROUP}/burst-candidate`,
  /** On the same: which purchase of that policy it is. */
  burstPurchase: `${GROUP}/burst-purchase`,
  /** On the same, as long as it waits warm: it joins its hubs, and is not opened there. */
  burstWarm: `${GROUP}/burst-warm`,
  /** On the same, as long as its hubs are to move its work away, so that it can be given back. */
  burstEmptying: `${GROUP}/burst-emptying`,
  /** On a Shoot, and in hubs: mesh of the cluster. */
  mesh: `${GROUP}/mesh`,
  /** On the same: id of the cluster in its mesh. */
  clusterID: `${GROUP}/cluster-id`,
  /** On the same: name of the cluster in its mesh. */
  meshClusterName: `${GROUP}/mesh-cluster-name`,
  /** UID of the Membership that an object in a hub, or in a member of one, was made for. */
  membership: `${GROUP}/membership`,
  /** On the same: UID of the namespace kube-system of the garden that made it. */
  garden: `${GROUP}/garden`,
  /** On the same: name of the Hub. */
  hub: `${GROUP}/hub`,
  /** On the same: name of the WorkerCluster. Not workerCluster: hubs choose clusters by that one. */
  member: `${GROUP}/member`,
  /** On the same: namespace of that WorkerCluster. */
  memberNamespace: `${GROUP}/member-namespace`,
  /** On the same: UID of that WorkerCluster. */
  memberUID: `${GROUP}/member-uid`,
  /** On the same: UID of the namespace kube-system of that cluster. */
  memberIdentity: `${GROUP}/member-identity`,
  /** `simulated` on a ConfigMap that stands for a DNS zone. */
  dnsZone: `${GROUP}/dns-zone`,
  /** Cluster API's convention: the cluster a kubeconfig Secret belongs to. */
  clusterName: 'cluster.x-k8s.io/cluster-name',
  /** Kubernetes' own convention, always `coppice` on what the operator made. */
  managedBy: 'app.kubernetes.io/managed-by',
} as const;

/** Values of the label `LABELS.role`. */
export const ROLES = {
  controlPlane: 'controlplane',
  machine: 'machine',
  /** A machine that runs the control plane of its own cluster. */
  controlPlaneMachine: 'controlplane-machine',
  system: 'system',
  /** Namespace in which it is tried whether a seed's network enforces NetworkPolicies. */
  networkTrial: 'network-trial',
  /** Secret with what the operator remembers of a managed cluster. */
  cloudReceipt: 'cloud-record',
  /** Secret with what was decided for the pools of a cluster. */
  decidedSizes: 'decided-sizes',
  /** Secret with what clusters of a mesh were given. */
  meshReceipt: 'mesh-record',
  /** Secret with credentials of a cloud that something uses. */
  credentials: 'credentials',
  /** Secret with what was made for a membership, in the hub and in the cluster. */
  membershipReceipt: 'membership-record',
  /** Secret with what a BurstPolicy has bought. */
  burstReceipt: 'burst-record',
  /** Secret with which cluster an attached one was first seen to be. */
  attachedReceipt: 'attached-record',
} as const;

/** Annotation keys that people or Coppice set. */
export const ANNOTATIONS = {
  /** `"true"`: the object cannot be deleted, whatever its kind. */
  deletionProtection: `${GROUP}/deletion-protection`,
  /**
   * On a WorkerCluster: the number that the operator filled into spec.dataPlaneNodes, as long as it is the same. It travels with exports and
   * backups, which have no status.
   */
  filledInNodes: `${GROUP}/filled-in-nodes`,
  /** `"true"` on a node or machine: goes first when its pool is scaled in. */
  scaleInFirst: `${GROUP}/scale-in-first`,
  /** On a node that the autoscaler empties, RFC 3339: since when; with ` empty` once nothing is left there and its machine goes. */
  emptiedSince: `${GROUP}/emptied-since`,
  /** RFC 3339: when the credentials in a kubeconfig Secret end. */
  expiresAt: `${GROUP}/expires-at`,
  /** On a pod of a seed whose image has to be made first: how far that is, in a clause for people. */
  imageProgress: `${GROUP}/image-progress`,
  /** On a pod of a seed whose image could not be made: why, and when that is tried again, in a clause for people. */
  imageFailure: `${GROUP}/image-failure`,
  /** RFC 3339: when the operator replaces them. */
  renewAt: `${GROUP}/renew-at`,
  /** Hash of what a pod depends on, so that a change rolls it. */
  checksum: `${GROUP}/checksum`,
  /** On the operator's Lease: the last who led, with commas between. */
  leaders: `${GROUP}/leaders`,
  /** RFC 3339, on a Shoot: a snapshot of its etcd is taken unless there is one that is newer. */
  backupRequestedAt: `${GROUP}/backup-requested-at`,
  /** `"true"` on a Membership: the cluster leaves the hub although its selector would have too many leave at once. */
  approveLeave: `${GROUP}/approve-leave`,
  /** `"true"` on a Membership that leaves: when its time is over the cluster is withdrawn whatever still runs on it. */
  forceLeave: `${GROUP}/force-leave`,
  /** On an attached WorkerCluster: the UID of kube-system of the cluster that its kubeconfig points to now, which it may become. */
  approveCluster: `${GROUP}/approve-cluster`,
  /** `"true"` on an attached WorkerCluster: whoever made the cluster takes it down, with all that is in it. */
  destroyed: `${GROUP}/destroyed`,
  /**
   * On a PlacementDecision, as JSON: what its scheduler has no place for, `{"replicas": 4, "requests": {"cpu": "1", "memory": "1Gi"}}` and, if it
   * may not go everywhere, `clusterSelector` with labels of ClusterProfiles.
   */
  unplaced: `${GROUP}/unplaced`,
  /** On the Secret of a hosted etcd: UIDs of the claims that its members keep their data on, as JSON by ordinal. */
  etcdVolumes: `${GROUP}/etcd-volumes`,
  /** On the StatefulSet of a hosted etcd: how many members it had when it fell asleep, and has again when it wakes. */
  sizeAwake: `${GROUP}/size-awake`,
  /**
   * Removed when taken up. `retry` on a WorkerCluster of mode Managed; `reconcile` on the same, or on the Shoot of another mode, undoes drift;
   * `rotate-etcd-encryption-key` on a Shoot.
   */
  operation: 'gardener.cloud/operation',
  /** `"true"` on a Shoot: the operator leaves it alone. */
  ignore: 'shoot.gardener.cloud/ignore',
  /** On a CRD: the release of Coppice whose chart wrote it last. */
  release: `${GROUP}/release`,
  /** `"true"` on a Seed: no shoot is placed there. */
  emergencyStop: 'shoot.gardener.cloud/emergency-stop-reconciliations',
} as const;

/** Annotation keys of others by which people say what must not be disturbed: Karpenter's and Cluster Autoscaler's. */
export const OTHERS_ANNOTATIONS = {
  /** On a node or a pod: `"true"`, or on a pod for how long from its start. */
  doNotDisrupt: 'karpenter.sh/do-not-disrupt',
  /** On a pod: `"false"`, or `"true"` to have it evicted whatever else says no. */
  safeToEvict: 'cluster-autoscaler.kubernetes.io/safe-to-evict',
  /** On a node: `"true"`. */
  scaleDownDisabled: 'cluster-autoscaler.kubernetes.io/scale-down-disabled',
  /** On a node of GKE: the id of its instance at Google. */
  instanceID: 'container.googleapis.com/instance_id',
} as const;
