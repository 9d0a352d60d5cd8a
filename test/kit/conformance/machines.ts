import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { KubeTaint, Node } from '../../../operator/kube/resources.ts';
import type { Machine, Pool, Provider, ProviderContext } from '../../../providers/contract.ts';
import { capacityOf } from '../../../providers/machine-types.ts';

/** Where a provider makes machines, as the conformance suite needs it. */
export interface MachineTestbed {
  /** Context of a cluster of its own; equal names in other namespaces are other clusters. */
  context(namespace: string, name: string): ProviderContext;
  /** A pool that its profile offers. */
  pool(change?: Partial<Pool>): Pool;
  /** Another machine type of the profile. */
  otherType: string;
  /** Nodes of the cluster. */
  nodes(ctx: ProviderContext): Promise<Node[]>;
  /** How often something was written in seed or cluster. */
  writes(): number;
  /** What of the cluster there is outside of itself, by name. */
  leftIn(ctx: ProviderContext): Promise<string[]>;
  /** Resolves when as many machines are up as were asked for, where that takes time. */
  settled(ctx: ProviderContext): Promise<void>;
  close(): Promise<void>;
}

const TAINTS: KubeTaint[] = [{ key: 'batch', value: 'only', effect: 'NoSchedule' }];
const alive = (machines: readonly Machine[]) => machines.filter(({ phase }) => phase !== 'Terminating');

