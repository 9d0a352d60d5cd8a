import { access } from 'node:fs/promises';
import { errorText } from '../../api/errors.ts';
import { InTurn } from '../../kube/in-turn.ts';
import type { Log } from '../../kube/log.ts';
import { run } from '../host/command.ts';
import { listenByBoth } from '../host/listeners.ts';
import { enterNetwork, type NetworkNames, namespaceFile, SEED_LINK } from '../host/network.ts';
import { egressRange } from '../host/ranges.ts';
import { SYSTEM_PATH } from '../processes/child-environment.ts';
import type { ProcessSpec, Supervisor } from '../processes/supervisor.ts';
import type { GardenState, StateDirectory } from '../state/state.ts';
import { findOnPath } from '../toolchain/path-source.ts';
import type { Toolchain } from '../toolchain/toolchain.ts';
import { DNSRelay } from './dns-relay.ts';
import { type EgressPolicy, type EgressStatus, readPolicy } from './policy.ts';
import { resolversOf } from './resolvers.ts';
import { hostAddresses, routeCommands, routeExceptions } from './routes.ts';

const TOOL = 'slirp4netns';
const PROCESS = 'egress';
/** Outbound interface in the seed's namespace. */
const INTERFACE = 'egress';
const TUNNEL_DEVICE = '/dev/net/tun';
const DNS_PORT = 53;
/** Interval of checks for a changed policy or host address. */
const LOOK_MS = 2_000;
/** Retry after a failure, or after a missing program may have been installed. */
const AGAIN_MS = 30_000;
const READY_MS = 10_000;
/** Environment variable: path of another resolv.conf of this machine. */
const RESOLVERS = 'COPPICE_RESOLV_CONF';

interface GardenOfEgress {
  readonly directory: StateDirectory;
  readonly state: Pick<GardenState, 'ranges'>;
  readonly supervisor: Supervisor;
  readonly toolchain: Pick<Toolchain, 'ensure'>;
  readonly log: Log;
  readonly names: NetworkNames;
  /** The command, in the seed's namespaces. */
  readonly iptables: readonly string[];
  readonly onStatus: (status: EgressStatus) => void;
  /** Replacements in tests for the search on this machine, and for the retry after 30 s. */
  readonly find?: typeof findOnPath;
  readonly againMs?: number;
}

/**
 * Outbound access of a garden's network namespace: slirp4netns, a process in the host's network that opens a connection
 * for each outgoing one. It adds no rule, interface or setting to the host: ending the process closes the access.
 */
export class Egress {
  readonly #garden: GardenOfEgress;
  readonly #inTurn = new InTurn();
  #timer: NodeJS.Timeout | undefined;
  #relay: DNSRelay | undefined;
  #isClosed = false;
  /** State last acted on, or retried at that time (ms). */
  #done = '';
  #againAt = Number.POSITIVE_INFINITY;
  /** Why slirp4netns is missing; undefined before it was searched. */
  #lack: string | undefined;
  #told = '';

  constructor(garden: GardenOfEgress) {
    this.#garden = garden;
  }

