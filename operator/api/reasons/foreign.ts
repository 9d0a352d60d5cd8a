import { explained } from './explanation.ts';

/** Reasons of a kubeconfig request, which `coppice kubeconfig` creates and the operator answers. */
export const CERTIFICATESIGNINGREQUEST = {
  Approved: {
    MayHaveKubeconfig: explained(
      'True: whoever asks may have this kubeconfig',
      'The operator issues the certificate.',
      'RBAC of the garden allows it, and the cluster has a control plane.',
      'Nothing: the operator puts the certificate into the status of the request.',
    ),
  },
  Denied: {
    TooManyRequests: explained(
      'True: ... made more than 300 requests in 10 minutes',
      'Further requests of this user, or of this namespace, are refused for now.',
      'A program asks for a new kubeconfig again and again.',
      'Wait ten minutes, and have the program keep its kubeconfig until that expires.',
    ),
    NoCluster: explained(
      'True: the labels ... name no cluster',
      'The operator cannot tell which cluster is meant.',
      'The request was not made by coppice, and lacks labels.',
      'Ask with `coppice kubeconfig NAME -n NAMESPACE`, or set both labels on the request.',
    ),
    NoUser: explained(
      'True: the name of whoever asks is empty, longer than 512 characters, or no text',
      'The operator would not know whom the certificate is for.',
      'The garden knows the requester by an unusual name.',
      'Ask as a user with a plain name of 512 characters at most.',
    ),
    WrongUsages: explained(
      'True: usages must be "client auth"',
      'The certificate would be good for more than a client.',
      'The request names other usages.',
      'Set spec.usages of the request to client auth alone.',
    ),
    WrongDuration: explained(
      'True: a kubeconfig lasts between ...',
      'The wanted lifetime is too short or too long.',
      'spec.expirationSeconds of the request is out of range.',
      'Ask for a lifetime in range, for example `coppice kubeconfig NAME --expires-in 8h`.',
    ),
    TooLarge: explained(
      'True: the certificate request is larger than the operator reads',
      'The operator does not read it.',
      'The request has far more in it than a key and a name.',
      'Send a request with a plain key and no extensions.',
    ),
    WrongKey: explained(
      'True: what is wrong with the key',
      'No certificate is issued for this key.',
      'The key is of a kind or size that is not safe, or the request is not signed by it.',
      'Make a new ECDSA P-256 key, as `coppice kubeconfig` does.',
    ),
    Forbidden: explained(
      'True: ... may not create workerclusters/adminkubeconfig of ...',
      'RBAC of the garden does not give this user a kubeconfig of the cluster.',
      'No RoleBinding in the namespace grants the subresource.',
      'Have somebody grant it: `kubectl create rolebinding NAME -n NAMESPACE --clusterrole=coppice:edit --user=USER`.',
    ),
    NotFound: explained(
      'True: there is no WorkerCluster ...',
      'Name or namespace is wrong.',
      'The WorkerCluster does not exist in that namespace.',
      'List what exists with `coppice get -A`, and ask with that name and namespace.',
    ),
    NotOurs: explained(
      'True: the cloud keeps the keys of ...; or: ... is attached',
      'Coppice has no authority that this cluster accepts.',
      'The mode is Managed or Attached.',
      "Use `coppice kubeconfig NAME --secret`, or the cloud's own kubeconfig.",
    ),
    Deleting: explained(
      'True: ... is being deleted',
      'Nobody gets a new kubeconfig of this cluster.',
      'Its WorkerCluster was deleted.',
      'Use another cluster: `coppice get` lists those that stay.',
    ),
    NotReady: explained(
      'True: ... has no control plane yet: wait until it has',
      'There is nothing yet that a kubeconfig could lead to.',
      'The cluster is being made.',
      'Run `coppice wait NAME`, then ask for the kubeconfig again.',
    ),
  },
} as const;

/** Reasons of a ClusterProfile, which a Hub of that type shows to schedulers. */
export const CLUSTERPROFILE = {
  ControlPlaneHealthy: {
    Answers: explained(
      'True: the API server answers',
      'Schedulers may count on the cluster.',
      'The operator reaches its API server.',
      'Nothing: the operator updates this when the API server stops to answer.',
    ),
    Silent: explained(
      'False: the API server does not answer',
      'Schedulers should place nothing new on the cluster.',
      'The operator does not reach its API server.',
      'Look at the WorkerCluster of that name with `coppice describe NAME`.',
    ),
  },
  Joined: {
    Joined: explained(
      'True: the cluster takes work',
      'Schedulers may place work on the cluster.',
      'The join is done, and the cluster is awake.',
      'Nothing: the operator sets this to False before the cluster sleeps or leaves.',
    ),
    Initializing: explained(
      'False: nothing new is to be placed on the cluster',
      'The cluster is on its way into the hub.',
      'Its join is not done, or it waits warm.',
      'Nothing: the operator opens the cluster when its join is done, or its BurstPolicy asks.',
    ),
    Asleep: explained(
      'False: nothing new is to be placed on the cluster',
      'The cluster sleeps, or is to sleep.',
      'spec.hibernation of its WorkerCluster, or its BurstPolicy.',
      'To have it take work, wake it with `coppice wake NAME`.',
    ),
    Leaving: explained(
      'False: nothing new is to be placed on the cluster',
      'The cluster is on its way out of the hub, or is being emptied.',
      'Its Membership was deleted, or its BurstPolicy gives it back.',
      'Nothing: the operator withdraws the cluster; schedulers move what they placed.',
    ),
  },
} as const;

/** Reasons of Kueue's AdmissionCheck that the operator answers. */
export const ADMISSIONCHECK = {
  Active: {
    Active: explained(
      'True: Coppice answers, as BurstPolicies of Hub ... decide',
      'Kueue may hold work for this check, and gets an answer.',
      'A BurstPolicy names the Hub.',
      'Nothing: the operator answers each Workload as its policies decide.',
    ),
    NoPolicy: explained(
      'False: no BurstPolicy names Hub ..., so nobody would buy room',
      'Kueue admits nothing by this check.',
      'Every BurstPolicy of the Hub was deleted, or none was made.',
      'Create a BurstPolicy with that Hub in spec.hub, or take the check off the ClusterQueue.',
    ),
    BadParameters: explained(
      'False: it takes no parameters: remove spec.parameters',
      'Kueue admits nothing by this check.',
      'The AdmissionCheck has parameters, which Coppice does not know.',
      'Remove parameters from the AdmissionCheck, then apply it again.',
    ),
  },
} as const;

/** Reasons of Clusternet's ManagedCluster that the operator writes for a member. */
export const MANAGEDCLUSTER = {
  Ready: {
    ManagedClusterReady: explained(
      'True: the API server answers',
      'Clusternet may deploy to the cluster.',
      'The operator reaches its API server, and it is awake.',
      'Nothing: the operator reports the member in place of an agent.',
    ),
    Asleep: explained(
      'False: the API server does not answer',
      'Clusternet deploys nothing new to the cluster; what is there stays.',
      'The cluster sleeps.',
      'Wake the member if work is to run there: `coppice wake NAME`.',
    ),
    Silent: explained(
      'False: the API server does not answer',
      'Clusternet deploys nothing new to the cluster.',
      'The operator does not reach the API server of the member.',
      'Find out why with `coppice describe NAME`, where APIServerAvailable has the error.',
    ),
  },
} as const;
