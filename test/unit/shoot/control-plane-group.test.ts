import { describe, expect, it } from 'vitest';
import { upgradeProblem } from '../../../operator/controllers/kubernetes-version.ts';
import {
  machineVersionProblem,
  ofOtherVersion,
} from '../../../operator/controllers/shoot/self-hosted/control-plane-group-seen.ts';
import type { EtcdMember } from '../../../operator/etcd/etcd-client.ts';
import type { Node } from '../../../operator/kube/resources.ts';
import {
  type ControlPlaneGroupObservation,
  type ControlPlaneGroupPlan,
  planControlPlaneGroup,
  votersIn,
} from '../../../operator/shoot/control-plane-group.ts';
import { holds } from '../../kit/property.ts';

type GroupMachine = ControlPlaneGroupObservation['machines'][number];

const machine = (name: string, change: Partial<GroupMachine> = {}): GroupMachine => ({
  name,
  address: `10.0.0.${name.charCodeAt(0)}`,
  going: false,
  joined: true,
  overdue: false,
  outdated: false,
  ...change,
});
/** Machines of which some are outdated: those in capital letters, whose names are small all the same. */
const machines = (names: string, zones = ''): GroupMachine[] =>
  names
    .split('')
    .map((name, index) => machine(name.toLowerCase(), { outdated: name !== name.toLowerCase(), zone: zones[index] }));
const member = (name: string, change: Partial<EtcdMember> = {}): EtcdMember => ({
  id: `id-${name}`,
  name,
  learner: false,
  healthy: true,
  leader: name === 'a',
  caughtUp: true,
  peerURLs: [`https://10.0.0.${name.charCodeAt(0)}:2380`],
  ...change,
});

/** A control plane on these machines that is as it should be, but for the change. */
const observed = (names: string, change: Partial<ControlPlaneGroupObservation> = {}): ControlPlaneGroupObservation => ({
  desired: names.length,
  asked: names.length,
  machines: names.split('').map((name) => machine(name)),
  members: names.split('').map((name) => member(name)),
  nodes: names.split('').map((name) => ({ name, ready: true })),
  ...change,
});

const words = ({ action, waitFor, blocked }: ControlPlaneGroupPlan): string => {
  if (!action) return waitFor === undefined ? 'done' : `${blocked ? 'blocked' : 'wait'}: ${waitFor}`;
  switch (action.type) {
    case 'ask-for':
      return `ask for ${action.machines}`;
    case 'end-machines':
      return `end ${action.names.join(' ')}`;
    case 'transfer-leadership':
      return `leadership from ${action.from} to ${action.to}`;
    default:
      return `${action.type} ${action.name}`;
  }
};

