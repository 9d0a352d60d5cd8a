import { describe, expect } from 'vitest';
import { isTrue } from '../../../operator/api/conditions.ts';
import { API_VERSION, FINALIZER } from '../../../operator/api/group.ts';
import { poolsOf } from '../../../operator/api/pools.ts';
import type { Shoot } from '../../../operator/api/shoot.ts';
import { type WorkerCluster, workerClusterSpec } from '../../../operator/api/workercluster.ts';
import { planWorkerCluster } from '../../../operator/controllers/workercluster/plan.ts';
import { providerNamed } from '../../../providers/index.ts';
import { frozen } from '../../kit/conformance/problems.ts';
import { type Draw, holds } from '../../kit/property.ts';
import { profile, quota } from '../cost/objects.ts';

type WorkerClusterPlan = ReturnType<typeof planWorkerCluster>;

const START = Date.parse('2026-11-21T00:00:00Z');
const cloud = profile({
  type: 'cloud',
  kubernetes: {
    versions: [
      { version: '1.35.4', classification: 'supported' },
      { version: '1.36.3', classification: 'supported' },
    ],
  },
  regions: [{ name: 'here', zones: [{ name: 'here-a' }, { name: 'here-b' }] }, { name: 'there' }],
  limits: { maxNodesTotal: 40 },
});

/** A spec as people write them: most can be had, some cannot. */
function spec(choose: Draw): WorkerCluster['spec'] {
  const names = choose.shuffled(['a', 'b', 'c', 'd']);
  const minimum = choose.integer(0, 4);
  return workerClusterSpec.parse({
    cloudProvider: 'cloud',
    controlPlaneNodes: choose.pick([1, 1, 3, 3, 5]),
    ...(choose.chance(0.7) && { dataPlaneNodes: choose.integer(0, 45) }),
    ...(choose.chance(0.3) && { region: choose.pick(['here', 'there', 'mars']) }),
    ...(choose.chance(0.2) && { zones: choose.pick([['here-a'], ['here-b', 'here-a'], ['mars-a']]) }),
    ...(choose.chance(0.3) && { machineType: choose.pick(['small', 'gpu', 'vax']) }),
    ...(choose.chance(0.3) && { kubernetes: { version: choose.pick(['1.35', '1.36', '1.36.3', '1.99']) } }),
    ...(choose.chance(0.6) && {
      pools: names.slice(0, choose.integer(1, 4)).map((name) => ({
        name,
        minimum,
        ...(choose.chance(0.5) && { maximum: minimum + choose.integer(0, 9) }),
        ...(choose.chance(0.3) && { machineType: choose.pick(['small', 'gpu']) }),
      })),
    }),
  });
}

/** The objects of a garden, and what controllers make of each other's. */
class Garden {
  cluster: WorkerCluster | undefined;
  shoot: Shoot | undefined;
  now = START;
  writes = 0;
  readonly #nodes: number | undefined;

  constructor(first: WorkerCluster['spec'], nodes: number | undefined) {
    this.#nodes = nodes;
    this.cluster = {
      apiVersion: API_VERSION,
      kind: 'WorkerCluster',
      metadata: { name: 'one', namespace: 'shop', uid: 'u1', generation: 1, creationTimestamp: '2026-11-21T00:00:00Z' },
      spec: first,
    };
  }

