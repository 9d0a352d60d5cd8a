import { z } from 'zod';
import { DECIMAL } from './cost.ts';
import { commonStatus, time } from './meta.ts';
import { count, LIMITS, list, text } from './schema.ts';

/** Most clusters of one policy. */
export const MOST_CLUSTERS = 100;
/** Number of decisions that the status keeps. */
export const KEPT_DECISIONS = 20;
/** Number of past months that the status shows. */
export const SHOWN_MONTHS = 12;
/** Number of waiting demands that the status shows. */
export const SHOWN_DEMAND = 20;
/** Number of sold-out offers that the status shows. */
export const SHOWN_SOLD_OUT = 50;

/** An amount of money in the currency of the policy. */
export const money = (description: string) => text(32, description, DECIMAL);

const amounts = z
  .object({
    cpu: text(64, 'CPU.').optional(),
    memory: text(64, 'Memory.').optional(),
    gpu: text(64, 'GPUs.').optional(),
  })
  .describe('What each replica asks for.');

const alternative = z
  .object({
    candidate: text(15, 'Name of the candidate, or of the entry of grow.'),
    hourly: money('What it would have cost in an hour.').optional(),
    whyNot: text(1024, 'Why it was not chosen.').optional(),
  })
  .describe('What else there was to choose.');

const outcome = z
  .object({
    result: z
      .enum(['InProgress', 'Succeeded', 'Unused', 'Failed', 'GivenBack', 'Kept', 'Lost'])
      .describe(
        'InProgress: it is in the hub and has no work yet. Succeeded: it took work, waits as it should, is asleep or gone; its nodes came; its work was moved away. Unused: it was in the hub and never had work. Failed: it did not come. GivenBack: it was given back before it was in the hub. Kept: it takes work again. Lost: somebody else deleted it, or took it from the policy.',
      ),
    message: text(
      1024,
      'The same in a sentence, with how long it took, and of what is gone or asleep what it has cost.',
    ),
    endedAt: time('When that was seen. Absent: more may become of it.').optional(),
  })
  .describe('What became of it. Absent: nothing is known yet, or nothing becomes of it.');
/** Outcome of a decision. */
export type BurstOutcome = z.output<typeof outcome>;

const decisionSchema = z
  .object({
    at: time('When.'),
    action: z
      .enum(['Buy', 'Open', 'Wake', 'Grow', 'Refuse', 'Empty', 'Keep', 'Sleep', 'Remove', 'Fail'])
      .describe(
        'Buy: a cluster was ordered. Open: one that waited warm takes work. Wake: one that sleeps is woken for work. Grow: nodes of a cluster were ordered. Refuse: work was waiting and nothing was bought. Empty: the hub moves the work of a cluster away, so that it can be given back. Keep: such a cluster takes work again. Sleep: a cluster without work is put to sleep, or sleeps again as its spec says. Remove: a cluster is given back. Fail: a cluster, or nodes, did not come.',
      ),
    source: text(512, 'Whose work nothing was bought for.').optional(),
    cluster: text(LIMITS.label, 'Name of the WorkerCluster.').optional(),
    candidate: text(15, 'Name of the candidate, or of the entry of grow.').optional(),
    pool: text(LIMITS.label, 'Name of the pool whose nodes it is about.').optional(),
    why: text(2048, 'Why.'),
    hourly: money('What it costs in an hour.').optional(),
    alternatives: list(alternative, 8, 'What else there was to choose.').optional(),
    dryRun: z.boolean().describe('It was only said.').optional(),
    outcome: outcome.optional(),
  })
  .describe('What was decided.');
/** A decision with all inputs that are needed to understand it later. */
export type BurstDecision = z.output<typeof decisionSchema>;

/** Phase of a policy's cluster. */
const BURST_PHASES = ['Ordered', 'Making', 'Warm', 'Asleep', 'Waking', 'Joined', 'Emptying', 'Leaving'] as const;
export type BurstPhase = (typeof BURST_PHASES)[number];

