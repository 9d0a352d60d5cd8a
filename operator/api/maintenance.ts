import { z } from 'zod';
import { cronExpression, free, kubernetesVersion, list, name, PATTERNS, timeZone } from './schema.ts';

const versionRule = {
  rule: [
    "int(self.split('.')[0]) == int(oldSelf.split('.')[0])",
    "int(self.split('.')[1]) - int(oldSelf.split('.')[1]) in [0, 1]",
    "(self.split('.')[1] != oldSelf.split('.')[1] || self.split('.').size() < 3 || oldSelf.split('.').size() < 3 || int(self.split('.')[2]) >= int(oldSelf.split('.')[2]))",
  ].join(' && '),
  messageExpression:
    "'version cannot go from ' + oldSelf + ' to ' + self + ': no downgrade, and one minor version at a time'",
  message: 'no downgrade, and one minor version at a time',
};

/** Kubernetes version of a cluster: no downgrade, one minor at a time. */
export const versionSchema = (description: string) => kubernetesVersion(description, versionRule);

/** Handling of drift: changes that others make in a cloud account. */
export const driftSchema = z
  .object({
    policy: z
      .enum(['Report', 'Mend'])
      .describe(
        'What happens when others changed something in the cloud. Report: condition Drifted says so. Mend: the operator also changes it back, of a control plane on machines only what is safe. Absent: Report.',
      )
      .optional(),
  })
  .describe('Drift: changes in the account of a cloud that the operator did not make.');

/** Hibernation of a cluster. */
export const hibernationSchema = z
  .object({
    enabled: z.boolean().describe('Whether the cluster hibernates: no nodes, no control plane, data kept.').optional(),
    schedules: list(
      z
        .object({
          start: cronExpression('When it goes to sleep, as a cron expression.').optional(),
          end: cronExpression('When it wakes up, as a cron expression.').optional(),
          location: timeZone('Time zone of both, for example Europe/Berlin. Absent: UTC.').optional(),
        })
        .describe('Times at which the cluster hibernates and wakes.'),
      32,
      'When the cluster goes to sleep and wakes up by itself.',
    ).optional(),
  })
  .describe('Hibernation, at once or by schedules.');

/** Maintenance window of a cluster, and its automatic updates. */
export const maintenanceSchema = z
  .object({
    timeWindow: z
      .object({
        begin: name(11, 'Begin as HHMMSS+ZZZZ, for example 220000+0100.', PATTERNS.timeOfDay),
        end: name(11, 'End as HHMMSS+ZZZZ, for example 230000+0100.', PATTERNS.timeOfDay),
      })
      .describe('Daily window for disruptive changes.')
      .optional(),
    autoUpdate: z
      .object({
        kubernetesVersion: z.boolean().describe('Update to new patch versions of Kubernetes.').optional(),
        machineImageVersion: z.boolean().describe('Update to new versions of the machine image.').optional(),
      })
      .describe('Automatic updates.')
      .optional(),
    confineSpecUpdateRollout: z.boolean().describe('Apply changes of the spec only in the window.').optional(),
    autoRotation: free('Credentials that are rotated by themselves.').optional(),
  })
  .describe('Maintenance window and automatic updates.');
