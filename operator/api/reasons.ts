import type { Condition } from './meta.ts';

/** Of pods that run a control plane or machines, and cannot start: why is Kubernetes' to say, in the message. */
const PODS = ['PodsCannotStart', 'SeedFull', 'ImageIsMade', 'ImageCannotBeMade'] as const;

const SERVES = ['AdminCanWrite', 'NotReachable', 'Starting', 'Waking', 'Hibernated', 'NotRun', 'NotObserved'] as const;
const CONTROL_PLANE = ['AllReady', 'NotReady'] as const;
const NODES = ['AllReady', 'NoNodes', 'NotObserved', 'ScalingOut', 'ScalingIn', 'NotReady', 'NodesLeaving'] as const;
const SYSTEM = [
  'Healthy',
  'Simulated',
  'NoNodes',
  'NotObserved',
  'NotReady',
  'StartupTaints',
  'RefusedByAdmission',
  'TunnelDown',
] as const;
/** Why an attached cluster is not used. */
const ATTACHED = [
  'KubeconfigMissing',
  'KubeconfigRefused',
  'Unauthorized',
  'Forbidden',
  'PlatformCluster',
  'SameCluster',
  'OtherCluster',
] as const;
const REFUSED = ['ConfigurationProblem', 'QuotaExceeded'] as const;
const READY_SHOOT = [
  ...SERVES,
  ...CONTROL_PLANE,
  ...NODES,
  ...SYSTEM,
  ...PODS,
  'ClusterReady',
  'ObjectsOnly',
  'OperationFailed',
  'Reconciling',
  'FallingAsleep',
  'WaitingForSeed',
  'Deleting',
  'ReconcileFailed',
] as const;
const INFRASTRUCTURE = ['Applied', 'Pending', 'Creating', 'Updating', 'Failed'] as const;

/** What a WorkerCluster repeats of its Shoot. */
const MIRRORED = {
  NoControlPlane: ['NotRun'],
  ControlPlaneHealthy: [...CONTROL_PLANE, ...PODS],
  EveryNodeReady: [...NODES, ...PODS],
  SystemComponentsHealthy: SYSTEM,
  AddonsReady: ['Serving', 'Starting', 'Simulated', 'NoNodes', 'NotObserved', 'OthersServe', 'RefusedByAdmission'],
  Draining: ['ScaleIn'],
  Rolling: ['MachinesOutdated'],
  DNSRecordsReady: ['RecordsReady', 'RecordsNotReady', 'InProgress'],
  EncryptionKeyRotating: ['NotPossible', 'AddingKey', 'WritingWithKey', 'DroppingKey'],
  KeysKept: ['KeysLost'],
  Drifted: ['AsApplied', 'ChangedByOthers', 'NotLookedAt'],
  BackupReady: ['SnapshotTaken', 'SnapshotFailed', 'SnapshotOverdue'],
  ResourcesCounted: ['AmountTooLarge'],
} as const;

/**
 * Every reason of a condition that the operator writes, by kind and by type of the condition. What another system says (the reason of a pod, of
 * a cloud or of a hub) goes into the message.
 */
