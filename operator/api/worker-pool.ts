import { z } from 'zod';
import {
  count,
  countOrPercent,
  cronExpression,
  describe,
  duration,
  labels,
  list,
  machineTypeName,
  name,
  PATTERNS,
  place,
  rules,
  text,
} from './schema.ts';

/** Most nodes of one cluster. */
export const MAX_NODES = 5000;

const taintSchema = describe(
  z.object({
    key: name(317, 'The key of the taint.', PATTERNS.labelKey),
    value: text(63, 'The value of the taint.', PATTERNS.labelValue).optional(),
    effect: z
      .enum(['NoSchedule', 'PreferNoSchedule', 'NoExecute'])
      .describe('Effect of the taint on pods that do not tolerate it.'),
  }),
  'A taint of the nodes.',
);
/** A taint of a node. */
export type Taint = z.output<typeof taintSchema>;

/** Zones without repetitions: a repeated zone would get two shares, or two cloud resources of one name. */
export const distinctZones = (description: string) =>
  rules(list(place('A zone.'), 16, description), {
    rule: 'self.all(z, self.exists_one(y, y == z))',
    message: 'a zone is listed once at most: this list has one twice',
  });

const taints = (description: string) =>
  rules(list(taintSchema, 32, description), {
    rule: 'self.all(t, self.exists_one(u, u.key == t.key && u.effect == t.effect))',
    message: 'a node has one taint of a key and effect at most: this list has two',
  });

/** Taint fields of a pool, shared by WorkerCluster and Shoot. */
export const taintFields = {
  taints: taints(
    'Taints of the nodes: each node has them for as long as it lives, and who takes one away finds it back.',
  ).optional(),
  startupTaints: taints(
    "Taints that a node registers with, and that an agent takes away once it is ready, as Karpenter's. The operator never puts one back, and expects none of nodes to come.",
  ).optional(),
};

/** Rule that taints and startupTaints do not overlap. */
export const TAINTS_DIFFER = {
  rule: '!has(self.taints) || !has(self.startupTaints) || self.startupTaints.all(s, !self.taints.exists(t, t.key == s.key && t.effect == s.effect))',
  messageExpression:
    "'pool ' + self.name + ': a taint of one key and effect is in taints or in startupTaints, not in both'",
  message: 'a taint of one key and effect is in taints or in startupTaints, not in both',
};

/** Reasons why the autoscaler removes a node. */
export const DISRUPTION_REASONS = ['Empty', 'Underutilized'] as const;

const disruptionBudget = rules(
  z.object({
    nodes: countOrPercent(
      'How many nodes of the pool may be missing at once, for example 2 or 10%; a percentage is rounded up. 0: none is taken away. Nodes that are being emptied, that leave, that are not Ready and that the cloud takes away count as missing.',
      /^([0-9]{1,4}|([0-9]{1,2}|100)%)$/,
    ),
    schedule: cronExpression(
      'When the budget begins to hold each time, as a cron expression of five fields in UTC. Absent: it holds always.',
    ).optional(),
    duration: duration('How long the budget holds each time, for example 8h.').optional(),
    reasons: list(
      z.enum(DISRUPTION_REASONS).describe('Reason why the node would be removed.'),
      DISRUPTION_REASONS.length,
      'Which nodes the budget holds back. Empty: those on which nothing runs. Underutilized: those whose pods have room elsewhere. Absent: both.',
    ).optional(),
  }),
  {
    rule: 'has(self.schedule) == has(self.duration)',
    message: 'schedule and duration of a disruption budget belong together',
  },
).describe("A limit to how many nodes may be missing at once, as in Karpenter's NodePool.");
/** A limit on how many nodes of a pool are disrupted at once. */
export type DisruptionBudget = z.output<typeof disruptionBudget>;

export const workerPoolSchema = rules(
  z.object({
    name: name(15, 'Name of the pool; part of the names of its machines.', PATTERNS.label),
    machineType: machineTypeName("A machine type of the profile. Absent: the cluster's.").optional(),
    machineTypes: list(
      machineTypeName('A machine type of the profile.'),
      16,
      "Machine types in order of preference, after machineType if that is named too. When one is sold out in all zones of the pool, new nodes are of the next; nodes that run stay what they are. Absent: the cluster's, for a pool that names no machine type itself.",
    ).optional(),
    minimum: count(0, MAX_NODES, 'Fewest nodes of the pool. Absent: 0.').optional(),
    maximum: count(
      0,
      MAX_NODES,
      'Most nodes of the pool. Absent: no limit where dataPlaneNodes says how many there are, otherwise minimum.',
    ).optional(),
    autoscale: z
      .enum(['Coppice', 'Cloud', 'None'])
      .describe(
        "Who decides, between minimum and maximum, how many nodes the pool has. Coppice: its own autoscaler, by pods that wait and nodes that nobody needs. A write to dataPlaneNodes or to the scale subresource is then a floor of all pools together. Cloud: the cloud's autoscaler, in mode Managed only, and only while nobody says dataPlaneNodes. None: nobody, so it is dataPlaneNodes, or minimum. Absent: Cloud in mode Managed, otherwise None.",
      )
      .optional(),
    scaleInAfter: duration(
      'How long nobody must have needed a node before it is taken away, where autoscale is Coppice, for example 30m. Absent: 10m.',
    ).optional(),
    disruption: z
      .object({
        budgets: list(
          disruptionBudget,
          16,
          'Of those that hold at a time, the least decides. Absent: every node that nobody needs may go.',
        ).optional(),
      })
      .describe(
        'How fast nodes may be taken away that nobody needs, where autoscale is Coppice. It limits neither the replacing of outdated machines nor what a cloud takes away.',
      )
      .optional(),
    spot: z.boolean().describe("Use the cloud's cheaper machines that it may take away at short notice.").optional(),
    gpu: count(
      0,
      64,
      'GPUs that each node must have. When the pool names no machine type: the cheapest of the profile that has so many.',
    ).optional(),
    labels: labels(64, 'Labels of the nodes.').optional(),
    ...taintFields,
    zones: distinctZones("Zones that the nodes are spread over. Absent: the cluster's.").optional(),
  }),
  TAINTS_DIFFER,
  {
    rule: '!has(self.minimum) || !has(self.maximum) || self.minimum <= self.maximum',
    messageExpression: "'pool ' + self.name + ': minimum is larger than maximum'",
    message: 'minimum is larger than maximum',
  },
  {
    rule: "!has(self.autoscale) || self.autoscale == 'None' || has(self.maximum)",
    messageExpression: "'pool ' + self.name + ': autoscale needs a maximum'",
    message: 'autoscale needs a maximum',
  },
).describe('A group of equal nodes.');
/** A pool of a WorkerCluster, as written by a person. */
export type WorkerPool = z.output<typeof workerPoolSchema>;
