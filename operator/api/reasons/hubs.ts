import { explained, RECONCILE_FAILED } from './explanation.ts';

export const HUB = {
  Ready: {
    HubReady: explained(
      'True: clusters can join',
      'Memberships of this Hub go on.',
      'The hub answers, and has what its type needs.',
      'Nothing: the operator joins the clusters that the selector of the Hub matches.',
    ),
    NotUsable: explained(
      'False: what the hub lacks, or why it does not answer',
      'No cluster joins or leaves; work that runs goes on.',
      'Its kubeconfig is wrong, or its API server lacks a CRD or a right.',
      'Repair what the message names in the hub, or the Secret of its kubeconfig; see `coppice hubs`.',
    ),
    ...RECONCILE_FAILED,
  },
  LeavesApproved: {
    ApprovalNeeded: explained(
      'False: the selector asks 7 clusters to leave, more than maxConcurrentLeaves',
      'None of these clusters leaves.',
      'The selector of the Hub, or labels of clusters, changed for many at once.',
      'Correct the selector. If all are to leave: `kubectl annotate membership MEMBERSHIP multi-cluster.demo.io/approve-leave=true`.',
    ),
  },
  Deleting: {
    InUse: explained(
      'True: deletion waits for its members to leave: ...',
      'The Hub was deleted, and clusters are still in it.',
      'A cluster leaves a hub only when its Membership is deleted.',
      'Delete the Memberships with `kubectl delete membership MEMBERSHIP`, or set spec.orphan of the Hub.',
    ),
    Orphaning: explained(
      'True: it releases ...',
      'The clusters stay in the hub, and Coppice no longer looks after them.',
      'spec.orphan of the Hub is true.',
      'Nothing: the operator releases the members, then the Hub goes.',
    ),
  },
  Reconciled: RECONCILE_FAILED,
} as const;

const done = (see: string, means: string, action: string) =>
  explained(`True: ${see}`, means, 'This step of the join has nothing left to do.', action);

const DRAIN_BLOCKED = {
  DrainBlocked: explained(
    'False: the drain deadline has passed, and ... is still there',
    'The cluster has not left: something is still on it, and the time for that is over.',
    'Other clusters have no room, or somebody still uses what runs there.',
    'Make room elsewhere or remove the work. To lose it: `kubectl annotate membership NAME -n NAMESPACE multi-cluster.demo.io/force-leave=true`.',
  ),
} as const;