describe('the machines of a control plane in a cloud', () => {
  it.each<[string, ControlPlaneGroupObservation, string]>([
    ['one as wanted', observed('a'), 'done'],
    ['three as wanted', observed('abc'), 'done'],
    ['nobody answers', observed('abc', { members: undefined }), 'wait: etcd to answer'],
    ['growing', observed('a', { desired: 3 }), 'ask for 2'],
    ['growing, the machine is to come', observed('a', { desired: 3, asked: 2 }), 'wait: 1 more machines to be made'],
    [
      'growing, it is there',
      observed('ab', { desired: 3, members: [member('a')], machines: [machine('a'), machine('b', { joined: false })] }),
      'wait: machine b to join etcd',
    ],
    [
      'growing, its member was not started yet, and has no name',
      observed('ab', {
        desired: 3,
        members: [member('a'), member('b', { name: '', learner: true, healthy: false })],
        machines: [machine('a'), machine('b', { joined: false })],
      }),
      'wait: etcd member b to have all data',
    ],
    [
      'growing, kubeadm has not finished',
      observed('ab', { desired: 3, machines: [machine('a'), machine('b', { joined: false })] }),
      'wait: machine b to join',
    ],
    ['growing, one has joined', observed('ab', { desired: 3 }), 'ask for 3'],
    [
      'it never joined',
      observed('ab', {
        desired: 3,
        members: [member('a')],
        machines: [machine('a'), machine('b', { joined: false, overdue: true })],
      }),
      'end b',
    ],
    [
      'it never joined, but its member has',
      observed('ab', {
        desired: 3,
        members: [member('a'), member('b', { learner: true, healthy: false })],
        machines: [machine('a'), machine('b', { joined: false, overdue: true })],
      }),
      'remove-member b',
    ],
    [
      'it became a voter, and kubeadm never finished',
      observed('ab', { desired: 3, machines: [machine('a'), machine('b', { joined: false, overdue: true })] }),
      'remove-member b',
    ],
    [
      'then it ends',
      observed('ab', {
        desired: 3,
        members: [member('a')],
        machines: [machine('a'), machine('b', { joined: false, overdue: true })],
      }),
      'end b',
    ],
    [
      'the only one whose kubeadm never finished stays',
      observed('a', { machines: [machine('a', { joined: false, overdue: true })] }),
      'wait: machine a to join',
    ],
    [
      'a machine is lost: it is no longer counted',
      observed('abc', { machines: [machine('a'), machine('b')] }),
      'wait: the machine of etcd member c to be seen',
    ],
    [
      'a machine is lost, and its member does not answer',
      observed('abc', {
        machines: [machine('a'), machine('b')],
        members: [member('a'), member('b'), member('c', { healthy: false })],
      }),
      'end c',
    ],
    [
      'then it leaves etcd',
      observed('abc', {
        asked: 2,
        machines: [machine('a'), machine('b')],
        members: [member('a'), member('b'), member('c', { healthy: false })],
        nodes: [{ name: 'c', ready: false }],
      }),
      'remove-member c',
    ],
    ['then its node goes', observed('ab', { desired: 3, nodes: [{ name: 'c', ready: false }] }), 'remove-node c'],
    [
      'a node that is not Ready and has its machine stays',
      observed('abc', { nodes: [{ name: 'c', ready: false }] }),
      'done',
    ],
    [
      'somebody ends a machine: its member leaves while it still answers',
      observed('abc', { asked: 2, machines: [machine('a', { going: true }), machine('b'), machine('c')] }),
      'leadership from id-a to id-b',
    ],
    [
      'a node that is Ready still, whose machine has gone, is not the end of it',
      observed('a', { nodes: [{ name: 'b', ready: true }] }),
      'wait: the API server to mark node b NotReady, since its machine is gone',
    ],
    [
      'somebody stops one of three: it ends',
      observed('abc', { machines: [machine('a'), machine('b'), machine('c', { going: true })] }),
      'end c',
    ],
    [
      'somebody stops all while etcd still answers: none ends',
      observed('abc', { machines: ['a', 'b', 'c'].map((name) => machine(name, { going: true })) }),
      'wait: more machines to be there: without a, b, c too few would stay',
    ],
    [
      'somebody stops two of three: none ends',
      observed('abc', { machines: [machine('a', { going: true }), machine('b'), machine('c', { going: true })] }),
      'wait: more machines to be there: without a, c too few would stay',
    ],
    ['shrinking, the newest leaves etcd first', observed('abc', { desired: 1 }), 'remove-member c'],
    [
      'shrinking, one that does not answer is the first to go',
      observed('abc', { desired: 1, members: [member('a'), member('b', { healthy: false }), member('c')] }),
      'remove-member b',
    ],
    ['shrinking, then its machine goes', observed('abc', { desired: 1, members: [member('a'), member('b')] }), 'end c'],
    ['shrinking, the next one', observed('ab', { desired: 1 }), 'remove-member b'],
    [
      'shrinking when too few of the others answer',
      observed('abc', {
        desired: 1,
        members: [member('a', { healthy: false }), member('b', { healthy: false, leader: true }), member('c')],
      }),
      'wait: more etcd members to answer: without member a too few would',
    ],
    [
      'wanted back half-way: who has left etcd goes, and another one comes',
      observed('abc', { members: [member('a'), member('b')] }),
      'end c',
    ],
    [
      'an end that was broken off is ended again',
      observed('abc', { asked: 2, desired: 2 as never, members: [member('a'), member('b')] }),
      'end c',
    ],
    ['one too many that is needed is counted', observed('abc', { asked: 2 }), 'ask for 3'],
    ['asked for more than is wanted, and not made', observed('a', { asked: 3, desired: 1 }), 'ask for 1'],
    ['all are outdated: another one comes first', observed('abc', { machines: machines('ABC') }), 'ask for 4'],
    ['so it is with a single one', observed('a', { machines: machines('A') }), 'ask for 2'],
    [
      'the other one is to join',
      observed('abcd', {
        desired: 3,
        members: [member('a'), member('b'), member('c')],
        machines: [...machines('ABC'), machine('d', { joined: false })],
      }),
      'wait: machine d to join etcd',
    ],
    [
      'it has joined: pods leave the oldest, which does not lead',
      observed('abcd', { desired: 3, machines: machines('ABCd') }),
      'drain b',
    ],
    [
      'then its member leaves',
      observed('abcd', { desired: 3, machines: machines('ABCd'), drained: ['b'] }),
      'remove-member b',
    ],
    [
      'then it ends',
      observed('abcd', {
        desired: 3,
        machines: machines('ABCd'),
        members: [member('a'), member('c'), member('d')],
        drained: ['b'],
      }),
      'end b',
    ],
    ['the next one', observed('acd', { desired: 3, machines: machines('ACd') }), 'ask for 4'],
    [
      'who leads is the last, and hands over first',
      observed('adef', { desired: 3, machines: machines('Adef'), drained: ['a'] }),
      'leadership from id-a to id-d',
    ],
    ['none is outdated any more', observed('def', { desired: 3 }), 'done'],
    [
      'a single one hands over to the other',
      observed('ab', { desired: 1, machines: machines('Ab'), drained: ['a'] }),
      'leadership from id-a to id-b',
    ],
    ['one goes where there are two', observed('abcd', { desired: 3, machines: machines('ABCd', 'xyzz') }), 'drain c'],
    [
      'one of three zones makes place first, so that the other comes to its zone',
      observed('dbc', { machines: machines('dBC', 'xyz') }),
      'drain b',
    ],
    [
      'then the other one comes',
      observed('dc', { desired: 3, machines: machines('dC', 'xz'), members: [member('d'), member('c')] }),
      'ask for 3',
    ],
    ['not of two zones, of which one is emptier', observed('dec', { machines: machines('deC', 'xyx') }), 'ask for 4'],
    [
      'one is lost while they are replaced: it leaves etcd before anything else',
      observed('abcd', {
        desired: 3,
        asked: 3,
        machines: machines('ABd'),
        members: [member('a'), member('b'), member('c', { healthy: false }), member('d')],
        drained: ['b'],
      }),
      'remove-member c',
    ],
    [
      'fewer are wanted: an outdated one goes',
      observed('abc', { desired: 1, machines: machines('abC') }),
      'remove-member c',
    ],
    [
      'too few others would answer: an outdated one stays',
      observed('abcd', {
        desired: 3,
        machines: machines('ABCd'),
        members: [member('a', { healthy: false }), member('b'), member('c'), member('d', { healthy: false })],
        drained: ['b'],
      }),
      'wait: etcd member a to answer',
    ],
  ])('%s', (_what, observation, expected) => {
    expect(words(planControlPlaneGroup(observation))).toBe(expected);
  });

  it('become voters only once they have all data', () => {
    expect(votersIn([member('b'), member('a'), member('c', { learner: true }), member('')])).toEqual(['a', 'b']);
  });
});

