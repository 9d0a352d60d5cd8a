import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { CoppiceError } from '../../../operator/api/errors.ts';
import { ManagedGarden, ManagedOperator, readyNode } from '../../kit/managed-garden.ts';
import { MemoryCloud } from '../../kit/memory-cloud.ts';
import { idle, until } from '../../kit/turns.ts';

const HOUR = 3600_000;
const ALL = ['network', 'cluster', 'pool default'];

let garden: ManagedGarden;
let cloud: MemoryCloud;
let operators: ManagedOperator[];

beforeEach(() => {
  garden = new ManagedGarden();
  cloud = new MemoryCloud();
  operators = [];
  garden.nodes = [readyNode('a'), readyNode('b')];
});
afterEach(() => Promise.all(operators.map((operator) => operator.stop())));

function start(name = 'one', version = '1'): ManagedOperator {
  const operator = new ManagedOperator(garden, cloud, name, version);
  operators.push(operator);
  return operator;
}

const status = (key: string) => garden.clusters.get(key)?.status;
const isReady = (key: string) => garden.condition(key, 'Ready')?.status === 'True';
const ready = (key: string) =>
  until(() => isReady(key), `${key} to be Ready: ${garden.condition(key, 'Ready')?.message}`);
const operation = (key: string) => status(key)?.lastOperation;
async function made(operator: ManagedOperator, spec: object = {}): Promise<string> {
  const key = garden.apply('one', spec);
  operator.look(key);
  await ready(key);
  return key;
}

