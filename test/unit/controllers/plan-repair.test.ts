import { expect, it } from 'vitest';
import { ANNOTATIONS } from '../../../operator/api/group.ts';
import {
  NO_REPAIRS,
  noteStep,
  planRepair,
  type RepairMemory,
  type RepairView,
} from '../../../operator/controllers/shoot/machines/plan-repair.ts';
import { DRAINING_ANNOTATION } from '../../../operator/controllers/shoot/machines/scale-in.ts';
import type { Node } from '../../../operator/kube/resources.ts';
import type { Machine } from '../../../providers/contract.ts';
import { buildNode } from '../../kit/builders/objects.ts';

const MINUTE = 60_000;
const at = (minutes: number) => new Date(minutes * MINUTE);

const machine = (name: string, change: Partial<Machine> = {}): Machine => ({
  name,
  pool: 'web',
  nodeName: name,
  phase: 'Running',
  ready: true,
  createdAt: '1969-12-31T00:00:00Z',
  ...change,
});

const node = (name: string, ready: boolean, annotations: Record<string, string> = {}) =>
  buildNode({
    metadata: { name, annotations },
    status: { conditions: [{ type: 'Ready', status: ready ? 'True' : 'Unknown' }] },
  });

const view = (machines: Machine[], nodes: Node[], more: Partial<RepairView> = {}): RepairView => ({
  machines,
  nodes: new Map(nodes.map((one) => [one.metadata.name, one])),
  ...more,
});

/** Plays looks of each half minute, taking each step. @returns `minute: action machine`, and the lines of the last look */
function play(seen: (minute: number) => RepairView, until: number, memory: RepairMemory = NO_REPAIRS) {
  const steps: string[] = [];
  let lines: readonly string[] = [];
  for (let minute = 0; minute <= until; minute += 0.5) {
    let plan = planRepair(seen(minute), memory, at(minute));
    if (plan.needsVolumes) plan = planRepair({ volumes: new Map(), ...seen(minute) }, memory, at(minute));
    memory = plan.memory;
    lines = plan.lines;
    if (!plan.step) continue;
    steps.push(`${minute}: ${plan.step.action} ${plan.step.machine.name}`);
    memory = noteStep(memory, plan.step, at(minute));
  }
  return { steps, lines, memory };
}

const three = ['a', 'b', 'c'].map((name) => machine(name));

it('a starting machine has ten minutes to register, a registered one has not', () => {
  const young = [machine('a', { createdAt: '1970-01-01T00:00:00Z' })];
  expect(play(() => view(young, []), 11).steps).toEqual(['10: restart a']);
  const deleted = (minute: number) => view(young, minute < 1 ? [node('a', true)] : []);
  expect(play(deleted, 4).steps).toEqual(['3: restart a']);
});

it('a machine with a deleted node is restarted after two minutes, one with a not-Ready node after three', () => {
  expect(play(() => view(three, [node('b', true), node('c', true)]), 4).steps).toEqual(['2: restart a']);
  const notReady = view(three, [node('a', false), node('b', true), node('c', true)]);
  expect(play(() => notReady, 4).steps).toEqual(['3: restart a']);
});

it('a machine that a restart did not help is replaced, and no second one within half an hour', () => {
  const gone = play(
    (minute) => view(minute < 8 ? three : [machine('d'), ...three.slice(1)], [node('b', true), node('c', true)]),
    30,
  );
  expect(gone.steps).toEqual(['2: restart a', '6: replace a', '10: restart d']);
  expect(gone.lines[0]).toContain('its machine is replaced after 1970-01-01T00:36:00Z');
});

it('a machine that comes up later keeps the record of its restart', () => {
  const seen = (minute: number) =>
    view(minute > 2 && minute < 4 ? [machine('a', { ready: false }), ...three.slice(1)] : three, [
      node('b', true),
      node('c', true),
    ]);
  expect(play(seen, 7).steps).toEqual(['2: restart a', '6: replace a']);
});

it('a machine with volumes is restarted, never replaced, and its claims are reported', () => {
  const volumes = new Map([['a', ['shop/data-0']]]);
  const { steps, lines } = play(() => view(three, [node('b', true), node('c', true)], { volumes }), 60);
  expect(steps).toEqual(['2: restart a']);
  expect(lines).toEqual([expect.stringContaining('holds the data of shop/data-0: repair it, or delete these claims')]);
});

it('machines are repaired one at a time', () => {
  const nodes = (minute: number) => [node('c', true), ...(minute >= 3 ? [node('a', true)] : [])];
  expect(play((minute) => view(three, nodes(minute)), 4).steps).toEqual(['2: restart a', '3: restart b']);
  const { steps, lines } = play(() => view(three, [node('c', true)]), 5);
  expect(steps).toEqual(['2: restart a']);
  expect(lines[1]).toContain('waits until machine a is repaired');
});

it('no machine is repaired within ten minutes of an outage of seed or API server', () => {
  const seen = () => view(three, [node('b', true), node('c', true)], { awayAt: at(1) });
  expect(play(seen, 10.5).steps).toEqual([]);
  expect(play(seen, 10.5).lines[0]).toContain('ten minutes after seed or API server were away');
  expect(play(seen, 11).steps).toEqual(['11: restart a']);
});

it('no machine is repaired while most nodes are not Ready at once, which indicates a network failure', () => {
  const { steps, lines } = play(() => view(three, [node('a', false), node('b', false), node('c', true)]), 60);
  expect(steps).toEqual([]);
  expect(lines[0]).toContain('2 of 3 nodes are not Ready at once');
  // Deleted nodes are no such sign: the API server says that there are none.
  expect(play((minute) => view(three, minute >= 3 ? [node('a', true)] : []), 4).steps).toEqual([
    '2: restart a',
    '3: restart b',
  ]);
});

it.each<[string, Machine, Node[]]>([
  ['is not up itself', machine('a', { ready: false }), []],
  ['has failed', machine('a', { phase: 'Failed' }), []],
  ['is on its way out', machine('a', { phase: 'Terminating' }), []],
  ['is outdated', machine('a', { outdated: true }), []],
  ['is drained', machine('a'), [node('a', false, { [DRAINING_ANNOTATION]: '1970-01-01T00:00:00Z' })]],
  ['was emptied', machine('a'), [node('a', false, { [ANNOTATIONS.emptiedSince]: '1970-01-01T00:00:00Z' })]],
])('a machine that %s is left to others', (_, one, nodes) => {
  const { steps, lines } = play(() => view([one], nodes), 60);
  expect({ steps, lines }).toEqual({ steps: [], lines: [] });
});

it('a provider without repair has advice reported', () => {
  const { steps, lines } = play(
    () => view(three, [node('b', true), node('c', true)], { lacks: 'end it in the cloud' }),
    60,
  );
  expect(steps).toEqual([]);
  expect(lines).toEqual(['machine a runs without its node since 1970-01-01T00:00:00Z: end it in the cloud']);
});

it('a pool sets how long a node may be not Ready', () => {
  const patience = new Map([['web', { missingMs: 30_000, notReadyMs: 30_000 }]]);
  expect(play(() => view(three, [node('b', true), node('c', true)], { patience }), 2).steps).toEqual([
    '0.5: restart a',
  ]);
});
