import { formatBytes, formatCpu, parseBytes, parseCpu } from '../../operator/api/quantity.ts';

/**
 * status.resource as a person would work it out with paper from `kubectl describe nodes`: Allocatable, less the requests under
 * "Allocated resources". Only for nodes that take pods and have no GPUs.
 */
export function resourceFromDescription(description: string) {
  const nodes = description
    .split(/^(?=Name: )/m)
    .filter((text) => text.startsWith('Name: '))
    .map((text) => {
      const allocatable = section(text, 'Allocatable');
      const allocated = section(text, 'Allocated resources');
      const prefix = Number(/^PodCIDR: +\S+\/(\d+)$/m.exec(text)?.[1]);
      // Of a range the first address is the network's, the second the gateway's, the last one the broadcast's.
      const addresses = 2 ** (32 - prefix) - 3;
      const cpu = parseCpu(field(allocatable, 'cpu'));
      const memory = parseBytes(field(allocatable, 'memory'));
      return {
        total: { cpu, memory, ipPool: addresses },
        free: {
          cpu: cpu - parseCpu(field(allocated, 'cpu')),
          memory: memory - parseBytes(field(allocated, 'memory')),
          ipPool: addresses - Number(/^Non-terminated Pods: +\((\d+) in total\)$/m.exec(text)?.[1]),
        },
      };
    });
  const sum = (numbers: number[]) => numbers.reduce((all, one) => all + one, 0);
  const written = (of: 'total' | 'free', fold: (numbers: number[]) => number) => ({
    cpu: formatCpu(fold(nodes.map((node) => node[of].cpu))),
    memory: formatBytes(fold(nodes.map((node) => node[of].memory))),
    gpu: '0',
    ipPool: String(fold(nodes.map((node) => node[of].ipPool))),
  });
  return {
    total: written('total', sum),
    available: written('free', sum),
    continuous: written('free', (numbers) => Math.max(...numbers)),
  };
}

/** The indented lines below a heading. */
const section = (text: string, heading: string): string =>
  new RegExp(`^${heading}:\\n((?: .*\\n?)+)`, 'm').exec(text)?.[1] ?? '';

function field(text: string, name: string): string {
  const found = new RegExp(`^ +${name}:? +(\\S+)`, 'm').exec(text)?.[1];
  if (!found) throw new Error(`kubectl describe says nothing of ${name} in:\n${text}`);
  return found;
}