export const burstPolicyStatus = z
  .object({
    ...commonStatus,
    clusters: list(
      z
        .object({
          name: text(LIMITS.label, 'Name of the WorkerCluster.'),
          candidate: text(15, 'Name of the candidate.'),
          phase: z
            .enum(BURST_PHASES)
            .describe(
              'Ordered: written down. Making: on its way into the hub. Warm: it waits there until work needs it. Asleep: it sleeps, or is told to, until work needs it. Waking: it is woken for work. Joined: it takes work. Emptying: its work is moved away. Leaving: it is given back.',
            ),
          since: time('When it was ordered.'),
          hourly: money('What it costs in an hour.'),
          grantedNodes: count(
            0,
            undefined,
            'Most nodes that its pools with autoscale: Coppice may have. Absent: it has none, or they count with their maximum.',
          ).optional(),
          counted: money('What budgets count an hour of it with, where nodes are granted to it.').optional(),
          idleSince: time('Since when it has no work.').optional(),
          stays: text(
            1024,
            'What keeps it, once it is old enough to go: work that runs there, or why little work is not moved away.',
          ).optional(),
        })
        .describe('A cluster of this policy.'),
      MOST_CLUSTERS,
      'Clusters of this policy.',
    ).optional(),
    peaks: list(
      z
        .object({
          name: text(15, 'Name of the peak.'),
          clusters: count(0, undefined, 'How many clusters there are at least.'),
          since: time('When they were to be ordered.'),
          until: time('When it ends.'),
        })
        .describe('A peak of the schedule that is on.'),
      16,
      'Peaks of the schedule that are on.',
    ).optional(),
    nodes: list(
      z
        .object({
          cluster: text(LIMITS.name, 'Name of the WorkerCluster.'),
          pool: text(LIMITS.label, 'Name of the pool.'),
          count: count(0, undefined, 'How many nodes that the policy has added are still there, or on their way.'),
          since: time('When they were ordered.'),
          hourly: money('What they cost in an hour; those of clusters of the policy count with their cluster.'),
        })
        .describe('Nodes that the policy has added to a pool.'),
      MOST_CLUSTERS,
      'Nodes that the policy has added to clusters that were there.',
    ).optional(),
    woken: list(
      z
        .object({
          cluster: text(LIMITS.name, 'Name of the WorkerCluster.'),
          entry: text(15, 'Name of the entry of wake.'),
          phase: z
            .enum(['Waking', 'Joined', 'Leaving'])
            .describe('Waking: on its way back into the hub. Joined: it takes work. Leaving: it may sleep again.'),
          since: time('When it was woken.'),
          hourly: money('What it costs in an hour more than asleep.'),
          idleSince: time('Since when it has no work.').optional(),
        })
        .describe('A cluster that the policy has woken.'),
      MOST_CLUSTERS,
      'Clusters of others that the policy has woken.',
    ).optional(),
    clusterCount: count(0, undefined, 'How many clusters it has.').optional(),
    nodeCount: count(
      0,
      undefined,
      'How many nodes count towards maximumNodes. Absent: the policy has none.',
    ).optional(),
    hourly: money('What they, and nodes that were added, cost in an hour together.').optional(),
    demand: list(
      z
        .object({
          source: text(512, 'Whose work it is.'),
          count: count(0, undefined, 'How many replicas have no place.'),
          each: amounts,
          since: time('Since when it waits, as this operator has seen it.'),
          state: text(64, 'What becomes of it, in one word.'),
          message: text(2048, 'The same in a sentence.').optional(),
        })
        .describe('Work without a place.'),
      SHOWN_DEMAND,
      'Work of the hub that has no place; the oldest first, and not all where there is more.',
    ).optional(),
    candidates: list(
      z
        .object({
          name: text(15, 'Name of the candidate.'),
          hourly: money('What the smallest cluster of it costs in an hour.').optional(),
          startupSeconds: count(
            0,
            undefined,
            'How long one takes to come: half of the last ones, or what the CloudProfile says. Absent: not known.',
          ).optional(),
          wakingSeconds: count(
            0,
            undefined,
            'How long one that sleeps takes to be in the hub again: half of the last ones. Absent: none was woken yet.',
          ).optional(),
          problem: text(2048, 'Why none of it is made now.').optional(),
        })
        .describe('How a candidate is.'),
      8,
      'How the candidates are.',
    ).optional(),
    soldOut: list(
      z
        .object({
          profile: text(LIMITS.name, 'Name of the CloudProfile.'),
          region: text(LIMITS.label, 'The region.'),
          zone: text(LIMITS.label, 'The zone. Absent: the region has none.').optional(),
          machineType: text(LIMITS.name, 'The machine type.'),
          spot: z.boolean().describe('Spot machines. Absent: others.').optional(),
          until: time(
            'Until when it is passed over. One that was taken away is bought all the same where nothing else will do.',
          ),
          interrupted: z
            .boolean()
            .describe('The cloud took one away: others are bought where they will do. Absent: it had none.')
            .optional(),
        })
        .describe('Machines that a cloud had none of, or took away.'),
      SHOWN_SOLD_OUT,
      'Machines of CloudProfiles of the policy that are known to be sold out or taken away, as some cluster has met it.',
    ).optional(),
    spend: z
      .object({
        month: text(7, 'The month, for example 2026-11 (UTC).'),
        amount: money(
          'What was spent in it until asOf, also on clusters that are gone. Until now: amount + hourly x hours since asOf.',
        ),
        currency: text(3, 'ISO 4217 code.'),
        asOf: time('Until when that is.'),
        previous: list(
          z
            .object({ month: text(7, 'The month.'), amount: money('What was spent in it.') })
            .describe('A month that is over.'),
          SHOWN_MONTHS,
          'What was spent in the months before, the newest first.',
        ).optional(),
      })
      .describe('What the policy has spent, at the prices of the CloudProfiles.')
      .optional(),
    decisions: list(decisionSchema, KEPT_DECISIONS, 'What was decided last, the newest first.').optional(),
  })
  .describe('What was decided, and why. The operator never reads it.');
/** Status of a BurstPolicy. */
export type BurstPolicyStatus = z.output<typeof burstPolicyStatus>;
