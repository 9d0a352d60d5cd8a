import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { LABELS } from '../../../operator/api/group.ts';
import { arrivalFailureOf } from '../../../operator/controllers/burst/arrival.ts';
import { ManagedGarden, ManagedOperator, readyNode } from '../../kit/managed-garden.ts';
import { MemoryCloud } from '../../kit/memory-cloud.ts';
import { idle, until } from '../../kit/turns.ts';

const MINUTE = 60_000;
const CODES = ['ERR_INFRA_RESOURCES_DEPLETED'];

let garden: ManagedGarden;
let cloud: MemoryCloud;
let operators: ManagedOperator[];

beforeEach(() => {
  garden = new ManagedGarden();
  cloud = new MemoryCloud();
  operators = [];
});
afterEach(() => Promise.all(operators.map((operator) => operator.stop())));

function start(name = 'one'): ManagedOperator {
  const operator = new ManagedOperator(garden, cloud, name);
  operators.push(operator);
  return operator;
}

const capacity = (key: string) => garden.condition(key, 'CapacityAvailable');
const pools = (key: string) =>
  (garden.receipt(key)?.cluster.pools ?? []).map(
    ({ machineType, zones, desired }) => `${desired} ${machineType} ${zones.join(' ')}`,
  );
const applies = () => cloud.calls.filter((call) => call === 'apply').length;
const isApplied = (key: string) => garden.condition(key, 'InfrastructureReady')?.status === 'True';
/** Nodes come as the cloud was asked for them. */
const nodesCome = (key: string) => {
  garden.nodes = (garden.receipt(key)?.cluster.pools ?? []).flatMap(({ name, desired = 0 }) =>
    Array.from({ length: desired }, (_, index) => {
      const node = readyNode(`${name}-${index}`);
      return { ...node, metadata: { ...node.metadata, labels: { [LABELS.pool]: name } } };
    }),
  );
};
const lookAt = async (operator: ManagedOperator, key: string) => {
  operator.look(key);
  await idle();
};
const machineTypes = ['m', 'n', 'o'];
/** @returns why BurstPolicies that had bought clusters would give them up, by what is said of them from now on */
function givenUp(): string[] {
  const found: string[] = [];
  const set = garden.clusters.set.bind(garden.clusters);
  garden.clusters.set = (key, cluster) => {
    const why = arrivalFailureOf(cluster);
    if (why !== undefined) found.push(why);
    return set(key, cluster);
  };
  return found;
}