/** What Provider promises of machines, wherever `open` lets them be made: one life of a cluster, told in order. */
export function keepsMachines(where: string, provider: Provider, open: () => Promise<MachineTestbed>): void {
  describe(`the machines of ${provider.name} ${where}`, () => {
    let testbed: MachineTestbed;
    let ctx: ProviderContext;
    beforeAll(async () => {
      testbed = await open();
      ctx = testbed.context('shop', 'blue');
    });
    afterAll(() => testbed?.close());

    const names = async (of = ctx, pool = 'workers') =>
      alive(await provider.listMachines(of))
        .filter((machine) => machine.pool === pool)
        .map(({ name }) => name)
        .sort();
    const reconcile = async (pool: Pool, of = ctx) => {
      await provider.reconcilePool(of, pool);
      await testbed.settled(of);
    };
    async function changingNothing(run: () => Promise<unknown>): Promise<void> {
      const before = testbed.writes();
      await run();
      expect(testbed.writes()).toBe(before);
    }

    it('are none at first, and the deletion of missing ones succeeds', async () => {
      expect(await provider.listMachines(ctx)).toEqual([]);
      await provider.deletePool(ctx, 'workers');
      await provider.removeMachines(ctx, 'workers', ['never-was'], 0);
      await provider.deleteAll(ctx);
      expect(await provider.listMachines(ctx)).toEqual([]);
    });

    it('are created in the requested number, once', async () => {
      await reconcile(testbed.pool({ count: 2, labels: { team: 'shop' }, taints: TAINTS }));
      const machines = await provider.listMachines(ctx);
      expect(machines).toHaveLength(2);
      for (const { pool, nodeName, phase, createdAt } of machines) {
        expect({ pool, phase: ['Pending', 'Running'].includes(phase) }).toEqual({ pool: 'workers', phase: true });
        expect(nodeName).not.toBe('');
        expect(Date.parse(createdAt)).toBeGreaterThan(0);
      }
      await changingNothing(() => reconcile(testbed.pool({ count: 2, labels: { team: 'shop' }, taints: TAINTS })));
    });

    it('pass labels, taints, zone, region, type and capacity to their nodes', async () => {
      const nodes = await testbed.nodes(ctx);
      expect(nodes.map(({ metadata }) => metadata.name).sort()).toEqual(
        (await provider.listMachines(ctx)).map(({ nodeName }) => nodeName).sort(),
      );
      const { machineType, zones } = testbed.pool();
      const { pods, millicores } = capacityOf(ctx.profile, machineType);
      for (const { metadata, spec, status } of nodes) {
        expect(metadata.labels).toMatchObject({
          team: 'shop',
          'node.kubernetes.io/instance-type': machineType,
          'topology.kubernetes.io/region': ctx.region,
        });
        expect(zones).toContain(metadata.labels?.['topology.kubernetes.io/zone']);
        expect(spec.taints).toEqual(expect.arrayContaining(TAINTS));
        expect(status?.capacity).toMatchObject({ cpu: String(millicores / 1000), pods: String(pods) });
      }
    });

    it('have nodes that follow changes of their pool', async () => {
      await reconcile(testbed.pool({ count: 2, labels: { tier: 'web' } }));
      for (const { metadata, spec } of await testbed.nodes(ctx)) {
        expect(metadata.labels).toMatchObject({ tier: 'web' });
        expect(metadata.labels).not.toHaveProperty('team');
        expect(spec.taints ?? []).not.toEqual(expect.arrayContaining(TAINTS));
      }
    });

    it('are scaled out, and never in by themselves', async () => {
      const before = await names();
      await reconcile(testbed.pool({ count: 4 }));
      const after = await names();
      expect(after).toHaveLength(4);
      expect(after).toEqual(expect.arrayContaining(before));
      await reconcile(testbed.pool({ count: 1 }));
      expect(await names()).toEqual(after);
    });

    it('are deleted by name exactly, without replacements', async () => {
      const all = await names();
      const going = [all[0]!, all[2]!];
      for (let again = 0; again < 2; again++) {
        await provider.removeMachines(ctx, 'workers', [...going, 'never-was'], 2);
        await testbed.settled(ctx);
        expect(await names()).toEqual(all.filter((name) => !going.includes(name)));
      }
      await reconcile(testbed.pool({ count: 2 }));
      expect(await names()).toEqual(all.filter((name) => !going.includes(name)));
    });

    it.runIf(provider.repair)('are restarted under their name, or replaced', async () => {
      const before = await names();
      const nodeOf = async (name: string) =>
        (await testbed.nodes(ctx)).find(({ metadata }) => metadata.name === machineNamed(name)?.nodeName);
      let machines = await provider.listMachines(ctx);
      const machineNamed = (name: string) => machines.find((machine) => machine.name === name);
      const machine = machineNamed(before[0]!)!;
      await provider.repair!.restart(ctx, machine);
      await testbed.settled(ctx);
      expect(await names()).toEqual(before);
      const uid = (await nodeOf(machine.name))?.metadata.uid;
      await provider.repair!.replace(ctx, machine);
      await testbed.settled(ctx);
      await reconcile(testbed.pool({ count: 2 }));
      machines = await provider.listMachines(ctx);
      expect(await names()).toHaveLength(2);
      expect((await nodeOf(machine.name))?.metadata.uid).not.toBe(uid);
      await provider.repair!.restart(ctx, { ...machine, name: 'never-was', nodeName: 'never-was' });
      await provider.repair!.replace(ctx, { ...machine, name: 'never-was', nodeName: 'never-was' });
      expect(await names()).toHaveLength(2);
    });

    it('are reported as outdated, and left for the caller to replace', async () => {
      const outdated = async () =>
        alive(await provider.listMachines(ctx))
          .filter((machine) => machine.outdated)
          .map(({ name }) => name)
          .sort();
      const other = (more: Partial<Pool>) => testbed.pool({ machineType: testbed.otherType, count: 2, ...more });
      const before = await names();
      expect(await outdated()).toEqual([]);
      await reconcile(other({}));
      expect(await names()).toEqual(before);
      if (provider.rolledByCaller) {
        expect(await outdated()).toEqual(before);
        await reconcile(other({ maxSurge: 1 }));
        expect(await names()).toHaveLength(3);
        expect(await outdated()).toEqual(before);
        await provider.removeMachines(ctx, 'workers', before, 1);
        await testbed.settled(ctx);
        await reconcile(other({}));
      }
      expect(await outdated()).toEqual([]);
      const { pods } = capacityOf(ctx.profile, testbed.otherType);
      for (const { status } of await testbed.nodes(ctx)) expect(status?.capacity).toMatchObject({ pods: String(pods) });
    });

    it('are separate for each pool, and for clusters of one name in two projects', async () => {
      const other = testbed.context('n'.repeat(63), 'blue');
      const kept = await names();
      await reconcile(testbed.pool({ name: 'a23456789012345', machineType: testbed.otherType, count: 1 }));
      await reconcile(testbed.pool({ count: 3 }), other);
      expect(await names()).toEqual(kept);
      expect(await names(ctx, 'a23456789012345')).toHaveLength(1);
      const others = await names(other);
      expect(others).toHaveLength(3);
      expect(others.filter((name) => kept.includes(name))).toEqual([]);
      for (const name of [...others, ...(await names(ctx, 'a23456789012345'))])
        expect(name.length).toBeLessThanOrEqual(63);
      await provider.deletePool(ctx, 'a23456789012345');
      await provider.deletePool(ctx, 'a23456789012345');
      await testbed.settled(ctx);
      expect(await names(ctx, 'a23456789012345')).toEqual([]);
      expect(await names()).toEqual(kept);
      expect(await names(other)).toEqual(others);
      await provider.deletePool(other, 'workers');
      await provider.deleteAll(other);
      await testbed.settled(other);
      expect(await testbed.leftIn(other)).toEqual([]);
    });

    it('are listed while the cluster is unreachable, and leave nothing in the end', async () => {
      const unreachable = { ...ctx };
      delete unreachable.shoot;
      await provider.listMachines(unreachable);
      await provider.deletePool(ctx, 'workers');
      await provider.deleteAll(unreachable);
      await provider.deleteAll(unreachable);
      await testbed.settled(unreachable);
      expect(await provider.listMachines(ctx)).toEqual([]);
      expect(await testbed.leftIn(ctx)).toEqual([]);
    });
  });
}