export const REASONS = {
  WorkerCluster: {
    ...MIRRORED,
    Ready: [...READY_SHOOT, ...REFUSED, ...ATTACHED, ...INFRASTRUCTURE, 'AdminCanList', 'Answers'],
    SpecAccepted: ['Accepted', ...REFUSED],
    APIServerAvailable: [...SERVES, ...PODS, ...ATTACHED, 'AdminCanList', 'Answers'],
    InfrastructureReady: INFRASTRUCTURE,
    CredentialsValid: ['Accepted', 'Refused', 'NotChecked'],
    Adopted: ['Pending', 'TakenOver'],
    Hibernated: ['NoControlPlane', 'NoNodes', 'FallingAsleep', 'Waking', 'Awake'],
    CapacityAvailable: ['MovingElsewhere', 'Depleted', 'Alternative', 'OtherPlace', 'Retrying'],
    SizeDecided: ['Decided', 'Floor', 'ReceiptUnreadable'],
    Autoscaled: [
      'PodsWait',
      'DaemonSetsTooLarge',
      'NodesNotChanged',
      'NodesOrdered',
      'NodesLeave',
      'NodesHeldBack',
      'Settled',
    ],
    RangesUnique: ['NoOverlap', 'Overlap'],
    NetworkPoliciesEnforced: ['NoEnforcement'],
    ControlPlaneNodesApplied: ['ManagedByCloud'],
    Simulated: ['NoCloudCredentials'],
    Expiring: ['EndIsNear', 'Over', 'Protected'],
    ShootDeleted: ['ByHand'],
    Deleting: ['Gone', 'InProgress', 'Stuck', 'Held', 'WaitingFor', 'WaitingForShoot'],
    Reconciled: ['ReconcileFailed'],
  },
  Shoot: {
    ...MIRRORED,
    Ready: READY_SHOOT,
    APIServerAvailable: [...SERVES, ...PODS],
    Hibernated: ['NoControlPlane', 'FallingAsleep'],
    AllFieldsActedOn: ['KeptOnly'],
    Deleting: ['InProgress', 'Stuck', 'Held', 'WaitingFor'],
    Reconciled: ['ReconcileFailed'],
  },
  Seed: {
    Ready: ['SeedReady', 'NotUsable', 'NotReachable', 'ReconcileFailed'],
    NetworkPoliciesEnforced: ['Enforced', 'NotEnforced', 'NotTried', 'CouldNotTry'],
    AddressesKnown: ['NameNotResolved', 'RangesNamed', 'NoLocalMachines'],
    BackupBucketsReady: ['BucketReady', 'BucketNotReady'],
    BackupBucketsDrifted: ['ChangedByOthers', 'NotReadable'],
    AllFieldsActedOn: ['KeptOnly'],
    Deleting: ['InUse'],
    Reconciled: ['ReconcileFailed'],
  },
  CloudProfile: {
    Ready: ['Usable', 'NoProvider', 'NotAllowed', 'ReconcileFailed'],
    Simulated: ['NoCloudCredentials'],
    TenantsSeparated: ['NoBoundary'],
    Deleting: ['InUse'],
    Reconciled: ['ReconcileFailed'],
  },
  CredentialsBinding: {
    Ready: ['Accepted', 'Refused', 'ReconcileFailed'],
    AllFieldsActedOn: ['KeptOnly'],
    Deleting: ['InUse'],
    Reconciled: ['ReconcileFailed'],
  },
  WorkloadIdentity: {
    Ready: ['TokenIssued', 'NoToken', 'ReconcileFailed'],
    Reconciled: ['ReconcileFailed'],
  },
  Quota: {
    Ready: ['Enforced', 'ScopeNotActedOn', 'ReconcileFailed'],
    WithinLimits: ['WithinLimits', 'AboveLimit'],
    EverythingCounted: ['NotKnown'],
    AllFieldsActedOn: ['KeptOnly'],
    Reconciled: ['ReconcileFailed'],
  },
  Hub: {
    Ready: ['HubReady', 'NotUsable', 'ReconcileFailed'],
    LeavesApproved: ['ApprovalNeeded'],
    Deleting: ['InUse', 'Orphaning'],
    Reconciled: ['ReconcileFailed'],
  },
  Membership: {
    Ready: ['Joined', 'Joining', 'Pending', 'Asleep', 'Leaving', 'CannotGoOn', 'ReconcileFailed'],
    HubUsable: ['Usable', 'NotUsable'],
    LinePossible: ['CannotReach'],
    IdentityReady: ['Done', 'Waiting'],
    CredentialsReady: ['Done', 'Waiting'],
    Registered: ['Done', 'Waiting'],
    CapacityVisible: ['Done', 'Waiting'],
    Observed: ['MadeByOthers'],
    Warm: ['WaitsWarm'],
    Cordoned: ['Cordoned'],
    RoomElsewhere: ['NoRoom', 'DrainBlocked'],
    Drained: ['Drained', 'Draining', 'DrainBlocked', 'DrainNotPossible', 'FallingAsleep', 'Forced'],
    ExportsWithdrawn: ['Exported', 'DrainBlocked'],
    OwnWorkGone: ['OwnWork', 'DrainBlocked'],
    Withdrawn: ['Withdrawing'],
    Reconciled: ['ReconcileFailed'],
  },
  BurstPolicy: {
    Ready: [
      'Watching',
      'DryRun',
      'Suspended',
      'ScheduleOnly',
      'HubNotFound',
      'HubNotReady',
      'HubDoesNotAnswer',
      'NoDemand',
      'NotAllowed',
      'CannotGiveBack',
      'CannotOpen',
      'Deleting',
      'ReconcileFailed',
    ],
    DemandMet: [
      'NothingWaits',
      'Fits',
      'RoomOrdered',
      'Stabilising',
      'CoolingDown',
      'Bought',
      'Growing',
      'Opened',
      'Waking',
      'Suspended',
      'Later',
      'LowPriority',
      'Refused',
    ],
    Deleting: ['ClustersLeave'],
    Reconciled: ['ReconcileFailed'],
  },
} as const satisfies Record<string, Record<string, readonly string[]>>;

type Reasons = typeof REASONS;
/** Kinds that have conditions of the operator. */
export type ConditionKind = keyof Reasons;
/** Types of conditions that objects of a kind have. */
export type ConditionType<K extends ConditionKind = ConditionKind> = K extends ConditionKind
  ? keyof Reasons[K] & string
  : never;
/** Reasons of one type of condition. */
export type Reason<K extends ConditionKind, T extends string> = K extends ConditionKind
  ? T extends keyof Reasons[K]
    ? Reasons[K][T] extends readonly (infer R extends string)[]
      ? R
      : never
    : never
  : never;

/** A condition of one type, without the time since when it is so. */
export type SaidOf<T extends string, R extends string> = Omit<Condition, 'lastTransitionTime' | 'type' | 'reason'> & {
  readonly type: T;
  readonly reason: R;
};
/** A condition of one type, as it is said of an object of a kind. */
export type SaidAs<K extends ConditionKind, T extends ConditionType<K>> = T extends string
  ? SaidOf<T, Reason<K, T>>
  : never;
/** A condition as it is said of an object of a kind; when it began is for whoever writes it. */
export type Said<K extends ConditionKind> = K extends ConditionKind
  ? { [T in ConditionType<K>]: SaidOf<T, Reason<K, T>> }[ConditionType<K>]
  : never;
