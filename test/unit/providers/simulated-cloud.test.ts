import { describe, expect, it } from 'vitest';
import type { CloudProfile } from '../../../operator/api/cloudprofile.ts';
import {
  type Account,
  controlPlaneCreation,
  isDepleted,
  NO_USAGE,
  requestMachine,
} from '../../../providers/simulated/cloud-model.ts';
import { growPool } from '../../../providers/simulated/growth.ts';
import { draw } from '../../../providers/simulated/random.ts';
import { type SimulationSettings, simulationOf } from '../../../providers/simulated/settings.ts';
import { profile as plain, pool } from './fixtures.ts';

type MachineRequest = Parameters<typeof requestMachine>[1];

const profile = (simulation: unknown): CloudProfile => ({
  ...plain,
  spec: { ...plain.spec, providerConfig: { simulation } },
});
const cloud = (simulation: object): SimulationSettings => simulationOf(profile(simulation));

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const MACHINE = { millicores: 2000, bytes: 8 * 2 ** 30, gpus: 0, pods: 110 };
const ACCOUNT: Account = { usage: NO_USAGE };

const request = (changes: Partial<MachineRequest> = {}): MachineRequest => ({
  cluster: 'team/one',
  sequence: 0,
  region: 'north',
  zones: ['north-a', 'north-b'],
  machineType: 'm',
  capacity: MACHINE,
  spot: false,
  ...changes,
});

const many = (simulation: SimulationSettings, count: number, changes: Partial<MachineRequest> = {}) =>
  Array.from({ length: count }, (_, sequence) =>
    requestMachine(simulation, request({ ...changes, sequence }), ACCOUNT, 0),
  );
const machinesOf = (answers: ReturnType<typeof many>) =>
  answers.flatMap((answer) => ('machine' in answer ? [answer.machine] : []));
const quantile = (values: number[], q: number) => values.sort((a, b) => a - b)[Math.floor(values.length * q)]!;

describe('draw', () => {
  it('depends on seed and key only, and is evenly distributed', () => {
    expect(draw(1, 'a', 2)).toBe(draw(1, 'a', 2));
    expect(draw(1, 'a', 2)).not.toBe(draw(2, 'a', 2));
    const tenths = new Array<number>(10).fill(0);
    for (let index = 0; index < 10_000; index++) tenths[Math.floor(10 * draw(0, 'key', index))]!++;
    for (const count of tenths) expect(Math.abs(count - 1000)).toBeLessThan(150);
  });
});

describe('a simulated cloud', () => {
  it('provides everything at once by default', () => {
    const answer = requestMachine(cloud({}), request(), ACCOUNT, 0);
    expect(answer).toMatchObject({ machine: { zone: 'north-a', readyAfterMs: 0 } });
  });

  it('repeats itself for the same seed, and not for another', () => {
    const settings = { machines: { creation: { p50: '40s', p95: '90s' }, failureRate: 0.2 } };
    const run = (seed: number) => many(cloud({ ...settings, seed }), 50);
    expect(run(7)).toEqual(run(7));
    expect(run(7)).not.toEqual(run(8));
  });

  it('takes times with the configured p50 and p95', () => {
    const times = machinesOf(many(cloud({ machines: { creation: { p50: '40s', p95: '90s' } } }), 4000)).map(
      (machine) => machine.readyAfterMs / 1000,
    );
    expect(Math.abs(quantile(times, 0.5) - 40)).toBeLessThan(2);
    expect(Math.abs(quantile(times, 0.95) - 90)).toBeLessThan(6);
    expect(machinesOf(many(cloud({ machines: { creation: { p50: '1m' } } }), 3))[2]!.readyAfterMs).toBe(MINUTE);
    expect(controlPlaneCreation(cloud({ controlPlane: { creation: { p50: '9m' } } }), 'a/b', 0)).toBe(9 * MINUTE);
  });

  it('fails the configured share of requests independently', () => {
    const answers = many(cloud({ machines: { failureRate: 0.1 } }), 4000);
    const refused = answers.flatMap((answer) => ('refusal' in answer ? [answer.refusal] : []));
    expect(Math.abs(refused.length - 400)).toBeLessThan(60);
    expect(refused[0]).toEqual({
      code: 'ERR_RETRYABLE_INFRA_DEPENDENCIES',
      message: 'the cloud failed to make a m',
      general: false,
    });
  });

  it('uses another zone when one is depleted, and refuses when all are', () => {
    const one = cloud({ capacity: { depleted: [{ zone: 'north-a' }] } });
    expect(requestMachine(one, request(), ACCOUNT, 0)).toMatchObject({ machine: { zone: 'north-b' } });
    const all = cloud({ capacity: { depleted: [{ machineType: 'm' }] } });
    expect(requestMachine(all, request({ spot: true }), ACCOUNT, 0)).toMatchObject({
      refusal: { code: 'ERR_INFRA_RESOURCES_DEPLETED', message: 'no spot m left in north-a, north-b' },
    });
    expect(requestMachine(all, request({ machineType: 'odd' }), ACCOUNT, 0)).toHaveProperty('machine');
  });

  it('is depleted for the configured share of time, in whole windows', () => {
    const simulation = cloud({ capacity: { depletionRate: 0.25, spotDepletionRate: 1, window: '10m' } });
    const where = { region: 'north', zone: 'north-a', machineType: 'm', spot: false };
    const windows = Array.from({ length: 4000 }, (_, window) => isDepleted(simulation, where, window * 10 * MINUTE));
    expect(Math.abs(windows.filter(Boolean).length - 1000)).toBeLessThan(100);
    const first = windows.indexOf(true) * 10 * MINUTE;
    expect(isDepleted(simulation, where, first + 9 * MINUTE)).toBe(true);
    expect(isDepleted(simulation, { ...where, spot: true }, 0)).toBe(true);
  });

  it.each([
    [{ nodes: 3 }, { nodes: 3, millicores: 0, gpus: 0 }, '3 of 3 nodes are in use in north, no room for 1 more'],
    [{ cpu: 7 }, { nodes: 3, millicores: 6000, gpus: 0 }, '6 of 7 CPUs are in use in north, no room for 2 more'],
  ])('enforces quota %j', (quota, usage, message) => {
    expect(requestMachine(cloud({ quota }), request(), { usage }, 0)).toMatchObject({
      refusal: { code: 'ERR_INFRA_QUOTA_EXCEEDED', message, general: true },
    });
  });

  it('counts GPUs only for machines with GPUs', () => {
    const quota = cloud({ quota: { gpu: 0 } });
    expect(requestMachine(quota, request(), ACCOUNT, 0)).toHaveProperty('machine');
    const gpu = { ...MACHINE, gpus: 1 };
    expect(requestMachine(quota, request({ capacity: gpu }), ACCOUNT, 0)).toHaveProperty('refusal');
  });

  it('interrupts spot machines at the configured average rate', () => {
    const simulation = cloud({ spot: { interruptionsPerHour: 2 } });
    const lives = machinesOf(many(simulation, 4000, { spot: true })).map((machine) => machine.lostAfterMs!);
    const mean = lives.reduce((sum, life) => sum + life, 0) / lives.length;
    expect(Math.abs(mean - HOUR / 2)).toBeLessThan(2 * MINUTE);
    expect(machinesOf(many(simulation, 1))[0]).not.toHaveProperty('lostAfterMs');
  });
});