/** A cloud with etcd, in which whatever is asked for happens, in any order and with any delay; machines are lost now and then. */
class Testbed {
  desired = 1;
  asked = 1;
  machines: GroupMachine[] = [machine('a')];
  members: EtcdMember[] = [member('a', { leader: true })];
  nodes = ['a'];
  #serial = 1;
  /** Machines that the node controller knows to be gone. */
  known = new Set<string>();
  readonly #drained: string[] = [];

  isAlive = (name: string): boolean => this.machines.some((one) => one.name === name);
  /** And nobody has stopped it. */
  stays = (name: string): boolean => this.machines.some((one) => one.name === name && !one.going);

  voters = (): EtcdMember[] => this.members.filter(({ learner }) => !learner);
  hasQuorum = (counts = this.isAlive): boolean =>
    this.voters().filter(({ name }) => counts(name)).length > Math.floor(this.voters().length / 2);

  observe(): ControlPlaneGroupObservation {
    const members = this.members.map((one) => ({ ...one, healthy: this.isAlive(one.name) }));
    return {
      desired: this.desired,
      asked: this.asked,
      machines: structuredClone(this.machines),
      members: this.hasQuorum() ? members : undefined,
      nodes: this.nodes.map((name) => ({ name, ready: this.isAlive(name) || !this.known.has(name) })),
      drained: this.#drained,
    };
  }

