import { burstPolicyDefinition } from './burstpolicy.ts';
import { cloudProfileDefinition } from './cloudprofile.ts';
import { credentialsBindingDefinition } from './credentialsbinding.ts';
import { hubDefinition } from './hub.ts';
import { membershipDefinition } from './membership.ts';
import { quotaDefinition } from './quota.ts';
import { type KindDefinition, LIMITS } from './schema.ts';
import { seedDefinition } from './seed.ts';
import { shootSpec, shootStatus } from './shoot.ts';
import { workerClusterDefinition } from './workercluster-definition.ts';
import { workloadIdentityDefinition } from './workloadidentity.ts';

/** Definition of kind Shoot for the CRD. */
const shootDefinition: KindDefinition = {
  kind: 'Shoot',
  plural: 'shoots',
  singular: 'shoot',
  shortNames: [],
  scope: 'Namespaced',
  categories: ['coppice'],
  description:
    "A cluster whose control plane runs as pods in a seed cluster. Fields and their meanings are those of Gardener's core.gardener.cloud/v1beta1; fields that Coppice does not act on are kept and named in a condition.",
  spec: shootSpec,
  status: shootStatus,
  maxNameLength: LIMITS.label,
  printerColumns: [
    { name: 'CloudProfile', type: 'string', jsonPath: '.spec.cloudProfile.name', description: 'The profile.' },
    { name: 'Provider', type: 'string', jsonPath: '.spec.provider.type', description: 'Provider of the machines.' },
    { name: 'Region', type: 'string', jsonPath: '.spec.region', description: 'Region.' },
    { name: 'Seed', type: 'string', jsonPath: '.status.seedName', description: 'Seed that hosts the control plane.' },
    { name: 'Version', type: 'string', jsonPath: '.spec.kubernetes.version', description: 'Kubernetes version.' },
    { name: 'Operation', type: 'string', jsonPath: '.status.lastOperation.type', description: 'Last operation.' },
    { name: 'State', type: 'string', jsonPath: '.status.lastOperation.state', description: 'How it stands.' },
    {
      name: 'Progress',
      type: 'integer',
      jsonPath: '.status.lastOperation.progress',
      description: 'How much of it is done, in percent.',
    },
    {
      name: 'Ready',
      type: 'string',
      jsonPath: '.status.conditions[?(@.type=="Ready")].status',
      description: 'Whether the cluster can be used.',
    },
    {
      name: 'Age',
      type: 'date',
      jsonPath: '.metadata.creationTimestamp',
      description: 'How long ago it was asked for.',
    },
    {
      name: 'Technical-ID',
      type: 'string',
      jsonPath: '.status.technicalID',
      description: 'Namespace in the seed.',
      priority: 1,
    },
    {
      name: 'Nodes',
      type: 'integer',
      jsonPath: '.status.nodes.ready',
      description: 'Nodes that are Ready.',
      priority: 1,
    },
    { name: 'Purpose', type: 'string', jsonPath: '.spec.purpose', description: 'What it is for.', priority: 1 },
  ],
};

/** Every kind of the API group. */
export const KINDS: readonly KindDefinition[] = [
  workerClusterDefinition,
  shootDefinition,
  seedDefinition,
  cloudProfileDefinition,
  credentialsBindingDefinition,
  workloadIdentityDefinition,
  quotaDefinition,
  hubDefinition,
  membershipDefinition,
  burstPolicyDefinition,
];
