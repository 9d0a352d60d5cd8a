import { explained, RECONCILE_FAILED } from './explanation.ts';

/** Reasons of control plane or machine pods that cannot start; Kubernetes' own reason is in the message. */
const PODS = {
  PodsCannotStart: explained(
    'False: ... pod kube-apiserver-x cannot start: ErrImagePull: image ... cannot be pulled',
    'A pod in the seed that the cluster needs does not start.',
    "The message has Kubernetes' own reason, such as ErrImagePull, CrashLoopBackOff or Unschedulable.",
    'Run `coppice describe NAME` to see the pod, then repair what its reason names: the image, the container or the node.',
  ),
  SeedFull: explained(
    'False: ... cannot start: Unschedulable: ... Insufficient memory: the seed is full',
    'No node of the seed has room for a pod of the cluster.',
    'Requests of all pods on the seed reach what its nodes offer.',
    'Ask for fewer or smaller machines in spec, delete or hibernate another cluster, or add nodes to the seed.',
  ),
  ImageIsMade: explained(
    'False: ... ImageIsMade: about 14 min left',
    'The garden builds an image that the pod needs, for the first time.',
    'This Kubernetes version, or this addon, was never used on this machine.',
    'Nothing: the operator starts the pod when the image is built, which takes 10 to 28 minutes on two cores.',
  ),
  ImageCannotBeMade: explained(
    'False: ... ImageCannotBeMade: the build failed',
    'The garden could not build an image that the pod needs.',
    'A download failed or the disk is full; the message has the error and the time of the next try.',
    'Check disk and network of the machine, then read the error with `coppice logs`.',
  ),
} as const;

const SERVES = {
  AdminCanWrite: explained(
    'True: the admin can read and write',
    'The API server answers and accepts writes.',
    "The operator tried it with the cluster's own admin kubeconfig.",
    'Nothing: the operator goes on watching the API server of the cluster.',
  ),
  NotReachable: explained(
    'False: the API server does not answer, with the error',
    'The operator gets no answer from the API server of the cluster.',
    'The control plane is down, the network between operator and cluster is broken, or the machine is overloaded.',
    'Run `coppice describe NAME` and look at the pods of the control plane; the operator tries again by itself.',
  ),
  Starting: explained(
    'False: the API server is being started',
    'The control plane of a new cluster comes up.',
    'etcd and the API server need half a minute to some minutes at first.',
    'Nothing: the operator continues when the API server answers; watch with `coppice wait NAME`.',
  ),
  Waking: explained(
    'False: the cluster wakes: its API server is being started',
    'A cluster that slept gets its control plane back, then its nodes.',
    'Somebody woke the cluster, or its schedule did.',
    'Nothing: the operator is waking the cluster; wait with `coppice wait NAME --for Ready`.',
  ),
  Hibernated: explained(
    'False: the API server is not run while the cluster sleeps',
    'The cluster sleeps: no nodes, no control plane; data and addresses stay.',
    'spec.hibernation, its schedule or a BurstPolicy has the cluster sleep.',
    'To use the cluster, run `coppice wake NAME --wait`.',
  ),
  NotRun: explained(
    'False: no API server is run: nothing answers behind the kubeconfig',
    'The cluster exists as objects only, for tests of scale.',
    'Its CloudProfile sets simulation.controlPlane.run to false.',
    'For a cluster that answers, create it again with a CloudProfile that runs control planes.',
  ),
  NotObserved: explained(
    'Unknown: the operator waits for the API server to answer',
    'The operator has not reached the API server since the operator started.',
    'The operator has just started, or the cluster is not reachable.',
    'Wait a minute; if Unknown stays, run `coppice describe NAME` and check the control plane.',
  ),
} as const;

const CONTROL_PLANE = {
  AllReady: explained(
    'True: etcd, API server, controller manager and scheduler are ready',
    'Every part of the control plane runs.',
    'All its pods, or its machines, are Ready.',
    'Nothing: the operator keeps the parts of the control plane running.',
  ),
  NotReady: explained(
    'False: not ready: kube-apiserver (0 of 1)',
    'A part of the control plane has too few Ready pods.',
    'Pods start, were moved to another node, or crash; the message names the part.',
    'Run `coppice describe NAME --show-conditions` and look at the part that the message names.',
  ),
} as const;

