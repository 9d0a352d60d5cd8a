import { z } from 'zod';
import { ALPHA_VERSION } from './group.ts';
import { argoCD, clusternet, flux, kueue, openClusterManagement } from './hub-types.ts';
import { labelSelectorSchema } from './label-selector.ts';
import { commonStatus, type KubeObject } from './meta.ts';
import {
  count,
  duration,
  type KindDefinition,
  LIMITS,
  labelName,
  labels,
  list,
  name,
  objectName,
  rules,
  text,
} from './schema.ts';

/** Types of hubs, with the spec field for settings of that type. */
const HUB_TYPES = {
  ClusterProfile: 'clusterProfile',
  ArgoCD: 'argoCD',
  Flux: 'flux',
  Karmada: 'karmada',
  Kueue: 'kueue',
  Clusternet: 'clusternet',
  OpenClusterManagement: 'openClusterManagement',
} as const;
export type HubTypeName = keyof typeof HUB_TYPES;
const TYPES = Object.keys(HUB_TYPES) as [HubTypeName, ...HubTypeName[]];

/** Namespaces of Kueue, GKE and AKS in a cluster, beside kube-system. */
export const SYSTEM_NAMESPACES: readonly string[] = [
  'kueue-system',
  'gmp-system',
  'gke-managed-cim',
  'gke-managed-system',
  'calico-system',
  'calico-apiserver',
  'tigera-operator',
  'gatekeeper-system',
];

/** Value of allowedNamespaces for all namespaces. */
export const EVERY_NAMESPACE = '*';

const drain = z
  .object({
    timeout: duration(
      'How long a cluster that leaves is drained. Then the leave stops with reason DrainBlocked, unless it is forced. Absent: 10m.',
    ).optional(),
    force: z
      .boolean()
      .describe(
        'When the time is over, withdraw the cluster whatever still runs on it. Absent: no. One Membership alone is forced by an annotation.',
      )
      .optional(),
    otherWork: z
      .enum(['List', 'Hold'])
      .describe(
        'What becomes of a cluster that is destroyed while it has pods that no hub placed, bound volumes or load balancers. Hold: the cluster waits until they are gone, or until it is forced after the drain deadline. With drain.allowDelete nothing waits, because nobody can tell whose they are. List: an Event names them. Absent: List.',
      )
      .optional(),
    allowDelete: z
      .boolean()
      .describe(
        'Let clusters leave although this hub does not move what it placed on them: the work ends with the cluster. Absent: no; the leave stops with reason DrainNotPossible while anything is placed.',
      )
      .optional(),
  })
  .describe('How members are drained before they leave.');

const member = z
  .object({
    endpoint: text(
      2048,
      'URL by which the hub reaches a member, with {namespace} and {name} for those of the cluster, for example https://{name}.{namespace}.clusters.example.com. Absent: the URL that the operator itself uses.',
      /^https:\/\/.*$/,
    ).optional(),
    proxyURL: text(
      2048,
      'Proxy between the hub and its members, for whoever of them opens connections. Absent: none.',
      /^(https?|socks5):\/\/.*$/,
    ).optional(),
    agentImage: text(
      512,
      "Image of the agent in members, where the hub has one. Absent: of the hub's own version. Karmada tells nobody its version: with it, say which.",
    ).optional(),
  })
  .describe('Addresses by which the hub and its members reach each other.');

const clusterProfile = z
  .object({
    namespace: labelName(
      "Namespace of the ClusterProfiles in the hub. Absent: the cluster's own, which is possible only where the garden is the hub.",
    ).optional(),
    rights: z
      .enum(['Read', 'Manage'])
      .describe(
        'What the credentials allow that a ClusterProfile leads to. Read: see all but Secrets. Manage: everything. Absent: Read.',
      )
      .optional(),
  })
  .describe('The cluster inventory of SIG-Multicluster: a ClusterProfile for each cluster, with access providers.');

const karmada = z
  .object({
    syncMode: z
      .enum(['Push', 'Pull'])
      .describe(
        "Who applies in a member what people propagate. Push: Karmada's controllers, which reach into it. Pull: karmada-agent, which is installed in it and reaches the hub; member.agentImage says of which version. Cannot be changed. Absent: Push.",
      )
      .optional(),
    renewsTokens: z
      .boolean()
      .describe(
        'The hub is Karmada 1.19 or newer, which notices a new token: it gets one of a day, which is renewed. Absent: no; older ones go blind with a new token, so it gets one that never ends.',
      )
      .optional(),
    evicts: z
      .boolean()
      .describe(
        "The hub's controller manager runs with --enable-no-execute-taint-eviction and feature gate Failover, and so moves work away from a cluster that is drained. Absent: no, as is its default, until an eviction is seen.",
      )
      .optional(),
  })
  .describe('Karmada: a Cluster that its controllers push to, or that an agent pulls for.');

const PULLS = (spec: string) =>
  `(has(${spec}.karmada) && has(${spec}.karmada.syncMode) && ${spec}.karmada.syncMode == 'Pull')`;

