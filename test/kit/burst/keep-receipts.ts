/** Writes receipts of BurstPolicies and Memberships in every phase, as the present code writes them, one JSON object a line. */
import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import type { Membership } from '../../../operator/api/membership.ts';
import { emptying, kept } from '../../../operator/burst/clusters/emptying-receipt.ts';
import { grantedMore, raised, withGrantFacts } from '../../../operator/burst/clusters/grant-receipt.ts';
import { grew, withGrowthFacts } from '../../../operator/burst/clusters/growth-receipt.ts';
import { type BurstReceipt, emptyReceipt } from '../../../operator/burst/clusters/kept.ts';
import { withOutcomes } from '../../../operator/burst/clusters/outcomes.ts';
import type { Purchase } from '../../../operator/burst/clusters/plan-model.ts';
import {
  changed,
  costs,
  givenBack,
  gone,
  opened,
  ordered,
  rested,
  startedUp,
} from '../../../operator/burst/clusters/receipt.ts';
import { putToSleep, woken, wokeUp } from '../../../operator/burst/clusters/sleep-receipt.ts';
import { letSleep, slept, wakes, withWakeFacts } from '../../../operator/burst/clusters/wake-receipt.ts';
import type { MembershipReceipt } from '../../../operator/controllers/membership/receipt.ts';
import { SECRETS } from '../../../operator/kube/resources.ts';

const { positionals } = parseArgs({ allowPositionals: true });
const START = Date.parse('2026-11-23T12:00:00Z');
const MINUTE = 60_000;
const lines: object[] = [];

/** A history of which each step is kept. */
class History {
  now = START;
  receipt: BurstReceipt = emptyReceipt({ namespace: 'shop', name: 'peak', uid: 'uid-of-peak' });

  step(phase: string, change: (receipt: BurstReceipt, now: number) => BurstReceipt): void {
    this.now += MINUTE;
    const after = change(this.receipt, this.now);
    const told = { now: this.now, currency: 'USD', asleepSince: () => this.now };
    this.receipt = withOutcomes(this.receipt, after, told);
    lines.push({ of: 'BurstPolicy', phase, receipt: this.receipt });
  }

  get last(): string {
    return this.receipt.purchases.at(-1)!.name;
  }

  see(phase: string, more: Parameters<typeof changed>[2]): void {
    this.step(phase, (receipt) => changed(receipt, this.last, more));
  }
}

const at = (now: number) => new Date(now).toISOString();
const purchase = (more: Partial<Purchase> = {}): Purchase => ({
  candidate: 'cloud',
  nodes: { a: 2 },
  mostNodes: 10,
  price: {
    hourly: 700_000n,
    most: 1_500_000n,
    billing: { machines: { stepMs: 3_600_000, minimumMs: 0 }, controlPlane: undefined, fee: 100_000n },
  },
  sources: ['Deployment shop/web', 'Job shop/nightly'],
  why: '3 replicas of Deployment shop/web have no place',
  alternatives: [{ candidate: 'there', hourly: 800_000n, whyNot: 'cloud was better' }],
  revision: '0123456789ab',
  ...more,
});

const bought = new History();
lines.push({ of: 'BurstPolicy', phase: 'nothing yet', receipt: bought.receipt });
bought.step('a cluster is ordered', (receipt, now) => ordered(receipt, purchase(), now));
bought.see('it is being made', { uid: 'uid-1' });
bought.step('it has joined', (receipt, now) =>
  startedUp(changed(receipt, bought.last, { joinedAt: at(now) }), 'cloud', 90_000),
);
bought.step('its price is known', (receipt, now) => costs(receipt, bought.last, '0.68', now));
bought.see('it has work', { worked: true, workedAt: at(bought.now) });
bought.step('it is being emptied', (receipt, now) => emptying(receipt, { name: bought.last, why: 'little' }, now));
bought.step('it is left alone, as it could not be emptied', (receipt, now) =>
  kept(receipt, { name: bought.last, why: 'no room elsewhere', isFailure: true }, now),
);
bought.step('it is given back', (receipt, now) =>
  givenBack(receipt, { name: bought.last, why: 'no work', isFailure: false }, now),
);
bought.step('another is given back before anybody has seen it', (receipt, now) => {
  const again = ordered(receipt, purchase({ candidate: 'there' }), now);
  const { name } = again.purchases.at(-1)!;
  return givenBack(again, { name, why: 'it will not come', isFailure: true }, now);
});
bought.step('one is of no use, and its candidate rests', (receipt, now) => {
  const again = ordered(receipt, purchase(), now);
  const useless = { uid: 'uid-3', joinedAt: at(now), useless: true } as const;
  const seen = changed(again, again.purchases.at(-1)!.name, useless);
  return rested(seen, 'cloud', { why: 'it got none of the work', at: at(now), revision: '0123456789ab' }, now);
});