describe('sold-out machines of a managed cluster', () => {
  it('are replaced by the next machine type at once, which is reported', async () => {
    cloud.depleted = [{ machineType: 'm' }, { machineType: 'n', zone: 'here-a' }];
    const operator = start();
    const failures = givenUp();
    const key = garden.apply('one', { machineTypes });
    operator.look(key);
    await until(() => isApplied(key), 'it to be made');
    expect(pools(key)).toEqual(['2 n here-a here-b']);
    expect(applies()).toBe(2);
    expect(failures).toEqual([]);
    expect(cloud.names().filter((name) => name.startsWith('pool'))).toHaveLength(1);
    expect(capacity(key)).toMatchObject({ status: 'True', reason: 'Alternative', codes: CODES });
    expect(capacity(key)?.message).toMatch(
      /sold out: m in here-a, here-b of memory \(tried at 2026-\S+Z, not again before 2026-\S+Z\)\. Asked for instead: 2 x n in here-a, here-b for pool default/,
    );
    expect(garden.events.filter((event) => event.startsWith('Warning CapacityDepleted'))).toHaveLength(1);
  });

  it('stay replaced, without writes while nothing changes', async () => {
    cloud.depleted = [{ machineType: 'm' }];
    const operator = start();
    const key = garden.apply('one', { machineTypes });
    operator.look(key);
    await until(() => isApplied(key), 'it to be made');
    nodesCome(key);
    await lookAt(operator, key);
    cloud.depleted = [];
    const [calls, writes] = [cloud.calls.length, garden.statusWrites];
    garden.clock.advance(60 * MINUTE);
    await lookAt(operator, key);
    expect(pools(key)).toEqual(['2 n here-a here-b']);
    expect(cloud.calls.slice(calls)).toEqual([]);
    expect(garden.statusWrites).toBe(writes);

    garden.apply('one', { machineTypes, dataPlaneNodes: 3 });
    await lookAt(operator, key);
    expect(pools(key)).toEqual(['1 m here-a here-b', '2 n here-a here-b']);
  });

  it('during growth leave running nodes; new ones are of the next machine type', async () => {
    const operator = start();
    const key = garden.apply('one', { machineTypes });
    operator.look(key);
    await until(() => isApplied(key), 'it to be made');
    nodesCome(key);
    cloud.depleted = [{ machineType: 'm' }];
    garden.apply('one', { machineTypes, dataPlaneNodes: 5 });
    operator.look(key);
    await until(() => applies() === 3, 'the alternative');
    await idle();
    expect(pools(key)).toEqual(['2 m here-a here-b', '3 n here-a here-b']);
    const alternative = garden.receipt(key)!.cluster.pools.find(({ machineType }) => machineType === 'n')!;
    expect(alternative.labels).toMatchObject({ [LABELS.pool]: alternative.name, [LABELS.alternativeOf]: 'default' });
    nodesCome(key);
    await lookAt(operator, key);
    expect(garden.condition(key, 'Ready')?.status).toBe('True');
  });

  it('everywhere are reported with the code, and the preferred type is retried later', async () => {
    cloud.depleted = [{}];
    const operator = start();
    const failures = givenUp();
    const key = garden.apply('one', { machineTypes: ['m', 'n'] });
    operator.look(key);
    await until(() => capacity(key)?.reason === 'Depleted', 'it to be said');
    await idle();
    expect(applies()).toBe(2);
    expect(capacity(key)).toMatchObject({ status: 'False', codes: CODES });
    expect(capacity(key)?.message).toContain('pool default lacks 2 nodes');
    expect(garden.condition(key, 'Ready')).toMatchObject({ status: 'False', codes: CODES });
    expect(failures).not.toEqual([]);
    cloud.depleted = [{ machineType: 'n' }];
    garden.clock.advance(4 * MINUTE);
    await until(() => isApplied(key), 'another try');
    expect(pools(key)).toEqual(['2 m here-a here-b']);
    expect(garden.events.filter((event) => event.startsWith('Warning CapacityDepleted')).length).toBeGreaterThanOrEqual(
      2,
    );
    await lookAt(operator, key);
    nodesCome(key);
    await lookAt(operator, key);
    expect(capacity(key)).toBeUndefined();
  });

  it('are known to other clusters, which do not request them', async () => {
    cloud.depleted = [{ machineType: 'm' }];
    const operator = start();
    const [one, two] = [garden.apply('one', { machineTypes }), garden.apply('two', { machineTypes })];
    operator.look(one);
    await until(() => isApplied(one), 'the first');
    const before = applies();
    operator.look(two);
    await until(() => isApplied(two), 'the second');
    expect(applies() - before).toBe(1);
    expect(pools(two)).toEqual(['2 n here-a here-b']);
  });

  it('stay replaced after a restart of the operator', async () => {
    cloud.depleted = [{ machineType: 'm' }];
    const first = start();
    const key = garden.apply('one', { machineTypes });
    first.look(key);
    await until(() => isApplied(key), 'it to be made');
    const said = capacity(key)?.message;
    await first.stop();
    const before = applies();
    const second = start('two');
    nodesCome(key);
    await lookAt(second, key);
    expect(applies()).toBe(before);
    expect(pools(key)).toEqual(['2 n here-a here-b']);
    expect(capacity(key)?.message).toBe(said);
  });
});