describe('a managed cluster', () => {
  it('is created, and Ready only when usable', async () => {
    const operator = start();
    const pause = cloud.pause('cluster');
    const key = garden.apply('one');
    operator.look(key);
    await pause.reached;
    expect(operation(key)).toMatchObject({ type: 'Create', state: 'Processing' });
    expect(garden.condition(key, 'InfrastructureReady')).toMatchObject({ status: 'False', reason: 'Creating' });
    expect(isReady(key)).toBe(false);
    pause.resume();
    await ready(key);
    expect(cloud.names()).toEqual(ALL.map((part) => part));
    expect(operation(key)).toMatchObject({ type: 'Create', state: 'Succeeded', progress: 100 });
    expect(status(key)).toMatchObject({
      mode: 'Managed',
      endpoint: cloud.endpoint,
      kubernetesVersion: '1.36.3',
      nodes: { desired: 2, current: 2, ready: 2 },
      kubeconfigRef: { name: 'one-kubeconfig', key: 'value' },
      resource: { total: { cpu: '4' } },
    });
    expect(garden.condition(key, 'CredentialsValid')).toMatchObject({ status: 'True' });
    expect(garden.condition(key, 'ControlPlaneNodesApplied')).toMatchObject({ reason: 'ManagedByCloud' });
  });

  it('is requested once: an idle fleet runs and writes nothing', async () => {
    const operator = start();
    const key = await made(operator);
    const [calls, writes] = [cloud.calls.length, garden.statusWrites];
    garden.clock.advance(HOUR);
    await idle();
    operator.look(key);
    await idle();
    expect(cloud.calls.slice(calls)).toEqual([]);
    expect(garden.statusWrites).toBe(writes);
  });

  it('reports that its API server does not answer, also during an operation, and its return', async () => {
    const operator = start();
    const key = await made(operator);
    const pause = cloud.pause('pool default');
    garden.apply('one', { dataPlaneNodes: 3 });
    operator.look(key);
    await pause.reached;
    garden.goSilent(true);
    await until(() => garden.condition(key, 'APIServerAvailable')?.status === 'False', 'the outage to be told');
    expect(garden.condition(key, 'APIServerAvailable')).toMatchObject({
      reason: 'NotReachable',
      message: `${cloud.endpoint} does not answer`,
    });
    expect(garden.condition(key, 'EveryNodeReady')).toMatchObject({ status: 'Unknown' });
    // Nodes are told as they were last seen.
    expect(status(key)?.nodes).toMatchObject({ current: 2 });
    garden.goSilent(false);
    await until(() => garden.condition(key, 'APIServerAvailable')?.status === 'True', 'its end to be told');
    pause.resume();
    garden.nodes = [readyNode('a'), readyNode('b'), readyNode('c')];
    await ready(key);
  });

  it('sleeps without nodes and wakes with as many as before', async () => {
    const operator = start();
    const key = await made(operator);
    const pool = () => JSON.parse([...cloud.made.values()].find(({ type }) => type === 'pool default')!.spec);
    const before = pool();
    garden.apply('one', { hibernation: { enabled: true } });
    operator.look(key);
    await until(() => pool().desired === 0, 'the pool to be empty');
    garden.nodes = [];
    operator.look(key);
    await until(() => garden.condition(key, 'Hibernated')?.status === 'True', 'the cluster to be asleep');
    await ready(key);
    expect(status(key)).toMatchObject({ hibernation: { asleep: true, enabled: true }, nodes: { desired: 0 } });
    garden.apply('one', { hibernation: { enabled: false } });
    operator.look(key);
    await until(() => pool().desired === 2, 'the pool to be filled');
    expect(pool()).toEqual(before);
  });

  it('that is adopted reports its changes first, and their result at the end', async () => {
    cloud.adopts = true;
    garden.nodes = [readyNode('a', {}), readyNode('b', {})];
    const operator = start();
    const key = await made(operator, { dataPlaneNodes: undefined, adopt: { id: 'theirs' } });
    // Of nodes that others made, as many as there are is as many as there should be.
    expect(status(key)?.nodes).toEqual({ desired: 2, current: 2, ready: 2, asked: 2 });
    expect(cloud.calls.indexOf('preview')).toBeGreaterThan(-1);
    expect(garden.events.findIndex((event) => event.includes('Planned'))).toBeLessThan(
      garden.events.findIndex((event) => event.includes('Created')),
    );
    expect(garden.condition(key, 'Adopted')).toMatchObject({
      status: 'True',
      message: 'theirs is taken over; it stays when this object is deleted',
    });
    // Said, and deleted before it could be applied; even the record is lost.
    garden.apply('one', { dataPlaneNodes: undefined, adopt: { id: 'theirs', deletionPolicy: 'Delete' } });
    garden.receipts.delete(key);
    garden.delete(key);
    operator.look(key);
    await until(() => garden.clusters.get(key) === undefined, 'the cluster to be gone');
    expect(cloud.lastDestroyed?.adopt).toEqual({ id: 'theirs', deletionPolicy: 'Delete' });
  });

  it('reports progress every five seconds at most, and the last of it', async () => {
    const operator = start();
    const pauses = ['network', 'cluster', 'pool default'].map((part) => cloud.pause(part));
    const key = garden.apply('one');
    operator.look(key);
    await pauses[0]!.reached;
    await idle();
    const before = garden.statusWrites;
    pauses[0]!.resume();
    await pauses[1]!.reached;
    pauses[1]!.resume();
    await pauses[2]!.reached;
    await idle();
    expect(garden.statusWrites).toBe(before);
    garden.clock.advance(5000);
    await idle();
    expect(garden.statusWrites).toBe(before + 1);
    expect(operation(key)).toMatchObject({ description: 'creating pool default', progress: 66 });
    pauses[2]!.resume();
    await ready(key);
  });

  it('is not begun before its finalizer, and nothing is created before it is recorded', async () => {
    const operator = start();
    const pause = cloud.pause('network');
    const key = garden.apply('one');
    operator.look(key);
    await pause.reached;
    expect(garden.clusters.get(key)?.metadata.finalizers).toHaveLength(1);
    expect(garden.receipt(key)).toMatchObject({ account: 'account-1', owner: { uid: 'uid-1', garden: 'garden-uid' } });
    pause.resume();
    await ready(key);
  });

  it('is not created again when its operator dies midway', async () => {
    const first = start('one');
    const pause = cloud.pause('pool default');
    const key = garden.apply('one');
    first.look(key);
    await pause.reached;
    first.kill();
    cloud.kill('one');
    start('two');
    await ready(key);
    expect(cloud.names()).toEqual(ALL);
    expect([...cloud.made.values()].map(({ id }) => id)).toEqual(['network-1', 'cluster-2', 'pool default-3']);
  });

  it('is not run again by a restarted operator, nor reported as failing', async () => {
    const first = start('one');
    const key = await made(first);
    await first.stop();
    const before = cloud.calls.length;
    const states: (string | undefined)[] = [];
    const second = start('two');
    for (let turn = 0; turn < 50; turn++) {
      states.push(garden.condition(key, 'Ready')?.status);
      await new Promise((resolve) => setImmediate(resolve));
    }
    second.look(key);
    expect(new Set(states)).toEqual(new Set(['True']));
    expect(cloud.calls.slice(before)).toEqual(['checkAccount']);
  });

  it('is run again with another version of the programs', async () => {
    const first = start('one', '1');
    const key = await made(first);
    await first.stop();
    start('two', '2');
    const count = () => cloud.calls.filter((call) => call === 'apply').length;
    await until(() => count() === 2, 'a second run');
    await ready(key);
  });

  it('is created once by two simultaneous operators: one waits', async () => {
    const first = start('one');
    const pause = cloud.pause('cluster');
    const key = garden.apply('one');
    first.look(key);
    await pause.reached;
    const second = start('two');
    await until(() => garden.events.some((event) => event.includes('locked by one')), 'the second to be refused');
    pause.resume();
    await until(() => garden.receipt(key)?.applied, 'the first to be done');
    garden.clock.advance(HOUR / 60);
    second.look(key);
    await ready(key);
    expect(cloud.names()).toEqual(ALL);
  });
});