const warm = new History();
warm.step('a cluster is ordered to wait warm', (receipt, now) =>
  ordered(receipt, purchase({ warm: true, sources: [] }), now),
);
warm.see('it waits warm', { uid: 'uid-1', warmAt: at(warm.now) });
warm.step('it is opened', (receipt, now) =>
  opened(receipt, { name: warm.last, candidate: 'cloud', sources: ['Deployment shop/web'], why: 'work' }, now),
);

warm.step('it joins, and is of use late', (receipt, now) =>
  changed(receipt, warm.last, { joinedAt: at(now), useless: true, worked: true, workedAt: at(now) }),
);
warm.step('it is emptied and given back in the middle of it', (receipt, now) => {
  const begun = emptying(receipt, { name: warm.last, why: 'little' }, now);
  return givenBack(begun, { name: warm.last, why: 'the policy is deleted', isFailure: false }, now);
});
warm.step('it is gone', (receipt, now) => gone(receipt, warm.last, now));

const byHand = new History();
byHand.step('another one is ordered to wait warm', (receipt, now) =>
  ordered(receipt, purchase({ warm: true, sources: [] }), now),
);
byHand.see('it joins while it waits, as somebody opened it', { uid: 'uid-1', joinedAt: at(byHand.now) });

const asleep = new History();
asleep.step('a cluster is ordered to wait asleep', (receipt, now) =>
  ordered(receipt, purchase({ warm: true, sleeps: true, sources: [] }), now),
);
asleep.see('it waits asleep', { uid: 'uid-1', warmAt: at(asleep.now) });
const waking = { hourly: 700_000n, most: 1_500_000n, counted: 0n, billing: undefined };
asleep.step('it is woken', (receipt, now) =>
  woken(receipt, { name: asleep.last, candidate: 'cloud', sources: ['Job shop/a'], why: 'work', waking }, now),
);
asleep.step('it is back', (receipt, now) => wokeUp(receipt, asleep.last, now));
asleep.step('it is put to sleep again', (receipt, now) =>
  putToSleep(receipt, { name: asleep.last, why: 'no work', isFailure: false }, now),
);
asleep.see('work comes before it sleeps', { worked: true, workedAt: at(asleep.now) });
asleep.step('it is given back while it waits', (receipt, now) =>
  givenBack(receipt, { name: asleep.last, why: 'its template changed', isFailure: false }, now),
);

const granted = new History();
granted.step('a cluster is ordered whose pool is granted nodes', (receipt, now) =>
  ordered(receipt, purchase({ granted: { a: { nodes: 3, each: 100_000n } }, mostNodes: 3 }), now),
);
granted.see('it is being made with what is granted', { uid: 'uid-1' });
granted.step('it has joined with what is granted', (receipt, now) =>
  startedUp(changed(receipt, granted.last, { joinedAt: at(now) }), 'cloud', 90_000),
);
granted.step('its pool is granted more for pods that wait', (receipt, now) =>
  raised(
    receipt,
    { cluster: `shop/${granted.last}`, pool: 'a', nodes: 2, each: 100_000n, why: 'pods wait' },
    'uid-1',
    now,
  ),
);
granted.step('its autoscaler has asked for them', (receipt, now) =>
  withGrantFacts(receipt, () => ({ maximum: 5, held: 5 }), now),
);
granted.step('nodes are added to it for work, and granted', (receipt, now) => {
  const own = { entry: undefined, cluster: `shop/${granted.last}`, pool: 'a', nodes: 1, each: 100_000n, granted: 1 };
  const added = grew(receipt, { ...own, sources: ['Job shop/b'], why: 'work' }, 'uid-1', 5, now);
  return grantedMore(added, 'uid-1', 'a', 1, 100_000n, now);
});
granted.step('more is granted, for which nobody asks', (receipt, now) =>
  raised(
    receipt,
    { cluster: `shop/${granted.last}`, pool: 'a', nodes: 4, each: 100_000n, why: 'pods wait' },
    'uid-1',
    now,
  ),
);
granted.now += 2 * MINUTE;
granted.step('that is taken back, and the pool rests', (receipt, now) =>
  withGrantFacts(
    withGrowthFacts(receipt, () => 'gone', now),
    () => ({ maximum: 6, held: 5 }),
    now,
  ),
);