const NODES = {
  AllReady: explained(
    'True: all 3 nodes are Ready',
    'Every node that the spec asks for is there and Ready.',
    'kubelet of each node reports that it is Ready.',
    'Nothing: the operator watches the nodes, and repairs those that are lost.',
  ),
  NoNodes: explained(
    'True: the spec asks for no nodes',
    'The cluster has no nodes, as asked.',
    'spec.dataPlaneNodes or all pools are 0, or the cluster sleeps.',
    'For nodes, run `coppice scale NAME --nodes 1`.',
  ),
  NotObserved: explained(
    'Unknown: nodes are unknown until the API server answers',
    'The operator cannot say how the nodes are.',
    'The operator learns of nodes from the API server of the cluster.',
    'Look at condition APIServerAvailable first: nodes are counted again when that one is True.',
  ),
  ScalingOut: explained(
    'False: 1 of 3 nodes are Ready',
    'Nodes are missing, and machines for them are started.',
    'The size grew, or machines were lost; a cloud needs minutes for a machine.',
    'Nothing: the operator adds the nodes. After ten minutes, run `coppice describe NAME` to see which machine hangs.',
  ),
  ScalingIn: explained(
    'False: 2 of 5 nodes are being removed',
    'The cluster has more nodes than the spec asks for.',
    'The size was reduced: nodes are drained before their machines end.',
    'Nothing: the operator removes the nodes. If that lasts, condition Draining names the pod that blocks.',
  ),
  NotReady: explained(
    'False: 2 of 3 nodes are Ready',
    'A node is there, but its kubelet is not Ready.',
    'The node starts, its machine is overloaded, or its network is broken.',
    'Find the node with `kubectl get nodes` in the cluster and read why with `kubectl describe node NODE`.',
  ),
  NodesLeaving: explained(
    'False: nodes without a machine are being removed',
    'Node objects are left whose machines have gone.',
    'Somebody deleted a machine, or the cloud took it away.',
    'Nothing: the operator deletes these Node objects at the next reconcile.',
  ),
} as const;

const SYSTEM = {
  Healthy: explained(
    'True: cluster DNS serves',
    'What the cluster needs inside runs: DNS and, where used, the tunnel.',
    'At least one pod of each is Ready.',
    'Nothing: the operator applies the system components again if they change.',
  ),
  Simulated: explained(
    'True: nodes are simulated and run no pods',
    'System components count as healthy, though no pod really runs.',
    'The provider of the CloudProfile is simulated.',
    'For pods that run, create the cluster with spec.cloudProvider: local or a real cloud.',
  ),
  NoNodes: explained(
    'True: without nodes no system components run',
    'There is nothing to run cluster DNS on.',
    'The cluster has no nodes.',
    'Give the cluster a node with `coppice scale NAME --nodes 1` when pods are to run.',
  ),
  NotObserved: explained(
    'Unknown: unknown until the API server answers',
    'The operator cannot say how the system components are.',
    'The operator reads their pods from the API server of the cluster.',
    'Repair what condition APIServerAvailable says: then the operator looks again.',
  ),
  NotReady: explained(
    'False: cluster DNS is not ready yet (1 pods)',
    'No pod of cluster DNS is Ready: names do not resolve in the cluster.',
    'The pods start, have no node with room, or cannot pull their image.',
    'Look at the pods with `kubectl get pods -n kube-system` in the cluster.',
  ),
  StartupTaints: explained(
    'False: cluster DNS is not ready yet: node ... keeps startup taint ...',
    'Nodes keep a startup taint, so that no pod goes there.',
    'An agent that should remove the taint has not done so.',
    'Check the agent that removes the taint, or remove it from startupTaints of the pool.',
  ),
  RefusedByAdmission: explained(
    'False: an admission policy of the cluster refuses what the operator applies',
    'A webhook or policy in the cluster blocks system components.',
    'It covers namespace kube-system, which the operator writes to.',
    'Exempt namespace kube-system from the policy or webhook that the message names.',
  ),
  ProblematicWebhook: explained(
    'False: webhook "..." of the cluster refuses what the operator applies, or does not answer',
    'The webhook that the message names blocks system components.',
    'The server of the webhook is down, or the webhook covers namespace kube-system and refuses.',
    'Repair the server of the webhook, or exempt namespace kube-system from the webhook.',
  ),
  TunnelDown: explained(
    'False: no tunnel agent is connected to an API server',
    'kubectl logs, exec and port-forward, webhooks and aggregated APIs fail.',
    'No konnectivity-agent pod is Ready, or its way to the control plane is blocked.',
    'Run `kubectl get pods -n kube-system -l k8s-app=konnectivity-agent` in the cluster, and check the egress of its nodes.',
  ),
} as const;

