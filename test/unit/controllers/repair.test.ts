import { expect, it } from 'vitest';
import { LABELS } from '../../../operator/api/group.ts';
import { NO_REPAIRS } from '../../../operator/controllers/shoot/machines/plan-repair.ts';
import { repairMachines } from '../../../operator/controllers/shoot/machines/repair.ts';
import type { Operation } from '../../../operator/controllers/shoot/operation.ts';
import type { Machine } from '../../../providers/contract.ts';

const MINUTE = 60_000;
const never = new AbortController().signal;

const machine = { name: 'a', nodeName: 'a', pool: 'web', phase: 'Running', ready: true } as Machine;
const node = (ready: boolean) => ({
  metadata: { name: 'a', labels: { [LABELS.pool]: 'web' } },
  spec: {},
  status: { conditions: [{ type: 'Ready', status: ready ? 'True' : 'Unknown' }] },
});
const volume = (phase: string, host: string) => ({
  metadata: { name: `of-${host}` },
  spec: {
    claimRef: { namespace: 'shop', name: 'data' },
    nodeAffinity: {
      required: {
        nodeSelectorTerms: [{ matchExpressions: [{ key: 'kubernetes.io/hostname', operator: 'In', values: [host] }] }],
      },
    },
  },
  status: { phase },
});

/** A cluster of one machine. */
function testbed({ nodes = [], volumes = [] }: { nodes?: object[]; volumes?: object[] } = {}) {
  const done: string[] = [];
  const told: string[][] = [];
  const clock = { now: 0 };
  const shoot = { metadata: { name: 'one', namespace: 'team' }, spec: { provider: {} } };
  const op = {
    shoot,
    sleeps: false,
    pools: [{ name: 'web', count: 1 }],
    context: () => ({}),
    notice: () => told.push([...op.state.repairing]),
    seed: { awayAt: undefined, podsOf: () => [] },
    state: {
      repairs: NO_REPAIRS,
      repairing: [] as string[],
      awayAt: undefined as Date | undefined,
      connection: {
        health: { answers: true },
        nodes: { list: () => nodes },
        client: { list: async () => ({ items: volumes }) },
      },
    },
    provider: {
      name: 'local',
      listMachines: async () => {
        done.push('list');
        return [machine];
      },
      repair: {
        restart: async (_: unknown, { name }: Machine) => void done.push(`restart ${name}`),
        replace: async (_: unknown, { name }: Machine) => void done.push(`replace ${name}`),
      },
    },
    deps: {
      now: () => new Date(clock.now),
      shoots: { get: () => shoot },
      log: { warn: () => {} },
      recordEvent: (_: unknown, type: string, reason: string) => done.push(`${type} ${reason}`),
    },
  };
  /** Looks again and again when it is due, for so many minutes. */
  const pass = async (minutes: number) => {
    const end = clock.now + minutes * MINUTE;
    while (clock.now <= end) {
      const again = await repairMachines(op as unknown as Operation, never);
      clock.now += again?.requeueAfterMs ?? minutes * MINUTE;
    }
  };
  const steps = () => done.filter((one) => one !== 'list');
  return { op, nodes, done, steps, told, pass, clock };
}

it('machine repair makes no request while all nodes are Ready', async () => {
  const { done, told, pass } = testbed({ nodes: [node(true)] });
  await pass(10);
  expect({ done, told }).toEqual({ done: [], told: [] });
});

it('machine repair restarts, then replaces the machine of a not-Ready node, with an Event each', async () => {
  const { steps, pass, told } = testbed();
  await pass(5);
  expect(steps()).toEqual(['restart a', 'Warning MachineRestarted']);
  expect(told.at(-1)).toEqual([expect.stringContaining('its machine was restarted at')]);
  await pass(5);
  expect(steps().slice(2, 4)).toEqual(['replace a', 'Warning MachineReplaced']);
});

it('machine repair keeps a machine with bound volumes; other or released ones do not matter', async () => {
  const kept = testbed({ volumes: [volume('Bound', 'a')] });
  await kept.pass(20);
  expect(kept.steps()).toEqual(['restart a', 'Warning MachineRestarted']);
  expect(kept.told.at(-1)).toEqual([expect.stringContaining('holds the data of shop/data')]);
  const others = testbed({ volumes: [volume('Bound', 'b'), volume('Released', 'a')] });
  await others.pass(20);
  expect(others.steps()).toContain('replace a');
});

it('machine repair does nothing in an unreachable, sleeping or deleted cluster, and clears its report afterwards', async () => {
  for (const change of [
    ({ state }: any) => Object.assign(state.connection.health, { answers: false }),
    (op: any) => Object.assign(op, { sleeps: true }),
    ({ shoot }: any) => Object.assign(shoot.metadata, { deletionTimestamp: 'now' }),
  ]) {
    const { op, done, pass } = testbed();
    change(op);
    await pass(20);
    expect(done).toEqual([]);
  }
  const { nodes, told, pass } = testbed();
  await pass(5);
  nodes.push(node(true));
  await pass(1);
  expect(told.at(-1)).toEqual([]);
});

it('machine repair reports machines that a provider cannot repair', async () => {
  const { op, steps, told, pass } = testbed();
  Object.assign(op.provider, { name: 'aws', repair: undefined });
  await pass(20);
  expect(steps()).toEqual([]);
  expect(told.at(-1)).toEqual([expect.stringContaining('machines of provider aws are not repaired')]);
});

it('machine repair never replaces a machine because its restart failed, and reports why', async () => {
  const { op, clock, steps, told } = testbed();
  op.provider.repair.restart = () => Promise.reject(new Error('the seed refuses'));
  for (; clock.now < 30 * MINUTE; clock.now += MINUTE)
    await repairMachines(op as unknown as Operation, never).catch(() => undefined);
  expect(steps()).toEqual([]);
  expect(told.at(-1)).toEqual([expect.stringContaining('cannot be repaired now: the seed refuses')]);
});
