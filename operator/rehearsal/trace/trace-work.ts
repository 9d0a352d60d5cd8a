import { z } from 'zod';
import { parseDuration } from '../../api/duration.ts';
import { parseBytes, parseCount, parseCpu } from '../../api/quantity.ts';
import { POD_PRIORITY } from '../../api/schema.ts';
import type { TracedWork } from './trace-line.ts';
import { traceProblem } from './trace-text.ts';

/** Larger numbers are no realistic demand, and would never finish. */
const MOST = 1_000_000;

const quantity = (parse: (text: string) => number) =>
  z
    .union([z.string(), z.number()])
    .transform(String)
    .refine((text) => isQuantity(text, parse), { error: 'is no quantity such as 500m, 2 or 4Gi' });

function isQuantity(text: string, parse: (text: string) => number): boolean {
  try {
    return parse(text) >= 0;
  } catch (error) {
    if (error instanceof RangeError) return false;
    throw error;
  }
}

/** Fields of a line that describe workloads. */
export const workFields = {
  workload: z.string().min(1).max(200).optional(),
  replicas: z.int().min(0).max(MOST).optional(),
  jobs: z.int().min(1).max(MOST).optional(),
  cpu: quantity(parseCpu).optional(),
  memory: quantity(parseBytes).optional(),
  gpu: quantity(parseCount).optional(),
  life: z.union([z.string(), z.number()]).optional(),
  priority: z.int().min(POD_PRIORITY.least).max(POD_PRIORITY.most).optional(),
  clusterLabels: z.record(z.string().min(1), z.string()).optional(),
  kind: z
    .string()
    .regex(/^\S+\/\S+ \S+$/, { error: 'is no API version and kind such as "batch.volcano.sh/v1alpha1 Job"' })
    .max(400)
    .optional(),
  kindLabels: z.record(z.string().min(1), z.string()).optional(),
  kindFrom: z.enum(['hub', 'others']).optional(),
  nodeSelector: z.record(z.string().min(1), z.string()).optional(),
  tolerations: z
    .array(
      z.strictObject({
        key: z.string().optional(),
        operator: z.enum(['Exists', 'Equal']).optional(),
        value: z.string().optional(),
        effect: z.enum(['NoSchedule', 'PreferNoSchedule', 'NoExecute']).optional(),
      }),
    )
    .max(50)
    .optional(),
};

interface Said {
  replicas?: number | undefined;
  jobs?: number | undefined;
  cpu?: string | undefined;
  memory?: string | undefined;
  gpu?: string | undefined;
  life?: string | number | undefined;
  priority?: number | undefined;
  clusterLabels?: Record<string, string> | undefined;
  kind?: string | undefined;
  kindLabels?: Record<string, string> | undefined;
  kindFrom?: 'hub' | 'others' | undefined;
  nodeSelector?: Record<string, string> | undefined;
  tolerations?: z.output<typeof workFields.tolerations>;
}

/** The workload of a line. Throws a configuration problem. */
export function tracedWorkOf(where: string, name: string, said: Said): TracedWork {
  const { replicas, jobs, cpu, memory, gpu, life, priority, clusterLabels, nodeSelector, tolerations } = said;
  if ((replicas === undefined) === (jobs === undefined))
    throw traceProblem(where, `workload ${name} has either replicas or jobs`);
  const lifeMs = life === undefined ? undefined : lifeOf(where, life);
  if ((jobs === undefined) !== (lifeMs === undefined))
    throw traceProblem(where, `workload ${name}: jobs, and only these, have a life`);
  if ((cpu === undefined) !== (memory === undefined))
    throw traceProblem(where, `workload ${name}: cpu and memory are said together`);
  return {
    name,
    ...(replicas !== undefined && { replicas }),
    ...(jobs !== undefined && { jobs }),
    ...(lifeMs !== undefined && { lifeMs }),
    ...(cpu !== undefined && memory !== undefined && { size: { cpu, memory, ...(gpu !== undefined && { gpu }) } }),
    ...(priority !== undefined && { priority }),
    ...(clusterLabels && { clusterLabels }),
    ...kindOf(where, name, said),
    ...((nodeSelector || tolerations) && {
      nodes: { ...(nodeSelector && { nodeSelector }), ...(tolerations && { tolerations: tolerations.map(defined) }) },
    }),
  };
}

function kindOf(where: string, name: string, { kind, kindLabels, kindFrom }: Said): Pick<TracedWork, 'kind'> {
  if (kind !== undefined) return { kind: { name: kind, labels: kindLabels ?? {}, isBroughtByHub: kindFrom === 'hub' } };
  if (kindLabels || kindFrom)
    throw traceProblem(where, `workload ${name}: kindLabels and kindFrom are about a kind, and the line names none`);
  return {};
}

const defined = <T extends object>(one: T) =>
  Object.fromEntries(Object.entries(one).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]: NonNullable<T[K]>;
  };

function lifeOf(where: string, life: string | number): number {
  const seconds = typeof life === 'number' || /^\d+(\.\d+)?$/.test(life) ? Number(life) : undefined;
  const ms = seconds === undefined ? parseDuration(String(life)) : seconds * 1000;
  if (ms === undefined || !(ms > 0 && ms < 3e12))
    throw traceProblem(where, `"${life}" is no life`, 'Write a duration (90s, 1h30m) or a number of seconds.');
  return Math.round(ms);
}
