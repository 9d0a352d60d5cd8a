import { describe, expect, it } from 'vitest';
import type { EtcdMember } from '../../../operator/etcd/etcd-client.ts';
import {
  type EtcdAction,
  type EtcdObservation,
  type EtcdVolumes,
  lostMajority,
  planEtcd,
} from '../../../operator/shoot/etcd-membership.ts';

const url = (ordinal: number) => `https://10.0.0.${ordinal}:2380`;
const URLS = [0, 1, 2, 3, 4].map(url);

const member = (ordinal: number, change: Partial<EtcdMember> = {}): EtcdMember => ({
  id: `id${ordinal}`,
  name: `etcd-main-${ordinal}`,
  learner: false,
  healthy: true,
  leader: ordinal === 0,
  caughtUp: true,
  peerURLs: [url(ordinal)],
  ...change,
});

/** `volumes`: ordinals whose volume is there; `lost`: those that have another one than members voted on. All are noted unless said. */
type Testbed = Partial<Omit<EtcdObservation, 'volumes'>> & { volumes?: number[]; lost?: number[] };

const uids = (ordinals: readonly number[], lost: readonly number[] = []): EtcdVolumes =>
  Object.fromEntries(ordinals.map((ordinal) => [ordinal, lost.includes(ordinal) ? `new${ordinal}` : `uid${ordinal}`]));

const observed = ({ volumes, lost = [], ...change }: Testbed = {}): EtcdObservation => {
  const members = 'members' in change ? change.members : [member(0)];
  const there = volumes ?? [0, ...(members ?? []).flatMap(({ name, id }) => (name ? Number(id.slice(2)) : []))];
  return {
    desired: 1,
    replicas: 1,
    initialised: true,
    peerURLs: URLS.slice(0, 3),
    members: [member(0)],
    volumes: uids(there, lost),
    noted: uids([...there.filter((ordinal) => !members?.[ordinal]?.learner), ...lost]),
    inUse: [0],
    ...change,
  };
};

