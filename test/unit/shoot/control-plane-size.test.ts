import { describe, expect, it } from 'vitest';
import type { EtcdMember } from '../../../operator/etcd/etcd-client.ts';
import {
  type ControlPlaneSizeObservation,
  type ControlPlaneSizePlan,
  planControlPlaneSize,
} from '../../../operator/shoot/control-plane-size.ts';

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
    ...change,
  };
};

const words = ({ action, waitFor, blocked }: ControlPlaneSizePlan): string => {
  if (!action) return waitFor === undefined ? 'done' : `${blocked ? 'blocked' : 'wait'}: ${waitFor}`;
  switch (action.type) {
    case 'ask-for':
      return `ask for ${action.machines}`;
    case 'transfer-leadership':
      return `leadership from ${action.from} to ${action.to}`;
    default:
      return `${action.type} ${action.ordinal}`;
  }
};

describe('the size of a control plane on machines', () => {
  it.each<[string, ControlPlaneSizeObservation, string]>([
    ['one as wanted', observed(1), 'done'],
    ['three as wanted', observed(3), 'done'],
    ['nobody answers', observed(3, { members: undefined }), 'wait: etcd does not answer'],
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
    ['shrinking takes the last member out of etcd first', observed(3, { desired: 1 }), 'remove-member 2'],
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
    ['shrinking, the next one', observed(2, { desired: 1 }), 'remove-member 1'],
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
      'blocked: etcd member x at https://192.0.2.1:2380 is not ours',
    ],
  ])('%s', (_what, observation, expected) => {
    expect(words(planControlPlaneSize(observation))).toBe(expected);
  });

  it('never lets the majority go', () => {
    for (const members of [three, [member(0, { healthy: false }), member(1), member(2)]]) {
      const { action } = planControlPlaneSize(observed(3, { desired: 1, members }));
      const left = members.filter(({ id }) => action?.type !== 'remove-member' || id !== action.id);
      expect(left.filter(({ healthy }) => healthy).length).toBeGreaterThan(left.length / 2);
    }
  });
});
