import { type KindDefinition, LIMITS, matches, PATTERNS, type Rule } from './schema.ts';
import { FIXED_ONCE_MADE, workerClusterSpec, workerClusterStatus } from './workercluster.ts';

const oldVersion = 'oldSelf.status.kubernetesVersion';
const newVersion = 'self.spec.kubernetes.version';

/**
 * CEL: no person set spec.dataPlaneNodes. A number that the operator filled in does not count: a person who changes
 * pools did not write it.
 */
const NO_WISH = [
  '!has(self.spec.pools) || size(self.spec.pools) == 0 || !has(self.spec.dataPlaneNodes)',
  '(has(self.status) && has(self.status.defaultedNodes) && self.spec.dataPlaneNodes in self.status.defaultedNodes)',
].join(' || ');

/**
 * Applies a rule about the spec unless the status says that nothing was made yet. An object without status, such as one
 * from a backup, may have a cluster, so the rule applies.
 */
const onceMade = ({ rule, ...rest }: Rule): Rule => ({
  fieldPath: '.spec',
  ...rest,
  rule: `(has(oldSelf.status) && has(oldSelf.status.nothingMade) && oldSelf.status.nothingMade) || (${rule.replace(/\b(oldSelf|self)\b/g, '$1.spec')})`,
});

/** Definition of kind WorkerCluster for the CRD: columns, scale, and rules across fields. */
export const workerClusterDefinition: KindDefinition = {
  kind: 'WorkerCluster',
  plural: 'workerclusters',
  singular: 'workercluster',
  shortNames: ['wc'],
  scope: 'Namespaced',
  categories: ['coppice'],
  description:
    'A Kubernetes cluster to run workloads on. Say where and how large; everything else is optional. The kubeconfig of the cluster is put into the Secret <name>-kubeconfig, key value.',
  spec: workerClusterSpec,
  status: workerClusterStatus,
  maxNameLength: LIMITS.label,
  printerColumns: [
    { name: 'Provider', type: 'string', jsonPath: '.spec.cloudProvider', description: 'Where the cluster runs.' },
    { name: 'Mode', type: 'string', jsonPath: '.status.mode', description: 'Who runs the control plane.' },
    { name: 'Version', type: 'string', jsonPath: '.status.kubernetesVersion', description: 'Kubernetes version.' },
    {
      name: 'Control',
      type: 'integer',
      jsonPath: '.status.controlPlane.ready',
      description: 'Members of the control plane that serve.',
    },
    { name: 'Nodes', type: 'integer', jsonPath: '.status.nodes.ready', description: 'Nodes that are Ready.' },
    { name: 'Wanted', type: 'integer', jsonPath: '.status.nodes.asked', description: 'Nodes that the spec asks for.' },
    {
      name: 'Ready',
      type: 'string',
      jsonPath: '.status.conditions[?(@.type=="Ready")].status',
      description: 'Whether the cluster can be used.',
    },
    {
      name: 'Simulated',
      type: 'boolean',
      jsonPath: '.status.simulated',
      description: 'Whether the nodes are simulated.',
    },
    {
      name: 'Age',
      type: 'date',
      jsonPath: '.metadata.creationTimestamp',
      description: 'How long ago it was asked for.',
    },
    { name: 'Region', type: 'string', jsonPath: '.status.region', description: 'Region.', priority: 1 },
    {
      name: 'Hourly',
      type: 'string',
      jsonPath: '.status.cost.hourly',
      description: 'What it costs in an hour now.',
      priority: 1,
    },
    {
      name: 'Currency',
      type: 'string',
      jsonPath: '.status.cost.currency',
      description: 'Currency of the cost.',
      priority: 1,
    },
    {
      name: 'Operation',
      type: 'string',
      jsonPath: '.status.lastOperation.type',
      description: 'Last operation.',
      priority: 1,
    },
    {
      name: 'State',
      type: 'string',
      jsonPath: '.status.lastOperation.state',
      description: 'State of the last operation.',
      priority: 1,
    },
    {
      name: 'Endpoint',
      type: 'string',
      jsonPath: '.status.endpoint',
      description: 'URL of the API server.',
      priority: 1,
    },
    {
      name: 'Message',
      type: 'string',
      jsonPath: '.status.conditions[?(@.type=="Ready")].message',
      description: 'Why it is (not) ready.',
      priority: 1,
    },
  ],
  scale: {
    specReplicasPath: '.spec.dataPlaneNodes',
    statusReplicasPath: '.status.dataPlaneNodes',
    labelSelectorPath: '.status.selector',
  },
  rules: [
    ...FIXED_ONCE_MADE.map(onceMade),
    {
      rule: `${NO_WISH} || self.spec.pools.map(p, has(p.minimum) ? p.minimum : 0).sum() <= self.spec.dataPlaneNodes`,
      message: 'dataPlaneNodes is less than the minimums of the pools together',
    },
    {
      rule: `${NO_WISH} || self.spec.pools.exists(p, !has(p.maximum)) || self.spec.pools.map(p, has(p.maximum) ? p.maximum : 0).sum() >= self.spec.dataPlaneNodes`,
      message: 'dataPlaneNodes is more than the maximums of the pools together',
    },
    {
      // A version set after it was defaulted must not be older than the running one.
      rule: [
        'has(self.spec.kubernetes) && has(self.spec.kubernetes.version)',
        '(!has(oldSelf.spec.kubernetes) || !has(oldSelf.spec.kubernetes.version))',
        'has(oldSelf.status) && has(oldSelf.status.kubernetesVersion)',
        matches(newVersion, PATTERNS.version),
      ]
        .join(' && ')
        .concat(
          ` ? (int(${newVersion}.split('.')[0]) == int(${oldVersion}.split('.')[0])`,
          ` && int(${newVersion}.split('.')[1]) - int(${oldVersion}.split('.')[1]) in [0, 1]`,
          ` && (${newVersion}.split('.').size() < 3 || ${oldVersion}.split('.').size() < 3 || ${newVersion}.split('.')[1] != ${oldVersion}.split('.')[1]`,
          ` || int(${newVersion}.split('.')[2]) >= int(${oldVersion}.split('.')[2]))) : true`,
        ),
      messageExpression: `'the cluster runs ' + ${oldVersion} + ': no downgrade, and one minor version at a time'`,
      message: 'no downgrade, and one minor version at a time',
      fieldPath: '.spec.kubernetes.version',
    },
  ],
};