const grown = new History();
const growth = {
  entry: 'private',
  cluster: 'shop/private',
  pool: 'a',
  nodes: 3,
  each: 100_000n,
  sources: ['Deployment shop/web'],
  why: '3 replicas have no place',
};
grown.step('nodes are ordered for a pool of others', (receipt, now) => grew(receipt, growth, 'uid-p', 2, now));
grown.step('they have come', (receipt, now) =>
  withGrowthFacts(receipt, () => ({ count: 5, present: 5, isSoldOut: false }), now),
);
grown.step('one of them has gone', (receipt, now) =>
  withGrowthFacts(receipt, () => ({ count: 4, present: 4, isSoldOut: false }), now),
);
grown.step('nodes are ordered for a pool of its own', (receipt, now) => {
  const { entry: _, ...own } = growth;
  return grew(receipt, { ...own, entry: undefined, cluster: 'shop/peak-cloud' }, 'uid-1', 0, now);
});
grown.step('they are sold out, and the pool rests', (receipt, now) =>
  withGrowthFacts(receipt, () => ({ count: 4, present: 2, isSoldOut: true }), now),
);
grown.step('those of its own pool come after all', (receipt, now) =>
  withGrowthFacts(receipt, () => ({ count: 5, present: 5, isSoldOut: false }), now),
);
grown.step('all of them are gone', (receipt, now) => withGrowthFacts(receipt, () => 'gone', now));

const others = new History();
const opening = { name: 'reserve', candidate: 'reserves', entry: 'reserves', sources: ['Job shop/a'], why: 'work' };
const known = { cluster: 'shop/reserve', uid: 'uid-r' };
const seen = { hasJoined: true, isIdle: false, waits: undefined, placedBy: undefined, ownerSays: undefined };
others.step("somebody's cluster is woken", (receipt, now) => wakes(receipt, opening, waking, known, now));
others.step('it is back and has work', (receipt, now) => withWakeFacts(receipt, () => seen, now));
others.step('it may sleep again', (receipt, now) =>
  letSleep(receipt, { name: 'reserve', why: 'no work', isFailure: false }, now),
);
others.step('it sleeps', (receipt, now) => slept(receipt, receipt.wakes![0]!, now));

const receipt: MembershipReceipt = {
  membership: { namespace: 'shop', name: 'demo.production', uid: 'uid-m' },
  cluster: 'demo',
  hub: { name: 'production', identity: 'uid-h', spec: { type: 'Karmada' } as MembershipReceipt['hub']['spec'] },
  member: { name: 'shop-demo', id: 'uid-k', endpoint: { server: 'https://10.0.0.1:6443', ca: 'PEM' } },
  places: [],
  credentials: [],
};
const places: MembershipReceipt['places'] = [
  { on: 'member', resource: SECRETS, namespace: 'kube-system', name: 'token' },
  { on: 'hub', resource: SECRETS, namespace: 'karmada-cluster', name: 'shop-demo', labels: { for: 'demo' } },
];
const account = { namespace: 'kube-system', name: 'hub' };
const credential = { identity: 'hub', side: 'member', account, token: 'of nothing', renewAt: at(START), boundTo: 'u' };
const full = { ...receipt, places, credentials: [{ ...credential, expiresAt: at(START) }] } as MembershipReceipt;
type State = NonNullable<NonNullable<Membership['status']>['state']>;
const member = (phase: string, state: State, more: Partial<MembershipReceipt> = {}, from = full) =>
  lines.push({ of: 'Membership', phase, state, receipt: { ...from, ...more } });
member('nothing is made yet', 'Pending', {}, receipt);
member('it joins', 'Joining');
member('it takes over what somebody made', 'Joining', {
  takingOver: [{ on: 'hub', resource: SECRETS, namespace: 'n', name: 'theirs', uid: 'uid-t' }],
});
member('it is open for work', 'Joined', { opened: true });
for (const parked of ['FallingAsleep', 'Asleep', 'Waking', 'Emptying'] as const)
  member(`it is parked: ${parked}`, parked === 'Asleep' ? 'Asleep' : 'Joined', { opened: true, parked });
member('it leaves', 'Leaving', { opened: true });

writeFileSync(positionals[0]!, `${lines.map((line) => JSON.stringify(line)).join('\n')}\n`);