describe('a changed cluster', () => {
  it('is updated, with a preview of the changes', async () => {
    const operator = start();
    const key = await made(operator);
    garden.apply('one', {
      pools: [
        { name: 'default', minimum: 1 },
        { name: 'more', minimum: 1 },
      ],
    });
    operator.look(key);
    await until(() => cloud.names().includes('pool more'), 'the new pool');
    expect(garden.receipt(key)?.planned).toContainEqual({ operation: 'create', resource: 'memory:pool more' });
    expect(garden.events.find((event) => event.includes('Planned'))).toContain('create memory:pool more');
    await ready(key);
    expect(operation(key)).toMatchObject({ type: 'Reconcile', state: 'Succeeded' });
  });

  it('cancels its operation for the new spec', async () => {
    const operator = start();
    const pause = cloud.pause('cluster');
    const key = garden.apply('one');
    operator.look(key);
    await pause.reached;
    garden.apply('one', { dataPlaneNodes: 1 });
    garden.nodes = [readyNode('a')];
    operator.look(key);
    await ready(key);
    expect(garden.receipt(key)?.cluster.pools[0]?.desired).toBe(1);
    expect(cloud.names()).toEqual(ALL);
    expect(status(key)?.lastErrors).toEqual([]);
  });

  it("counts its pools' nodes, without the cloud's own", async () => {
    const operator = start();
    garden.nodes = [readyNode('a'), readyNode('b'), readyNode('system-a', {}), readyNode('system-b', {})];
    const key = garden.apply('one', { dataPlaneNodes: 2 });
    operator.look(key);
    await ready(key);
    expect(status(key)?.nodes).toEqual({ desired: 2, current: 2, ready: 2, asked: 2 });
  });

  it('continues its operation when the new spec is impossible', async () => {
    const operator = start();
    const pause = cloud.pause('cluster');
    const key = garden.apply('one');
    operator.look(key);
    await pause.reached;
    garden.apply('one', { region: 'nowhere' });
    operator.look(key);
    pause.resume();
    await until(() => garden.receipt(key)?.applied, 'the first wish');
    await until(() => garden.condition(key, 'InfrastructureReady')?.status === 'True', 'status');
    expect(garden.condition(key, 'SpecAccepted')).toMatchObject({
      status: 'False',
      codes: ['ERR_CONFIGURATION_PROBLEM'],
    });
    expect(garden.condition(key, 'SpecAccepted')?.message).toContain('The cluster stays as it was');
  });

  it('keeps its version until another is requested', async () => {
    const operator = start();
    const key = await made(operator, { kubernetes: { version: '1.35' } });
    garden.apply('one', {});
    operator.look(key);
    await idle();
    expect(garden.receipt(key)?.cluster.kubernetesVersion).toBe('1.35.4');
  });
});

