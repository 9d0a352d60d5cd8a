import { LABELS } from '../../operator/api/group.ts';
import type { Worker } from '../../operator/api/shoot-worker.ts';
import { rollMachines } from '../../operator/controllers/shoot/machines/machine-roll.ts';
import type { Operation } from '../../operator/controllers/shoot/operation.ts';
import type { Node } from '../../operator/kube/resources.ts';
import type { Machine, Pool, Provider, ProviderContext } from '../../providers/contract.ts';
import type { FakeCluster } from '../unit/providers/fixtures.ts';

/** A cluster whose machines are rolled, without an API server: each machine that is listed is a node. */
export interface RollingShoot {
  provider: Provider;
  context(): ProviderContext;
  shoot: FakeCluster;
  pools: Pool[];
  worker?: Partial<Worker>;
  /** Whether a machine becomes a node now. Absent: each does. */
  joins?(machine: Machine): boolean;
  /** Called for each Event. */
  onEvent?(): void;
  now(): Date;
}

/** Events and the most machines that were seen at once; `signal` may end the roll anywhere. */
export async function roll(testbed: RollingShoot, signal = new AbortController().signal) {
  const { shoot } = testbed;
  const events: string[] = [];
  const counts: { ready: number; there: number }[] = [];
  const nodes = () => [...shoot.objects.values()].filter((object): object is Node => object.kind === 'Node');
  const listMachines = async (ctx: ProviderContext) => {
    const machines = await testbed.provider.listMachines(ctx);
    const alive = machines.filter(({ phase }) => phase !== 'Terminating');
    for (const machine of alive) {
      if (testbed.joins?.(machine) === false || nodes().some(({ metadata }) => metadata.name === machine.nodeName))
        continue;
      shoot.put(nodeOf(machine));
    }
    const ready = alive.filter(({ nodeName }) => nodes().some(({ metadata }) => metadata.name === nodeName));
    counts.push({ ready: ready.length, there: alive.length });
    return machines;
  };
  const op = {
    provider: { ...testbed.provider, listMachines },
    pools: testbed.pools,
    shoot: {
      metadata: { name: 'one', namespace: 'team' },
      spec: {
        provider: {
          workers: testbed.pools.map(({ name, count }) => ({
            name,
            minimum: count,
            maxSurge: 1,
            maxUnavailable: 0,
            ...testbed.worker,
          })),
        },
      },
    },
    state: {
      draining: new Map(),
      connection: {
        client: shoot.client,
        nodes: {
          list: nodes,
          get: (name: string) => nodes().find(({ metadata }) => metadata.name === name),
          onAnyChange(changed: () => void) {
            const timer = setTimeout(changed, 1);
            return () => clearTimeout(timer);
          },
        },
        pods: { onAnyChange: () => () => {} },
        podsOn: () => [],
        deleteNode: async (name: string) => void shoot.objects.delete(`Node/${name}`),
      },
    },
    seed: { pods: { get: () => undefined, synced: true, onAnyChange: () => () => {} } },
    values: { namespace: 'shoot--team--one' },
    deps: {
      now: () => testbed.now(),
      recordEvent(_: unknown, __: string, reason: string, text: string) {
        events.push(`${reason}: ${text}`);
        testbed.onEvent?.();
      },
    },
    context: () => testbed.context(),
    notice: () => {},
  } as unknown as Operation;
  let failure: unknown;
  let acted = false;
  const acts = () => {
    acted = true;
  };
  await rollMachines(op, signal, acts).catch((error: unknown) => {
    failure = error;
  });
  return {
    failure,
    acted,
    events,
    fewestReady: Math.min(...counts.map(({ ready }) => ready)),
    most: Math.max(...counts.map(({ there }) => there)),
  };
}

const nodeOf = ({ nodeName, pool }: Machine): Node =>
  ({
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name: nodeName, labels: { [LABELS.pool]: pool } },
    spec: {},
    status: { conditions: [{ type: 'Ready', status: 'True' }] },
  }) as unknown as Node;