  /** Resolves when the policy is in force, or the problem is reported. The installation of a package is not awaited. */
  async start(): Promise<void> {
    await this.#look();
    if (!this.#isClosed) this.#timer = setInterval(() => void this.#look(), LOOK_MS);
  }

  /** Stops all further changes; running processes end with the garden's others. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearInterval(this.#timer);
    await this.#inTurn.run(async () => this.#closeRelay());
  }

  /** Acts after a change. Never rejects. */
  #look(): Promise<void> {
    return this.#inTurn.run(async () => {
      const policy = await readPolicy(this.#garden.directory.egressFile).catch((): EgressPolicy => 'none');
      const hosts = await hostAddresses().catch((error: unknown) => error as Error);
      const wanted = JSON.stringify([policy, hosts]);
      if (this.#isClosed || (wanted === this.#done && performance.now() < this.#againAt)) return;
      this.#done = wanted;
      const problem = await this.#apply(policy, hosts).catch(errorText);
      if (this.#isClosed) return;
      this.#againAt =
        problem === undefined ? Number.POSITIVE_INFINITY : performance.now() + (this.#garden.againMs ?? AGAIN_MS);
      this.#tell(policy, problem);
    });
  }

  /** Resolves to the reason why the policy is not in force. */
  async #apply(policy: EgressPolicy, hosts: readonly string[] | Error): Promise<string | undefined> {
    if (policy === 'none') await this.#shut();
    try {
      if (hosts instanceof Error) throw hosts;
      await this.#restrict(policy, hosts);
    } catch (error) {
      // Access that cannot be restricted as required is closed.
      await this.#shut();
      throw error;
    }
    return policy === 'none' ? undefined : this.#open();
  }

  #tell(policy: EgressPolicy, problem?: string): void {
    const told = JSON.stringify([policy, problem]);
    if (told === this.#told) return;
    this.#told = told;
    if (problem !== undefined) this.#garden.log.warn({ problem }, 'pods cannot reach anything outside the garden');
    this.#garden.onStatus({ policy, ...(problem !== undefined && { problem }) });
  }

  /** Sets routes and rules in the seed's namespace for the policy, before access opens. */
  async #restrict(policy: EgressPolicy, hosts: readonly string[]): Promise<void> {
    const { names, state, iptables } = this.#garden;
    const ip = ['ip', '-n', names.namespace];
    const shown = JSON.parse((await run([...ip, '-j', '-4', 'route', 'show'])) || '[]');
    const commands = routeCommands(shown, routeExceptions(policy, state.ranges, hosts), state.ranges);
    if (commands.length > 0) await run([...ip, '-batch', '-'], { input: commands.join('\n') });
    const rule = async (isWanted: boolean, table: string, ...[chain, ...words]: string[]) => {
      const change = (action: string) => run([...iptables, '-w', '-t', table, action, chain!, ...words]);
      const isThere = await change('-C').then(
        () => true,
        () => false,
      );
      if (isThere !== isWanted) await change(isWanted ? '-I' : '-D');
    };
    // New connections only; answers to this machine use the same interface.
    const begins = ['-o', SEED_LINK, '-m', 'conntrack', '--ctstate', 'NEW'];
    await rule(policy !== 'all', 'filter', 'FORWARD', ...begins, '-j', 'REJECT');
    await rule(true, 'nat', 'POSTROUTING', '-o', INTERFACE, '-j', 'MASQUERADE');
  }

  async #shut(): Promise<void> {
    this.#closeRelay();
    await this.#garden.supervisor.remove(PROCESS);
  }

  /** Resolves once access is open, or to the reason why it cannot be opened yet. */
  async #open(): Promise<string | undefined> {
    const { supervisor, find = findOnPath } = this.#garden;
    const isUp = supervisor.status().some(({ name, state }) => name === PROCESS && state === 'running');
    if (this.#relay && isUp) return undefined;
    await access(TUNNEL_DEVICE).catch(() => {
      throw new Error(`this machine has no ${TUNNEL_DEVICE}: load the kernel's module "tun"`);
    });
    const found = await find(TOOL);
    if ('reason' in found) return this.#installTool();
    await Promise.all([this.#openRelay(), supervisor.start(this.#process(found.file))]);
    return undefined;
  }

  /** Installed in the background: on a machine without a network the attempt takes long to fail. */
  #installTool(): string {
    if (this.#lack !== undefined) return this.#lack;
    void this.#garden.toolchain
      .ensure([TOOL])
      .catch((error: unknown) => {
        this.#lack = errorText(error);
      })
      .then(() => {
        this.#done = '';
        return this.#look();
      });
    this.#lack = `${TOOL} is being installed; "coppice status" shows when it is there`;
    return this.#lack;
  }

  async #openRelay(): Promise<void> {
    if (this.#relay) return;
    const { names, state } = this.#garden;
    const [tcp, udp] = await listenByBoth(enterNetwork(names), state.ranges.nodeAddress, DNS_PORT);
    this.#relay = new DNSRelay({ tcp, udp, resolvers: resolversOf(process.env[RESOLVERS] ?? '/etc/resolv.conf') });
  }

  #closeRelay(): void {
    this.#relay?.close();
    this.#relay = undefined;
  }

  #process(file: string): ProcessSpec {
    const { names, state } = this.#garden;
    const ip = ['ip', '-n', names.namespace];
    return {
      name: PROCESS,
      command: [
        // Its sandbox unmounts everything, which would affect the host's shared mounts.
        ...['unshare', '--mount', '--propagation', 'private', '--', file],
        ...['--netns-type=path', '--configure', '--mtu=1500', `--cidr=${egressRange(state.ranges).range}`],
        ...['--disable-host-loopback', '--disable-dns', '--enable-sandbox', '--enable-seccomp'],
        ...[namespaceFile(names), INTERFACE],
      ],
      env: { PATH: SYSTEM_PATH },
      ready: async () => (await run([...ip, '-4', 'route', 'show', 'default'])).includes(`dev ${INTERFACE}`),
      readyTimeoutMs: READY_MS,
    };
  }
}
