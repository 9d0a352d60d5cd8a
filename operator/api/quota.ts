import { z } from 'zod';
import { commonStatus, type KubeObject } from './meta.ts';
import { count, intOrString, type KindDefinition, LIMITS, name, rules, text } from './schema.ts';

/** Metrics that a Quota can limit. `cpu`, `memory` and `gpu` are Gardener's. */
export const METRICS = ['clusters', 'nodes', 'cpu', 'memory', 'gpu', 'cost.hourly', 'cost.monthly'] as const;
export type Metric = (typeof METRICS)[number];

/** Metrics of Gardener's Quota that are kept without effect. */
const GARDENERS_METRICS = ['storage.standard', 'storage.premium', 'loadbalancer'] as const;

/** Hours per month for `cost.monthly`: 8760 a year divided by twelve. */
export const HOURS_PER_MONTH = 730;

/**
 * Room for ours and Gardener's metrics and a few more: with many more, the API server refuses the CEL rule as too
 * costly.
 */
const MOST_METRICS = 12;

const amounts = <T extends z.ZodType>(item: T, description: string) =>
  z.record(z.string(), item).meta({ description, maxProperties: MOST_METRICS });

const metrics = rules(
  amounts(
    intOrString('A quantity.'),
    `The most that all clusters of the namespace may have together: ${METRICS.join(', ')}. Machines of the nodes count (not what pods request), those of hosted control planes do not. cost.monthly is ${HOURS_PER_MONTH} times cost.hourly. Others, such as Gardener's storage.standard, are kept and named in a condition.`,
  ),
  {
    rule: 'self.all(m, type(self[m]) == int ? self[m] >= 0 : (isQuantity(self[m]) && quantity(self[m]).compareTo(quantity("0")) >= 0))',
    message: 'a metric is a Kubernetes quantity that is not negative, for example 20, 500m or 64Gi',
  },
  {
    rule: `self.all(m, m in ${JSON.stringify([...METRICS, ...GARDENERS_METRICS]).replaceAll('"', "'")})`,
    message: `a quota limits ${METRICS.join(', ')}; Gardener's ${GARDENERS_METRICS.join(', ')} are kept without effect`,
  },
);

export const quotaSpec = rules(
  z.object({
    scope: z
      .object({
        apiVersion: text(
          253,
          'API version of what the quota is for; Gardener writes core.gardener.cloud/v1beta1.',
        ).optional(),
        kind: name(
          63,
          'Project, as Gardener says: all clusters of the namespace together. Others are kept and named in a condition.',
        ),
        name: text(LIMITS.name, 'Name.').optional(),
        namespace: text(LIMITS.label, 'Namespace.').optional(),
      })
      .describe('Scope of the quota. Absent: its namespace. Cannot be changed.')
      .optional(),
    metrics,
    clusterLifetimeDays: count(1, 36500, 'Days after which a cluster is deleted.').optional(),
    currency: name(
      3,
      'ISO 4217 code of the currency of cost.hourly and cost.monthly (not a field of Gardener).',
      /^[A-Z]{3}$/,
    ).default('USD'),
  }),
  {
    rule: 'has(self.scope) == has(oldSelf.scope) && (!has(self.scope) || self.scope == oldSelf.scope)',
    message: 'scope cannot be changed after creation: make a new quota instead',
  },
).describe('Limits on all clusters of the namespace together.');
/** Spec of a Quota. */
type QuotaSpec = z.output<typeof quotaSpec>;

const quotaStatus = z
  .object({
    ...commonStatus,
    used: amounts(
      text(64, 'A quantity.'),
      'What clusters were granted and have not given back, for each metric that is limited and acted on. It counts from the decision, before anything is made, until the machines are gone.',
    ).optional(),
    summary: text(1024, 'Used and allowed in one line, for example "clusters 2/5, nodes 8/10".').optional(),
  })
  .describe('Usage of the quota.');
/** Status of a Quota. */
export type QuotaStatus = z.output<typeof quotaStatus>;

/** Limits for all clusters of a namespace together. */
export interface Quota extends KubeObject {
  kind: 'Quota';
  spec: QuotaSpec;
  status?: QuotaStatus;
}

/** Whether the quota applies to its namespace (Gardener's Project), the only supported scope. */
export const isForProject = (quota: Quota): boolean => (quota.spec.scope?.kind ?? 'Project') === 'Project';

/** Paths of the quota's fields that have no effect. */
export function unactedQuotaFields({ spec }: Quota): string[] {
  const metrics = Object.keys(spec.metrics).filter((metric) => !(METRICS as readonly string[]).includes(metric));
  return [
    ...metrics.sort().map((metric) => `metrics["${metric}"]`),
    ...(spec.clusterLifetimeDays === undefined ? [] : ['clusterLifetimeDays']),
  ];
}

export const quotaDefinition: KindDefinition = {
  kind: 'Quota',
  plural: 'quotas',
  singular: 'quota',
  shortNames: [],
  scope: 'Namespaced',
  categories: ['coppice'],
  description:
    "What the clusters of a namespace may have together; every quota of the namespace limits them. A cluster that does not fit is refused as a whole, and a running one stays as it was. Both are checked again, first come first served, when something is freed or a quota is raised. Fields and their meanings are those of Gardener's core.gardener.cloud/v1beta1. The roles edit and admin of Kubernetes do not include the right to change quotas.",
  spec: quotaSpec,
  status: quotaStatus,
  maxNameLength: LIMITS.label,
  printerColumns: [
    { name: 'Used', type: 'string', jsonPath: '.status.summary', description: 'Used and allowed.' },
    {
      name: 'Ready',
      type: 'string',
      jsonPath: '.status.conditions[?(@.type=="Ready")].status',
      description: 'Whether the quota is enforced.',
    },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp', description: 'How long it is there.' },
    { name: 'Currency', type: 'string', jsonPath: '.spec.currency', description: 'Currency of the cost.', priority: 1 },
    {
      name: 'Message',
      type: 'string',
      jsonPath: '.status.conditions[?(@.type=="WithinLimits")].message',
      description: 'What is above its limit.',
      priority: 1,
    },
  ],
};