describe('a failure of a managed cluster', () => {
  it.each<[string, object, string]>([
    ['a cluster without credentials', { credentialsRef: undefined }, 'needs credentials'],
    [
      'credentials of another namespace',
      { credentialsRef: { name: 'cloud', namespace: 'bank' } },
      'own namespace only',
    ],
    [
      'a pool with a long name',
      { pools: [{ name: 'thirteen-long', minimum: 1 }], dataPlaneNodes: undefined },
      'longer than 12',
    ],
    ['a region the profile lacks', { region: 'mars' }, 'no region "mars"'],
  ])('%s is refused, and nothing is made', async (_what, spec, words) => {
    const operator = start();
    const key = garden.apply('one', spec);
    operator.look(key);
    await idle();
    expect(garden.condition(key, 'SpecAccepted')).toMatchObject({
      status: 'False',
      codes: ['ERR_CONFIGURATION_PROBLEM'],
    });
    expect(garden.condition(key, 'SpecAccepted')?.message).toContain(words);
    expect(cloud.calls).toEqual([]);
    garden.delete(key);
    operator.look(key);
    await until(() => !garden.clusters.has(key), 'it to go');
  });

  it('by a quota is reported by code, retried with backoff, and at once on request', async () => {
    cloud.quota = 1;
    const operator = start();
    const key = garden.apply('one');
    operator.look(key);
    const tries = () => cloud.calls.filter((call) => call === 'apply').length;
    await until(() => operation(key)?.state === 'Error', 'the failure');
    expect(garden.condition(key, 'Ready')).toMatchObject({ status: 'False', codes: ['ERR_INFRA_QUOTA_EXCEEDED'] });
    expect(status(key)?.lastErrors).toMatchObject([{ taskID: 'apply', codes: ['ERR_INFRA_QUOTA_EXCEEDED'] }]);
    garden.clock.advance(HOUR / 20);
    await idle();
    expect(tries()).toBe(1);
    garden.clock.advance(HOUR / 12);
    await until(() => tries() === 2, 'the second try');
    await idle();
    garden.clock.advance(HOUR / 12);
    await idle();
    expect(tries()).toBe(2);
    cloud.quota = 10;
    garden.annotate(key, { 'gardener.cloud/operation': 'retry' });
    operator.look(key);
    await ready(key);
    expect(garden.clusters.get(key)?.metadata.annotations).toBeUndefined();
    expect(cloud.names()).toEqual(ALL);
    expect(status(key)?.lastErrors).toEqual([]);
  });

  it('by a raised quota ends within half an hour', async () => {
    cloud.quota = 1;
    const operator = start();
    const key = garden.apply('one');
    operator.look(key);
    for (let failures = 1; failures <= 6; failures++) {
      await until(() => cloud.calls.filter((call) => call === 'apply').length === failures, `failure ${failures}`);
      await idle();
      garden.clock.advance(HOUR * 0.65);
    }
    await idle();
    cloud.quota = 10;
    garden.clock.advance(HOUR * 0.65);
    await ready(key);
  });

  it('in a deletion is retried after a person resolved it', async () => {
    const operator = start();
    const key = await made(operator);
    cloud.fail('delete network', new CoppiceError('ERR_INFRA_UNAUTHORIZED', 'may not delete networks'), 2);
    garden.delete(key);
    operator.look(key);
    await until(() => operation(key)?.state === 'Error', 'the failure');
    expect(operation(key)?.type).toBe('Delete');
    for (let minutes = 0; minutes < 10 && garden.clusters.has(key); minutes++) {
      garden.clock.advance(HOUR / 60);
      await idle();
    }
    await until(() => !garden.clusters.has(key), 'it to go');
    expect(cloud.made.size).toBe(0);
  });

  it('by sold-out machines is retried with backoff', async () => {
    cloud.fail('pool default', new CoppiceError('ERR_INFRA_RESOURCES_DEPLETED', 'no m left in here-a'), 2);
    const operator = start();
    const key = garden.apply('one');
    operator.look(key);
    await until(() => operation(key)?.state === 'Error', 'the failure');
    const tries = () => cloud.calls.filter((call) => call === 'apply').length;
    garden.clock.advance(30_000);
    await idle();
    expect(tries()).toBe(1);
    garden.clock.advance(40_000);
    await until(() => tries() === 2, 'the second try');
    await idle();
    garden.clock.advance(60_000);
    await idle();
    expect(tries()).toBe(2);
    garden.clock.advance(60_000);
    await ready(key);
    expect(tries()).toBe(3);
  });
});

