import type { networkPolicyChains } from '../../operator/garden/network-policies/rules.ts';
import type { Pod } from '../../operator/kube/resources.ts';

type Chains = ReturnType<typeof networkPolicyChains>;

/** A pod that runs, as far as rules of the network are made from it. */
export const seenPod = (
  labels: Record<string, string>,
  namespace: string,
  address: string,
  more: { ports?: object[]; phase?: string } = {},
): Pod =>
  ({
    metadata: { name: `${namespace}-${address}`, namespace, labels },
    spec: { containers: [{ name: 'main', ports: more.ports }] },
    status: { podIP: address, phase: more.phase ?? 'Running' },
  }) as unknown as Pod;

/** The first packet of a connection. */
export interface Packet {
  from: string;
  to: string;
  port?: number;
  protocol?: string;
}
const number = (address: string) => address.split('.').reduce((sum, octet) => sum * 256 + Number(octet), 0);
const within = (address: string, cidr: string) => {
  const [base = '', bits = '32'] = cidr.split('/');
  const size = 2 ** (32 - Number(bits));
  return Math.floor(number(address) / size) === Math.floor(number(base) / size);
};

/** Whether a kernel with these rules lets it through. */
export function passes(chains: Chains, { from, to, port = 80, protocol = 'tcp' }: Packet): boolean {
  const matches = (rule: string): boolean => {
    const words = rule.split(' ');
    for (let i = 0; i < words.length; i += 2) {
      const not = words[i] === '!';
      if (not) i++;
      const value = words[i + 1]!;
      const span = value.split('-').map(number) as [number, number];
      const holds: Record<string, () => boolean> = {
        '-s': () => within(from, value),
        '-d': () => within(to, value),
        '-p': () => protocol === value,
        '-m': () => true,
        '-j': () => true,
        '--reject-with': () => true,
        '--ctstate': () => false,
        '--src-range': () => number(from) >= span[0] && number(from) <= span[1],
        '--dst-range': () => number(to) >= span[0] && number(to) <= span[1],
        '--dport': () => {
          const [first = 0, last = first] = value.split(':').map(Number);
          return port >= first && port <= last;
        },
      };
      if (holds[words[i]!]!() === not) return false;
    }
    return true;
  };
  const walk = (name: string): boolean => {
    for (const rule of chains.get(name)!) {
      if (!matches(rule)) continue;
      const target = / -j (\S+)|^-j (\S+)/.exec(rule)!.slice(1).find(Boolean)!;
      if (target === 'RETURN') return true;
      if (target === 'REJECT' || target === 'DROP' || !walk(target)) return false;
    }
    return true;
  };
  return walk('COPPICE-NETPOL');
}
