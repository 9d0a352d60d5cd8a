import { expect, it } from 'vitest';
import type { CloudProfile } from '../../../operator/api/cloudprofile.ts';
import { BurstFleet } from '../../kit/burst/fleet.ts';
import { MINUTE, type policyNamed } from '../../kit/burst/testbed.ts';
import { profile } from '../cost/objects.ts';

type CloudProfileSpec = CloudProfile['spec'];

/** A day in a shop: what is done to it, and after how many minutes. */
interface Day {
  readonly policy: Parameters<typeof policyNamed>[1];
  readonly profile?: Partial<CloudProfileSpec>;
  readonly own: number;
  readonly events: readonly (readonly [number, string, (fleet: BurstFleet) => void])[];
  readonly minutes: number;
}

const web = (count: number) => [`web wants ${count}`, (fleet: BurstFleet) => fleet.scale('web', count)] as const;
const jobs = (count: number) => [`jobs want ${count}`, (fleet: BurstFleet) => fleet.scale('jobs', count)] as const;

const DAYS: Record<string, Day> = {
  'a peak, billed by the second': {
    policy: { budget: { hourly: '2', currency: 'USD' } },
    own: 4,
    events: [
      [0, ...web(3)],
      [10, ...web(9)],
      [25, ...jobs(4)],
      [70, ...web(3)],
      [90, ...jobs(0)],
    ],
    minutes: 180,
  },
  'a peak, billed by the hour, with machines sold out and a budget that is reached': {
    policy: { budget: { hourly: '1', monthly: '3', currency: 'USD' }, trigger: { startWithin: '5m' } },
    profile: {
      billing: { machines: { step: '1h' } },
      startupTimes: [{ mode: 'Hosted', cluster: '4m' }],
      hostedControlPlaneFee: { hourly: '0.05', currency: 'USD' },
    },
    own: 2,
    events: [
      [0, 'machines here are sold out', (fleet) => fleet.soldOut.add('here')],
      [1, ...web(6)],
      [30, 'there are machines again', (fleet) => fleet.soldOut.clear()],
      [31, ...jobs(3)],
      [40, 'new clusters take 9 minutes', (fleet) => Object.assign(fleet, { startMs: 9 * MINUTE })],
      [41, ...web(10)],
      [80, ...web(0)],
      [81, ...jobs(0)],
    ],
    minutes: 240,
  },
};

it.each(Object.entries(DAYS))(
  '%s is served as in the recorded run',
  async (name, { policy, profile: more, own, events, minutes }) => {
    const fleet = new BurstFleet(policy, own);
    fleet.profile = profile(more);
    fleet.startMs = 3 * MINUTE;
    const told: string[] = [];
    const tell = (line: string) => told.push(`${new Date(fleet.now).toISOString().slice(11, 19)} ${line}`);
    let decisions = 0;
    let waiting = 0;
    for (let minute = 0; minute < minutes; minute++) {
      for (const [at, what, act] of events)
        if (at === minute) {
          tell(`-- ${what}`);
          act(fleet);
        }
      for (let part = 0; part < 6; part++) {
        await fleet.step(10_000);
        for (const text of fleet.events.slice(decisions)) tell(text);
        decisions = fleet.events.length;
        if (fleet.waiting !== waiting) tell(`${fleet.waiting} replicas wait`);
        waiting = fleet.waiting;
      }
    }
    const { purchases, spent } = fleet.receipt()!;
    expect(purchases).toEqual([]);
    told.push(`spent: ${JSON.stringify(spent)}`);
    await expect(`${told.join('\n')}\n`).toMatchFileSnapshot(`golden/${name.replaceAll(/[^a-z]+/g, '-')}.txt`);
  },
);