export const hubSpec = rules(
  z.object({
    type: z.enum(TYPES).describe('Multi-cluster system of the hub. Cannot be changed.'),
    kubeconfigRef: z
      .object({
        name: objectName('Name of the Secret; the kubeconfig is under key value, or else kubeconfig.'),
      })
      .describe(
        "Secret with a kubeconfig of the hub, in the operator's namespace. One that names files or plugins, or skips verification, is refused. Its proxy-url leads there; without one, HTTPS_PROXY of the operator does. Absent: the garden itself is the hub.",
      )
      .optional(),
    clusterSelector: labelSelectorSchema(
      'Which WorkerClusters join, by their labels. Absent: all of the allowed namespaces.',
    ).optional(),
    allowedNamespaces: list(
      name(LIMITS.label, 'A namespace, or "*" for all.', /^([a-z0-9]([-a-z0-9]*[a-z0-9])?|\*)$/),
      1000,
      'Namespaces whose clusters may join; "*" is all of them. Absent: none.',
    ).optional(),
    clusterLabels: labels(
      64,
      'Labels that every member carries in the hub, beside those that tell its provider, region, zones, mode and version.',
    ).optional(),
    drain: drain.optional(),
    maxConcurrentLeaves: count(
      1,
      1000,
      'How many clusters may leave at once because a label or a selector was changed. If more would, none begins before each is approved by an annotation of its Membership. Absent: 1.',
    ).optional(),
    orphan: z
      .boolean()
      .describe(
        'When this Hub is deleted, let go of its members: what was made in the hub and in them stays as it is. Absent: a Hub with members is not deleted.',
      )
      .optional(),
    adoption: z
      .enum(['Observe', 'Own'])
      .describe(
        'What the operator does with an object in the hub that somebody else made for the same cluster. It knows the cluster by the UID of kube-system, or by its URL. Observe: the cluster counts as joined, and it is never drained, changed or deleted. Own: it is taken over. Absent: it keeps the cluster from joining.',
      )
      .optional(),
    systemNamespaces: list(
      labelName('A namespace.'),
      64,
      `Namespaces of members, beside kube-system, of what each has for itself, such as monitoring. Pods there are nobody's work: they are not moved, end with the cluster, and keep no cluster that a BurstPolicy has bought. Absent: ${SYSTEM_NAMESPACES.join(', ')}.`,
    ).optional(),
    member: member.optional(),
    clusterProfile: clusterProfile.optional(),
    argoCD: argoCD.optional(),
    flux: flux.optional(),
    karmada: karmada.optional(),
    kueue: kueue.optional(),
    clusternet: clusternet.optional(),
    openClusterManagement: openClusterManagement.optional(),
  }),
  { rule: 'self.type == oldSelf.type', message: 'type cannot be changed after creation: make another Hub instead' },
  {
    rule: 'has(self.kubeconfigRef) == has(oldSelf.kubeconfigRef)',
    message: 'kubeconfigRef cannot be added or removed after creation: make another Hub instead',
  },
  {
    rule: "!has(self.kubeconfigRef) || self.type != 'ClusterProfile' || (has(self.clusterProfile) && has(self.clusterProfile.__namespace__))",
    message: 'say in which namespace of the hub the ClusterProfiles are to be: clusterProfile.namespace',
  },
  {
    rule: "!has(self.kubeconfigRef) || self.type != 'Flux' || (has(self.flux) && has(self.flux.__namespace__))",
    message: 'say in which namespace of the hub the kubeconfig Secrets are to be: flux.namespace',
  },
  {
    rule: `${PULLS('self')} == ${PULLS('oldSelf')}`,
    message: 'karmada.syncMode cannot be changed after creation: make another Hub instead',
  },
  {
    rule: `!(${PULLS('self')}) || (has(self.member) && has(self.member.agentImage))`,
    message:
      'say which image of karmada-agent members are to run: member.agentImage, of the version of Karmada, which does not tell it',
  },
).describe('The hub, and the clusters that join it.');
/** Spec of a Hub. */
export type HubSpec = z.output<typeof hubSpec>;

const hubStatus = z
  .object({
    ...commonStatus,
    clusterIdentity: text(
      256,
      'UID of the namespace kube-system of the cluster that the hub was first seen to be. With a kubeconfig of another cluster nothing is done.',
    ).optional(),
    memberships: count(0, undefined, 'Clusters that are in the hub, join it or leave it.').optional(),
    joined: count(0, undefined, 'Clusters in the hub.').optional(),
    leaving: count(0, undefined, 'Clusters that leave the hub.').optional(),
  })
  .describe('State of the hub, and number of its members.');
/** Status of a Hub. */
export type HubStatus = z.output<typeof hubStatus>;

/** A multi-cluster system that clusters join automatically. */
export interface Hub extends KubeObject {
  kind: 'Hub';
  spec: HubSpec;
  status?: HubStatus;
}

export const hubDefinition: KindDefinition = {
  kind: 'Hub',
  version: ALPHA_VERSION,
  plural: 'hubs',
  singular: 'hub',
  shortNames: [],
  scope: 'Cluster',
  categories: ['coppice'],
  description:
    'A multi-cluster system that clusters join by themselves. Every WorkerCluster of its allowed namespaces that its selector matches gets a Membership. Only administrators write it.',
  spec: hubSpec,
  status: hubStatus,
  maxNameLength: LIMITS.label,
  printerColumns: [
    { name: 'Type', type: 'string', jsonPath: '.spec.type', description: 'Which system it is.' },
    { name: 'Members', type: 'integer', jsonPath: '.status.memberships', description: 'Clusters in it.' },
    { name: 'Joined', type: 'integer', jsonPath: '.status.joined', description: 'Clusters that have joined.' },
    {
      name: 'Ready',
      type: 'string',
      jsonPath: '.status.conditions[?(@.type=="Ready")].status',
      description: 'Whether clusters can join it.',
    },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp', description: 'How long it is known.' },
    {
      name: 'Message',
      type: 'string',
      jsonPath: '.status.conditions[?(@.type=="Ready")].message',
      description: 'Why it is (not) ready.',
      priority: 1,
    },
  ],
};