  plan(): WorkerClusterPlan {
    const cluster = frozen(structuredClone(this.cluster!));
    const held = cluster.status?.admitted;
    return planWorkerCluster(
      {
        cluster,
        profile: frozen(cloud),
        profileNames: ['cloud'],
        provider: providerNamed('simulated'),
        shoot: this.shoot && frozen(structuredClone(this.shoot)),
        ...(this.#nodes !== undefined && { project: { quotas: [quota({ nodes: this.#nodes })], others: [], held } }),
      },
      new Date(this.now),
    );
  }

  /** What the controller does with a plan. @returns whether anything was written. */
  act({ finalizer, shoot, deleteShoot, status }: WorkerClusterPlan): boolean {
    const before = JSON.stringify([this.cluster, this.shoot]);
    const { metadata } = this.cluster!;
    if (finalizer === 'remove') {
      this.cluster = undefined;
      return true;
    }
    this.cluster = {
      ...this.cluster!,
      metadata: { ...metadata, ...(finalizer === 'add' && { finalizers: [FINALIZER] }) },
      status,
    };
    if (deleteShoot) this.shoot = undefined;
    if (shoot && JSON.stringify(shoot.spec) !== JSON.stringify(this.shoot?.spec)) {
      const generation = (this.shoot?.metadata.generation ?? 0) + 1;
      this.shoot = { ...shoot, metadata: { ...shoot.metadata, uid: 's1', generation } };
    }
    return JSON.stringify([this.cluster, this.shoot]) !== before;
  }

  /** What the controller of Shoots does: all of it at once. */
  settleShoot(): void {
    if (!this.shoot) return;
    const workers = this.shoot.spec.provider.workers ?? [];
    const current = workers.reduce((sum, worker) => sum + worker.minimum, 0);
    const at = '2026-11-21T00:00:00Z';
    this.shoot = {
      ...this.shoot,
      status: {
        ...this.shoot.status,
        observedGeneration: this.shoot.metadata.generation ?? 0,
        kubernetesVersion: this.shoot.spec.kubernetes.version,
        nodes: { desired: current, current, ready: current },
        workers: workers.map(({ name, minimum }) => ({ name, desired: minimum, current: minimum, ready: minimum })),
        conditions: ['Ready', 'APIServerAvailable', 'EveryNodeReady'].map((type) => ({
          type,
          status: 'True' as const,
          reason: 'Yes',
          message: 'yes',
          lastTransitionTime: at,
        })),
      },
    } as Shoot;
  }

  /** Plans and acts until nothing is written any more. */
  rest(): WorkerClusterPlan {
    for (let turn = 0; turn < 8; turn++) {
      const plan = this.plan();
      const wrote = this.act(plan);
      this.settleShoot();
      if (!this.cluster || (!wrote && JSON.stringify(this.plan()) === JSON.stringify(plan))) return plan;
      this.now += 1000;
    }
    throw new Error(`no rest: ${JSON.stringify(this.cluster?.status)}`);
  }
}

const refused = (garden: Garden) => !isTrue(garden.cluster?.status?.conditions, 'SpecAccepted');

describe('the plan for a WorkerCluster', () => {
  holds(
    'comes to rest, makes one Shoot of what is accepted and none of what is refused, and deletes what it made',
    (choose) => {
      const garden = new Garden(spec(choose), choose.chance(0.5) ? choose.integer(0, 40) : undefined);
      for (let change = 0; change < 4; change++) {
        const before = garden.shoot;
        const plan = garden.rest();
        const { cluster } = garden;
        if (refused(garden)) {
          // A wrong change is refused as a whole: there is no half of it.
          expect(plan.shoot).toBeUndefined();
          expect(garden.shoot?.spec).toEqual(before?.spec);
          expect(cluster!.status?.lastErrors?.length).toBeGreaterThan(0);
          for (const { codes = [] } of cluster!.status?.lastErrors ?? []) expect(codes[0]).toMatch(/^ERR_/);
        } else {
          expect(isTrue(cluster!.status?.conditions, 'Ready')).toBe(true);
          const workers = garden.shoot!.spec.provider.workers ?? [];
          expect(workers.map(({ name, minimum }) => [name, minimum])).toEqual(
            poolsOf(cluster!, cloud).map(({ name, count }) => [name, count]),
          );
        }
        const { metadata } = cluster!;
        const next = { ...spec(choose), ...(choose.chance(0.5) && { pools: cluster!.spec.pools }) };
        garden.cluster = { ...cluster!, metadata: { ...metadata, generation: metadata.generation! + 1 }, spec: next };
      }
      const { metadata } = garden.cluster!;
      if (metadata.finalizers?.length) {
        garden.cluster = { ...garden.cluster!, metadata: { ...metadata, deletionTimestamp: '2026-11-21T12:00:00Z' } };
        garden.rest();
      } else {
        // An API server has nobody to wait for.
        garden.cluster = undefined;
      }
      expect({ cluster: garden.cluster, shoot: garden.shoot }).toEqual({ cluster: undefined, shoot: undefined });
    },
  );

  holds('never asks for more nodes than its quota, whatever was granted before', (choose) => {
    const limit = choose.integer(1, 30);
    const garden = new Garden(spec(choose), limit);
    for (let change = 0; change < 6; change++) {
      garden.rest();
      const nodes = (garden.shoot?.spec.provider.workers ?? []).reduce((sum, worker) => sum + worker.minimum, 0);
      expect(nodes).toBeLessThanOrEqual(limit);
      const { metadata } = garden.cluster!;
      garden.cluster = {
        ...garden.cluster!,
        metadata: { ...metadata, generation: metadata.generation! + 1 },
        spec: { ...spec(choose), machineType: 'small' },
      };
    }
  });
});

describe('the pools of a WorkerCluster', () => {
  holds('share out what is asked for within their bounds, and growing takes nothing from any of them', (choose) => {
    const garden = new Garden(spec(choose), undefined);
    const nodes = choose.integer(0, 30);
    const at = (dataPlaneNodes: number) =>
      poolsOf({ ...garden.cluster!, spec: { ...garden.cluster!.spec, dataPlaneNodes } }, cloud);
    const [small, large] = [at(nodes), at(nodes + choose.integer(0, 10))];
    for (const [index, pool] of small.entries()) {
      expect(pool.count).toBeGreaterThanOrEqual(pool.minimum);
      expect(pool.count).toBeLessThanOrEqual(pool.maximum);
      expect(large[index]!.count).toBeGreaterThanOrEqual(pool.count);
    }
    const sum = (of: (pool: (typeof small)[number]) => number) => small.reduce((total, pool) => total + of(pool), 0);
    expect(sum(({ count }) => count)).toBe(
      Math.max(
        sum(({ minimum }) => minimum),
        Math.min(
          nodes,
          sum(({ maximum }) => maximum),
        ),
      ),
    );
  });
});
