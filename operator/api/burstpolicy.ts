import { z } from 'zod';
import { type BurstPolicyStatus, burstPolicyStatus, MOST_CLUSTERS, money } from './burstpolicy-status.ts';
import { ALPHA_VERSION } from './group.ts';
import { labelSelectorSchema } from './label-selector.ts';
import type { KubeObject } from './meta.ts';
import {
  count,
  cronExpression,
  duration,
  type KindDefinition,
  keyed,
  labelName,
  labels,
  list,
  name,
  PATTERNS,
  POD_PRIORITY,
  rules,
  timeZone,
  withoutRules,
} from './schema.ts';
import { MAX_NODES } from './worker-pool.ts';
import { workerClusterSpec } from './workercluster.ts';

/** Highest node limit of a policy. */
const MOST_NODES = 1_000_000;

const currency = (description: string) => name(3, description, /^[A-Z]{3}$/);

const candidate = z
  .object({
    name: name(15, 'Name of the candidate; part of the names of its clusters.', PATTERNS.label),
    priority: count(
      0,
      1000,
      'Candidates of the highest priority that can take the work are tried first; among equal ones the cheapest. Absent: 0.',
    ).optional(),
    maximumClusters: count(1, MOST_CLUSTERS, "Most clusters of this candidate. Absent: the policy's.").optional(),
    warmClusters: count(
      0,
      MOST_CLUSTERS,
      'How many of its clusters wait warm: made and in the hub, which places nothing there until work needs them. They count in maximums, budgets and Quotas. Another one is made for each that is opened. Absent: 0.',
    ).optional(),
    sleepingClusters: count(
      0,
      MOST_CLUSTERS,
      'How many of its clusters wait asleep: made, once in the hub, and then without nodes and control plane. For work one is woken before a new one is bought. They count in maximums and Quotas; budgets count what they cost asleep. A cluster without work is put to sleep where fewer sleep than this, else it is given back. For mode Hosted, and for Managed, whose control plane stays. Absent: 0.',
    ).optional(),
    assumedHourly: money(
      "What a cluster counts for in an hour where its CloudProfile does not have all prices in the budget's currency. Absent: what has no price is not bought.",
    ).optional(),
    template: z
      .object({
        metadata: z
          .object({ labels: labels(32, 'Labels, by which hubs choose the cluster.').optional() })
          .describe('Metadata of the clusters.')
          .optional(),
        spec: withoutRules(workerClusterSpec).describe(
          'Spec of the clusters. Pools get as many nodes as the work needs, from their minimum to their maximum.',
        ),
      })
      .describe('Template of the clusters. The API server validates it; status.candidates has the result.'),
  })
  .describe('A kind of cluster that the policy may buy.');
/** A template of clusters that a policy may buy. */
export type BurstCandidate = z.output<typeof candidate>;

const growth = z
  .object({
    name: name(15, 'Name of the entry.', PATTERNS.label),
    clusterSelector: labelSelectorSchema(
      'Which WorkerClusters of the namespace may have more nodes, by their labels. They have to be members of the hub.',
    ),
    pools: list(
      labelName('Name of a pool.'),
      64,
      'Names of the pools that may grow. Absent: all with autoscale: Coppice.',
    ).optional(),
    maximumNodes: count(1, MAX_NODES, 'Most nodes that the policy adds to all of these pools together.'),
    assumedHourly: money(
      "What a node counts for in an hour where its machine type has no price in the budget's currency. Absent: what has no price is not added.",
    ).optional(),
  })
  .describe('Clusters whose pools the policy may grow.');
const wake = z
  .object({
    name: name(15, 'Name of the entry.', PATTERNS.label),
    clusterSelector: labelSelectorSchema(
      'Which WorkerClusters of the namespace may be woken, by their labels: those that sleep by their own spec.hibernation, and are members of the hub.',
    ),
    assumedHourly: money(
      "What a cluster counts for in an hour awake where its CloudProfile does not have all prices in the budget's currency. Absent: what has no price is not woken.",
    ).optional(),
  })
  .describe('Clusters that the policy may wake.');
const peak = z
  .object({
    name: name(15, 'Name of the peak.', PATTERNS.label),
    start: cronExpression('When it begins, as a cron expression.'),
    duration: duration('How long it lasts.'),
    timeZone: timeZone('Time zone of start, for example Europe/Berlin. Absent: UTC.').optional(),
    leadTime: duration(
      'How long before it begins its clusters are ordered, as they take time to come. Absent: they are ordered when it begins.',
    ).optional(),
    candidate: name(
      15,
      'Name of the candidate that they are made from. Absent: whichever is best then.',
      PATTERNS.label,
    ).optional(),
    clusters: count(
      1,
      MOST_CLUSTERS,
      'How many clusters of the policy there are at least, until it ends. Their pools have their minimum, or one node where all minimums are 0.',
    ),
  })
  .describe('Peaks at known times, for which clusters are bought whether work waits or not.');
