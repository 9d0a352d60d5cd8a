import { choicesOf, type Draw } from '../draw.ts';
import { seeded } from '../seeded.ts';
import { podAffinity, spread } from './around-nodes.ts';
import type { FitCase } from './case.ts';
import { type Drawn, nodeAffinity, ports, resources, taints } from './on-one-node.ts';
import { traps } from './traps.ts';
import { volumes } from './with-volumes.ts';

/** How many cases there are of each family: most where home-made rules were wrong most often. */
export const FAMILIES: Record<string, { count: number; of: (choose: Draw) => Drawn }> = {
  resources: { count: 170, of: resources },
  ports: { count: 60, of: ports },
  nodeAffinity: { count: 110, of: nodeAffinity },
  taints: { count: 80, of: taints },
  podAffinity: { count: 170, of: podAffinity },
  spread: { count: 170, of: spread },
  volumes: { count: 120, of: volumes },
  traps: { count: 120, of: traps },
};

/** A number that has nothing to do with its neighbours': choices of seeds in a row would else go together. */
function scrambled(seed: number): number {
  let mixed = Math.imul(seed ^ (seed >>> 16), 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  return (mixed ^ (mixed >>> 16)) >>> 0;
}

/** Cases of a family, without end, and always the same. What the API server refuses, the recorder leaves out. */
export function* casesOf(family: string): Generator<FitCase> {
  for (let index = 0; ; index++) {
    const seed = scrambled(Object.keys(FAMILIES).indexOf(family) * 1_000_000 + index + 1);
    // The factor changes nothing but which cases these are: those that were recorded.
    const choose = choicesOf(seeded(Math.imul(seed, 2654435761)));
    yield { name: `${family}-${index}`, ...FAMILIES[family]!.of(choose) };
  }
}