describe('planEtcd', () => {
  const three = [member(0), member(1), member(2)];
  const learner = member(1, { learner: true });
  const dead = (ordinal: number) => member(ordinal, { healthy: false });
  const wide = { desired: 3, replicas: 3, members: three };
  it.each<[string, Testbed, string]>([
    ['nothing there yet', { replicas: 0, initialised: false, members: undefined, desired: 3 }, 'scale 3'],
    ['waking up', { replicas: 0, members: undefined, desired: 3 }, 'scale 3'],
    ['starting', { initialised: false, members: undefined }, 'wait: etcd does not answer yet'],
    [
      'some of the first have not started',
      { initialised: false, members: [member(0), member(1, { healthy: false })] },
      'wait: etcd member 1 is starting',
    ],
    ['the first have formed a cluster', { initialised: false }, 'mark-initialised'],
    ['as wanted', {}, 'done'],
    ['three as wanted', { desired: 3, replicas: 3, members: three, volumes: [0, 1, 2] }, 'done'],
    [
      'one of three is ill',
      { desired: 3, replicas: 3, members: [member(0), member(1, { healthy: false }), member(2)] },
      'wait: etcd member 1 does not answer',
    ],
    ['growing', { desired: 3 }, `add-learner 1`],
    ['growing with old data about', { desired: 3, volumes: [0, 1] }, 'delete-volume 1'],
    [
      'growing while ill',
      { desired: 3, members: [member(0, { healthy: false })] },
      'wait: etcd member 0 must answer before another one joins',
    ],
    [
      'a learner without a pod',
      { desired: 3, members: [member(0), member(1, { learner: true, name: '', healthy: false })] },
      'scale 2',
    ],
    [
      'a learner that starts',
      { desired: 3, replicas: 2, members: [member(0), member(1, { learner: true, name: '', healthy: false })] },
      'wait: etcd member 1 is starting as a learner',
    ],
    [
      'a learner that lags',
      { desired: 3, replicas: 2, members: [member(0), { ...learner, caughtUp: false }] },
      'wait: etcd member 1 is still copying the data',
    ],
    ['a learner that is ready', { desired: 3, replicas: 2, members: [member(0), learner] }, 'promote 1'],
    ['a pod whose member has left', { desired: 3, replicas: 2, volumes: [0, 1] }, 'scale 1'],
    [
      'a gap: whoever is above it goes as well, and both join anew',
      { desired: 3, replicas: 3, members: [member(0), member(2)] },
      'remove-member 2',
    ],
    [
      'a gap, while API servers talk to who is above it',
      { desired: 3, replicas: 3, members: [member(0), member(2)], inUse: [0, 2] },
      'wait: API servers still talk to etcd member 2',
    ],
    [
      'shrinking while in use',
      { replicas: 3, members: three, inUse: [0, 1, 2] },
      'wait: API servers still talk to etcd member 2',
    ],
    [
      'shrinking under a leader that goes',
      { replicas: 3, members: [member(0, { leader: false }), member(1, { leader: true }), member(2)] },
      'transfer-leadership id1 id0',
    ],
    [
      'shrinking without a leader',
      { replicas: 3, members: three.map((item) => ({ ...item, leader: false })) },
      'wait: etcd is electing a leader',
    ],
    ['shrinking', { replicas: 3, members: three }, 'remove-member 2'],
    ['shrinking on', { replicas: 3, members: three.slice(0, 2) }, 'remove-member 1'],
    [
      'shrinking with one ill that goes',
      { replicas: 3, members: [member(0), member(1), member(2, { healthy: false })] },
      'remove-member 2',
    ],
    [
      'shrinking with one ill that goes, but not as the last: it goes first',
      { replicas: 3, members: [member(0), member(1, { healthy: false }), member(2)] },
      'remove-member 1',
    ],
    ['shrinking with a dead one gone', { replicas: 3, members: [member(0), member(2)] }, 'remove-member 2'],
    [
      'shrinking would lose the majority',
      { replicas: 3, members: [member(0), member(1, { healthy: false }), member(2, { healthy: false })] },
      'wait: without etcd member 2 too few of the others would answer',
    ],
    ['shrinking with a learner half added', { replicas: 1, members: [member(0), learner] }, 'remove-member 1'],
    [
      'one whose volume is another',
      { ...wide, members: [member(0), dead(1), member(2)], lost: [1] },
      'remove-member 1',
    ],
    [
      'one that has no volume any more',
      { ...wide, members: [member(0), dead(1), member(2)], volumes: [0, 2], noted: uids([0, 1, 2]) },
      'remove-member 1',
    ],
    [
      'one that led, and whose volume is another',
      {
        ...wide,
        members: [member(0, { healthy: false, leader: false }), member(1, { leader: true }), member(2)],
        lost: [0],
      },
      'remove-member 0',
    ],
    [
      'one whose volume is another, while one more does not answer: nothing is removed',
      { ...wide, members: [member(0), dead(1), dead(2)], lost: [1] },
      'wait: etcd waits for more etcd members to answer: without member 1 too few would',
    ],
    [
      'one that is ill on its own volume stays',
      { ...wide, members: [member(0), dead(1), member(2)] },
      'wait: etcd member 1 does not answer',
    ],
    [
      'one that was let go with its volume joins anew, and nobody above it goes',
      { ...wide, members: [member(0), member(2)], volumes: [0, 1, 2], lost: [1] },
      'add-learner 1',
    ],
    [
      'the same, learning',
      { ...wide, members: [member(0), member(2), learner], volumes: [0, 1, 2], noted: uids([0, 2]) },
      'promote 1',
    ],
    [
      'a volume that a person has moved with its data: its member answers, and stays',
      { ...wide, lost: [1] },
      'note-volumes 0,1,2',
    ],
    ['of before volumes were noted', { ...wide, noted: {} }, 'note-volumes 0,1,2'],
    [
      'of before volumes were noted, one ill: nobody knows whether it has its data',
      { ...wide, members: [member(0), dead(1), member(2)], noted: {} },
      'note-volumes 0,2',
    ],
    [
      'shrinking to one whose volume is another: it comes back first',
      {
        replicas: 3,
        members: [member(0, { healthy: false, leader: false }), member(1, { leader: true }), member(2)],
        lost: [0],
      },
      'remove-member 0',
    ],
    [
      'the same, let go',
      { replicas: 3, members: [member(1, { leader: true }), member(2)], volumes: [0, 1, 2], lost: [0] },
      'add-learner 0',
    ],
    ['members gone, pods not', { replicas: 3 }, 'scale 1'],
    ['pods gone, volumes not', { volumes: [0, 1, 2] }, 'delete-volume 2'],
    [
      'a stranger',
      { members: [member(0), member(1, { peerURLs: ['https://elsewhere:2380'] })] },
      'blocked: etcd has member etcd-main-1 at https://elsewhere:2380, which Coppice did not add: remove it with etcdctl',
    ],
  ])('%s', (_, change, expected) => expect(line(planEtcd(observed(change)))).toBe(expected));

  it('makes API servers use the voters that stay', () => {
    expect(planEtcd(observed({ desired: 3, replicas: 2, members: [member(0), learner] })).endpoints).toEqual([0]);
    expect(planEtcd(observed({ replicas: 3, members: three, inUse: [0, 1, 2] })).endpoints).toEqual([0]);
    expect(planEtcd(observed({ desired: 3, replicas: 3, members: three })).endpoints).toEqual([0, 1, 2]);
    // Or they would go on talking to the one that must leave before the other can join anew.
    const gap = planEtcd(observed({ desired: 3, replicas: 3, members: [member(0), member(2)] }));
    expect(gap).toMatchObject({ endpoints: [0], target: 1 });
  });
});