/** A demand peak known in advance. */
export type BurstPeak = z.output<typeof peak>;
export const burstPolicySpec = rules(
  z.object({
    hub: labelName(
      'Name of the Hub whose waiting work is served. Its allowedNamespaces must name the namespace of this policy. Cannot be changed.',
    ),
    namespaces: list(
      labelName('A namespace of the hub.'),
      100,
      'Namespaces in the hub whose work counts. Absent: all.',
    ).optional(),
    minimumPriority: count(
      POD_PRIORITY.least,
      POD_PRIORITY.most,
      'The least priority of pods for whose work anything is bought, grown, woken or opened. Work of which the hub tells no priority has 0, as in Kubernetes. Absent: all work counts.',
    ).optional(),
    trigger: z
      .object({
        pendingFor: duration(
          'How long work has to wait without a break before a cluster is made. Absent: 30s.',
        ).optional(),
        startWithin: duration(
          'How long a cluster may take to come, from its order until it is in the hub. Of the candidates that are not known to take longer one is bought, by priority and price; where all take longer, the quickest. Absent: however long it takes.',
        ).optional(),
      })
      .describe('When the policy buys clusters.')
      .optional(),
    grow: keyed(
      growth,
      8,
      'name',
      'Clusters whose pools get more nodes before any cluster is made: those with autoscale: Coppice, up to their maximum. Nodes that nobody needs go by scaleInAfter of the pool. Clusters of the policy itself grow without being named here.',
    ).optional(),
    wake: keyed(
      wake,
      8,
      'name',
      'Clusters that sleep and are woken for work, where that is better than to make one. Their spec stays as it is: they sleep again as it says when they have been without work like a cluster that is given back. Who changes spec.hibernation.enabled afterwards has the last word.',
    ).optional(),
    schedule: keyed(
      peak,
      16,
      'name',
      'Peaks that are known before. Clusters are there from their start until their end, and are given back as all others then.',
    ).optional(),
    candidates: keyed(candidate, 8, 'name', 'Clusters that the policy may buy.').min(1),
    minimumClusters: count(
      0,
      MOST_CLUSTERS,
      'How many clusters that take work the policy always has, whether work waits or not: none is given back below that. Those that wait warm or asleep do not count. Budgets, maximums and Quotas hold. Absent: 0.',
    ).optional(),
    maximumClusters: count(1, MOST_CLUSTERS, 'Most clusters of this policy at once.'),
    maximumNodes: count(
      1,
      MOST_NODES,
      'Most nodes at once of all its clusters, and of those that it has added to others by grow, together. A pool that a cloud sizes (autoscale: Cloud) counts with its maximum, one that Coppice sizes with the nodes that are granted to it. A cluster that sleeps counts as if it were awake. Clusters of others that were woken do not count. Absent: no limit.',
    ).optional(),
    budget: z
      .object({
        hourly: money('Most that all clusters of the policy may cost per hour.'),
        monthly: money(
          'The most that they may cost in a calendar month (UTC). When it is reached nothing more is bought; what runs goes on. Absent: no limit.',
        ).optional(),
        currency: currency('ISO 4217 code. Cannot be changed.').default('USD'),
      })
      .describe(
        'Limits on spending, at the prices of the CloudProfiles. A reached limit stops purchases and deletes nothing.',
      ),
    scaleIn: z
      .object({
        idleFor: duration('How long a cluster has to be without work before it is given back. Absent: 10m.').optional(),
        minimumLife: duration('How long a cluster stays at least. Absent: 30m.').optional(),
        consolidationPolicy: z
          .enum(['WhenEmpty', 'WhenEmptyOrUnderutilized'])
          .describe(
            'Which clusters are given back. WhenEmpty: those without work. WhenEmptyOrUnderutilized: also one with little work for idleFor, after its hub has moved all of it to free room of its other members. Absent: WhenEmpty.',
          )
          .optional(),
        utilizationThreshold: count(
          1,
          100,
          'Percent of the CPU, and of the memory, of its nodes. A cluster has little work while its pods request less of both. Absent: 50.',
        ).optional(),
        drainDeadline: duration(
          "How long the hub may take to move the work of a cluster away that is emptied. Then the cluster takes work again, and is left alone for a while; nothing is ended by force. It is for emptying alone: what leaves the hub is drained as the Hub's drain.timeout says. Absent: drain.timeout of the Hub.",
        ).optional(),
      })
      .describe('When the policy gives clusters back.')
      .optional(),
    cooldown: z
      .object({
        scaleOut: duration(
          'Time between two purchases at least; clusters that wait warm are opened all the same. Absent: 1m.',
        ).optional(),
        scaleIn: duration(
          'Time after a purchase, or after clusters were given back, at least. Absent: 10m.',
        ).optional(),
      })
      .describe('Time between two decisions.')
      .optional(),
    suspend: z.boolean().describe('Stop deciding: existing clusters stay. Absent: no.').optional(),
    dryRun: z.boolean().describe('Report decisions without carrying them out. Absent: no.').optional(),
  }),
  { rule: 'self.hub == oldSelf.hub', message: 'hub cannot be changed: make another policy instead' },
  {
    rule: 'self.budget.currency == oldSelf.budget.currency',
    message: 'budget.currency cannot be changed: what was spent is added up in it; make another policy instead',
  },
  {
    rule: 'self.candidates.all(c, !has(c.maximumClusters) || c.maximumClusters <= self.maximumClusters)',
    message: 'a candidate may not have more clusters than the policy',
  },
  {
    rule: 'self.candidates.all(c, !has(c.warmClusters) || c.warmClusters <= self.maximumClusters)',
    message: 'a candidate may not have more warm clusters than the policy has clusters',
  },
  {
    rule: 'self.candidates.all(c, !has(c.sleepingClusters) || c.sleepingClusters <= self.maximumClusters)',
    message: 'a candidate may not have more sleeping clusters than the policy has clusters',
  },
  {
    rule: 'self.candidates.all(c, !has(c.sleepingClusters) || !has(c.template.spec.hibernation))',
    message:
      'a candidate with sleepingClusters may not have hibernation in its template: the policy decides when they sleep',
  },
  {
    rule: '!has(self.minimumClusters) || self.minimumClusters <= self.maximumClusters',
    message: 'minimumClusters may not be more than maximumClusters',
  },
  {
    rule: '!has(self.minimumClusters) || !has(self.maximumNodes) || self.minimumClusters <= self.maximumNodes',
    message: 'minimumClusters may not be more than maximumNodes: each of them has a node at least',
  },
  {
    rule: '!has(self.schedule) || self.schedule.all(p, p.clusters <= self.maximumClusters)',
    message: 'a peak may not have more clusters than the policy',
  },
  {
    rule: '!has(self.schedule) || self.schedule.all(p, !has(p.candidate) || self.candidates.exists(c, c.name == p.candidate))',
    message: 'a peak names a candidate that the policy does not have',
  },
).describe('When the policy buys clusters and gives them back, which ones, and at what cost.');
/** Spec of a BurstPolicy. */
export type BurstPolicySpec = z.output<typeof burstPolicySpec>;

