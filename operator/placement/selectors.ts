import type { Seed } from '../api/seed.ts';
import type { SeedSelector } from '../api/seed-selector.ts';

/** Whether the labels meet matchLabels and every one of matchExpressions; a selector without either meets all. */
export function matchesLabels(labels: Record<string, string>, selector: SeedSelector): boolean {
  const wanted = Object.entries(selector.matchLabels ?? {});
  if (!wanted.every(([key, value]) => labels[key] === value)) return false;
  return (selector.matchExpressions ?? []).every((requirement) => meets(labels[requirement.key], requirement));
}

type Requirement = NonNullable<SeedSelector['matchExpressions']>[number];

function meets(value: string | undefined, { operator, values = [] }: Requirement): boolean {
  switch (operator) {
    case 'In':
      return value !== undefined && values.includes(value);
    case 'NotIn':
      return value === undefined || !values.includes(value);
    case 'Exists':
      return value !== undefined;
    case 'DoesNotExist':
      return value === undefined;
  }
}

/** Whether the provider type of the seed is one of these; "*" is any. */
export const hasProviderType = (seed: Seed, types: readonly string[]): boolean =>
  types.includes('*') || types.includes(seed.spec.provider.type);