  /** One thing that happens by itself. False: nothing is left to happen. */
  goOn(): boolean {
    const [stopped] = this.machines.filter(({ going }) => going);
    if (stopped && this.hasQuorum(this.stays)) {
      this.lose(this.machines.indexOf(stopped));
      return true;
    }
    if (stopped) {
      // Too few are left: who has stopped them starts them again.
      stopped.going = false;
      return true;
    }
    if (this.machines.filter(({ going }) => !going).length < this.asked) {
      const name = String.fromCharCode(97 + this.#serial++);
      this.machines.push(machine(name, { joined: false, zone: this.emptiest() }));
      return true;
    }
    for (const one of this.machines.filter(({ joined }) => !joined)) {
      const own = this.members.find(({ name }) => name === one.name);
      if (!own) {
        if (!this.hasQuorum()) continue;
        this.members.push(member(one.name, { learner: true, leader: false }));
      } else if (own.learner) own.learner = false;
      else {
        one.joined = true;
        this.nodes.push(one.name);
      }
      return true;
    }
    if (this.hasQuorum() && !this.voters().some(({ leader, name }) => leader && this.isAlive(name))) {
      for (const one of this.members) one.leader = false;
      this.voters().find(({ name }) => this.isAlive(name))!.leader = true;
      return true;
    }
    const late = this.nodes.find((name) => !this.isAlive(name) && !this.known.has(name));
    if (late !== undefined) this.known.add(late);
    return late !== undefined;
  }

  lose(index: number): void {
    const one = this.machines[index % this.machines.length];
    // Of what could not be survived there is nothing to prove.
    const left = this.voters().filter(({ name }) => this.isAlive(name) && name !== one?.name).length;
    if (!one || left <= Math.floor(this.voters().length / 2)) return;
    this.machines = this.machines.filter((other) => other !== one);
  }

  /** Where a group puts the next one; of several that have as few, the last. */
  emptiest(): string {
    const inZone = (zone: string) => this.machines.filter((one) => one.zone === zone).length;
    return ['x', 'y', 'z'].reduce((least, zone) => (inZone(zone) <= inZone(least) ? zone : least));
  }

  /** All are to be replaced. */
  outdate(): void {
    for (const one of this.machines) one.outdated = true;
  }

  /** Somebody does; they answer for some seconds still. */
  stop(isChosen: (one: GroupMachine) => boolean): void {
    for (const one of this.machines) one.going ||= isChosen(one);
  }

  act({ action }: ControlPlaneGroupPlan): void {
    switch (action?.type) {
      case 'ask-for':
        this.asked = action.machines;
        return;
      case 'end-machines':
        for (const name of action.names)
          expect(
            this.voters().some((one) => one.name === name && this.stays(name)),
            `${name} is a voter`,
          ).toBe(false);
        if (this.machines.some(({ going, name }) => going && action.names.includes(name)))
          expect(this.hasQuorum(this.stays), `a majority without ${action.names}`).toBe(true);
        this.machines = this.machines.filter(({ name }) => !action.names.includes(name));
        this.asked = this.machines.filter(({ going }) => !going).length;
        return;
      case 'drain':
        this.#drained.push(action.name);
        return;
      case 'transfer-leadership':
        for (const one of this.members) one.leader = one.id === action.to;
        return;
      case 'remove-member':
        this.members = this.members.filter(({ id }) => id !== action.id);
        expect(this.hasQuorum(), `a majority after ${action.name} left`).toBe(true);
        return;
      case 'remove-node':
        this.nodes = this.nodes.filter((name) => name !== action.name);
        return;
      default:
        return;
    }
  }
}

/** The same, whose machines install the version that is wanted when they come. */
class VersionedTestbed extends Testbed {
  wanted = '1.34.1';
  readonly #installed = new Map<string, string>();

  /** What the cluster's nodes tell. */
  #nodes = (): Node[] =>
    this.nodes.map((name) => {
      const nodeInfo = { kubeletVersion: `v${this.#installed.get(name)}` };
      return { apiVersion: 'v1', kind: 'Node', metadata: { name }, spec: {}, status: { nodeInfo } };
    });

