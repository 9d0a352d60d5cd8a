import { run } from '../../../operator/garden/host/command.ts';
import { ignoringAbsent } from './absent.ts';
import { METADATA, type Surroundings } from './surroundings.ts';

/** Addresses of the network that machines are in; the range is the one that machines have where nobody names one. */
export const VPC = {
  range: '10.250.0.0/16',
  bits: 16,
  gateway: '10.250.0.1',
  /** As at AWS: the network's own address and two. */
  /** All servers of the internet that a machine asks. */
  internet: '203.0.113.80',
} as const;

/** Range of the link between the network and the seed: of those for tests of network devices (RFC 2544). */
const UPLINK = { seed: '198.18.0.1', vpc: '198.18.0.2', bits: 30 } as const;
const BRIDGE = 'subnet';

/**
 * A private network as the clouds' programs make it: machines reach the seed and the internet by NAT, and nobody reaches a machine from
 * outside. It is a network namespace with a bridge, tied to the seed's namespace by a link of its own.
 */
export class VPCNetwork {
  readonly namespace: string;
  readonly surroundings: Surroundings;
  readonly #seed: string;

  /** @param tag short, since the kernel's names of links have 15 characters; @param seed network namespace of the garden's seed */
  constructor(tag: string, seed: string, surroundings: Surroundings) {
    this.namespace = `vpc-${tag}`;
    this.#seed = seed;
    this.surroundings = surroundings;
  }

  /** Removes what an earlier one of this name has left, and makes it. */
  async open(): Promise<void> {
    await this.close();
    const { namespace, surroundings } = this;
    const own = new Set([surroundings.resolver, METADATA]);
    await run(['ip', 'netns', 'add', namespace]);
    await run([
      'ip',
      '-n',
      namespace,
      'link',
      'add',
      'uplink',
      'type',
      'veth',
      'peer',
      'name',
      namespace,
      'netns',
      this.#seed,
    ]);
    await run(['ip', '-n', this.#seed, '-batch', '-'], {
      input: [`address add ${UPLINK.seed}/${UPLINK.bits} dev ${namespace}`, `link set ${namespace} up`].join('\n'),
    });
    await run(['ip', '-n', namespace, '-batch', '-'], {
      input: [
        'link set lo up',
        `address add ${VPC.internet}/32 dev lo`,
        `address add ${UPLINK.vpc}/${UPLINK.bits} dev uplink`,
        'link set uplink up',
        `route add default via ${UPLINK.seed}`,
        `link add ${BRIDGE} mtu ${surroundings.mtu} type bridge`,
        `address add ${VPC.gateway}/${VPC.bits} dev ${BRIDGE}`,
        ...[...own].map((address) => `address add ${address}/32 dev ${BRIDGE}`),
        `link set ${BRIDGE} up`,
      ].join('\n'),
    });
    await run([...this.enter, '/bin/sh', '-eu', '-s'], {
      input: [
        'echo 1 >/proc/sys/net/ipv4/ip_forward',
        // Who goes by the gateway to others on the link is to go on doing so.
        `for link in all ${BRIDGE}; do echo 0 >/proc/sys/net/ipv4/conf/$link/send_redirects; done`,
        'iptables -w -t nat -A POSTROUTING -o uplink -j MASQUERADE',
        ...['INPUT', 'FORWARD'].map(
          (chain) => `iptables -w -A ${chain} -i uplink -m conntrack ! --ctstate ESTABLISHED,RELATED -j DROP`,
        ),
      ].join('\n'),
    });
  }

  /** Where the network is reached from outside, for whatever in it is open to the world. */
  readonly outside = UPLINK.vpc;

  /** Lets the world at a port of that address. */
  async admit(port: number): Promise<void> {
    const rule = ['-i', 'uplink', '-d', UPLINK.vpc, '-p', 'tcp', '--dport', `${port}`, '-j', 'ACCEPT'];
    await run([...this.enter, 'iptables', '-w', '-I', 'INPUT', ...rule]);
  }

  /** The words before a command that is to run in the network, on neither side of its NAT. */
  get enter(): string[] {
    return ['nsenter', `--net=/run/netns/${this.namespace}`];
  }

  /** Makes a machine's network namespace with its only link, `eth0`, which has its address as if DHCP had been asked. */
  async plug(namespace: string, link: string, address: string): Promise<void> {
    const { mtu, bits } = this.surroundings;
    await run(['ip', 'netns', 'add', namespace]);
    const peer = ['peer', 'name', 'eth0', 'mtu', `${mtu}`, 'netns', namespace];
    await run(['ip', '-n', this.namespace, 'link', 'add', link, 'mtu', `${mtu}`, 'type', 'veth', ...peer]);
    await run(['ip', '-n', this.namespace, 'link', 'set', link, 'master', BRIDGE, 'up']);
    await run(['ip', '-n', namespace, '-batch', '-'], {
      input: [
        'link set lo up',
        `address add ${address}/${bits} dev eth0`,
        'link set eth0 up',
        ...(bits === 32 ? [`route add ${VPC.gateway} dev eth0 scope link`] : []),
        `route add default via ${VPC.gateway}`,
      ].join('\n'),
    });
  }

  async unplug(namespace: string, link: string): Promise<void> {
    // By itself the link goes only some time after its namespace.
    await ignoringAbsent(run(['ip', '-n', this.namespace, 'link', 'delete', link]));
    await ignoringAbsent(run(['ip', 'netns', 'delete', namespace]));
  }

  async close(): Promise<void> {
    await ignoringAbsent(run(['ip', '-n', this.#seed, 'link', 'delete', this.namespace]));
    await ignoringAbsent(run(['ip', 'netns', 'delete', this.namespace]));
  }
}
