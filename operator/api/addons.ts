import { z } from 'zod';

const metricsServer = z
  .object({ enabled: z.boolean().describe('Whether the addon runs.') })
  .describe(
    'metrics-server: kubectl top, and HorizontalPodAutoscalers by cpu and memory. Condition AddonsReady says whether it serves.',
  )
  .optional();

/** Addons of a cluster, each off by default. */
export const addonsSchema = z
  .object({ metricsServer })
  .describe('Optional components of the cluster. Modes Hosted and SelfManaged.');

/** Addons of a Shoot. Gardener's further addons are kept and have no effect. */
export const shootAddonsSchema = z
  .looseObject({ metricsServer })
  .meta({ description: 'Addons. Of Gardener none is metricsServer.', 'x-kubernetes-preserve-unknown-fields': true });

/** Addons that the operator acts on. */
export const ACTED_ADDONS = { metricsServer: { enabled: true } } as const;

/** Whether metrics-server is enabled. */
export const wantsMetricsServer = ({ addons }: { addons?: z.output<typeof addonsSchema> | undefined }): boolean =>
  addons?.metricsServer?.enabled === true;