/** Rules by which whole clusters are bought and given back. */
export interface BurstPolicy extends KubeObject {
  kind: 'BurstPolicy';
  spec: BurstPolicySpec;
  status?: BurstPolicyStatus;
}

export const burstPolicyDefinition: KindDefinition = {
  kind: 'BurstPolicy',
  version: ALPHA_VERSION,
  plural: 'burstpolicies',
  singular: 'burstpolicy',
  shortNames: ['bp'],
  scope: 'Namespaced',
  categories: ['coppice'],
  description:
    'When whole clusters may come and go. Where a hub has work without a place, the operator makes WorkerClusters of the candidates, in the namespace of the policy and within its budget. It deletes them when they are without work. Who writes one must be allowed to create WorkerClusters there.',
  spec: burstPolicySpec,
  status: burstPolicyStatus,
  maxNameLength: 40,
  printerColumns: [
    { name: 'Hub', type: 'string', jsonPath: '.spec.hub', description: 'The hub.' },
    { name: 'Clusters', type: 'integer', jsonPath: '.status.clusterCount', description: 'Clusters that it has.' },
    { name: 'Maximum', type: 'integer', jsonPath: '.spec.maximumClusters', description: 'Most clusters.' },
    { name: 'Hourly', type: 'string', jsonPath: '.status.hourly', description: 'What they cost in an hour.' },
    { name: 'Budget', type: 'string', jsonPath: '.spec.budget.hourly', description: 'What they may cost in an hour.' },
    {
      name: 'Demand',
      type: 'string',
      jsonPath: '.status.conditions[?(@.type=="DemandMet")].reason',
      description: 'What becomes of work without a place.',
    },
    {
      name: 'Ready',
      type: 'string',
      jsonPath: '.status.conditions[?(@.type=="Ready")].status',
      description: 'Whether it decides.',
    },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp', description: 'How long it is known.' },
    {
      name: 'Message',
      type: 'string',
      jsonPath: '.status.conditions[?(@.type=="DemandMet")].message',
      description: 'Why something was decided, or not.',
      priority: 1,
    },
  ],
};
