import { type Draw, draw } from '../draw.ts';
import { podAffinity, spread } from './around-nodes.ts';
import type { FitCase } from './case.ts';
import { type Drawn, nodeAffinity, ports, resources, taints } from './on-one-node.ts';
import { volumes } from './with-volumes.ts';

/** How many cases there are of each family: most where home-made rules were wrong most often. */
export const FAMILIES: Record<string, { count: number; of: (choose: Draw) => Drawn }> = {
  resources: { count: 180, of: resources },
  ports: { count: 70, of: ports },
  nodeAffinity: { count: 130, of: nodeAffinity },
  taints: { count: 100, of: taints },
  podAffinity: { count: 190, of: podAffinity },
  spread: { count: 190, of: spread },
  volumes: { count: 140, of: volumes },
};

/** Cases of a family, without end, and always the same. What the API server refuses, the recorder leaves out. */
export function* casesOf(family: string): Generator<FitCase> {
  for (let index = 0; ; index++) {
    const choose = draw(Object.keys(FAMILIES).indexOf(family) * 1_000_000 + index + 1);
    yield { name: `${family}-${index}`, ...FAMILIES[family]!.of(choose) };
  }
}
