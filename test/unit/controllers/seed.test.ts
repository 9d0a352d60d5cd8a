import { expect, it } from 'vitest';
import { FINALIZER } from '../../../operator/api/group.ts';
import type { Seed } from '../../../operator/api/seed.ts';
import type { Shoot } from '../../../operator/api/shoot.ts';
import type { SeedAddresses } from '../../../operator/clusters/seed-addresses.ts';
import { reconcileSeed } from '../../../operator/controllers/seed/controller.ts';
import { buildSeed, buildShoot } from '../../kit/builders/objects.ts';

const hosted = buildShoot({
  metadata: { name: 'a', namespace: 'team' },
  status: { seedName: 'far' },
});

const networkTried = { type: 'NetworkPoliciesEnforced', status: 'True', reason: 'Enforced', message: 'tried' };

/** A garden with one seed, and the cluster that the seed's kubeconfig leads to. */
function garden(shoots: Shoot[], seedStatus?: Seed['status'], spec?: object, localMachines = true) {
  const addresses: { unknownHost?: SeedAddresses['unknownHost'] } = {};
  let uid = 'one';
  let seed = buildSeed({
    metadata: { name: 'far', uid: 'u-1', generation: 1, resourceVersion: '1' },
    spec: { kubeconfigRef: { name: 'far', namespace: 'default' }, networks: {}, ...spec },
    status: seedStatus,
  });
  const closed: string[] = [];
  const client = {
    get: async () => ({ metadata: { uid } }),
    serverVersion: async () => ({ gitVersion: 'v1.36.3' }),
  };
  const deps = {
    garden: {
      apply: async ({ status }: Seed) => (seed = { ...seed, status: status! }),
      mergePatch: async (_: unknown, __: string, ___: undefined, { metadata }: { metadata: object }) => {
        seed = { ...seed, metadata: { ...seed.metadata, ...metadata } };
        return seed;
      },
      jsonPatch: async () => (seed = { ...seed, metadata: { ...seed.metadata, finalizers: [] } }),
    },
    seeds: { get: () => seed, absorb: () => {} },
    shoots: { list: () => shoots },
    registry: {
      open: async () => ({ identity: 'one', client, addresses, keepControlPlanePriority: async () => {} }),
      close: async (name: string) => void closed.push(name),
    },
    seedBuckets: { look: async () => undefined },
    networkTrials: {
      look: () => ({ condition: networkTried, triedAt: '2026-11-22T00:00:00Z', requeueAfterMs: 60_000 }),
    },
    localMachines,
    now: () => new Date('2026-11-22T00:00:00Z'),
  } as never;
  return {
    addresses,
    closed,
    look: () => reconcileSeed(deps, 'far', new AbortController().signal),
    seed: () => seed,
    condition: (type: string) => seed.status?.conditions?.find((one) => one.type === type),
    delete() {
      seed = { ...seed, metadata: { ...seed.metadata, deletionTimestamp: '2026-11-22T00:00:00Z' } };
    },
    /** Behind the same address there is another cluster from now on. */
    exchange: () => {
      uid = 'two';
    },
  };
}

it('a seed in use is held until its last shoot is gone', async () => {
  const shoots = [hosted];
  const { look, seed, condition, closed, ...far } = garden(shoots);
  await look();
  expect(seed().metadata.finalizers).toEqual([FINALIZER]);
  far.delete();
  await look();
  expect([seed().metadata.finalizers, closed]).toEqual([[FINALIZER], []]);
  expect(condition('Deleting')?.message).toBe('deletion waits for the shoots that the seed hosts: team/a');
  shoots.pop();
  await look();
  expect([seed().metadata.finalizers, closed]).toEqual([[], ['far']]);
});

it('an unused seed is not held', async () => {
  const { look, seed } = garden([]);
  await look();
  expect(seed().metadata.finalizers).toBeUndefined();
});

it("a seed's cluster identity is recorded at first contact, and another cluster at its address is refused", async () => {
  const { look, seed, condition, closed, exchange } = garden([hosted], { kubernetesVersion: '1.35.0' });
  await look();
  expect(seed().status).toMatchObject({ clusterIdentity: 'one', kubernetesVersion: '1.36.3' });
  expect(condition('Ready')?.status).toBe('True');
  exchange();
  await expect(look()).rejects.toThrow('another cluster');
  expect(condition('Ready')).toMatchObject({ status: 'False', codes: ['ERR_CONFIGURATION_PROBLEM'] });
  expect(condition('Ready')?.message).toContain('points to another cluster (UID of kube-system two, not one)');
  expect([seed().status?.clusterIdentity, closed]).toEqual(['one', ['far']]);
});

it('a seed reports whether its network enforces NetworkPolicies, also while it does not answer', async () => {
  const { look, seed, condition, exchange } = garden([]);
  const { requeueAfterMs } = await look();
  expect(condition('NetworkPoliciesEnforced')).toMatchObject({ status: 'True' });
  expect([seed().status?.networkTriedAt, requeueAfterMs]).toEqual(['2026-11-22T00:00:00Z', 60_000]);
  exchange();
  await expect(look()).rejects.toThrow();
  expect(condition('Ready')?.status).toBe('False');
  expect(condition('NetworkPoliciesEnforced')).toMatchObject({ status: 'True' });
});

it("a seed reports that its kubeconfig's host has no address, and the consequence for machines", async () => {
  const { addresses, look, condition } = garden([]);
  addresses.unknownHost = { host: 'api.example.com', why: 'ENOTFOUND' };
  await look();
  expect(condition('AddressesKnown')).toMatchObject({
    status: 'False',
    reason: 'NameNotResolved',
    message: expect.stringMatching(/no address of api\.example\.com.*\(ENOTFOUND\).*spec\.networks\.blockCIDRs$/),
  });
  delete addresses.unknownHost;
  await look();
  expect(condition('AddressesKnown')).toBeUndefined();
});

it.each<[string, string, object, boolean]>([
  [
    'whose ranges are named says that nobody knows whether they have the address',
    'RangesNamed',
    { blockCIDRs: ['192.0.2.0/24'] },
    true,
  ],
  ['that gets no local machines asks for no ranges', 'NoLocalMachines', {}, false],
])('a seed %s', async (_, reason, networks, localMachines) => {
  const { addresses, look, condition } = garden([], undefined, { networks }, localMachines);
  addresses.unknownHost = { host: 'api.example.com', why: 'ENOTFOUND' };
  await look();
  expect(condition('AddressesKnown')).toMatchObject({ status: 'Unknown', reason });
  expect(condition('AddressesKnown')?.message).not.toContain('Name its ranges');
});

it('a seed reports fields that are stored without effect, and nothing otherwise', async () => {
  const networks = { pods: '10.0.0.0/16', services: '10.1.0.0/16', blockCIDRs: ['10.2.0.0/16'] };
  const plain = garden([], undefined, { networks });
  await plain.look();
  expect(plain.condition('AllFieldsActedOn')).toBeUndefined();
  const older = garden([], undefined, {
    networks: { ...networks, ipFamilies: ['IPv4'] },
    settings: { scheduling: { visible: true }, excessCapacityReservation: { enabled: true } },
    secretRef: { name: 'far', namespace: 'default' },
  });
  await older.look();
  expect(older.condition('AllFieldsActedOn')).toMatchObject({
    status: 'False',
    message:
      'these fields are stored without effect: networks.ipFamilies, settings.excessCapacityReservation, secretRef',
  });
});
