import { z } from 'zod';

const metricsServer = z
  .object({ enabled: z.boolean().describe('Whether it runs.') })
  .describe(
    'metrics-server: kubectl top, and HorizontalPodAutoscalers by cpu and memory. Condition AddonsReady says whether it serves.',
  )
  .optional();

/** What runs in a cluster only where somebody asks for it. */
export const addonsSchema = z
  .object({ metricsServer })
  .describe('What is run in the cluster beside what every cluster needs. Modes Hosted and SelfManaged.');

/** The same of a Shoot, which may have addons of Gardener that are kept and not acted on. */
export const shootAddonsSchema = z
  .looseObject({ metricsServer })
  .meta({ description: 'Addons. Of Gardener none is metricsServer.', 'x-kubernetes-preserve-unknown-fields': true });

/** Which of them are acted on. */
export const ACTED_ADDONS = { metricsServer: { enabled: true } } as const;

/** Whether metrics-server is asked for. */
export const wantsMetricsServer = ({ addons }: { addons?: z.output<typeof addonsSchema> | undefined }): boolean =>
  addons?.metricsServer?.enabled === true;
