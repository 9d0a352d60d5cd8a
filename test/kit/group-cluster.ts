import { expect } from 'vitest';
import { bringGroupToSize } from '../../operator/controllers/shoot/self-hosted/self-hosted-group-size.ts';
import { JOINED_LABEL } from '../../operator/controllers/shoot/self-hosted/self-hosted-status.ts';
import type { EtcdMember } from '../../operator/etcd/etcd-client.ts';
import type { Node } from '../../operator/kube/resources.ts';
import { votersIn } from '../../operator/shoot/control-plane-group.ts';
import type { ControlPlaneGroupSeen, Machine } from '../../providers/contract.ts';

/** The Kubernetes version that user data have a machine install. */
export const versionTold = (userData: string): string => /KUBERNETES='?([\d.]+)/.exec(userData)![1]!;

/** The machines of a control plane in a cloud, and who makes them. */
export interface GroupPlace {
  now(): Date;
  /** Of Kubernetes, that is wanted now. */
  version(): string;
  /** The one that machines to come are told to install. */
  installs(): string;
  observe(): Promise<ControlPlaneGroupSeen>;
  /** The machines that there are, whoever has noticed. */
  machines(): Promise<readonly Pick<Machine, 'nodeName' | 'phase'>[]>;
  tell(machines: number): Promise<void>;
  end(machines: string[]): Promise<void>;
}

/** etcd and nodes of machines that join as soon as they are there; who is lost answers no more, and who has left does not come back. */
export class GroupCluster {
  members: EtcdMember[] = [];
  nodes: string[] = [];
  noted: readonly string[] = [];
  /** Nodes that pods have left, in this order. */
  drained: string[] = [];
  /** Nodes that pods may come to in the end, though they once left them. */
  letIn: string[] = [];
  /** How many voters etcd had at the fewest and at the most since it was last brought to its size. */
  voters = { fewest: 0, most: 0 };
  /** When certificates end, as members show them at this look. */
  shows: (name: string, look: number) => Date | undefined = () => undefined;
  readonly #place: GroupPlace;
  /** Versions of those that have joined, by their names. */
  readonly #joined = new Map<string, string>();

  constructor(place: GroupPlace) {
    this.#place = place;
  }

  async #alive(): Promise<string[]> {
    const machines = await this.#place.machines();
    return machines.filter(({ phase }) => phase === 'Running').map(({ nodeName }) => nodeName);
  }

  async follow(): Promise<void> {
    const there = (await this.#place.machines()).map(({ nodeName }) => nodeName);
    const alive = await this.#alive();
    const coming = there.filter((name) => !this.#joined.has(name));
    // kubeadm brings in one after the other: two at once could leave etcd without a majority.
    expect(coming.length).toBeLessThanOrEqual(1);
    for (const name of coming) {
      this.#joined.set(name, this.#place.installs());
      const member = { id: `id-${name}`, name, learner: false, healthy: true, caughtUp: true, peerURLs: [] };
      this.members.push({ ...member, leader: this.members.length === 0 });
      this.nodes.push(name);
    }
    for (const one of this.members) one.healthy = alive.includes(one.name);
    if (this.members.some(({ leader, healthy }) => leader && healthy)) return;
    for (const one of this.members) one.leader = false;
    const heir = this.members.find(({ healthy }) => healthy);
    if (heir) heir.leader = true;
  }

  /** The Kubernetes version that a machine installed when it came. */
  versionOf = (name: string): string => this.#joined.get(name)!;

  /** The operator's own steps, until nothing is left to do. */
  async settle(desired: number): Promise<void> {
    const place = this.#place;
    let [turns, looks] = [0, 0];
    this.voters = { fewest: this.members.length, most: this.members.length };
    const count = () => {
      const { length } = votersIn(this.members);
      this.voters = { fewest: Math.min(this.voters.fewest, length), most: Math.max(this.voters.most, length) };
    };
    const etcd = {
      observe: async () => {
        looks++;
        return this.members.map((one) => {
          const certificateEnds = this.shows(one.name, looks);
          return { ...one, ...(certificateEnds && { certificateEnds }) };
        });
      },
      remove: async (id: string) => {
        this.members = this.members.filter((one) => one.id !== id);
        count();
      },
      transferLeadership: async (_from: string, to: string) => {
        for (const one of this.members) one.leader = one.id === to;
      },
    };
    let alive = await this.#alive();
    await bringGroupToSize(
      {
        desired,
        version: place.version(),
        now: () => place.now(),
        observe: () => place.observe(),
        nodes: () => this.nodes.map((name) => nodeOf(name, this.versionOf(name), alive.includes(name))),
        etcd: async () => etcd,
        noted: () => this.noted,
        note: async (voters) => {
          this.noted = voters;
        },
        tell: async (machines, there, joined) => {
          // Whoever is to join needs a token and keys, though nodes of machines that have gone look as if all had joined.
          expect([there, joined]).toEqual([alive.length, alive.filter((name) => this.#joined.has(name)).length]);
          await place.tell(machines);
        },
        drain: async ({ nodeName }) => void this.drained.push(nodeName),
        letIn: async (machines) => {
          this.letIn = machines.map(({ nodeName }) => nodeName);
        },
        follow: () => {},
        end: (machines) => place.end(machines),
        removeNode: async (name) => {
          this.nodes = this.nodes.filter((one) => one !== name);
        },
        say: () => {},
        sleep: async () => {
          if (++turns > 60) throw new Error('it never ends');
          await this.follow();
          count();
          alive = await this.#alive();
        },
      },
      new AbortController().signal,
    );
    expect([...this.nodes].sort(), 'nodes without a machine').toEqual(votersIn(this.members));
  }
}

const nodeOf = (name: string, version: string, isThere: boolean): Node => ({
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name, labels: { [JOINED_LABEL]: '' } },
  spec: {},
  status: {
    conditions: [{ type: 'Ready', status: isThere ? 'True' : 'Unknown' }],
    nodeInfo: { kubeletVersion: `v${version}` },
  },
});
