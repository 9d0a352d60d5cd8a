import { join } from 'node:path';
import { errorText } from '../../api/errors.ts';
import type { KubeClient } from '../../kube/client.ts';
import { InTurn } from '../../kube/in-turn.ts';
import { Informer } from '../../kube/informer.ts';
import type { Log } from '../../kube/log.ts';
import type { NetworkPolicy } from '../../kube/network-policy.ts';
import { type KubeObject, NAMESPACES, NETWORKPOLICIES, PODS, type Pod } from '../../kube/resources.ts';
import { run } from '../host/command.ts';
import { POD_BRIDGE } from '../host/network.ts';
import type { Ranges } from '../host/ranges.ts';
import { chainsShown, ENTRY, networkPolicyChains, restoreInput } from './rules.ts';

/** Simultaneous changes are applied together. */
const GATHER_MS = 20;
/** Interval of checks for foreign rules before Coppice's. */
const LOOK_MS = 30_000;
const AGAIN_MS = 1_000;

interface Place {
  readonly ranges: Pick<Ranges, 'pods' | 'nodes' | 'services'>;
  /** Command prefix that enters the seed's network. */
  readonly enter: readonly string[];
  /** Folder with the iptables programs. */
  readonly programs: string;
  /** Whether the kernel has IPv6: otherwise ip6tables fails. */
  readonly hasIPv6: boolean;
  readonly log: Log;
}

/** The fields of a pod from which rules are built. */
const slim = (pod: Pod): Pod =>
  ({
    apiVersion: pod.apiVersion,
    kind: pod.kind,
    metadata: {
      name: pod.metadata.name,
      namespace: pod.metadata.namespace,
      uid: pod.metadata.uid,
      resourceVersion: pod.metadata.resourceVersion,
      labels: pod.metadata.labels,
    },
    spec: {
      hostNetwork: pod.spec.hostNetwork,
      containers: pod.spec.containers.map(({ name, ...more }) => ({
        name,
        ports: (more as { ports?: object[] }).ports,
      })),
    },
    status: { podIP: pod.status?.podIP, phase: pod.status?.phase },
  }) as Pod;

/**
 * Enforces NetworkPolicies among the pods of the embedded seed by iptables rules in its network namespace. The rules
 * stay when this process ends. Why Coppice has its own: see decision 36.
 */
export class NetworkPolicyEnforcer {
  readonly #place: Place;
  readonly #pods: Informer<Pod>;
  readonly #namespaces: Informer<KubeObject>;
  readonly #policies: Informer<NetworkPolicy>;
  readonly #inTurn = new InTurn();
  /** Rules in the kernel; undefined: unknown. */
  #held: ReadonlyMap<string, readonly string[] | undefined> | undefined;
  #gathering: NodeJS.Timeout | undefined;
  #looking: NodeJS.Timeout | undefined;
  #isClosed = false;
  #problem = '';

  constructor(client: KubeClient, place: Place) {
    this.#place = place;
    const { log } = place;
    this.#pods = new Informer(client, PODS, { log, transform: slim });
    this.#namespaces = new Informer(client, NAMESPACES, { log });
    this.#policies = new Informer(client, NETWORKPOLICIES, { log });
    for (const informer of this.#informers) informer.onAnyChange(() => this.#soon(GATHER_MS));
  }

  get #informers(): Informer<any>[] {
    return [this.#pods, this.#namespaces, this.#policies];
  }

  start(): void {
    for (const informer of this.#informers) informer.start();
    this.#looking = setInterval(() => void this.#inTurn.run(() => this.#guarded(() => this.#lead())), LOOK_MS).unref();
  }

  async stop(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#gathering);
    clearInterval(this.#looking);
    await Promise.all(this.#informers.map((informer) => informer.stop()));
    await this.#inTurn.run(async () => {});
  }

  #soon(afterMs: number): void {
    if (this.#isClosed || this.#gathering) return;
    this.#gathering = setTimeout(() => {
      this.#gathering = undefined;
      void this.#inTurn.run(() => this.#guarded(() => this.#hold()));
    }, afterMs).unref();
  }

  async #guarded(work: () => Promise<void>): Promise<void> {
    if (this.#isClosed) return;
    try {
      await work();
      this.#problem = '';
    } catch (error) {
      if (this.#isClosed) return;
      this.#held = undefined;
      const problem = errorText(error);
      if (problem !== this.#problem)
        this.#place.log.warn({ problem }, 'NetworkPolicies cannot be enforced, tried again');
      this.#problem = problem;
      this.#soon(AGAIN_MS);
    }
  }

  /** Synchronizes the kernel's rules with the API server's objects. */
  async #hold(): Promise<void> {
    // With incomplete caches the rules would permit or refuse the wrong connections.
    if (!this.#informers.every(({ synced }) => synced)) return;
    const isFirst = this.#held === undefined;
    this.#held ??= new Map(chainsShown(await this.#iptables('-S')).map((name) => [name, undefined]));
    const wanted = networkPolicyChains(
      { pods: this.#pods.list(), namespaces: this.#namespaces.list(), policies: this.#policies.list() },
      this.#place.ranges,
    );
    const input = restoreInput(this.#held, wanted);
    if (input !== undefined) await this.#run('iptables-restore', ['-w', '--noflush'], input);
    this.#held = wanted;
    if (isFirst) await this.#lead();
  }

  /** Moves the jump to Coppice's chains before all other rules, so that no earlier rule accepts a packet. */
  async #lead(): Promise<void> {
    if (this.#held === undefined) return;
    // Packets from a pod to its own node pass through INPUT.
    for (const [chain, ...words] of [['FORWARD'], ['INPUT', '-i', POD_BRIDGE]] as const) {
      const rule = [...words, '-j', ENTRY].join(' ');
      const rules = (await this.#iptables('-S', chain)).split('\n').filter((line) => line.startsWith('-A'));
      if (rules[0] === `-A ${chain} ${rule}`) continue;
      if (rules.includes(`-A ${chain} ${rule}`)) await this.#iptables('-D', chain, ...words, '-j', ENTRY);
      await this.#iptables('-I', chain, ...words, '-j', ENTRY);
    }
    // The seed's network is IPv4, but interfaces have automatic IPv6 addresses, which would bypass policies.
    if (this.#place.hasIPv6) await this.#run('ip6tables', ['-w', '-P', 'FORWARD', 'DROP']);
  }

  #iptables(...words: string[]): Promise<string> {
    return this.#run('iptables', ['-w', ...words]);
  }

  #run(program: string, words: string[], input = ''): Promise<string> {
    const { enter, programs } = this.#place;
    return run([...enter, join(programs, program), ...words], { input });
  }
}