describe('the growth of a simulated pool', () => {
  const grow = (simulation: object, missing: number, taken: number[] = [], account = ACCOUNT, now = 0) =>
    growPool(
      {
        profile: profile(simulation),
        region: 'north',
        cluster: 'team/one',
        pool: pool({ count: missing + taken.length }),
        missing,
        isTaken: (index) => taken.includes(index),
        sequence: 0,
        account,
      },
      now,
    );

  it('takes the lowest free numbers, spread over the zones', () => {
    const { machines, short } = grow({}, 3, [1]);
    expect(machines.map(({ index, zone }) => [index, zone])).toEqual([
      [0, 'north-a'],
      [2, 'north-a'],
      [3, 'north-b'],
    ]);
    expect(short).toBe(0);
  });

  it('delays requests by the rate limit, and gives up at its bound', () => {
    const throttling = { requestsPerSecond: 2, burst: 2, giveUpAfter: '1s' };
    const { machines, refusal, short, account } = grow({ throttling }, 6);
    expect(machines.map((machine) => machine.readyAfterMs)).toEqual([0, 0, 500, 1000]);
    expect(refusal).toMatchObject({ code: 'ERR_INFRA_RATE_LIMITS_EXCEEDED' });
    expect(short).toBe(2);
    // A second later there are two tokens more.
    expect(grow({ throttling }, 2, [], account, 1000).machines.map((machine) => machine.readyAfterMs)).toEqual([
      500, 1000,
    ]);
  });

  it('stops at the quota', () => {
    const { machines, short, refusal } = grow({ quota: { nodes: 4 } }, 6);
    expect([machines.length, short, refusal?.code]).toEqual([4, 2, 'ERR_INFRA_QUOTA_EXCEEDED']);
  });

  it('continues after a random failure, and stops after a general refusal', () => {
    const failing = grow({ machines: { failureRate: 0.5 } }, 40);
    expect(failing.machines.length).toBeGreaterThan(10);
    expect(failing.machines.length + failing.short).toBe(40);
    expect(failing.sequence).toBe(40);
    expect(grow({ capacity: { depletionRate: 1 } }, 40).sequence).toBe(1);
  });
});

describe('the settings of a simulation', () => {
  it.each([
    [{ sed: 1 }, 'spec.providerConfig.simulation has no field sed'],
    [{ machines: { failureRate: 2 } }, 'machines.failureRate: Too big'],
    [{ machines: { creation: { p50: '40' } } }, 'machines.creation.p50: is no duration'],
    [{ machines: { creation: { p50: '5m', p95: '1m' } } }, 'p95 must not be below p50'],
    [{ capacity: { window: '0s' } }, 'capacity.window: must be from 1s to 168h'],
    [{ quota: { nodes: -1 } }, 'quota.nodes: Too small'],
    [{ throttling: {} }, 'throttling.requestsPerSecond'],
    ['fast', 'expected object'],
  ])('refuse %j', (simulation, message) => {
    expect(() => simulationOf(profile(simulation))).toThrow(message);
    expect(() => simulationOf(profile(simulation))).toThrow(
      expect.objectContaining({ code: 'ERR_CONFIGURATION_PROBLEM' }),
    );
  });
});