export const MEMBERSHIP = {
  Ready: {
    Joined: explained(
      'True: the cluster is in the hub and takes work',
      'The hub knows the cluster, and may place work on it.',
      'All steps of the join are done.',
      'Nothing: the operator renews credentials and capacity of the member in time.',
    ),
    Joining: explained(
      'False: what the next step waits for',
      'The cluster is on its way into the hub.',
      'A join has four steps, and some wait for an agent or for credentials.',
      'Wait a minute; if the same step stays False, read its message with `coppice hubs`.',
    ),
    Pending: explained(
      'False: the cluster cannot take work yet, or the hub cannot take clusters',
      'The join has not begun.',
      'The cluster is not Ready, or its Hub is not.',
      'Repair the cluster or Hub that the message names; the join begins by itself then.',
    ),
    Asleep: explained(
      'False: the cluster sleeps: the hub places nothing on it until it wakes',
      'The cluster stays in the hub, closed to work.',
      'The cluster hibernates.',
      'To give it work, run `coppice wake CLUSTER -n NAMESPACE`.',
    ),
    Leaving: explained(
      'False: what the leave waits for',
      'The cluster is on its way out of the hub.',
      'The Membership was deleted, or the selector of the Hub no longer matches the cluster.',
      'Nothing: the operator drains and withdraws the cluster; condition Drained says what is left.',
    ),
    CannotGoOn: explained(
      'False: the error at the hub or at the cluster',
      'A step failed, and the operator tries again.',
      'One of both ends does not answer, or refuses a write.',
      'Repair the end that the message names: its kubeconfig, its rights, or its webhook.',
    ),
    ...RECONCILE_FAILED,
  },
  HubUsable: {
    Usable: explained(
      'True: clusters can join Hub ...',
      'The hub is not what this Membership waits for.',
      'Its Hub is Ready.',
      'Look at the cluster instead: run `coppice describe CLUSTER -n NAMESPACE`.',
    ),
    NotUsable: explained(
      'False: clusters cannot join Hub ... now: ...',
      'The Membership waits for its Hub.',
      'The Hub does not exist, or is not Ready.',
      'Create the Hub that spec.hub names, or repair it as its condition Ready says.',
    ),
  },
  LinePossible: {
    CannotReach: explained(
      'False: Hub ... at ... cannot reach cluster ... at ...',
      'The hub and the cluster cannot connect to each other.',
      'One of them has an address that only its own network knows.',
      "Set spec.member.endpoint of the Hub to an address that both reach, or use the hub's pull mode.",
    ),
  },
  IdentityReady: {
    Done: done(
      'the identities of the hub and of the cluster are made, with their rights',
      'Hub and cluster have accounts for each other.',
      'Nothing: the operator restores these accounts if somebody deletes them.',
    ),
    Waiting: explained(
      'False: credentials of ... are to be made',
      'Accounts for hub and cluster are not complete.',
      'Tokens are issued, or a request for a certificate waits for approval.',
      'Wait a minute; then check that the API server of that side answers and grants the rights.',
    ),
  },
  CredentialsReady: {
    Done: done(
      'the credentials are handed over',
      'Each side can use the other.',
      'Nothing: the operator replaces credentials before they end.',
    ),
    Waiting: explained(
      'False: what the hand-over waits for',
      'Credentials are made, and the other side does not have them yet.',
      'A Secret cannot be written, or an agent has not read it.',
      'Check in the hub whether the Secret that the message names exists.',
    ),
  },
  Registered: {
    Done: done(
      'the cluster is known to the hub',
      'The object of the cluster in the hub is there.',
      'Nothing: the operator keeps the labels and taints of that object right.',
    ),
    Waiting: explained(
      'False: the hub has not accepted the cluster yet',
      "The hub's own controller has not said that it knows the cluster.",
      "The hub's controllers are down, or cannot reach the cluster.",
      "Look at the hub's controllers, and at the object of the cluster that the message names.",
    ),
  },
  CapacityVisible: {
    Done: done(
      'the hub shows the capacity of the cluster',
      'The scheduler of the hub can count on the nodes.',
      'Nothing: the operator, or the hub, updates the capacity as nodes change.',
    ),
    Waiting: explained(
      'False: the hub does not show the capacity yet',
      'The scheduler of the hub does not know how much fits on the cluster.',
      'The agent or controller of the hub has not counted the nodes, or there are none.',
      'Check that the cluster has Ready nodes, then wait for the next report of the hub.',
    ),
  },
  Observed: {
    MadeByOthers: explained(
      'True: ... of the hub is this cluster, and somebody else made it',
      'The cluster is in the hub already, and Coppice leaves that entry alone.',
      'Somebody joined the cluster to the hub by other means.',
      'To have Coppice look after it, remove the entry from the hub; the operator joins it then.',
    ),
  },
  Warm: {
    WaitsWarm: explained(
      'True: the cluster waits warm, closed to work',
      'The cluster is ready, and its BurstPolicy opens it when work needs it.',
      'The policy keeps some clusters warm.',
      'Nothing: the operator opens it when its BurstPolicy decides so.',
    ),
  },
  Cordoned: {
    Cordoned: explained(
      'True: the hub places nothing new on the cluster',
      'The first stage of a leave is done.',
      'The cluster leaves this hub.',
      'Nothing: the operator goes on to drain the cluster.',
    ),
  },
  RoomElsewhere: {
    NoRoom: explained(
      'False: other members have no room for the work',
      'The drain has not begun, since the work would run nowhere.',
      'Other members of the hub are full or do not match.',
      'Add nodes to another member, for example `coppice scale OTHER --nodes 3`, or reduce the work.',
    ),
    ...DRAIN_BLOCKED,
  },
  Drained: {
    Drained: explained(
      'True: nothing of the hub counts on the cluster any more',
      'The hub has no work left on the cluster.',
      'All placements were moved, or none was there.',
      'Nothing: the operator takes the cluster out of the hub, or keeps it closed.',
    ),
    Draining: explained(
      'False: the hub moves ...',
      'The hub moves work to other members.',
      'The cluster leaves, sleeps or is emptied.',
      'Nothing: the operator waits for the hub, until the drain timeout of the Hub.',
    ),
    DrainNotPossible: explained(
      'False: ... is placed, and this hub does not move work',
      'The work stays until somebody removes it.',
      'Hubs of this type do not move work by themselves.',
      'Have the owner remove the work, or set spec.drain.allowDelete of the Hub.',
    ),
    FallingAsleep: explained(
      'False: the hub moves ...',
      'The cluster is to sleep, and the hub moves its work first.',
      'spec.hibernation or a schedule of the cluster.',
      'Nothing: the operator has the cluster sleep when the work is gone, or its time is over.',
    ),
    Forced: explained(
      'True: it was not drained',
      'The cluster leaves although work was still on it.',
      'The leave was forced, by spec.drain.force or the annotation, after its time was over.',
      'Start the lost work again on another member of the hub, if it is still wanted.',
    ),
    ...DRAIN_BLOCKED,
  },
  ExportsWithdrawn: {
    Exported: explained(
      'False: other clusters still send traffic to it through ...',
      'The cluster waits until nobody uses its exported Services.',
      'ServiceExports of the cluster have users elsewhere.',
      'Move these Services to another cluster, or delete their ServiceExports in this one.',
    ),
    ...DRAIN_BLOCKED,
  },
  OwnWorkGone: {
    OwnWork: explained(
      'False: no hub placed ..., which would be deleted with the cluster',
      'The cluster runs work that no hub placed, and waits for it.',
      'spec.drain.otherWork of the Hub is Hold.',
      'Move or delete that work, or set spec.drain.otherWork of the Hub to another value.',
    ),
    ...DRAIN_BLOCKED,
  },
  Withdrawn: {
    Withdrawing: explained(
      'False: what is still to be removed',
      'The last stage: what the membership made in hub and cluster is removed.',
      'Each object is removed by the receipt that was written before it was made.',
      'Nothing: the operator removes the rest. Look for leftovers with `coppice hubs audit`.',
    ),
  },
  Reconciled: RECONCILE_FAILED,
} as const;