describe('the credentials of a managed cluster', () => {
  const unknown = { status: 'False', codes: ['ERR_INFRA_UNAUTHENTICATED'] };

  it('that the cloud rejects are reported before anything is created', async () => {
    garden.credentials('cloud', { accessKey: 'wrong' });
    const operator = start();
    const key = garden.apply('one');
    operator.look(key);
    await until(() => operation(key)?.state === 'Failed', 'the failure');
    expect(garden.condition(key, 'CredentialsValid')).toMatchObject(unknown);
    expect(cloud.calls).toEqual(['checkAccount']);
    expect(garden.receipt(key)).toBeUndefined();
    // It was never made: with credentials like these it can still be taken away.
    garden.delete(key);
    operator.look(key);
    await until(() => !garden.clusters.has(key), 'it to go');
  });

  it('without some permissions are reported with these', async () => {
    cloud.missing = ['eks:CreateCluster', 'ec2:CreateVpc'];
    const operator = start();
    const key = garden.apply('one');
    operator.look(key);
    await until(() => operation(key)?.state === 'Failed', 'the failure');
    expect(garden.condition(key, 'CredentialsValid')).toMatchObject({
      status: 'False',
      codes: ['ERR_INFRA_UNAUTHORIZED'],
    });
    expect(garden.condition(key, 'CredentialsValid')?.message).toContain('eks:CreateCluster, ec2:CreateVpc');
    expect(cloud.made.size).toBe(0);
  });

  it.each<[string, (operator: ReturnType<typeof start>, key: string) => void]>([
    [
      'somebody asks for another try',
      (operator, key) => {
        garden.annotate(key, { 'gardener.cloud/operation': 'retry' });
        operator.look(key);
      },
    ],
    ['the binding finds them accepted', (operator, key) => operator.controller.credentialsAccepted(key)],
  ])('that were granted what was missing are asked about again when %s', async (_what, act) => {
    cloud.missing = ['eks:CreateCluster'];
    const operator = start();
    const key = garden.apply('one');
    operator.look(key);
    await until(() => operation(key)?.state === 'Failed', 'the failure');
    cloud.missing = [];
    act(operator, key);
    await ready(key);
  });

  it('revoked midway are replaced by new ones, and nothing is created twice', async () => {
    const operator = start();
    const pause = cloud.pause('pool default');
    const key = garden.apply('one');
    operator.look(key);
    await pause.reached;
    cloud.accounts.clear();
    cloud.accounts.set('key-2', 'account-1');
    pause.resume();
    await until(() => operation(key)?.state === 'Failed', 'the failure');
    expect(garden.condition(key, 'CredentialsValid')).toMatchObject(unknown);
    garden.credentials('cloud', { accessKey: 'key-2' });
    operator.credentialsChanged();
    await ready(key);
    expect([...cloud.made.values()].map(({ id }) => id)).toEqual(['network-1', 'cluster-2', 'pool default-3']);
    expect(garden.condition(key, 'CredentialsValid')?.status).toBe('True');
  });

  it('are rotated without a run', async () => {
    const operator = start();
    const key = await made(operator);
    cloud.accounts.set('key-2', 'account-1');
    garden.credentials('cloud', { accessKey: 'key-2' });
    const before = cloud.calls.length;
    operator.credentialsChanged();
    await idle();
    expect(cloud.calls.slice(before)).toEqual(['checkAccount']);
    expect(isReady(key)).toBe(true);
  });

  it('that become invalid leave running resources and operations unaffected', async () => {
    const operator = start();
    const key = await made(operator);
    garden.credentials('cloud', { accessKey: 'wrong' });
    operator.credentialsChanged();
    await until(() => garden.condition(key, 'CredentialsValid')?.status === 'False', 'the refusal');
    expect(isReady(key)).toBe(true);
    expect(operation(key)).toMatchObject({ type: 'Create', state: 'Succeeded' });
    garden.credentials('cloud', { accessKey: 'key-1' });
    operator.credentialsChanged();
    await until(() => garden.condition(key, 'CredentialsValid')?.status === 'True', 'the mending');
    expect(status(key)?.lastErrors).toEqual([]);
  });

  it('of another account are refused: no second cluster is created, and none counts as gone', async () => {
    const operator = start();
    const key = await made(operator);
    cloud.accounts.set('key-b', 'account-2');
    garden.credentials('cloud', { accessKey: 'key-b' });
    operator.credentialsChanged();
    await until(() => garden.condition(key, 'CredentialsValid')?.status === 'False', 'the refusal');
    expect(garden.condition(key, 'CredentialsValid')?.message).toContain('account-2, but the cluster is in account-1');
    garden.delete(key);
    operator.look(key);
    await idle();
    expect(garden.clusters.has(key)).toBe(true);
    expect(cloud.names('account-1')).toEqual(ALL);
    expect(cloud.names('account-2')).toEqual([]);
  });

  it('are never shown', async () => {
    garden.credentials('cloud', { accessKey: 'wrong-and-secret' });
    const operator = start();
    const key = garden.apply('one');
    operator.look(key);
    await until(() => operation(key)?.state === 'Failed', 'the failure');
    expect(JSON.stringify([status(key), garden.events, [...garden.receipts.values()]])).not.toContain(
      'wrong-and-secret',
    );
  });

  it('of one Secret are checked once for many clusters', async () => {
    const operator = start();
    const keys = ['a', 'b', 'c'].map((name) => garden.apply(name));
    for (const key of keys) operator.look(key);
    for (const key of keys) await ready(key);
    expect(cloud.calls.filter((call) => call === 'checkAccount')).toHaveLength(1);
  });
});

