import type { ActedFields } from './acted.ts';
import { ACTED_BY_SEEDS } from './seed.ts';
import { ACTED_BY_SHOOTS } from './shoot.ts';
import { ACTED_BY_MODES } from './workercluster.ts';

/** Of kinds that keep fields without effect: what is acted on, by what the object is. Of other kinds every field is. */
const ACTED_BY_KIND: Readonly<Record<string, Readonly<Record<string, ActedFields>>>> = {
  WorkerCluster: ACTED_BY_MODES,
  Shoot: ACTED_BY_SHOOTS,
  Seed: ACTED_BY_SEEDS,
};

/** Whether the reference page of a kind says for each field whether it is acted on. */
export const keepsFields = (kind: string): boolean => kind in ACTED_BY_KIND;

/** Whether, and for what objects, the operator acts on a field: for people. @param path below spec, without [] */
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