  /** Of the machines that there are, oldest first. */
  versions = (): string[] => this.machines.map(({ name }) => this.#installed.get(name)!);

  override observe(): ControlPlaneGroupObservation {
    for (const { name } of this.machines) if (!this.#installed.has(name)) this.#installed.set(name, this.wanted);
    const others = ofOtherVersion(this.#nodes(), this.wanted);
    for (const one of this.machines) one.outdated = others.includes(one.name);
    return super.observe();
  }

  /** Refused where it may not be. */
  ask(version: string): void {
    if (upgradeProblem(this.wanted, version) || machineVersionProblem(this.#nodes(), version)) return;
    this.wanted = version;
  }
}

/** Until nothing is left to do. */
function settle(testbed: Testbed, each: () => void = () => {}): void {
  for (let step = 0; step < 300; step++) {
    const plan = planControlPlaneGroup(testbed.observe());
    expect(plan.blocked, plan.waitFor).toBeUndefined();
    if (plan.action) testbed.act(plan);
    else if (!testbed.goOn()) {
      expect(plan.waitFor).toBeUndefined();
      return;
    }
    each();
  }
  throw new Error('it never ends');
}

describe('a control plane group, after any events,', () => {
  holds('no majority is lost by our own doing, and in the end there is what is wanted', (choose) => {
    const testbed = new Testbed();
    for (let event = choose.integer(0, 60); event > 0; event--) {
      const happening = choose.integer(0, 16);
      if (happening === 0) testbed.lose(choose.integer(0, 4));
      else if (happening === 1) testbed.desired = choose.pick([1, 3, 5]);
      else if (happening === 2) testbed.stop(() => choose.integer(0, 2) > 0);
      else if (happening === 16) testbed.outdate();
      else if (happening < 9) testbed.goOn();
      else testbed.act(planControlPlaneGroup(testbed.observe()));
    }
    settle(testbed);
    expect(testbed.machines).toHaveLength(testbed.desired);
    expect(testbed.machines.filter(({ outdated }) => outdated)).toEqual([]);
    expect(testbed.asked).toBe(testbed.desired);
    expect(votersIn(testbed.members)).toEqual(testbed.machines.map(({ name }) => name).sort());
    expect([...testbed.nodes].sort()).toEqual(votersIn(testbed.members));
  });

  holds('all are replaced, one at a time, and no zone has two afterwards that had one', (choose) => {
    const testbed = new Testbed();
    testbed.machines[0]!.zone = choose.pick(['x', 'y', 'z']);
    testbed.desired = choose.pick([1, 3, 5]);
    settle(testbed);
    const before = new Set(testbed.machines.map(({ name }) => name));
    testbed.outdate();
    let fewest = testbed.desired;
    let most = testbed.desired;
    settle(testbed, () => {
      fewest = Math.min(fewest, testbed.voters().length);
      most = Math.max(most, testbed.machines.length);
    });
    expect(testbed.machines.some(({ name }) => before.has(name))).toBe(false);
    // Of three in three zones each makes place first.
    expect([fewest, most]).toEqual(testbed.desired === 3 ? [2, 3] : [testbed.desired, testbed.desired + 1]);
    const zones = testbed.machines.map(({ zone }) => zone);
    expect(new Set(zones).size).toBe(Math.min(zones.length, 3));
  });

  holds('no two API servers are more than a minor version apart, and in the end all have what is wanted', (choose) => {
    const testbed = new VersionedTestbed();
    for (let event = choose.integer(0, 120); event > 0; event--) {
      const happening = choose.integer(0, 16);
      if (happening === 0) testbed.lose(choose.integer(0, 4));
      else if (happening === 1) testbed.desired = choose.pick([1, 3, 5]);
      else if (happening < 4) testbed.ask(choose.pick(['1.34.1', '1.35.4', '1.35.9', '1.36.3', '1.37.0']));
      else if (happening < 9) testbed.goOn();
      else testbed.act(planControlPlaneGroup(testbed.observe()));
      testbed.observe();
      const minors = testbed.versions().map((version) => Number(version.split('.')[1]));
      expect(Math.max(...minors) - Math.min(...minors), testbed.versions().join()).toBeLessThan(2);
    }
    settle(testbed);
    expect(testbed.versions()).toEqual(Array(testbed.desired).fill(testbed.wanted));
  });

  holds('the size changes by one at a time', (choose) => {
    const testbed = new Testbed();
    testbed.desired = choose.pick([1, 3, 5]);
    settle(testbed);
    testbed.desired = choose.pick([1, 3, 5]);
    let before = testbed.asked;
    settle(testbed, () => {
      expect(Math.abs(testbed.asked - before)).toBeLessThanOrEqual(1);
      expect(testbed.machines.length - testbed.voters().length).toBeLessThanOrEqual(1);
      before = testbed.asked;
    });
    expect(testbed.machines).toHaveLength(testbed.desired);
  });
});
