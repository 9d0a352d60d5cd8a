import type { Seed } from '../api/seed.ts';
import { FILTERS, type PlacementInput, READY_FILTER } from './filters.ts';
import { SCORES } from './scores.ts';

/** Result of one filter. */
interface PlacementStep {
  filter: string;
  /** Seeds left after the filter. */
  left: number;
  dropped: { seed: string; why: string }[];
}

/**
 * The chosen seed with the reason, or all reasons why there is none. `steps` lists filters that dropped seeds,
 * `unready` seeds that could host the shoot if they were Ready.
 */
type Placement =
  | { seed: string; why: string; steps: PlacementStep[] }
  | { seed?: undefined; reasons: string[]; unready: readonly Seed[]; steps: PlacementStep[] };

/** Chooses the seed for a shoot's control plane. Pure: equal inputs give equal results. */
export function placeShoot(input: PlacementInput): Placement {
  if (input.seeds.length === 0) {
    return { reasons: ['there is no Seed: register one, or start an embedded garden'], unready: [], steps: [] };
  }
  const steps: PlacementStep[] = [];
  let left: readonly Seed[] = input.seeds;
  let unready: readonly Seed[] = [];
  for (const filter of FILTERS) {
    const dropped: PlacementStep['dropped'] = [];
    if (filter.name === READY_FILTER) unready = left;
    left = left.filter((seed) => {
      const why = filter.against(seed, input);
      if (why !== undefined) dropped.push({ seed: seed.metadata.name, why });
      return why === undefined;
    });
    if (dropped.length > 0) steps.push({ filter: filter.name, left: left.length, dropped });
  }
  if (left.length === 0) return { reasons: reasons(input, steps), unready, steps };

  const ranked = left.map((seed) => ({ seed, scores: SCORES.map((score) => score.of(seed, input)) }));
  ranked.sort((a, b) => compare(a.scores, b.scores) || compareNames(a.seed, b.seed));
  const [best, next] = ranked;
  const name = best!.seed.metadata.name;
  const decided = next
    ? SCORES[best!.scores.findIndex((score, index) => score !== next.scores[index])]?.name
    : undefined;
  const others = input.seeds.length - left.length;
  return {
    seed: name,
    why: [
      next
        ? `${name} is the best of ${left.length} seeds (${decided ? `by ${decided}` : 'by name, all else being equal'})`
        : `${name} is the only seed that can host it`,
      others > 0 ? `, ${others} of ${input.seeds.length} cannot` : '',
    ].join(''),
    steps,
  };
}

const compare = (a: readonly number[], b: readonly number[]): number =>
  a.map((score, index) => score - b[index]!).find((difference) => difference !== 0) ?? 0;

const compareNames = (a: Seed, b: Seed): number => (a.metadata.name < b.metadata.name ? -1 : 1);

// A fleet has hundreds of seeds: each filter gets one line with a few names.
const NAMED = 3;

function reasons({ seeds, shoot }: PlacementInput, steps: PlacementStep[]): string[] {
  if (shoot.spec.seedName !== undefined && !seeds.some((seed) => seed.metadata.name === shoot.spec.seedName)) {
    return [`there is no Seed ${shoot.spec.seedName}, which spec.seedName names`];
  }
  return steps
    .filter((step) => !(step.filter === 'seedName' && shoot.spec.seedName !== undefined))
    .map(({ filter, dropped }) => {
      const named = dropped.slice(0, NAMED).map(({ seed, why }) => `${seed} ${why}`);
      const more = dropped.length > NAMED ? `, and ${dropped.length - NAMED} more` : '';
      return `${dropped.length} of ${seeds.length} by ${filter}: ${named.join('; ')}${more}`;
    });
}
