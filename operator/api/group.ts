/** The API group of every Coppice kind. */
export const GROUP = 'multi-cluster.demo.io';
/** The served and stored version of all kinds that name no other. */
export const VERSION = 'v1';
/** `apiVersion` of every Coppice object whose kind names no other version. */
export const API_VERSION = `${GROUP}/${VERSION}`;
/** Version of new kinds that may still change. */
export const ALPHA_VERSION = 'v1alpha1';
/** `apiVersion` of objects of alpha kinds. */
export const ALPHA_API_VERSION = `${GROUP}/${ALPHA_VERSION}`;
/** The field manager of every server-side apply; also the User-Agent's first word. */
export const FIELD_MANAGER = 'coppice';
/** `spec.controllerName` of Kueue's AdmissionChecks that the operator answers. */
export const ADMISSION_CONTROLLER = `${GROUP}/burst`;
/**
 * Field manager of the operator's answers to Kueue. A separate one, because Kueue applies entries to the same lists.
 */
export const ADMISSION_FIELD_MANAGER = 'coppice-admission';
/** Finalizer of the operator: stays on an object until everything made for it is gone. */
export const FINALIZER = `${GROUP}/coppice`;

/** Label keys that Coppice sets. */
export const LABELS = {
  /** Name of the WorkerCluster that an object was made for, or that a kubeconfig is requested for. */
  workerCluster: `${GROUP}/worker-cluster`,
  /** Namespace of that WorkerCluster, on objects in other namespaces. */
  workerClusterNamespace: `${GROUP}/worker-cluster-namespace`,
  /** UID of that WorkerCluster. */
  workerClusterUID: `${GROUP}/worker-cluster-uid`,
  /** Base of names in clouds and of stacks: `shoot--<namespace>--<name>`, with a hash when too long. */
  technicalID: `${GROUP}/technical-id`,
  /** Name of the Shoot that an object in a seed belongs to. */
  shoot: `${GROUP}/shoot`,
  /** Namespace (in the garden) of that Shoot. */
  shootNamespace: `${GROUP}/shoot-namespace`,
  /** Name of the worker pool; on machines, machine ReplicaSets and nodes. */
  pool: `${GROUP}/pool`,
  /** On nodes of a pool's alternative machine type or zones: name of the pool in the spec. */
  alternativeOf: `${GROUP}/alternative-of`,
  /**
   * Purpose of an object: `controlplane`, `machine`, `system`, or a receipt of the operator (`burst-record`,
   * `membership-record`).
   */
  role: `${GROUP}/role`,
  /** Name of the seed that hosts a shoot. */
  seed: `${GROUP}/seed`,
  /** Cloud provider of a cluster, as in `spec.cloudProvider`. */
  provider: `${GROUP}/provider`,
  /** `"true"` on a WorkerCluster for work without room elsewhere: set by people or a BurstPolicy, shown to hubs. */
  burst: `${GROUP}/burst`,
  /** On a WorkerCluster that was bought for a BurstPolicy: name of the policy. */
  burstPolicy: `${GROUP}/burst-policy`,
  /** On a bought WorkerCluster: name of its candidate. */
  burstCandidate: `${GROUP}/burst-candidate`,
  /** On a bought WorkerCluster: number of the purchase within the policy. */
  burstPurchase: `${GROUP}/burst-purchase`,
  /** On a bought WorkerCluster while it is warm: it joins its hubs and stays closed there. */
  burstWarm: `${GROUP}/burst-warm`,
  /** On a bought WorkerCluster while its hubs move work away, before it is given back. */
  burstEmptying: `${GROUP}/burst-emptying`,
  /** On a Shoot, and in hubs: name of the cluster's mesh. */
  mesh: `${GROUP}/mesh`,
  /** With `mesh`: id of the cluster in its mesh. */
  clusterID: `${GROUP}/cluster-id`,
  /** With `mesh`: name of the cluster in its mesh. */
  meshClusterName: `${GROUP}/mesh-cluster-name`,
  /** UID of the Membership that an object in a hub or in a member was made for. */
  membership: `${GROUP}/membership`,
  /** With `membership`: UID of namespace kube-system of the garden that made the object. */
  garden: `${GROUP}/garden`,
  /** With `membership`: name of the Hub. */
  hub: `${GROUP}/hub`,
  /**
   * With `membership`: name of the WorkerCluster. A separate label from workerCluster, by which hubs select clusters.
   */
  member: `${GROUP}/member`,
  /** With `membership`: namespace of the WorkerCluster. */
  memberNamespace: `${GROUP}/member-namespace`,
  /** With `membership`: UID of the WorkerCluster. */
  memberUID: `${GROUP}/member-uid`,
  /** With `membership`: UID of namespace kube-system of the member. */
  memberIdentity: `${GROUP}/member-identity`,
  /** `simulated` on a ConfigMap that stores a simulated DNS zone. */
  dnsZone: `${GROUP}/dns-zone`,
  /** Cluster API's convention: the cluster of a kubeconfig Secret. */
  clusterName: 'cluster.x-k8s.io/cluster-name',
  /** Kubernetes' convention; `coppice` on everything that the operator makes. */
  managedBy: 'app.kubernetes.io/managed-by',
} as const;

