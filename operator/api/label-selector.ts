import { z } from 'zod';
import { LIMITS, labels, list, name, PATTERNS, text } from './schema.ts';

/** Kubernetes' label selector. */
export interface LabelSelector {
  readonly matchLabels?: Readonly<Record<string, string>> | undefined;
  readonly matchExpressions?: readonly LabelRequirement[] | undefined;
}

interface LabelRequirement {
  readonly key: string;
  readonly operator: string;
  readonly values?: readonly string[] | undefined;
}

export const labelSelectorSchema = (description: string) =>
  z
    .object({
      matchLabels: labels(64, 'Labels with required values.').optional(),
      matchExpressions: list(
        z
          .object({
            key: name(317, 'Key of the label.', PATTERNS.labelKey),
            operator: z.enum(['In', 'NotIn', 'Exists', 'DoesNotExist']).describe('Requirements that labels must meet.'),
            values: list(text(LIMITS.label, 'A value.'), 64, 'Values, for In and NotIn.').optional(),
          })
          .describe('A requirement on labels.'),
        32,
        'What else is asked of the labels; all of it must hold.',
      ).optional(),
    })
    .describe(description);

/** Whether labels match a selector: an empty selector matches all, one with an unknown operator none. Pure. */
export function matchesLabels(labels: Readonly<Record<string, string>>, selector: LabelSelector): boolean {
  // Own properties only: `constructor` is a valid label key.
  const labelAt = (key: string) => (Object.hasOwn(labels, key) ? labels[key] : undefined);
  return (
    Object.entries(selector.matchLabels ?? {}).every(([key, value]) => labelAt(key) === value) &&
    (selector.matchExpressions ?? []).every((requirement) => meets(labelAt(requirement.key), requirement))
  );
}

function meets(value: string | undefined, { operator, values = [] }: LabelRequirement): boolean {
  switch (operator) {
    case 'In':
      return value !== undefined && values.includes(value);
    case 'NotIn':
      return value === undefined || !values.includes(value);
    case 'Exists':
      return value !== undefined;
    case 'DoesNotExist':
      return value === undefined;
    default:
      return false;
  }
}
