import { describe, expect, it } from 'vitest';
import type { EtcdMember } from '../../../operator/etcd/etcd-client.ts';
import { type ControlPlaneSizePlan, planControlPlaneSize } from '../../../operator/shoot/control-plane-size.ts';

type ControlPlaneSizeObservation = Parameters<typeof planControlPlaneSize>[0];

const url = (ordinal: number) => `https://10.0.0.${ordinal}:2380`;

const member = (ordinal: number, change: Partial<EtcdMember> = {}): EtcdMember => ({
  id: `id${ordinal}`,
  name: `machines-control-plane-${ordinal}`,
  learner: false,
  healthy: true,
  leader: ordinal === 0,
  caughtUp: true,
  peerURLs: [url(ordinal)],
  ...change,
});
const three = [member(0), member(1), member(2)];

/** A control plane of `asked` machines that is as it should be, but for the change. */
const observed = (asked: number, change: Partial<ControlPlaneSizeObservation> = {}): ControlPlaneSizeObservation => {
  const ordinals = Array.from({ length: asked }, (_, ordinal) => ordinal);
  return {
    desired: asked,
    asked,
    peerURLs: [0, 1, 2, 3, 4].map(url),
    members: ordinals.map((ordinal) => member(ordinal)),
    machines: ordinals,
    joined: ordinals,
    volumes: ordinals,
    lost: [],
    outdated: [],
    ready: ordinals,
    drained: [],
    closed: [],
    ...change,
  };
};

/** Machines of an old version, of which one that is made anew, or new, is away for some looks. */
class Simulation {
  members: { isNew: boolean; away: number; leads: boolean; closed: boolean; drained: boolean }[];
  replaced = 0;
  readonly #desired: number;

  constructor(desired: number) {
    this.#desired = desired;
    this.members = Array.from({ length: desired }, (_, ordinal) => ({ ...MADE, isNew: false, leads: ordinal === 0 }));
  }

  observe(): ControlPlaneSizeObservation {
    const those = (is: (one: Simulation['members'][number]) => boolean) =>
      this.members.flatMap((one, ordinal) => (is(one) ? [ordinal] : []));
    return observed(this.members.length, {
      desired: this.#desired,
      members: this.members.map(({ away, leads }, ordinal) =>
        // Its member answers before its API server does.
        member(ordinal, { healthy: away < 2, leader: leads }),
      ),
      outdated: those(({ isNew }) => !isNew),
      ready: those(({ away }) => away === 0),
      drained: those(({ drained }) => drained),
      closed: those(({ closed }) => closed),
    });
  }

  act({ action }: ControlPlaneSizePlan): void {
    for (const one of this.members) one.away = Math.max(0, one.away - 1);
    switch (action?.type) {
      case 'ask-for':
        if (action.machines > this.members.length) this.members.push({ ...MADE, away: 1 });
        break;
      case 'remove-member':
        this.members.splice(action.ordinal, 1);
        break;
      case 'transfer-leadership':
        this.members.forEach((one, ordinal) => {
          one.leads = `id${ordinal}` === action.to;
        });
        break;
      case 'drain':
        this.members[action.ordinal]!.drained = true;
        break;
      case 'close':
        this.members[action.ordinal]!.closed = true;
        break;
      case 'replace':
        this.replaced++;
        this.members[action.ordinal] = { ...MADE, away: 4 };
        break;
      default:
    }
  }

  serving = () => this.members.filter(({ away, closed }) => away === 0 && !closed);
  answering = () => this.members.filter(({ away }) => away < 2).length;
}
const MADE = { isNew: true, away: 0, leads: false, closed: false, drained: false };

const words = ({ action, waitFor, blocked }: ControlPlaneSizePlan): string => {
  if (!action) return waitFor === undefined ? 'done' : `${blocked ? 'blocked' : 'wait'}: ${waitFor}`;
  switch (action.type) {
    case 'ask-for':
      return `ask for ${action.machines}`;
    case 'transfer-leadership':
      return `leadership from ${action.from} to ${action.to}`;
    case 'remove-member':
      return `${action.type} ${action.ordinal}${action.thenAskFor === undefined ? '' : `, ask for ${action.thenAskFor}`}`;
    default:
      return `${action.type} ${action.ordinal}`;
  }
};

