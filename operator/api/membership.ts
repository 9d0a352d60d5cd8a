import { z } from 'zod';
import { ALPHA_VERSION } from './group.ts';
import { commonStatus, type KubeObject, time } from './meta.ts';
import { type KindDefinition, LIMITS, labelName, list, rules, text } from './schema.ts';

const membershipSpec = rules(
  z.object({
    cluster: labelName('Name of the WorkerCluster, in the same namespace. Cannot be changed.'),
    hub: labelName('Name of the Hub. Cannot be changed.'),
  }),
  {
    rule: 'self.cluster == oldSelf.cluster && self.hub == oldSelf.hub',
    message: 'cluster and hub cannot be changed: a Membership is of one pair',
  },
).describe('The cluster and its hub.');

/** Phase of a membership. */
const MEMBERSHIP_STATES = ['Pending', 'Joining', 'Joined', 'Asleep', 'Leaving'] as const;
export type MembershipState = (typeof MEMBERSHIP_STATES)[number];

const membershipStatus = z
  .object({
    ...commonStatus,
    state: z
      .enum(MEMBERSHIP_STATES)
      .describe(
        'Pending: the cluster cannot take work yet. Joining, Joined, Leaving: as it stands in the hub. Asleep: it is in the hub, which places nothing on it before it has woken.',
      )
      .optional(),
    since: time('Time since which the phase applies.').optional(),
    waiting: text(1024, 'What the next step waits for.').optional(),
    memberName: text(LIMITS.name, 'Name of the cluster in the hub.').optional(),
    credentials: list(
      z
        .object({
          name: text(LIMITS.label, 'Purpose of the credentials.'),
          side: z.enum(['hub', 'member']).describe('Side that accepts these credentials.'),
          account: text(512, 'The ServiceAccount.'),
          expiresAt: time(
            'End of the credentials. Absent: they never end, because this hub cannot take new ones.',
          ).optional(),
        })
        .describe('Credentials of one side at the other.'),
      16,
      'Credentials that the hub and the cluster hold of each other.',
    ).optional(),
  })
  .describe('Progress of the cluster into the hub, or out of it.');
/** Status of a Membership. */
export type MembershipStatus = z.output<typeof membershipStatus>;

/** A cluster in a hub. */
export interface Membership extends KubeObject {
  kind: 'Membership';
  spec: z.output<typeof membershipSpec>;
  status?: MembershipStatus;
}

export const membershipDefinition: KindDefinition = {
  kind: 'Membership',
  version: ALPHA_VERSION,
  plural: 'memberships',
  singular: 'membership',
  shortNames: [],
  scope: 'Namespaced',
  categories: ['coppice'],
  description:
    "A cluster in a hub, one for each pair. The operator makes it where the Hub's selector matches the WorkerCluster; deleting it has the cluster leave. While it is there, nothing of the cluster is taken apart.",
  spec: membershipSpec,
  status: membershipStatus,
  printerColumns: [
    { name: 'Cluster', type: 'string', jsonPath: '.spec.cluster', description: 'The cluster.' },
    { name: 'Hub', type: 'string', jsonPath: '.spec.hub', description: 'The hub.' },
    { name: 'State', type: 'string', jsonPath: '.status.state', description: 'How it stands.' },
    { name: 'Since', type: 'date', jsonPath: '.status.since', description: 'Time of the order.' },
    {
      name: 'Ready',
      type: 'string',
      jsonPath: '.status.conditions[?(@.type=="Ready")].status',
      description: 'Whether the cluster is in the hub, and nothing is waited for.',
      priority: 1,
    },
    { name: 'Waiting', type: 'string', jsonPath: '.status.waiting', description: 'What the next step waits for.' },
  ],
};