describe('the drift of a managed cluster', () => {
  const look = async (everyHours = 7) => {
    garden.clock.advance(everyHours * HOUR);
    await idle();
  };

  it('is checked on schedule, reported with differences, and left alone', async () => {
    const operator = start();
    const key = await made(operator);
    expect(garden.condition(key, 'Drifted')).toMatchObject({ status: 'False' });
    cloud.tamper('pool default');
    await look(5);
    expect(cloud.calls).not.toContain('drift');
    await look(2);
    expect(garden.condition(key, 'Drifted')).toMatchObject({ status: 'True' });
    expect(garden.condition(key, 'Drifted')?.message).toContain('update memory:pool default (spec)');
    expect(isReady(key)).toBe(true);
    expect(cloud.calls.filter((call) => call === 'apply')).toHaveLength(1);
    await look();
    expect(cloud.calls.filter((call) => call === 'drift')).toHaveLength(2);
    expect(garden.events.filter((event) => event.includes('Drifted'))).toHaveLength(1);
  });

  it('is corrected where the policy says so', async () => {
    const operator = start();
    const key = await made(operator, { drift: { policy: 'Mend' } });
    cloud.tamper('pool default');
    await look();
    expect(cloud.calls.filter((call) => call === 'apply')).toHaveLength(2);
    expect(garden.condition(key, 'Drifted')).toMatchObject({ status: 'False' });
    expect([...cloud.made.values()].some(({ spec }) => spec.includes('by hand'))).toBe(false);
  });

  it('is corrected once on request', async () => {
    const operator = start();
    const key = await made(operator);
    cloud.tamper('cluster');
    await look();
    garden.annotate(key, { 'gardener.cloud/operation': 'reconcile' });
    operator.look(key);
    await until(() => garden.condition(key, 'Drifted')?.status === 'False', 'the mending');
    expect(cloud.calls.filter((call) => call === 'apply')).toHaveLength(2);
  });

  it('that cannot be checked is reported, without consequences', async () => {
    cloud.fail('drift', new Error('the state backend does not answer'));
    const operator = start();
    const key = await made(operator);
    await look();
    expect(status(key)?.lastErrors).toMatchObject([{ taskID: 'look' }]);
    expect(operation(key)?.state).toBe('Succeeded');
    expect(isReady(key)).toBe(true);
  });
});