/** Conditions that a WorkerCluster copies from its Shoot. */
export const MIRRORED = {
  NoControlPlane: {
    NotRun: explained(
      'True: NO CONTROL PLANE: CloudProfile ... says that none is run',
      'Nothing answers behind the kubeconfig, and no workload can run.',
      'The CloudProfile is for tests of scale: simulation.controlPlane.run is false.',
      'To run workloads, choose another spec.cloudProvider and create the cluster again.',
    ),
  },
  ControlPlaneHealthy: { ...CONTROL_PLANE, ...PODS },
  EveryNodeReady: { ...NODES, ...PODS },
  SystemComponentsHealthy: SYSTEM,
  AddonsReady: {
    Serving: explained(
      'True: metrics-server serves',
      'kubectl top and HorizontalPodAutoscalers of the cluster have figures.',
      'spec.addons asks for metrics-server, and its API answers.',
      'Nothing: the operator keeps metrics-server running as long as spec.addons asks for it.',
    ),
    Starting: explained(
      'False: metrics-server is starting',
      'metrics-server has no Ready pod, or its API does not answer yet.',
      'The pod starts; the first image on a machine is built, which takes minutes.',
      'Wait some minutes; then look with `kubectl get pods -n kube-system -l k8s-app=metrics-server`.',
    ),
    Simulated: explained(
      'False: metrics-server is not run: nodes are simulated and run no pods',
      'There are no figures of pods in this cluster.',
      'Nodes of the simulated provider run nothing.',
      'Take addons.metricsServer out of the spec, or use a provider that runs pods.',
    ),
    NoNodes: explained(
      'False: metrics-server is run once there are nodes',
      'The addon waits for a node.',
      'The cluster has no nodes at present.',
      'Add a node with `coppice scale NAME --nodes 1`; the addon follows by itself.',
    ),
    NotObserved: explained(
      'Unknown: unknown until the API server answers',
      'The operator cannot say whether the addon serves.',
      'The API server of the cluster did not answer the operator.',
      'Repair condition APIServerAvailable: addons are looked at again after that.',
    ),
    OthersServe: explained(
      'False: metrics-server is not run: ... serves metrics.k8s.io already',
      'Another APIService serves the metrics API, and the operator leaves it alone.',
      'Somebody installed a metrics server of their own.',
      'Take addons.metricsServer out of the spec, or run `kubectl delete apiservice v1beta1.metrics.k8s.io` in the cluster.',
    ),
    RefusedByAdmission: explained(
      'False: an admission policy of the cluster refuses metrics-server',
      'A webhook or policy in the cluster blocks the addon.',
      'The policy covers namespace kube-system, in which the addon runs.',
      'Exempt the pods of metrics-server in namespace kube-system from that policy.',
    ),
    ProblematicWebhook: explained(
      'False: webhook "..." of the cluster refuses metrics-server, or does not answer',
      'The webhook that the message names blocks the addon.',
      'The server of the webhook is down, or the webhook covers namespace kube-system and refuses.',
      'Repair the server of the webhook, or exempt namespace kube-system from the webhook.',
    ),
  },
  Draining: {
    ScaleIn: explained(
      'True: node ... is being drained: pod ... cannot be evicted',
      'Nodes are emptied before their machines end.',
      'The cluster shrinks, is upgraded, or replaces a machine; a PodDisruptionBudget may say no for now.',
      'If the drain hangs, find the budget with `kubectl get pdb -A` in the cluster, and give its workload one more replica.',
    ),
  },
  Rolling: {
    MachinesOutdated: explained(
      'True: pool ... : 1 of 3 machines replaced',
      'Machines of an older kind are replaced one after the other.',
      'The version, the machine type or another part of the pool was changed.',
      'Nothing: the operator replaces the machines. A drain that hangs shows in condition Draining.',
    ),
  },
  DNSRecordsReady: {
    RecordsReady: explained(
      'True: api.example.com points to 203.0.113.7',
      'The names of the cluster lead to its API server.',
      'The operator wrote the records, and the zone answers with them.',
      'Nothing: the operator checks the records again from time to time.',
    ),
    RecordsNotReady: explained(
      'False: the record of ... cannot be written, with the error',
      'A name of the cluster does not lead to its API server.',
      'The zone, its credentials or the domain is wrong, or somebody else owns the record.',
      'Correct spec.dns or the credentials of its provider, as the message says.',
    ),
    InProgress: explained(
      'Unknown: the DNS records are being checked',
      'Nobody has looked at the zone since the operator started.',
      'Looks at zones go on beside all other work.',
      'Nothing: the operator looks at the zone within some minutes.',
    ),
  },
  EncryptionKeyRotating: {
    NotPossible: explained(
      'False: the key cannot be rotated here, with the way out',
      'Somebody asked for another key for Secrets, and this cluster cannot have one.',
      'Control planes on machines of clouds keep the key that they began with.',
      'Remove the annotation with `kubectl annotate shoot NAME -n NAMESPACE gardener.cloud/operation-`.',
    ),
    AddingKey: explained(
      'True: step 1 of 3: API servers are given ... to read Secrets with',
      'A rotation of the key for Secrets has begun.',
      'Every API server must know the new key before one writes with it.',
      'Nothing: the operator goes on to step 2 when all API servers have restarted.',
    ),
    WritingWithKey: explained(
      'True: step 2 of 3: API servers are told to write Secrets with ...',
      'All Secrets are written again, with the new key.',
      'The old key can go only when nothing is encrypted with it.',
      'Nothing: the operator rewrites the Secrets, then takes step 3.',
    ),
    DroppingKey: explained(
      'True: step 3 of 3: API servers forget the earlier key',
      'The rotation is nearly done.',
      'All Secrets are encrypted with the new key by now.',
      'Nothing: the operator ends the rotation when the last API server has restarted.',
    ),
  },
  KeysKept: {
    KeysLost: explained(
      'False: what the operator does not make anew, and what to do',
      'Keys of the cluster were deleted in the seed, and the operator does not replace them.',
      'New keys would lock out every node, or make all Secrets unreadable.',
      'Restore the Secret that the message names from a backup of the seed, or restore the cluster from its snapshots.',
    ),
  },
  Drifted: {
    AsApplied: explained(
      'False: nobody else has changed it in the cloud',
      'The resources in the account are as the operator made them.',
      'The last look, at most six hours ago, found no change.',
      'Nothing: the operator looks for changes again every six hours.',
    ),
    ChangedByOthers: explained(
      'True: others changed cloud resources; to restore them: ...',
      'Somebody changed resources of the cluster in the account.',
      'A person, a script or another tool works on the same resources.',
      'Set spec.drift.policy to Mend, or restore once by the annotation that the message names.',
    ),
    NotLookedAt: explained(
      'Unknown: the operator could not look at the resources, with the error',
      'Nobody knows whether others changed something in the account.',
      'The cloud refused the look or did not answer.',
      'If the message names credentials, renew their Secret; else the operator looks again by itself.',
    ),
  },
  BackupReady: {
    SnapshotTaken: explained(
      'True: the last snapshot was taken at ...',
      'A snapshot of etcd lies in the bucket, and is young enough.',
      'The seed has a bucket, and the operator takes snapshots in the period of spec.backup.',
      'Nothing: the operator takes the next snapshot in time; list them with `coppice backups NAME`.',
    ),
    SnapshotFailed: explained(
      'False: the snapshot could not be taken or stored, with the error',
      'The newest snapshot is older than it should be, or there is none.',
      'etcd did not answer, or the bucket refused the upload.',
      'Repair what the message names, then try with `coppice backups NAME --now`.',
    ),
    SnapshotOverdue: explained(
      'False: no snapshot could be taken in time; the last snapshot was ...',
      'More than two periods have passed without a snapshot.',
      'The operator was down, or etcd or the bucket were out of reach for long.',
      'Take a snapshot now with `coppice backups NAME --now`, and read the error if it fails.',
    ),
  },
  ResourcesCounted: {
    AmountTooLarge: explained(
      'False: pod ... : requests or allocatable are too large to count',
      'status.resource is not exact: such a pod fills its node.',
      'A pod requests, or a node offers, an amount beyond what a number can hold.',
      'Correct the resources of the pod or node that the message names.',
    ),
  },
} as const;

