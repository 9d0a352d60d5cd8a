import { explained, RECONCILE_FAILED } from './explanation.ts';
import { API_SERVER, DELETING, MIRRORED, READY } from './shoot.ts';

const REFUSED = {
  ConfigurationProblem: explained(
    'False: spec.FIELD: what is wrong with it',
    'The spec was refused as a whole; a cluster that exists stays as it was.',
    'A field asks for something that the profile, the provider or the mode cannot give.',
    'Correct the field that the message begins with, and apply or scale again.',
  ),
  QuotaExceeded: explained(
    'False: spec.dataPlaneNodes: ... is more than Quota ... has left',
    'The cluster, or its growth, would use more than a Quota of its namespace allows.',
    'Other clusters of the namespace use the rest; `coppice get quotas` shows how much.',
    'Ask for less, free some with `coppice delete OTHER` or `coppice scale OTHER --nodes 1`, or have the Quota raised.',
  ),
} as const;

const INFRASTRUCTURE = {
  Applied: explained(
    'True: the cloud was changed to match the spec',
    'Everything that the spec asks of the cloud is there.',
    'The last apply in the account ended without an error.',
    'Nothing: the operator applies each change of the spec by itself.',
  ),
  Pending: explained(
    'False: queued: the operator is at work on other clusters',
    'Nothing was begun in the cloud yet.',
    'Other operations go first, or credentials are still to be checked.',
    'Nothing: the operator begins when its turn comes. If the message names an error, repair that.',
  ),
  Creating: explained(
    'False: what the cloud is making, with its progress',
    'The cloud makes the cluster for the first time.',
    'A managed control plane takes the cloud 5 to 20 minutes.',
    'Nothing: the operator waits for the cloud. Follow it with `coppice wait NAME`.',
  ),
  Updating: explained(
    'False: what the cloud is changing, with its progress',
    'The cloud carries out a change of the spec.',
    'Pools, versions or networks are changed in place.',
    'Nothing: the operator reports True when the cloud has finished the change.',
  ),
  Failed: explained(
    "False: the cloud's error",
    'The cloud refused a step, and the operator retries where that can help.',
    'A quota of the account, a missing permission, or a wrong field.',
    "Look up the condition's code in the page on error codes, and repair what the cloud's error names.",
  ),
} as const;

/** Reasons why an attached cluster cannot be used. */
const ATTACHED = {
  KubeconfigMissing: explained(
    'False: Secret ..., or its key, is not there',
    'The operator has no way to the cluster.',
    'The Secret of spec.attached.kubeconfigSecretRef, or the key, does not exist.',
    'Create it with `kubectl create secret generic SECRET -n NAMESPACE --from-file=value=KUBECONFIG`.',
  ),
  KubeconfigRefused: explained(
    'False: the kubeconfig is refused: ...',
    'The operator does not use this kubeconfig: something in it could harm the operator.',
    'It has a plugin, a file name, a proxy, an address of the platform, or no certificate authority.',
    'Write a kubeconfig with an https server, certificate-authority-data and a token into the Secret.',
  ),
  Unauthorized: explained(
    'False: 401 Unauthorized',
    'The cluster does not know the identity in the kubeconfig.',
    'The token or certificate has expired, or was revoked.',
    'Write a new token into the Secret of spec.attached.kubeconfigSecretRef; the operator uses it at once.',
  ),
  Forbidden: explained(
    'False: ... may not list nodes',
    'The identity is known there, and lacks a right.',
    'The operator must get namespace kube-system, and list and watch nodes and pods.',
    'Grant it in that cluster: `kubectl create clusterrolebinding coppice --clusterrole=view --user=USER`, and rights on nodes.',
  ),
  PlatformCluster: explained(
    'False: it is the garden or a seed',
    'The kubeconfig leads to a cluster of the platform, which tenants may not attach.',
    'Who attaches a garden or seed could reach what belongs to others.',
    'Attach another cluster; an administrator may attach this one in the namespace of the operator.',
  ),
  SameCluster: explained(
    'False: WorkerCluster ... is the same cluster',
    'Two objects stand for one cluster, and the older one keeps it.',
    'Both kubeconfigs lead to the same namespace kube-system.',
    'Delete one of the two, for example `coppice delete NAME`; the other one goes on by itself.',
  ),
  OtherCluster: explained(
    'False: the kubeconfig points to another cluster than before',
    'The operator does nothing to that other cluster, and memberships wait.',
    'The Secret was changed, or the cluster was made anew behind the same address.',
    'Put back the kubeconfig, or approve the other cluster by the annotation that the message names.',
  ),
} as const;