describe('the fallback place of a managed cluster', () => {
  const fallback = [{ cloudProvider: 'elsewhere', credentialsRef: { name: 'other' } }];
  beforeEach(() => {
    garden.credentials('other', { accessKey: 'key-2' });
    cloud.accounts.set('key-2', 'account-2');
  });
  const kinds = (account: string) => cloud.names(account).map((name) => name.split(' ')[0]);

  it('is used when the own place is sold out, which is cleared first', async () => {
    cloud.depleted = [{ profile: 'memory' }];
    const operator = start();
    const failures = givenUp();
    const key = garden.apply('one', { machineTypes: ['m', 'n'], fallback });
    operator.look(key);
    await until(() => isApplied(key), 'it to be made');
    expect(failures).toEqual([]);
    expect(kinds('account-1')).toEqual([]);
    expect(kinds('account-2')).toEqual(['network', 'cluster', 'pool']);
    expect(cloud.calls.indexOf('destroy')).toBeLessThan(cloud.calls.lastIndexOf('apply'));
    expect(garden.receipt(key)).toMatchObject({ profile: 'elsewhere', account: 'account-2' });
    expect(capacity(key)).toMatchObject({ status: 'True', reason: 'OtherPlace', codes: CODES });
    expect(capacity(key)?.message).toContain('m in here-a, here-b of memory');
    expect(capacity(key)?.message).toContain('n in here-a, here-b of memory');
    expect(garden.clusters.get(key)?.spec.cloudProvider).toBe('memory');

    garden.delete(key);
    operator.look(key);
    await until(() => !garden.clusters.has(key), 'it to go');
    expect(cloud.made.size).toBe(0);
  });

  it('is kept, also after a restart and when the first has machines again', async () => {
    cloud.depleted = [{ profile: 'memory' }];
    const first = start();
    const key = garden.apply('one', { fallback });
    first.look(key);
    await until(() => isApplied(key), 'it to be made');
    await first.stop();
    cloud.depleted = [];
    const second = start('two');
    nodesCome(key);
    garden.clock.advance(60 * MINUTE);
    await lookAt(second, key);
    garden.apply('one', { fallback, dataPlaneNodes: 4 });
    await lookAt(second, key);
    expect(kinds('account-1')).toEqual([]);
    expect(kinds('account-2')).toEqual(['network', 'cluster', 'pool']);
  });

  it('may be in the same region with other machine types; the cluster is created there once', async () => {
    cloud.depleted = [{ machineType: 'm' }];
    const first = start();
    const spec = { machineType: 'm', fallback: [{ machineTypes: ['n'] }] };
    const key = garden.apply('one', spec);
    first.look(key);
    await until(() => isApplied(key), 'it to be made');
    expect(pools(key)).toEqual(['2 n here-a here-b']);
    await first.stop();
    cloud.depleted = [];
    const second = start('two');
    nodesCome(key);
    garden.clock.advance(60 * MINUTE);
    garden.apply('one', { ...spec, dataPlaneNodes: 3 });
    second.look(key);
    await until(() => pools(key).join().startsWith('3'), 'it to grow');
    await idle();
    expect(pools(key)).toEqual(['3 n here-a here-b']);
    expect(cloud.calls.filter((call) => call === 'destroy')).toHaveLength(1);
  });

  it('is never used by a completed cluster', async () => {
    const operator = start();
    const key = garden.apply('one', { fallback });
    operator.look(key);
    await until(() => isApplied(key), 'it to be made');
    nodesCome(key);
    cloud.depleted = [{ profile: 'memory' }];
    garden.apply('one', { fallback, dataPlaneNodes: 4 });
    operator.look(key);
    await until(() => garden.condition(key, 'InfrastructureReady')?.reason === 'Failed', 'the refusal');
    await idle();
    expect(cloud.calls).not.toContain('destroy');
    expect(capacity(key)).toMatchObject({ status: 'False', reason: 'Depleted' });
    expect(kinds('account-2')).toEqual([]);
  });

  it('that does not exist is refused before anything is created', async () => {
    const operator = start();
    const key = garden.apply('one', {
      fallback: [{ cloudProvider: 'mars' }, { region: 'there' }],
      machineTypes: ['m', 'x'],
    });
    await lookAt(operator, key);
    const { message, codes } = garden.condition(key, 'SpecAccepted')!;
    expect(codes).toEqual(['ERR_CONFIGURATION_PROBLEM']);
    expect(message).toContain('spec.fallback[0].cloudProvider: there is no CloudProfile "mars"');
    expect(message).toContain('spec.fallback[1].region: CloudProfile "memory" has no region "there"');
    expect(message).toContain('spec.machineTypes: CloudProfile "memory" has no machine type "x"');
    expect(cloud.calls).toEqual([]);
  });
});
