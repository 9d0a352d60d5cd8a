import { expect, it } from 'vitest';
import type { Membership } from '../../../operator/api/membership.ts';
import type { MembershipDependencies } from '../../../operator/controllers/membership/dependencies.ts';
import { type JoinInputs, join } from '../../../operator/controllers/membership/join.ts';
import type { MembershipReceipt } from '../../../operator/controllers/membership/receipt.ts';
import { parkedConditions } from '../../../operator/controllers/membership/status.ts';
import type { HubType } from '../../../operator/hubs/contract.ts';
import { buildHub, buildMembership, buildWorkerCluster } from '../../kit/builders/objects.ts';
import { partOf } from '../../kit/builders/partial.ts';

const NOW = new Date('2026-11-23T12:00:00Z');
const META = { namespace: 'shop', uid: 'uid' };

/** A hub that moves work, with one other member of so many CPUs, and a cluster that is to sleep and runs 2 of them. */
class Testbed {
  drains = 0;
  otherCpu: string;
  #receipt = partOf<MembershipReceipt>({
    membership: { ...META, name: 'demo-test' },
    hub: { name: 'test', identity: 'hub' },
    member: { name: 'shop--demo', id: 'demo' },
    opened: true,
    places: [],
    credentials: [],
  });
  #membership = buildMembership({
    metadata: { ...META, name: 'demo-test' },
    spec: { hub: 'test', cluster: 'demo' },
  });

  constructor(otherCpu: string) {
    this.otherCpu = otherCpu;
  }

  /** @returns what is told of it, as type and reason */
  async look(): Promise<(string | undefined)[][]> {
    const size = { cpu: this.otherCpu, memory: '64Gi' };
    const spec = { cloudProvider: 'local' };
    const other = {
      metadata: { ...META, name: 'other' },
      spec,
      status: { resource: { available: size, continuous: size } },
    };
    const status = { hibernation: { asleep: true, since: NOW.toISOString() } };
    const cluster = buildWorkerCluster({ metadata: { ...META, name: 'demo' }, spec, status });
    const ofOther = {
      metadata: { namespace: 'shop', name: 'other-test' },
      spec: { hub: 'test', cluster: 'other' },
      status: { state: 'Joined' as const },
    };
    const containers = [{ name: 'a', resources: { requests: { cpu: '2', memory: '1Gi' } } }];
    const pod = {
      metadata: { namespace: 'shop', name: 'web' },
      spec: { nodeName: 'one', containers },
      status: { phase: 'Running' },
    };
    const hub = buildHub({ metadata: { name: 'test' }, spec: { type: 'Karmada' } });
    const testbed = partOf<JoinInputs>({
      membership: this.#membership,
      hub,
      type: partOf<HubType>({
        identities: () => [],
        observe: async () => ({}),
        join: () => [],
        placements: () => ['Deployment shop/web'],
        drains: () => 'Moves',
        drain: () => {
          this.drains++;
          return [];
        },
      }),
      cluster,
      connection: { client: { server: 'https://hub' }, identity: 'hub' },
      open: {
        server: 'https://demo',
        client: {},
        nodes: { list: () => [] },
        pods: { list: () => [pod] },
        answers: true,
      },
      ...{ answers: false, asleep: true, warm: false, emptying: false, usable: false },
    });
    const byName: Record<string, object> = { 'shop/other': other, 'shop/demo': cluster };
    const deps = partOf<MembershipDependencies>({
      now: () => NOW,
      gardenID: 'garden',
      memberships: { byIndex: () => [ofOther, this.#membership] },
      clusters: { get: (key: string) => byName[key] },
      profiles: { get: () => undefined },
      receipts: {
        get: () => this.#receipt,
        madeFrom: (next: MembershipReceipt) => next,
        save: async (_: string, next: MembershipReceipt) => {
          this.#receipt = next;
        },
      },
    });
    const { awake, emptying } = await join(deps, testbed, AbortSignal.timeout(60_000));
    const conditions = parkedConditions(awake, emptying);
    this.#membership = { ...this.#membership, status: { ...this.#membership.status, conditions } } as Membership;
    return conditions.map(({ type, reason }) => [type, reason]);
  }
}

it('a cluster that is to sleep keeps its work while no other cluster has room, at every reconciliation', async () => {
  const testbed = new Testbed('1');
  for (let looks = 0; looks < 3; looks++) expect(await testbed.look()).toEqual([['RoomElsewhere', 'NoRoom']]);
  expect(testbed.drains).toBe(0);
  testbed.otherCpu = '4';
  expect(await testbed.look()).toEqual([['Drained', 'FallingAsleep']]);
  expect(testbed.drains).toBe(1);
});

it('a cluster that is to sleep continues a drain that has begun, although the moved work fills the room', async () => {
  const testbed = new Testbed('4');
  await testbed.look();
  testbed.otherCpu = '1';
  expect(await testbed.look()).toEqual([['Drained', 'FallingAsleep']]);
  expect(testbed.drains).toBe(2);
});