describe('the deletion of a managed cluster', () => {
  it('removes everything and the finalizer', async () => {
    const operator = start();
    const key = await made(operator);
    const pause = cloud.pause('delete cluster');
    garden.delete(key);
    operator.look(key);
    await pause.reached;
    garden.clock.advance(5000);
    await idle();
    expect(garden.condition(key, 'Deleting')?.message).toContain('deleting cluster');
    expect(garden.kubeconfigs.size).toBe(0);
    pause.resume();
    await until(() => !garden.clusters.has(key), 'it to go');
    expect(cloud.made.size).toBe(0);
    expect(garden.receipts.size).toBe(0);
  });

  it('may interrupt the creation', async () => {
    const operator = start();
    const pause = cloud.pause('pool default');
    const key = garden.apply('one');
    operator.look(key);
    await pause.reached;
    garden.delete(key);
    operator.look(key);
    await until(() => !garden.clusters.has(key), 'it to go');
    expect(cloud.made.size).toBe(0);
  });

  it('reports what it waits for, and continues afterwards', async () => {
    const operator = start();
    const key = await made(operator);
    cloud.accounts.clear();
    garden.delete(key);
    operator.look(key);
    await until(() => garden.condition(key, 'Deleting')?.reason === 'Stuck', 'it to be stuck');
    expect(garden.condition(key, 'Deleting')).toMatchObject({ codes: ['ERR_INFRA_UNAUTHENTICATED'] });
    cloud.accounts.set('key-2', 'account-1');
    garden.credentials('cloud', { accessKey: 'key-2' });
    operator.credentialsChanged();
    await until(() => !garden.clusters.has(key), 'it to go');
    expect(cloud.made.size).toBe(0);
  });

  it('is finished by a later operator, even without the record', async () => {
    const first = start('one');
    const key = await made(first);
    const pause = cloud.pause('delete cluster');
    garden.delete(key);
    first.look(key);
    await pause.reached;
    first.kill();
    cloud.kill('one');
    // As when somebody deletes the namespace: Secrets go first.
    garden.receipts.clear();
    start('two');
    await until(() => !garden.clusters.has(key), 'it to go');
    expect(cloud.made.size).toBe(0);
  });
});

