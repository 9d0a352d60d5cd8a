import { describe, expect, it } from 'vitest';
import {
  CloudWait,
  isLost,
  LossWatch,
  lookAtGroup,
  machinesOfNodes,
  machineVersionProblem,
} from '../../../operator/controllers/shoot/self-hosted/control-plane-group-seen.ts';
import { JOINED_LABEL } from '../../../operator/controllers/shoot/self-hosted/self-hosted-status.ts';
import type { EtcdMember } from '../../../operator/etcd/etcd-client.ts';
import type { Node } from '../../../operator/kube/resources.ts';
import { planControlPlaneGroup } from '../../../operator/shoot/control-plane-group.ts';
import type { ControlPlaneGroupSeen, Machine } from '../../../providers/contract.ts';
import { buildNode } from '../../kit/builders/objects.ts';

const NOW = new Date('2026-11-21T12:00:00Z');

/** As Azure has it: the scale set calls a machine otherwise than its host is called. */
const machine = (host: string, change: Partial<Machine> = {}): Machine => ({
  name: `set_${host.toUpperCase()}`,
  pool: 'control-plane',
  nodeName: host,
  phase: 'Running',
  ready: true,
  createdAt: '2026-11-21T11:55:00Z',
  ...change,
});
const seen = (hosts: string[], asked = hosts.length): ControlPlaneGroupSeen => ({
  asked,
  machines: hosts.map((host) => machine(host)),
});
const version = '1.36.3';
const node = (name: string, runs = version) =>
  buildNode({
    metadata: { name, labels: { [JOINED_LABEL]: '' } },
    spec: { podCIDR: '10.0.0.0/24' },
    status: { conditions: [{ type: 'Ready', status: 'True' }], nodeInfo: { kubeletVersion: `v${runs}` } },
  });
const member = (name: string): EtcdMember => ({
  id: `id-${name}`,
  name,
  learner: false,
  healthy: true,
  leader: name === 'a',
  caughtUp: true,
  peerURLs: [],
});
const three = ['a', 'b', 'c'];

describe("a cloud control plane whose machines' names differ from node names", () => {
  const look = (hosts: string[], desired: number, members = hosts) =>
    lookAtGroup(seen(hosts), { desired, version }, NOW, {
      nodes: () => hosts.map((name) => node(name)),
      etcd: async () => members.map(member),
    });

  it('is as desired', async () => {
    expect(planControlPlaneGroup(await look(three, 3))).toEqual({});
  });

  it('is not lost', () => {
    expect(isLost(three, seen(three))).toBe(false);
    expect(isLost(three, seen(['a', 'b']))).toBe(false);
    expect(isLost(three, seen(['a']))).toBe(true);
    expect(isLost(['a'], seen([]))).toBe(true);
    expect(isLost([], seen([]))).toBe(false);
  });

  it("is reduced by the cloud's machine name", async () => {
    const { action } = planControlPlaneGroup(await look(three, 1, ['a', 'b']));
    expect(action).toEqual({ type: 'end-machines', names: ['c'] });
    expect(machinesOfNodes(seen(three), ['c', 'gone'])).toEqual(['set_C', 'gone']);
  });
});

describe('a machine that failed to renew its certificates', () => {
  const endsIn = (days: number) => ({ ...member('b'), certificateEnds: new Date(+NOW + days * 24 * 3600_000) });
  const plan = async (days: number) =>
    planControlPlaneGroup(
      await lookAtGroup(seen(three), { desired: 3, version }, NOW, {
        nodes: () => three.map((name) => node(name)),
        etcd: async () => [member('a'), endsIn(days), member('c')],
      }),
    );

  it('is replaced in time, but not before it could have renewed them itself', async () => {
    expect(await plan(11)).toEqual({});
    expect(await plan(9)).toEqual({ action: { type: 'ask-for', machines: 4 } });
  });
});

describe('a machine of another version', () => {
  const look = (...nodes: Node[]) =>
    lookAtGroup(seen(three), { desired: 3, version }, NOW, { nodes: () => nodes, etcd: async () => three.map(member) });
  const silent = { ...node('c'), status: {} };

  it('is replaced although the cloud reports no versions', async () => {
    const { machines } = await look(node('a'), node('b', '1.35.4'), node('c', '1.36.2'));
    expect(machines.map(({ outdated }) => outdated)).toEqual([false, true, true]);
  });

  it('is not assumed for a node without a version, or with a build of the same version', async () => {
    const { machines } = await look(node('a'), node('b', '1.36.3-of.a.distribution'), silent);
    expect(machines.map(({ outdated }) => outdated)).toEqual([false, false, false]);
  });

  it.each([
    ['the next minor version', ['1.35.4', '1.36.3'], '1.36.3', undefined],
    ['a patch', ['1.35.4'], '1.35.9', undefined],
    [
      'a later one than it is on its way to',
      ['1.36.3', '1.35.4'],
      '1.37.0',
      'machine b of the control plane is not upgraded yet: version 1.37.0 skips a minor version after 1.35.4',
    ],
    [
      'an earlier one',
      ['1.36.3'],
      '1.35.4',
      'machine a of the control plane is not upgraded yet: version 1.35.4 is older than 1.36.3',
    ],
  ])('comes to %s, or is told why not', (_what, runs, wanted, expected) => {
    const problem = machineVersionProblem(
      runs.map((one, index) => node(three[index]!, one)),
      wanted,
    );
    if (expected === undefined) expect(problem).toBeUndefined();
    else expect(problem).toContain(expected);
  });
});

describe('a machine that joins during the observation', () => {
  it('is not taken for one that has left', async () => {
    const nodes = [node('a')];
    const observed = await lookAtGroup(seen(['a', 'b'], 2), { desired: 3, version }, NOW, {
      nodes: () => [...nodes],
      etcd: async () => {
        const members = [member('a')];
        // Its member, and then kubeadm's mark, come right after etcd has answered.
        nodes.push(node('b'));
        return members;
      },
    });
    expect(planControlPlaneGroup(observed)).toEqual({ waitFor: 'machine b to join etcd' });
  });
});

describe('the loss of a cluster', () => {
  const at = (seconds: number) => new Date(NOW.getTime() + seconds * 1000);

  it('is reported after half a minute, not at the first observation', () => {
    const watch = new LossWatch();
    expect([0, 10, 20, 30].map((seconds) => watch.isSure(true, at(seconds)))).toEqual([false, false, false, true]);
  });

  it('is not reported when the machines were seen again', () => {
    const watch = new LossWatch();
    watch.isSure(true, at(0));
    watch.isSure(false, at(20));
    expect(watch.isSure(true, at(40))).toBe(false);
  });
});

describe('the requeue delay', () => {
  it('is short after an action, and grows while the same is awaited', () => {
    const patience = new CloudWait();
    expect([undefined, undefined].map((waitFor) => patience.next(waitFor))).toEqual([3000, 3000]);
    const slept = Array.from({ length: 20 }, () => patience.next('machine b to join'));
    expect(slept[0]).toBe(3000);
    expect(slept.at(-1)).toBe(30_000);
    expect(slept).toEqual([...slept].sort((a, b) => a - b));
    expect(patience.next('machine b to have all data')).toBe(3000);
    expect(patience.next(undefined)).toBe(3000);
  });
});