it.each<[string, Testbed, number[], string | undefined]>([
  ['all there', { volumes: [0, 1, 2] }, [], undefined],
  ['one of three lost', { volumes: [0, 1, 2], lost: [1] }, [], undefined],
  [
    'two of three lost',
    { volumes: [0, 1, 2], lost: [1, 2] },
    [],
    'the volumes of 2 of 3 etcd members are lost (1, 2): those left are no majority, and none of them is removed',
  ],
  [
    'two of three lost, of which one was brought back from a backup',
    { volumes: [0, 1, 2], lost: [1, 2] },
    [2],
    undefined,
  ],
  [
    'the only one lost',
    { replicas: 1, volumes: [0], lost: [0] },
    [],
    'the volume of the only etcd member is lost, and the state of the cluster with it',
  ],
  ['volumes of members that have left', { replicas: 1, volumes: [0], noted: uids([0, 1, 2]) }, [], undefined],
  ['of before volumes were noted', { volumes: [0, 1, 2], noted: {} }, [], undefined],
])('a majority that is lost: %s', (_, testbed, ready, expected) =>
  expect(lostMajority(observed({ replicas: 3, ...testbed }), ready)).toBe(expected),
);

const UP = ['add-learner 1', 'scale 2', 'promote 1', 'add-learner 2', 'scale 3', 'promote 2'];
const DOWN = [
  'transfer-leadership id2 id0',
  'remove-member 2',
  'remove-member 1',
  'scale 1',
  'delete-volume 2',
  'delete-volume 1',
];