describe('the access to a managed cluster', () => {
  const token = () => /token: (\S+)/.exec(garden.kubeconfigs.get('shop/one')?.kubeconfig ?? '')?.[1];

  it("is by Coppice's own identity after first contact, renewed without the cloud", async () => {
    const operator = start();
    await made(operator);
    const first = token();
    expect(first).toMatch(/^own-token/);
    const asked = () => cloud.calls.filter((call) => call === 'kubeconfig').length;
    garden.clock.advance(18 * HOUR);
    await idle();
    expect(token()).toBe(first);
    garden.clock.advance(2 * HOUR);
    await until(() => token() !== first, 'the renewal');
    expect(token()).toMatch(/^own-token/);
    expect(asked()).toBe(1);
  });

  it("never sends an account's token to an endpoint that the cloud has not named", async () => {
    const first = start('one');
    const key = await made(first);
    await first.stop();
    // A receipt of before, which lay where its tenant writes: it names another host.
    const receipt = garden.receipt(key)!;
    const outputs = { ...receipt.outputs!, endpoint: 'https://evil.example.org' };
    garden.receipts.set(key, JSON.stringify({ ...receipt, outputs, unconfirmed: true }));
    garden.kubeconfigs.clear();
    cloud.tokensFor.length = 0;
    // Before the cloud can tell it again, it is not to be reached for a while.
    cloud.fail('cluster', new CoppiceError('ERR_RETRYABLE_INFRA_DEPENDENCIES', 'the cloud is away'));
    start('two');
    await until(() => operation(key)?.state === 'Error', 'the failure');
    await idle();
    expect(cloud.tokensFor).toEqual([]);
    // What the cluster was made like is still known: it is not said to be another meanwhile.
    expect(garden.condition(key, 'InfrastructureReady')).toMatchObject({ status: 'True' });
    garden.clock.advance(60_000);
    await until(() => garden.kubeconfigs.has(key), 'a kubeconfig');
    expect(cloud.tokensFor).toEqual([cloud.endpoint]);
    expect(garden.receipt(key)).toMatchObject({ outputs: { endpoint: cloud.endpoint } });
    expect(garden.receipt(key)).not.toHaveProperty('unconfirmed');
  });

  it("is by the cloud's tokens where no own identity is possible", async () => {
    garden.ownAccounts = false;
    const operator = start();
    await made(operator);
    expect(token()).toBe('cloud-token');
    cloud.token = 'next-token';
    garden.tokens.add('next-token');
    garden.clock.advance(11 * 60_000);
    await idle();
    expect(token()).toBe('cloud-token');
    garden.clock.advance(2 * 60_000);
    await until(() => token() === 'next-token', 'the renewal');
  });

  it('by already expired tokens causes no storm of requests', async () => {
    garden.ownAccounts = false;
    cloud.tokenMs = -1000;
    const operator = start();
    await made(operator);
    await idle();
    expect(cloud.calls.filter((call) => call === 'kubeconfig')).toHaveLength(1);
  });

  it("returns after an outage longer than the token's life", async () => {
    const first = start('one');
    const key = await made(first);
    await first.stop();
    garden.tokens.delete(token()!);
    garden.clock.advance(48 * HOUR);
    start('two');
    const old = token();
    await until(() => token() !== old, 'a new token');
    await ready(key);
  });

  it('is renewed when it was revoked', async () => {
    const operator = start();
    const key = await made(operator);
    const old = token()!;
    garden.tokens.delete(old);
    for (let minute = 0; minute < 10; minute++) {
      garden.clock.advance(60_000);
      await idle();
    }
    expect(token()).not.toBe(old);
    expect(isReady(key)).toBe(true);
    expect(cloud.calls.filter((call) => call === 'apply')).toHaveLength(1);
  });

  it('that is lost makes the cluster not Ready, whatever the cloud reports', async () => {
    const operator = start();
    const key = await made(operator);
    garden.tokens.clear();
    garden.clock.advance(6 * 60_000);
    await until(() => !isReady(key), 'it to be noticed');
    expect(garden.condition(key, 'APIServerAvailable')).toMatchObject({ status: 'False', reason: 'NotReachable' });
  });
});