/** Reasons of Ready of a running cluster: that of its first condition that is not True, or of the whole operation. */
export const READY = {
  ...SYSTEM,
  ...NODES,
  ...CONTROL_PLANE,
  ...SERVES,
  ...PODS,
  NotReady: explained(
    'False: what is not ready, in words of the condition that says so',
    'The control plane, a node or a system component is not Ready.',
    'Ready repeats the first condition that is not True.',
    'Run `coppice describe NAME`, find the condition with the same message, and look up its reason.',
  ),
  NotObserved: explained(
    'False: unknown until the API server answers',
    'The operator does not know the state of the cluster.',
    'The API server of the cluster has not answered the operator.',
    'Wait a minute; if it stays, look at APIServerAvailable in `coppice describe NAME --show-conditions`.',
  ),
  ClusterReady: explained(
    'True: the control plane serves, all nodes are Ready',
    'The cluster is as its spec asks, and can be used.',
    'All other conditions that count are True.',
    'Nothing: the operator keeps the cluster so. Use it with `coppice kubeconfig NAME`.',
  ),
  ObjectsOnly: explained(
    'True: NO CONTROL PLANE: keys, kubeconfig and machines exist as objects only',
    'All that is ever made of this cluster is there.',
    'Its CloudProfile is for tests of scale, and runs no control planes.',
    'For a usable cluster, choose a CloudProfile without simulation.controlPlane.run: false.',
  ),
  OperationFailed: explained(
    'False: what failed, with the error of the task',
    'A step of creating, changing or putting the cluster to sleep failed.',
    'The message has the error; status.lastErrors has the code of each task.',
    'Repair what the message names. The operator retries; where a retry cannot help, any change of the spec starts one.',
  ),
  Reconciling: explained(
    'False: the change is being carried out',
    'The spec changed, and not all of it is done.',
    'Each change goes through the tasks of status.lastOperation.',
    'Nothing: the operator finishes the change; its progress is in `coppice describe NAME`.',
  ),
  FallingAsleep: explained(
    'False: the cluster falls asleep; pods are left: ...',
    'Nodes end first, then the control plane, after a last snapshot.',
    'spec.hibernation, a schedule or a BurstPolicy asked for sleep.',
    'Nothing: the operator puts the cluster to sleep. To stop that, run `coppice wake NAME`.',
  ),
  WaitingForSeed: explained(
    'False: no seed can host the cluster, with a reason for each',
    'The control plane has no place yet.',
    'No Seed is Ready, has room, or matches the seed selector and region.',
    'Look at `coppice get seeds`, and repair or add a Seed; the operator places the cluster then.',
  ),
  Deleting: explained(
    'False: the cluster is being deleted',
    'Somebody deleted the object, and its parts are being removed.',
    'The object stays until all that was made for it is gone.',
    'Nothing: the operator removes the parts; condition Deleting says what is waited for.',
  ),
  ...RECONCILE_FAILED,
} as const;