const SERVES_BEYOND = {
  AdminCanList: explained(
    'True: the operator lists objects with its own identity',
    'The API server in the cloud answers.',
    'The operator asked it with the access that it made for itself.',
    'Nothing: the operator asks again, and renews its access in time.',
  ),
  Answers: explained(
    'True: https://... answers, and is the cluster that it was',
    'The attached cluster is reachable, and the same as at first.',
    'The UID of its namespace kube-system is the one in status.clusterIdentity.',
    'Nothing: the operator goes on watching the attached cluster.',
  ),
} as const;

export const WORKERCLUSTER = {
  ...MIRRORED,
  Ready: { ...SERVES_BEYOND, ...INFRASTRUCTURE, ...ATTACHED, ...REFUSED, ...READY },
  SpecAccepted: {
    Accepted: explained(
      'True: the spec is valid and was accepted',
      'The operator acts on the spec. Fields without effect are named in the message.',
      'Profile, provider, mode and quotas allow all that is asked.',
      'Nothing: the operator carries the spec out. Remove fields that the message calls without effect.',
    ),
    ...REFUSED,
  },
  APIServerAvailable: { ...API_SERVER, ...SERVES_BEYOND, ...ATTACHED },
  InfrastructureReady: INFRASTRUCTURE,
  CredentialsValid: {
    Accepted: explained(
      'True: the cloud accepts them, for account ...',
      'The credentials work, and the account is known.',
      'The operator asked the cloud whose they are.',
      'Nothing: the operator asks the cloud again when the Secret changes.',
    ),
    Refused: explained(
      'False: the error of the cloud',
      'The cluster runs on, but the operator can change nothing of it.',
      'A key was revoked or has expired, or the account lacks a permission.',
      'Renew the keys in the Secret of spec.credentialsRef, or grant the permission that the message names.',
    ),
    NotChecked: explained(
      'Unknown: the cloud could not be asked, with the error',
      'Nobody knows whether the credentials are good.',
      'The cloud did not answer, or throttles the account.',
      'Nothing: the operator asks the cloud again. If that lasts, check its way to the internet.',
    ),
  },
  Adopted: {
    Pending: explained(
      'False: ... is being inspected; or the plan for taking it over',
      'The existing cluster of spec.adopt is not taken over yet.',
      'The operator reads it first, and refuses anything but changes in place.',
      'Compare the plan in the message with your cluster, and change the spec where they differ.',
    ),
    TakenOver: explained(
      'True: ... is taken over; it stays when this object is deleted',
      'Coppice manages the cluster from now on.',
      'spec.adopt named it, and the import changed nothing that must stay.',
      'Nothing: the operator keeps it. spec.adopt.deletionPolicy says what a deletion does.',
    ),
  },
  Hibernated: {
    NoControlPlane: explained(
      'True: the cluster sleeps: it has no nodes and no control plane',
      'The cluster costs only its volumes and addresses.',
      'spec.hibernation, its schedule or an order of a BurstPolicy has it sleep.',
      'To work with the cluster, run `coppice wake NAME --wait`.',
    ),
    NoNodes: explained(
      "True: its pools have no nodes; the cloud's control plane goes on",
      'Nodes cost nothing now; the cloud still bills the control plane.',
      'A control plane of EKS, GKE or AKS cannot be stopped.',
      'Wake the nodes with `coppice wake NAME`; to save the fee too, delete the cluster.',
    ),
    FallingAsleep: explained(
      'False: the cluster is told to sleep; 2 nodes are left',
      'The cluster is on its way to sleep, or a hub keeps it awake for a while.',
      'Nodes are drained first, and hubs move work away where they can.',
      'Nothing: the operator puts it to sleep at the time that the message names, at the latest.',
    ),
    Waking: explained(
      'False: its control plane is started, then its nodes come',
      'The cluster wakes.',
      'Somebody, a schedule or a BurstPolicy ended its sleep.',
      'Nothing: the operator starts it; `coppice wait NAME` returns when it is Ready.',
    ),
    Awake: explained(
      'False: the nodes match the spec',
      'The cluster is awake, and may sleep later.',
      'spec.hibernation has a schedule, or was used before.',
      'Nothing: the operator follows the schedule. To have it sleep now, run `coppice hibernate NAME`.',
    ),
  },
  CapacityAvailable: {
    MovingElsewhere: explained(
      'False: sold out: ... Coppice creates the cluster in ... instead',
      'The cluster goes to the next place of spec.fallback.',
      'The first place has none of the allowed machines left.',
      'Nothing: the operator creates the cluster in the place that the message names.',
    ),
    Depleted: explained(
      'False: sold out: ... Nothing is left that the cluster may use',
      'Nodes are missing, and no other choice is allowed.',
      'The cloud has none of these machines in these zones; the message says when each is tried again.',
      'Allow more in machineTypes, zones or fallback of the pool, or wait for the next try.',
    ),
    Alternative: explained(
      'True: sold out: ... Asked for instead: 2 x ...',
      'Other machines or zones of the list are used instead.',
      'The first choice of the pool is sold out.',
      'Nothing: the operator has ordered the second choice. It costs what its type costs.',
    ),
    OtherPlace: explained(
      'True: the cluster is in ... instead',
      'The cluster was made in another region or profile than the first.',
      'The first place was sold out when the cluster was created.',
      'Nothing: the operator keeps the cluster there. To go back, create it again later.',
    ),
    Retrying: explained(
      'True: sold out: ... Coppice asks for it again',
      'The waiting time after a refusal is over.',
      'The cloud had none of these machines at the last try.',
      'Nothing: the operator asks the cloud again now.',
    ),
  },
  SizeDecided: {
    Decided: explained(
      'True: pool ...: 3 nodes, decided by ... ',
      'The message says for each pool how many nodes, and who decided that.',
      'A pool has minimum and maximum, so that its size follows demand.',
      'Nothing: the operator, or the cloud, sizes the pool between minimum and maximum.',
    ),
    Floor: explained(
      'True: pool ...: 3 nodes, raised to the floor',
      'spec.dataPlaneNodes keeps the pools larger than demand asks.',
      'A person or program wrote spec.dataPlaneNodes, for example by `coppice scale`.',
      'To remove the floor, run the `kubectl patch` command that the message ends with.',
    ),
    ReceiptUnreadable: explained(
      'Unknown: the stored sizes of pools ... cannot be read',
      'Every pool keeps the nodes that it has, and nothing grows or shrinks.',
      "The receipt in the operator's namespace was damaged.",
      "Restore the Secret in the operator's namespace from a backup, or delete it: sizes begin at the minimum.",
    ),
  },
  Autoscaled: {
    PodsWait: explained(
      'False: no node is bought for 3 pods of ...: why',
      'Pods wait, and no pool may or can grow for them.',
      'A pool is at its maximum, a quota is reached, or no machine type fits the pod.',
      'Do what the reason in the message asks: raise maximum of the pool, the Quota, or change the pod.',
    ),
    DaemonSetsTooLarge: explained(
      'False: DaemonSet ... does not fit on nodes of pool ...',
      'New nodes of the pool would have no room for pods.',
      'Requests of DaemonSets alone exceed a node of that machine type.',
      'Reduce the requests of the DaemonSet, or choose a larger machine type for the pool.',
    ),
    NodesNotChanged: explained(
      'False: node ... cannot be changed: the error',
      'The operator cannot taint or empty a node.',
      'A webhook or policy in the cluster refuses changes of nodes.',
      'Exempt the operator from the webhook or policy that the message names.',
    ),
    NodesOrdered: explained(
      'True: pool ... gets 2 nodes: ...',
      'Nodes for waiting pods are on their way.',
      'Pods did not fit on the nodes that there are.',
      'Nothing: the operator has ordered the nodes, and pods start when they are Ready.',
    ),
    NodesLeave: explained(
      'True: node ... is being emptied: ...',
      'A node that nobody needs is drained and removed.',
      'Its pods fit elsewhere, or it has none.',
      'Nothing: the operator removes the node. Annotate a pod with karpenter.sh/do-not-disrupt to keep its node.',
    ),
    NodesHeldBack: explained(
      'True: pool ... has 4 unneeded nodes: ... allows 1 to be missing at once',
      'Unneeded nodes go one after the other.',
      'A disruption budget of the pool limits how many may go at once.',
      'To go faster, raise nodes in the disruption budget of the pool; else nothing.',
    ),
    Settled: explained(
      'True: no pod is waiting for a node',
      'The pools have the size that their pods need.',
      'No pod is unschedulable, and no node is unneeded for long enough.',
      'Nothing: the operator looks at pods and nodes as they change.',
    ),
  },
  RangesUnique: {
    NoOverlap: explained(
      'True: no other cluster of mesh ... has its addresses',
      'The cluster can be connected with the others of its mesh.',
      'Its pod and service ranges belong to it alone.',
      'Nothing: the operator keeps the ranges for this cluster as long as it lives.',
    ),
    Overlap: explained(
      'False: its addresses overlap with those of WorkerCluster ...',
      'The two clusters cannot be connected.',
      'Both were given, or asked for, the same range of pods or services.',
      'Create one of them again with other spec.networking.pods and services; ranges cannot be changed.',
    ),
  },
  NetworkPoliciesEnforced: {
    NoEnforcement: explained(
      'False: NetworkPolicies have no effect in this cluster',
      'The API server stores NetworkPolicies, and nobody enforces them.',
      'The pod network of clusters that Coppice makes has no enforcer.',
      'Install a network plugin that enforces them, or do not rely on them.',
    ),
  },
  ControlPlaneNodesApplied: {
    ManagedByCloud: explained(
      'False: the cloud runs the control plane; controlPlaneNodes has no effect',
      'The number of control plane members is up to the cloud.',
      'The mode is Managed.',
      'Remove spec.controlPlaneNodes, or leave it: the field has no effect here.',
    ),
  },
  Simulated: {
    NoCloudCredentials: explained(
      'True: SIMULATED: ...',
      'Nodes of this cluster only look like nodes, and nothing is paid for.',
      'The provider of its CloudProfile is simulated.',
      'For real nodes, use spec.cloudProvider: local, or a cloud with spec.credentialsRef.',
    ),
  },
  Expiring: {
    EndIsNear: explained(
      'True: spec.ttl ...: the cluster is deleted at ...',
      'The cluster is deleted at that time, with all that is in it.',
      'spec.ttl counts from the creation of the cluster.',
      'To keep it, set a longer spec.ttl, or remove it: `kubectl patch wc NAME -n NAMESPACE --type=merge -p \'{"spec":{"ttl":null}}\'`.',
    ),
    Over: explained(
      'True: spec.ttl ... was over at ...: the cluster is deleted',
      'The operator deletes the cluster now.',
      'Its ttl was over, and nothing protects it.',
      'Nothing: the operator deletes it. Next time set a longer spec.ttl in time.',
    ),
    Protected: explained(
      'True: spec.ttl ... was over at ..., but the cluster is protected from deletion',
      'The cluster stays although its time is over.',
      'spec.deletionProtection or the annotation for it is set.',
      'Set a longer spec.ttl to keep the cluster, or spec.deletionProtection: false to let it go.',
    ),
  },
  ShootDeleted: {
    ByHand: explained(
      'True: Shoot ... was deleted by hand, and the cluster runs on',
      'The deletion of the Shoot waits: its WorkerCluster still wants it.',
      'Somebody deleted the Shoot, which belongs to the WorkerCluster.',
      'To remove the cluster, run `coppice delete NAME`. To keep it, create it again from its manifest later.',
    ),
  },
  Deleting: {
    ...DELETING,
    Gone: explained(
      'True: nothing is left',
      'All parts of the cluster are gone.',
      'The deletion has finished.',
      'Nothing: the operator removes its finalizer, and the object goes.',
    ),
    WaitingForShoot: explained(
      'True: waiting for Shoot ... to be deleted',
      'The Shoot of the cluster is to go first.',
      'Its deletion has just begun, and its status says nothing yet.',
      'Nothing: the operator shows here what the Shoot says as soon as it says something.',
    ),
  },
  Reconciled: RECONCILE_FAILED,
} as const;
