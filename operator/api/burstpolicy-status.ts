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
  .describe('Resource requests of each replica.');

const alternative = z
  .object({
    candidate: text(15, 'Name of the candidate, or of the entry of grow.'),
    hourly: money('Its hourly cost.').optional(),
    whyNot: text(1024, 'Reason why it was not chosen.').optional(),
  })
  .describe('Alternatives that were not chosen.');

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
    endedAt: time('Time of the outcome. Absent: the outcome may change.').optional(),
  })
  .describe('Outcome of the decision. Absent: not known yet, or the decision has none.');
/** Outcome of a decision. */
export type BurstOutcome = z.output<typeof outcome>;

const decisionSchema = z
  .object({
    at: time('When.'),
    action: z
      .enum(['Buy', 'Open', 'Wake', 'Grow', 'Refuse', 'Empty', 'Keep', 'Cut', 'Sleep', 'Remove', 'Fail'])
      .describe(
        'Buy: a cluster was ordered. Open: one that waited warm takes work. Wake: one that sleeps is woken for work. Grow: nodes of a cluster were ordered. Refuse: work was waiting and nothing was bought. Empty: the hub moves the work of a cluster away, so that it can be given back. Keep: such a cluster takes work again. Cut: a cluster that is starting gets fewer nodes, because less work waits for it. Sleep: a cluster without work is put to sleep, or sleeps again as its spec says. Remove: a cluster is given back. Fail: a cluster, or nodes, did not come.',
      ),
    source: text(512, 'Owners of the work for which nothing was bought.').optional(),
    cluster: text(LIMITS.label, 'Name of the WorkerCluster.').optional(),
    candidate: text(15, 'Name of the candidate, or of the entry of grow.').optional(),
    pool: text(LIMITS.label, 'Name of the pool of the nodes.').optional(),
    why: text(2048, 'Why.'),
    hourly: money('Hourly cost.').optional(),
    alternatives: list(alternative, 8, 'Alternatives that were not chosen.').optional(),
    dryRun: z.boolean().describe('Dry run: the decision was reported and not carried out.').optional(),
    outcome: outcome.optional(),
  })
  .describe('A decision of the policy.');
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
          since: time('Time of the order.'),
          hourly: money('Hourly cost.'),
          grantedNodes: count(
            0,
            undefined,
            'Most nodes that its pools with autoscale: Coppice may have. Absent: it has none, or they count with their maximum.',
          ).optional(),
          counted: money('Hourly cost that budgets count, including granted nodes.').optional(),
          idleSince: time('Time since which it has no work.').optional(),
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
          clusters: count(0, undefined, 'Fewest clusters during the peak.'),
          since: time('Time at which the clusters are ordered.'),
          until: time('End of the peak.'),
        })
        .describe('A scheduled peak in progress.'),
      16,
      'Peaks of the schedule that are on.',
    ).optional(),
    nodes: list(
      z
        .object({
          cluster: text(LIMITS.name, 'Name of the WorkerCluster.'),
          pool: text(LIMITS.label, 'Name of the pool.'),
          count: count(0, undefined, 'Nodes added by the policy that exist or are starting.'),
          since: time('Time of the order.'),
          hourly: money('Hourly cost. Nodes of clusters of the policy count with their cluster.'),
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
            .describe(
              'Waking: the cluster wakes and rejoins the hub. Joined: it takes work. Leaving: the cluster may hibernate again.',
            ),
          since: time('Time at which the policy woke it.'),
          hourly: money('Hourly cost in addition to that of the hibernated cluster.'),
          idleSince: time('Time since which it has no work.').optional(),
        })
        .describe('A cluster that the policy has woken.'),
      MOST_CLUSTERS,
      'Clusters of others that the policy has woken.',
    ).optional(),
    clusterCount: count(0, undefined, 'Number of clusters of the policy.').optional(),
    nodeCount: count(
      0,
      undefined,
      'How many nodes count towards maximumNodes. Absent: the policy has none.',
    ).optional(),
    hourly: money('Hourly cost of clusters and added nodes.').optional(),
    demand: list(
      z
        .object({
          source: text(512, 'Owner of the work.'),
          count: count(0, undefined, 'Replicas without a place.'),
          each: amounts,
          since: time('Time since which this operator sees it wait.'),
          state: text(64, 'What the policy does about it, in one word.'),
          message: text(2048, 'The same in a sentence.').optional(),
        })
        .describe('Work without a place in any member.'),
      SHOWN_DEMAND,
      'Work of the hub that has no place; the oldest first, and not all where there is more.',
    ).optional(),
    candidates: list(
      z
        .object({
          name: text(15, 'Name of the candidate.'),
          hourly: money('Hourly cost of its smallest cluster.').optional(),
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
          problem: text(2048, 'Reason why the policy buys none now.').optional(),
        })
        .describe('State of a candidate.'),
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
          spot: z.boolean().describe('Spot machines. Absent: on-demand machines.').optional(),
          until: time(
            'Until when it is passed over. One that was taken away is bought all the same where nothing else will do.',
          ),
          interrupted: z
            .boolean()
            .describe('The cloud reclaimed a machine: others are bought where possible. Absent: the cloud had none.')
            .optional(),
        })
        .describe('Machines that a cloud lacked or reclaimed.'),
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
        asOf: time('Time up to which the amount is computed.'),
        previous: list(
          z
            .object({ month: text(7, 'The month.'), amount: money('Money spent in the month.') })
            .describe('A past month.'),
          SHOWN_MONTHS,
          'What was spent in the months before, the newest first.',
        ).optional(),
      })
      .describe('Spending of the policy, at the prices of the CloudProfiles.')
      .optional(),
    decisions: list(decisionSchema, KEPT_DECISIONS, 'Latest decisions, newest first.').optional(),
  })
  .describe('Decisions of the policy with their reasons. The operator never reads this status back.');
/** Status of a BurstPolicy. */
export type BurstPolicyStatus = z.output<typeof burstPolicyStatus>;