export const BURSTPOLICY = {
  Ready: {
    Watching: explained(
      'True: it watches Hub ...',
      'The policy sees waiting work of its hub, and acts.',
      'The Hub is Ready and tells its demand.',
      'Nothing: the operator decides every ten seconds; `coppice burst explain NAME` shows why.',
    ),
    DryRun: explained(
      'True: it says what it would do for Hub ..., and does nothing',
      'Decisions are written into status, and nothing is bought.',
      'spec.dryRun is true.',
      'Read the decisions, then set spec.dryRun to false to have them carried out.',
    ),
    Suspended: explained(
      'True: it watches Hub ..., and decides nothing',
      'Nothing is bought or given back.',
      'spec.suspend is true.',
      'Set spec.suspend to false when the policy is to decide again.',
    ),
    ScheduleOnly: explained(
      'True: ...: it only keeps to its schedule and minimum',
      'Clusters follow spec.schedule and minimumClusters, not demand.',
      'Hubs of this type do not tell which work has no place.',
      'For clusters by demand, use a Hub of type ClusterProfile, Karmada or Kueue.',
    ),
    HubNotFound: explained(
      'False: there is no Hub ...',
      'The policy can decide nothing.',
      'spec.hub names a Hub that does not exist.',
      'Create that Hub, or name one that `coppice hubs` lists.',
    ),
    HubNotReady: explained(
      'False: Hub ... is not ready: nothing is bought or given back',
      'The policy waits for its Hub.',
      'The Hub is not usable; its own condition Ready says why.',
      'Repair the Hub: run `kubectl describe hub HUB` and look up the reason of its Ready.',
    ),
    HubDoesNotAnswer: explained(
      'False: Hub ... does not answer: nothing is bought or given back',
      'The last question to the hub failed.',
      'Its API server is down, slow, or refuses the operator.',
      'Check the API server of the hub; the operator asks it again every ten seconds.',
    ),
    NoDemand: explained(
      'False: hubs of type ... do not tell which work has no place',
      'The policy has nothing to do.',
      'The type of the hub tells no demand, and the policy has no schedule and no minimum.',
      'Set spec.schedule or spec.minimumClusters, or use a hub that tells its demand.',
    ),
    NotAllowed: explained(
      'False: Hub ... does not allow namespace ...',
      'The policy may not read demand of this hub.',
      'Administrators of the Hub allow namespaces by name.',
      'Have an administrator add NAMESPACE to spec.allowedNamespaces of the Hub.',
    ),
    CannotGiveBack: explained(
      'False: which cluster cannot be deleted or closed, with the error',
      'A cluster that is no longer needed stays, and costs money.',
      'It is protected from deletion, or somebody changed or holds it.',
      'Take the protection off the cluster that the message names, or delete it yourself with `coppice delete CLUSTER`.',
    ),
    CannotOpen: explained(
      'False: which warm cluster cannot be opened, with the error',
      'Work waits although a cluster is there for it.',
      'A policy or webhook refuses a change of labels of the WorkerCluster.',
      'Exempt the operator from the admission policy that the message names.',
    ),
    Deleting: explained(
      'False: its clusters leave first: ...',
      'The policy was deleted, and gives its clusters back.',
      'A policy goes only after the clusters that it bought.',
      'Nothing: the operator drains and deletes these clusters, then the policy goes.',
    ),
    ...RECONCILE_FAILED,
  },
  DemandMet: {
    NothingWaits: explained(
      'True: no work of the hub waits for room',
      'All work has a place.',
      'The hub reports no work without a place.',
      'Nothing: the operator gives idle clusters back after spec.scaleIn.idleFor.',
    ),
    Fits: explained(
      'False: it fits on ..., and the hub has not placed it there yet',
      'There is room: nothing is bought.',
      'The scheduler of the hub has not looked again, or a rule of its own says no.',
      "If this lasts minutes, look at the hub's scheduler and at the rules of the work.",
    ),
    RoomOrdered: explained(
      'False: room for it is on its way: ...',
      'Clusters or nodes for this work are being made.',
      'They were bought, or are starting for another reason.',
      'Nothing: the operator waits for them; `coppice burst` shows their phase.',
    ),
    Stabilising: explained(
      'False: it has waited since ...; it is served when it still does at ...',
      'The work has not waited long enough.',
      'spec.trigger.pendingFor keeps short waits from buying anything.',
      'Wait until the time in the message, or set a shorter spec.trigger.pendingFor.',
    ),
    CoolingDown: explained(
      'False: something was bought a moment ago: the next time not before ...',
      'The policy pauses between purchases.',
      'The cooldown lets the last purchase take effect first.',
      'Wait until the time in the message, or set a shorter spec.cooldown.scaleOut.',
    ),
    Bought: explained(
      'False: bought for it: ...',
      'Clusters were bought for this work.',
      'It had waited long enough, and budget and maximum allowed it.',
      'Nothing: the operator makes these clusters; watch them with `coppice get`.',
    ),
    Growing: explained(
      'False: added for it: ...',
      'Nodes are added to clusters that are there.',
      'That is cheaper than a new cluster.',
      'Nothing: the operator adds the nodes, and the hub places the work.',
    ),
    Opened: explained(
      'False: opened to work for it: ...',
      'A cluster that waited warm takes the work.',
      'Its capacity is enough, and it is paid for already.',
      'Nothing: the operator opens the cluster in the hub within seconds.',
    ),
    Waking: explained(
      'False: woken for it: ...',
      'A cluster that slept is woken for the work.',
      'To wake a cluster is faster than to make one.',
      'Nothing: the operator wakes the cluster, which takes about a minute.',
    ),
    Suspended: explained(
      'False: the policy is suspended: nothing is bought',
      'The work waits, and no cluster is bought for it.',
      'spec.suspend of the policy is true.',
      'Set spec.suspend to false if the work is to be served.',
    ),
    Later: explained(
      'False: what the policy may still buy is not enough for it, nor for older work',
      'Older work goes first.',
      'The budget or maximum is used up, or too much waits to be looked at at once.',
      'Raise spec.maximumClusters or spec.budget, or wait until older work is done.',
    ),
    LowPriority: explained(
      'False: its priority is less than what the policy buys for',
      'Nothing is bought for this work.',
      'spec.minimumPriority is higher than the priority of the work.',
      'Give the work a higher priority class, or lower spec.minimumPriority.',
    ),
    Refused: explained(
      'False: nothing is bought for its 4 replicas: why, for each candidate',
      'No candidate can take the work, or none may be bought.',
      'The budget is reached, no node is large enough, or a candidate is sold out.',
      'Raise spec.budget, add a candidate, or allow larger machines, as the reasons in `coppice burst explain NAME` ask.',
    ),
  },
  Deleting: {
    ClustersLeave: explained(
      'True: its clusters leave first: ...',
      'The policy waits for the clusters that it bought.',
      'They leave their hubs, then are deleted.',
      'Nothing: the operator deletes them. One that hangs shows why in `coppice describe CLUSTER`.',
    ),
  },
  Reconciled: RECONCILE_FAILED,
} as const;
