/** Each takes a minute or more, so a run has a third of them. */
const OF = 3;
const TURNS = {
  'Argo CD': 0,
  'Open Cluster Management': 0,
  Clusternet: 1,
  Karmada: 1,
  Flux: 2,
  'Karmada, pull': 2,
  Kueue: 2,
} as const;

/** In which runs the tests of a hub have their turn, for `rotates`. */
export const turnOf = (hub: keyof typeof TURNS) => ({ of: OF, turns: [TURNS[hub]] });
