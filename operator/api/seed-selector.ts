import { z } from 'zod';
import { labels, list, name, PATTERNS, text } from './schema.ts';

/** Which seeds may be used: label selector and provider types; shared by Shoot and CloudProfile. */
export const seedSelectorSchema = z
  .object({
    matchLabels: labels(64, 'Labels that the seed must have.').optional(),
    matchExpressions: list(
      z
        .object({
          key: name(317, 'Label key.', PATTERNS.labelKey),
          operator: z.enum(['In', 'NotIn', 'Exists', 'DoesNotExist']).describe('How the value is compared.'),
          values: list(text(63, 'A value.'), 64, 'Values for In and NotIn.').optional(),
        })
        .describe('One requirement.'),
      32,
      'Further requirements for the labels of the seed.',
    ).optional(),
    providerTypes: list(
      name(63, 'A provider type.'),
      32,
      'Provider types that the seed may have; "*" is any. Absent: that of the cluster.',
    ).optional(),
  })
  .describe('Which seeds may host the control plane.');
/** Which seeds may host a control plane. */
export type SeedSelector = z.output<typeof seedSelectorSchema>;