/** Reasons of APIServerAvailable of a cluster whose control plane Coppice runs. */
export const API_SERVER = { ...SERVES, ...PODS } as const;

/** Reasons of Deleting of a cluster. */
export const DELETING = {
  InProgress: explained(
    'True: what is being removed now',
    'The parts of the cluster are removed one after the other.',
    'The object was deleted.',
    'Nothing: the operator removes the object when nothing is left.',
  ),
  Stuck: explained(
    'True: what could not be removed, with the error',
    'The deletion cannot go on by itself.',
    'A cloud refuses, credentials were removed too early, or objects in the cluster have finalizers.',
    'Repair what the message names, for example put back the Secret of the credentials; the operator tries again.',
  ),
  Held: explained(
    'True: Membership ... holds the cluster: ...',
    'Nothing of the cluster is removed while somebody else still uses it.',
    'A hub has work on the cluster, or the Shoot was deleted instead of its WorkerCluster.',
    'Do what the message says of the object that holds the cluster; see it with `coppice hubs`.',
  ),
  WaitingFor: explained(
    'True: what the deletion waits for',
    'The deletion has not begun: the seed of the cluster is not reachable.',
    'Parts in a seed can only be removed when that seed answers.',
    'Repair the Seed that `coppice get seeds` shows as not Ready; the deletion goes on then.',
  ),
} as const;

export const SHOOT = {
  ...MIRRORED,
  Ready: READY,
  APIServerAvailable: API_SERVER,
  Hibernated: {
    NoControlPlane: explained(
      'True: the cluster sleeps: it has no nodes and no control plane',
      'The cluster costs only its volumes and addresses.',
      'spec.hibernation.enabled is true.',
      'To use the cluster again, run `coppice wake NAME`.',
    ),
    FallingAsleep: explained(
      'False: the cluster falls asleep; pods are left: ...',
      'The cluster is on its way to sleep.',
      'Nodes are drained and a last snapshot is taken first.',
      'Nothing: the operator finishes this. Should it hang, condition Draining says why.',
    ),
  },
  AllFieldsActedOn: {
    KeptOnly: explained(
      'False: these fields are stored without effect yet: ...',
      "Fields of Gardener's Shoot are in the spec that Coppice does not act on.",
      'The schema accepts them, so that manifests of Gardener can be applied.',
      'Remove the fields that the message names, or live without their effect.',
    ),
  },
  Deleting: DELETING,
  Reconciled: RECONCILE_FAILED,
} as const;
