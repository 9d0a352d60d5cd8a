import type { ActedFields } from './acted.ts';
import { ACTED_BY_SEEDS } from './seed.ts';
import { ACTED_BY_SHOOTS } from './shoot.ts';
import { ACTED_BY_MODES } from './workercluster.ts';

/**
 * Fields that the operator acts on, by kind and variant of the object. Kinds that are not listed have no inert fields.
 */
const ACTED_BY_KIND: Readonly<Record<string, Readonly<Record<string, ActedFields>>>> = {
  WorkerCluster: ACTED_BY_MODES,
  Shoot: ACTED_BY_SHOOTS,
  Seed: ACTED_BY_SEEDS,
};

/** Whether the reference page of a kind has a column for fields without effect. */
export const keepsFields = (kind: string): boolean => kind in ACTED_BY_KIND;

/** Text for people: whether, and for which objects, the operator acts on a field. @param path below spec, without [] */
export function actedOn(kind: string, path: string): string {
  const variants = Object.entries(ACTED_BY_KIND[kind] ?? {});
  const names = path.split('.');
  const [acting, keeping] = [true, false].map((is) =>
    variants.filter(([, acted]) => isActedOn(acted, names) === is).map(([name]) => name),
  ) as [string[], string[]];
  if (acting.length === 0) return 'no: stored only';
  if (keeping.length === 0) return 'yes';
  return keeping.length < acting.length ? `all but ${keeping.join(', ')}` : acting.join(', ');
}

function isActedOn(acted: ActedFields, names: readonly string[]): boolean {
  let rule: true | ActedFields | undefined = acted;
  for (const name of names) {
    if (rule === true) return true;
    rule = rule?.[name];
  }
  return rule === true || (rule !== undefined && Object.keys(rule).length > 0);
}