describe('the size of a control plane on machines', () => {
  it.each<[string, ControlPlaneSizeObservation, string]>([
    ['one as wanted', observed(1), 'done'],
    ['three as wanted', observed(3), 'done'],
    ['nobody answers', observed(3, { members: undefined }), 'wait: a majority of etcd to answer'],
    ['growing', observed(1, { desired: 3 }), 'ask for 2'],
    [
      'growing, the new machine is not there yet',
      observed(2, { desired: 3, members: [member(0)], joined: [0] }),
      'wait: machine 1 to join etcd',
    ],
    [
      'growing, the new member still copies',
      observed(2, { desired: 3, members: [member(0), member(1, { learner: true })], joined: [0] }),
      'wait: etcd member 1 to have all data',
    ],
    ['growing, kubeadm has not finished', observed(2, { desired: 3, joined: [0] }), 'wait: machine 1 to join'],
    ['growing, one has joined', observed(2, { desired: 3 }), 'ask for 3'],
    [
      'growing while a member is ill',
      observed(2, { desired: 3, members: [member(0), member(1, { healthy: false })] }),
      'wait: etcd member 1 to answer',
    ],
    ['growing over data of a member that left', observed(1, { desired: 3, volumes: [0, 1] }), 'remove-volume 1'],
    [
      'growing over a machine that still goes',
      observed(1, { desired: 3, machines: [0, 1] }),
      'wait: machine 1 to be gone',
    ],
    ['shrinking takes the last member out of etcd first', observed(3, { desired: 1 }), 'remove-member 2, ask for 2'],
    [
      'shrinking, the last one leads',
      observed(3, { desired: 1, members: [member(0, { leader: false }), member(1), member(2, { leader: true })] }),
      'leadership from id2 to id0',
    ],
    ['shrinking, then its machine goes', observed(3, { desired: 1, members: [member(0), member(1)] }), 'ask for 2'],
    [
      'shrinking, the machine is on its way out',
      observed(2, { desired: 1, machines: [0, 1, 2], volumes: [0, 1, 2] }),
      'wait: machine 2 to be gone',
    ],
    ['shrinking, then its data go', observed(2, { desired: 1, volumes: [0, 1, 2] }), 'remove-volume 2'],
    ['shrinking, the next one', observed(2, { desired: 1 }), 'remove-member 1, ask for 1'],
    ['shrinking to one that does not serve yet', observed(2, { desired: 1, ready: [1] }), 'wait: machine 0 to serve'],
    [
      'shrinking when too few of the others answer',
      observed(3, { desired: 1, members: [member(0), member(1, { healthy: false }), member(2)] }),
      'wait: more etcd members to answer: without member 2 too few would',
    ],
    [
      'a machine went before its member did',
      observed(1, { members: [member(0), member(1, { healthy: false })] }),
      'remove-member 1',
    ],
    [
      'wanted back half-way: who has left etcd goes, and comes anew',
      observed(3, { members: [member(0), member(1)] }),
      'ask for 2',
    ],
    ['a machine has lost its volume', observed(3, { lost: [1] }), 'remove-node 1'],
    [
      'the same while it is to shrink: who waits to be let go of gives no majority',
      observed(3, { desired: 1, lost: [0] }),
      'remove-node 0',
    ],
    ['it leaves etcd', observed(3, { lost: [1], joined: [0, 2] }), 'remove-member 1'],
    [
      'it may join as somebody new',
      observed(3, { lost: [1], joined: [0, 2], members: [member(0), member(2)] }),
      'forget-volume 1',
    ],
    [
      'and is waited for',
      observed(3, { members: [member(0), member(2)], joined: [0, 2] }),
      'wait: machine 1 to join etcd',
    ],
    [
      'a stranger',
      observed(1, { members: [member(0), member(1, { name: 'x', peerURLs: ['https://192.0.2.1:2380'] })] }),
      'blocked: etcd has member x at https://192.0.2.1:2380, which Coppice did not add: remove it with etcdctl',
    ],
  ])('%s', (_what, observation, expected) => {
    expect(words(planControlPlaneSize(observation))).toBe(expected);
  });

  const led = (by: number) => three.map((one, ordinal) => ({ ...one, leader: ordinal === by }));
  it.each<[string, ControlPlaneSizeObservation, string]>([
    ['pods leave it first', observed(3, { outdated: [0, 1, 2] }), 'drain 1'],
    ['then it gets no new requests', observed(3, { outdated: [0, 1, 2], drained: [1] }), 'close 1'],
    ['then it is made anew', observed(3, { outdated: [0, 1, 2], drained: [1], closed: [1] }), 'replace 1'],
    [
      'and is waited for',
      observed(3, { outdated: [0, 2], ready: [0, 2], members: [member(0), member(1, { healthy: false }), member(2)] }),
      'wait: etcd member 1 to answer',
    ],
    ['until it serves', observed(3, { outdated: [0, 2], ready: [0, 2] }), 'wait: machine 1 to serve'],
    ['the next one', observed(3, { outdated: [0, 2] }), 'drain 2'],
    ['who leads comes last', observed(3, { outdated: [0] }), 'drain 0'],
    ['and hands the leadership over', observed(3, { outdated: [0], drained: [0] }), 'leadership from id0 to id1'],
    ['to nobody else', observed(3, { outdated: [0], drained: [0], members: led(2) }), 'close 0'],
    ['all are new', observed(3), 'done'],
    [
      'none goes while another does not answer',
      observed(3, { outdated: [1], ready: [0, 1] }),
      'wait: machine 2 to serve',
    ],
    ['one that does not serve comes first', observed(3, { outdated: [1, 2], ready: [0, 1] }), 'drain 2'],
    [
      'one that is away is made anew at once',
      observed(3, { outdated: [1], members: [member(0), member(1, { healthy: false }), member(2)] }),
      'replace 1',
    ],
    [
      'but not when the others are no majority without it',
      observed(3, {
        outdated: [1],
        members: [member(0), member(1, { healthy: false }), member(2, { healthy: false })],
      }),
      'wait: etcd member 1 to answer',
    ],
    [
      'one that has yet to join could not by its own version',
      observed(2, { desired: 3, outdated: [1], members: [member(0)], joined: [0] }),
      'replace 1',
    ],
    ['one alone gets others first', observed(1, { outdated: [0] }), 'ask for 2'],
    ['two are too few', observed(2, { desired: 1, outdated: [0] }), 'ask for 3'],
    ['then it is made anew as any', observed(3, { desired: 1, outdated: [0] }), 'drain 0'],
    [
      'the others stay while it is away',
      observed(3, { desired: 1, machines: [1, 2], ready: [1, 2] }),
      'wait: machine 0 to serve',
    ],
    ['and go when it serves', observed(3, { desired: 1 }), 'remove-member 2, ask for 2'],
    ['five are made three first', observed(5, { desired: 3, outdated: [0] }), 'remove-member 4, ask for 4'],
  ])('of another version: %s', (_what, observation, expected) => {
    expect(words(planControlPlaneSize(observation))).toBe(expected);
  });

  it.each([1, 3, 5])('upgrades %i machines with one serving all the time', (desired) => {
    const simulation = new Simulation(desired);
    for (let step = 0; step < 200; step++) {
      const plan = planControlPlaneSize(simulation.observe());
      if (!plan.action && !plan.waitFor) break;
      simulation.act(plan);
      expect(simulation.serving().length).toBeGreaterThan(0);
      expect(simulation.answering() * 2).toBeGreaterThan(simulation.members.length);
    }
    expect(simulation.members.map(({ isNew }) => isNew)).toEqual(Array(desired).fill(true));
    expect(simulation.replaced).toBe(desired);
  });

  it('never loses the majority', () => {
    for (const members of [three, [member(0, { healthy: false }), member(1), member(2)]]) {
      const { action } = planControlPlaneSize(observed(3, { desired: 1, members }));
      const left = members.filter(({ id }) => action?.type !== 'remove-member' || id !== action.id);
      expect(left.filter(({ healthy }) => healthy).length).toBeGreaterThan(left.length / 2);
    }
  });
});