describe('a change of the number of members, step by step,', () => {
  it('goes from none to one, to three, to one', () => {
    const simulation = new Simulation();
    expect(simulation.converge(1)).toEqual(['scale 1', 'mark-initialised']);
    expect(simulation.converge(3)).toEqual(UP);
    simulation.lead(2);
    expect(simulation.converge(1)).toEqual(DOWN);
    expect(simulation.converge(3)).toEqual(UP);
  });

  it('starts three at once', () => {
    const simulation = new Simulation();
    expect(simulation.converge(3)).toEqual(['scale 3', 'mark-initialised']);
  });

  it('goes from three to one with any leaving member dead, and to three again from any interruption', () => {
    for (const dead of [1, 2]) {
      for (let down = 0; down <= 6; down++) {
        const simulation = new Simulation();
        simulation.converge(3);
        simulation.kill(dead);
        const steps = simulation.converge(1, down);
        if (down > 0) expect(steps[0]).toBe(`remove-member ${dead}`);
        if (down === 0) continue;
        simulation.converge(3);
        expect(simulation.summary(), `member ${dead} dead, ${down} steps down, up again`).toBe(
          'members 0,1,2 pods 3 volumes 0,1,2',
        );
      }
    }
  });

  it('restores a member with a lost volume as a new one from any interruption, and no other leaves', () => {
    for (const lost of [0, 1, 2]) {
      const simulation = new Simulation();
      simulation.converge(3);
      simulation.loseVolume(lost);
      const steps = simulation.converge(3);
      expect(steps).toEqual([`remove-member ${lost}`, `add-learner ${lost}`, `promote ${lost}`]);
      for (let stop = 1; stop < steps.length; stop++) {
        for (const size of [1, 3]) {
          const stopped = new Simulation();
          stopped.converge(3);
          stopped.loseVolume(lost);
          stopped.converge(3, stop);
          stopped.converge(size);
          stopped.converge(3);
          expect(stopped.summary(), `member ${lost}, stopped after ${stop}, then ${size}`).toBe(
            'members 0,1,2 pods 3 volumes 0,1,2',
          );
        }
      }
    }
  });

  it('removes no member when two of three lost their volumes', () => {
    const simulation = new Simulation();
    simulation.converge(3);
    simulation.loseVolume(1);
    simulation.loseVolume(2);
    expect(() => simulation.converge(3)).toThrow('does not settle: ');
    expect(simulation.members).toHaveLength(3);
  });

  it('ends correctly when the desired number changes after any step', () => {
    for (let up = 0; up <= UP.length; up++) {
      for (let down = 0; down <= DOWN.length; down++) {
        const simulation = new Simulation();
        simulation.converge(1);
        simulation.converge(3, up);
        simulation.converge(1, down);
        simulation.converge(3);
        expect(simulation.summary(), `${up} steps up, ${down} down, up again`).toBe(
          'members 0,1,2 pods 3 volumes 0,1,2',
        );
        simulation.converge(1);
        expect(simulation.summary(), `${up} steps up, ${down} down, up, down`).toBe('members 0 pods 1 volumes 0');
      }
    }
  });
});

/** An etcd that does what it is told, and checks that no step could lose data. */
class Simulation {
  replicas = 0;
  initialised = false;
  members: EtcdMember[] = [];
  volumes = new Set<number>();
  noted: EtcdVolumes = {};
  /** How often a volume was made anew, by ordinal. */
  made = [0, 0, 0, 0, 0];
  inUse = [0];
  /** Ordinals whose volume holds the data of a member that was removed. */
  stale = new Set<number>();

  converge(desired: number, maximum = 50): string[] {
    const steps: string[] = [];
    for (let rounds = 0; rounds < 100; rounds++) {
      const plan = planEtcd({
        desired,
        replicas: this.replicas,
        initialised: this.initialised,
        peerURLs: URLS.slice(0, Math.max(desired, this.replicas, 3)),
        members: this.replicas === 0 ? undefined : this.members.map((item) => ({ ...item })),
        volumes: this.claims(),
        noted: this.noted,
        inUse: this.inUse,
      });
      this.inUse = plan.endpoints;
      expect(plan.blocked).toBeUndefined();
      if (!plan.action) {
        if (plan.waitFor) continue;
        return steps;
      }
      if (steps.length === maximum) return steps;
      steps.push(line(plan));
      this.act(plan.action);
    }
    throw new Error(`does not settle: ${steps.join(', ')}`);
  }

  /** Its pod is there, and nobody answers in it, until it is another member's. */
  kill(ordinal: number): void {
    this.members.find((item) => item.id === `id${ordinal}`)!.healthy = false;
  }

