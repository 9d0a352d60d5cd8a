import { labelSelectorSchema } from './label-selector.ts';
import { list, name } from './schema.ts';

const DESCRIPTION = 'Which seeds may host the control plane.';

/** Selects seeds by labels and provider types; shared by Shoot and CloudProfile. */
export const seedSelectorSchema = labelSelectorSchema(DESCRIPTION)
  .extend({
    providerTypes: list(
      name(63, 'A provider type.'),
      32,
      'Provider types that the seed may have; "*" is any. Absent: that of the cluster.',
    ).optional(),
  })
  .describe(DESCRIPTION);