/** Values of the label `LABELS.role`. */
export const ROLES = {
  controlPlane: 'controlplane',
  machine: 'machine',
  /** A machine that runs the control plane of its own cluster. */
  controlPlaneMachine: 'controlplane-machine',
  system: 'system',
  /** Namespace for the trial whether a seed enforces NetworkPolicies. */
  networkTrial: 'network-trial',
  /** Receipt of a managed cluster. */
  cloudReceipt: 'cloud-record',
  /** Stored sizes of a cluster's pools. */
  decidedSizes: 'decided-sizes',
  /** Receipt of a mesh: ids, names and ranges of its clusters. */
  meshReceipt: 'mesh-record',
  /** Cloud credentials that a cluster uses. */
  credentials: 'credentials',
  /** Receipt of a membership, for objects in the hub and in the member. */
  membershipReceipt: 'membership-record',
  /** Receipt of a BurstPolicy's purchases. */
  burstReceipt: 'burst-record',
  /** Receipt of an attached cluster's identity. */
  attachedReceipt: 'attached-record',
} as const;

/** Annotation keys that people or Coppice set. */
export const ANNOTATIONS = {
  /** `"true"`: the object of any kind cannot be deleted. */
  deletionProtection: `${GROUP}/deletion-protection`,
  /**
   * On a WorkerCluster: number that the operator filled into spec.dataPlaneNodes, while it is unchanged. Exports and
   * backups keep it, unlike status.
   */
  filledInNodes: `${GROUP}/filled-in-nodes`,
  /** `"true"` on a node or machine: removed first when its pool is scaled in. */
  scaleInFirst: `${GROUP}/scale-in-first`,
  /**
   * On a node that the autoscaler drains, RFC 3339: start of the drain; with suffix ` empty` once its pods are gone and
   * its machine is deleted.
   */
  emptiedSince: `${GROUP}/emptied-since`,
  /** RFC 3339: expiry of the credentials in a kubeconfig Secret. */
  expiresAt: `${GROUP}/expires-at`,
  /** On a pod of a seed whose image is being built: progress, as a clause for people. */
  imageProgress: `${GROUP}/image-progress`,
  /** On a pod of a seed whose image build failed: reason and time of the retry, as a clause for people. */
  imageFailure: `${GROUP}/image-failure`,
  /** RFC 3339: when the operator renews the credentials. */
  renewAt: `${GROUP}/renew-at`,
  /** Hash of a pod's inputs, so that a change rolls the pod. */
  checksum: `${GROUP}/checksum`,
  /** On the operator's Lease: last leaders, separated by commas. */
  leaders: `${GROUP}/leaders`,
  /** RFC 3339, on a Shoot: requests a snapshot of etcd, unless a newer one exists. */
  backupRequestedAt: `${GROUP}/backup-requested-at`,
  /** `"true"` on a Membership: the cluster may leave although the hub's selector would make too many leave at once. */
  approveLeave: `${GROUP}/approve-leave`,
  /** `"true"` on a leaving Membership: after its deadline the cluster is withdrawn even if work still runs on it. */
  forceLeave: `${GROUP}/force-leave`,
  /**
   * On an attached WorkerCluster: UID of namespace kube-system of the new cluster behind its kubeconfig, to approve the
   * change.
   */
  approveCluster: `${GROUP}/approve-cluster`,
  /** `"true"` on an attached WorkerCluster: its owner destroys the cluster with all its content. */
  destroyed: `${GROUP}/destroyed`,
  /**
   * On a PlacementDecision, as JSON: demand without a place, `{"replicas": 4, "requests": {"cpu": "1", "memory":
   * "1Gi"}}`, optionally `clusterSelector` with labels of ClusterProfiles.
   */
  unplaced: `${GROUP}/unplaced`,
  /** On the Secret of a hosted etcd: UIDs of its members' PersistentVolumeClaims, as JSON by ordinal. */
  etcdVolumes: `${GROUP}/etcd-volumes`,
  /** On the StatefulSet of a hosted etcd: number of members before hibernation, restored on wake-up. */
  sizeAwake: `${GROUP}/size-awake`,
  /**
   * Removed once accepted. `retry` on a WorkerCluster of mode Managed; `reconcile` on the same, or on the Shoot of
   * another mode, reverts drift; `rotate-etcd-encryption-key` on a Shoot.
   */
  operation: 'gardener.cloud/operation',
  /** `"true"` on a Shoot: the operator does not reconcile it, and aborts a reconcile that runs. */
  ignore: 'shoot.gardener.cloud/ignore',
  /** On a CRD: release of Coppice whose chart wrote it last. */
  release: `${GROUP}/release`,
  /** `"true"` on a Seed: no shoot is placed there. */
  emergencyStop: 'shoot.gardener.cloud/emergency-stop-reconciliations',
} as const;

/** Annotations of Karpenter and Cluster Autoscaler by which people protect nodes and pods from disruption. */
export const OTHERS_ANNOTATIONS = {
  /** On a node or a pod: `"true"`; on a pod also a duration from its start. */
  doNotDisrupt: 'karpenter.sh/do-not-disrupt',
  /** On a pod: `"false"`, or `"true"` to allow eviction regardless of other rules. */
  safeToEvict: 'cluster-autoscaler.kubernetes.io/safe-to-evict',
  /** On a node: `"true"`. */
  scaleDownDisabled: 'cluster-autoscaler.kubernetes.io/scale-down-disabled',
  /** On a node of GKE: id of its instance. */
  instanceID: 'container.googleapis.com/instance_id',
} as const;