  claims(): EtcdVolumes {
    return Object.fromEntries([...this.volumes].sort().map((ordinal) => [ordinal, `${ordinal}.${this.made[ordinal]}`]));
  }

  /** Its pod comes again, with an empty volume, on which it does not start as who it was. */
  loseVolume(ordinal: number): void {
    this.kill(ordinal);
    this.made[ordinal]!++;
    this.stale.delete(ordinal);
    this.lead(this.members.map(({ id }) => Number(id.slice(2))).find((other) => other !== ordinal)!);
  }

  lead(ordinal: number): void {
    for (const item of this.members) item.leader = item.id === `id${ordinal}`;
  }

  summary(): string {
    const ordinals = this.members.map((item) => item.id.slice(2)).sort();
    return `members ${ordinals.join(',')} pods ${this.replicas} volumes ${[...this.volumes].sort().join(',')}`;
  }

  act(action: EtcdAction): void {
    switch (action.type) {
      case 'scale':
        this.scale(action.replicas);
        break;
      case 'mark-initialised':
        this.initialised = true;
        this.noted = action.volumes;
        break;
      case 'note-volumes':
        this.noted = action.volumes;
        break;
      case 'add-learner':
        expect(this.members.some((item) => item.learner)).toBe(false);
        expect(this.stale.has(action.ordinal)).toBe(false);
        this.noted = action.volumes;
        // Or it would be told to join nobody.
        expect(Object.keys(this.noted)).not.toContain(String(action.ordinal));
        this.members.push(member(action.ordinal, { learner: true, name: '', healthy: false, leader: false }));
        if (this.replicas > action.ordinal) Object.assign(this.members.at(-1)!, { name: 'new', healthy: true });
        break;
      case 'promote':
        this.members.find((item) => item.id === action.id)!.learner = false;
        this.noted = action.volumes;
        break;
      case 'transfer-leadership':
        this.lead(Number(action.to.slice(2)));
        break;
      case 'remove-member':
        this.members = this.members.filter((item) => item.id !== action.id);
        if (this.volumes.has(action.ordinal) && !action.lost) this.stale.add(action.ordinal);
        expect(this.members.some((item) => item.leader)).toBe(true);
        break;
      case 'delete-volume':
        expect(this.replicas).toBeLessThanOrEqual(action.ordinal);
        expect(this.members.some((item) => item.id === `id${action.ordinal}`)).toBe(false);
        this.volumes.delete(action.ordinal);
        this.made[action.ordinal]!++;
        this.stale.delete(action.ordinal);
        break;
    }
  }

  private scale(replicas: number): void {
    if (!this.initialised) this.members = URLS.slice(0, replicas).map((_, ordinal) => member(ordinal));
    for (const item of this.members) {
      const ordinal = Number(item.id.slice(2));
      expect(this.initialised && ordinal < replicas && this.stale.has(ordinal), 'starts on old data').toBe(false);
      item.healthy = ordinal < replicas;
      if (item.healthy) item.name = `etcd-main-${ordinal}`;
      expect(item.learner || item.healthy, 'a voter loses its pod').toBe(true);
    }
    for (let ordinal = 0; ordinal < replicas; ordinal++) this.volumes.add(ordinal);
    this.replicas = replicas;
  }
}

function line(plan: ReturnType<typeof planEtcd>): string {
  const { action, waitFor, blocked } = plan;
  if (blocked) return `blocked: ${waitFor}`;
  if (waitFor) return `wait: ${waitFor}`;
  if (!action) return 'done';
  switch (action.type) {
    case 'scale':
      return `scale ${action.replicas}`;
    case 'mark-initialised':
      return action.type;
    case 'note-volumes':
      return `note-volumes ${Object.keys(action.volumes).join(',')}`;
    case 'transfer-leadership':
      return `transfer-leadership ${action.from} ${action.to}`;
    default:
      return `${action.type} ${action.ordinal}`;
  }
}
