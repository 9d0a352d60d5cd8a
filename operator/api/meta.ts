import { z } from 'zod';
import { count, describe, list, text } from './schema.ts';

/** Reference to an owner in the same namespace, or to a cluster-scoped owner. */
interface OwnerReference {
  apiVersion: string;
  kind: string;
  name: string;
  uid: string;
  controller?: boolean;
  blockOwnerDeletion?: boolean;
}

/** The fields of metav1.ObjectMeta that this program uses. Times are RFC 3339. */
export interface ObjectMeta {
  name: string;
  namespace?: string;
  generateName?: string;
  uid?: string;
  resourceVersion?: string;
  generation?: number;
  creationTimestamp?: string;
  deletionTimestamp?: string;
  deletionGracePeriodSeconds?: number;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
  finalizers?: string[];
  ownerReferences?: OwnerReference[];
  managedFields?: unknown[];
}

/** Any Kubernetes object in JSON form. */
export interface KubeObject {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  [field: string]: any;
}

/** A time as RFC 3339 text. */
export const time = (description: string) => z.string().meta({ format: 'date-time', description });

export const conditionSchema = describe(
  z.object({
    type: text(316, 'Type of the condition, for example Ready.'),
    status: z.enum(['True', 'False', 'Unknown']).describe('Whether the condition holds.'),
    reason: text(1024, 'One word in CamelCase that says why, for programs.').optional(),
    message: text(32768, 'The same for people: what is so, of what, and what to do about it.').optional(),
    lastTransitionTime: time('When status last changed.'),
    observedGeneration: count(0, undefined, 'The generation of the spec that this was said about.').optional(),
    codes: list(
      text(64, 'An error code.'),
      32,
      "Gardener's error codes, when the condition reports an error.",
    ).optional(),
  }),
  'One statement about the object.',
);
/** metav1.Condition, plus Gardener's `codes`. */
export type Condition = z.output<typeof conditionSchema>;

const lastOperationSchema = describe(
  z.object({
    type: z
      .enum(['Create', 'Reconcile', 'Delete', 'Hibernate', 'Wake', 'Migrate'])
      .describe('The current operation, or the last one.'),
    state: z
      .enum(['Processing', 'Succeeded', 'Error', 'Failed', 'Pending'])
      .describe(
        'State of the operation. Error: the operator retries. Failed: it waits for a change of the spec, or the operation "retry".',
      ),
    progress: count(0, 100, 'Progress in percent, weighted by the usual duration of tasks.'),
    description: text(32768, 'Current activity.'),
    lastUpdateTime: time('Time of the last update.'),
  }),
  'The operation that runs, or the last one that ran.',
);
/** State of the current or last operation on an object. */
export type LastOperation = z.output<typeof lastOperationSchema>;

const lastErrorSchema = describe(
  z.object({
    taskID: text(253, 'The task that failed; the error goes away when this task succeeds.').optional(),
    description: text(32768, 'What happened, to what, and what to do about it.'),
    codes: list(text(64, 'An error code.'), 32, "Gardener's error codes.").optional(),
    lastUpdateTime: time('When it last happened.').optional(),
  }),
  'An error of the last operation.',
);
/** An error of the last operation; cleared by taskID. */
export type LastError = z.output<typeof lastErrorSchema>;

/** Status fields of every kind. */
export const commonStatus = {
  conditions: list(conditionSchema, 64, 'Conditions of the object; type Ready sums them up.')
    .meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['type'] })
    .optional(),
  lastOperation: lastOperationSchema.optional(),
  lastErrors: list(lastErrorSchema, 64, 'Errors of the last operation that still occur.').optional(),
  observedGeneration: count(
    -1,
    undefined,
    'The generation of the spec that the operator last acted on; -1: none yet.',
  ).optional(),
};

const amount = (description: string) => text(64, description).optional();
const amounts = (description: string) =>
  z
    .object({
      cpu: amount('CPU, for example "7500m".'),
      memory: amount('Memory, for example "30Gi".'),
      gpu: amount('Whole GPUs.'),
      ipPool: amount('Pod addresses.'),
    })
    .describe(description);

export const resourceSchema = z
  .object({
    total: amounts('What all nodes offer to pods.').optional(),
    available: amounts('The part of total that no pod has requested.').optional(),
    continuous: amounts('The largest request that still fits on one node.').optional(),
  })
  .describe('Compute resources of the cluster: in all, free, and free on one node.');
/** `status.resource`: Kubernetes quantities as text. */
export type ClusterResource = z.output<typeof resourceSchema>;

export const nodeCountsSchema = z
  .object({
    desired: count(0, undefined, 'Desired nodes.'),
    current: count(0, undefined, 'Existing machines, ready or not.'),
    ready: count(0, undefined, 'Nodes that are Ready.'),
  })
  .describe('Nodes of the cluster.');
export const replicaCountsSchema = z
  .object({
    desired: count(0, undefined, 'Desired members of the control plane.'),
    ready: count(0, undefined, 'Members that serve requests.'),
  })
  .describe('Members of the control plane.');
