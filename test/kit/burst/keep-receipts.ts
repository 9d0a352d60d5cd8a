/** Writes receipts of BurstPolicies and Memberships in every phase, as the present code writes them, one JSON object a line. */
import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import type { Membership } from '../../../operator/api/membership.ts';
import { withOutcomes } from '../../../operator/burst/clusters/outcomes.ts';
import type { ClusterOrder, NodesOrder } from '../../../operator/burst/clusters/plan-model.ts';
import type { ClusterPurchase } from '../../../operator/burst/clusters/purchases.ts';
import {
  type BurstReceipt,
  clustersIn,
  emptyReceipt,
  noteStartup,
  noteWaking,
  restCandidate,
  wakesIn,
  withCluster,
} from '../../../operator/burst/clusters/receipt.ts';
import {
  addNodes,
  buyCluster,
  emptyCluster,
  grantMore,
  keepCluster,
  letSleep,
  openCluster,
  putToSleep,
  raiseGrant,
  returnCluster,
  wakeCluster,
  wakeOthers,
} from '../../../operator/burst/clusters/receipt-decisions.ts';
import { withGrantFacts, withNodesFacts, withWakeFacts } from '../../../operator/burst/clusters/receipt-facts.ts';
import { forgetCluster, forgetPurchase, setRate } from '../../../operator/burst/clusters/spend.ts';
import { storedReceipt } from '../../../operator/burst/clusters/stored-receipt.ts';
import {
  becomeReady,
  becomeUseless,
  haveWork,
  joinHub,
  seeCluster,
} from '../../../operator/burst/clusters/transitions.ts';
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
    lines.push({ of: 'BurstPolicy', phase, receipt: storedReceipt(this.receipt) });
  }

  get last(): string {
    return clustersIn(this.receipt).at(-1)!.name;
  }

  see(phase: string, change: (purchase: ClusterPurchase, now: number) => ClusterPurchase): void {
    this.step(phase, (receipt, now) => withCluster(receipt, this.last, (one) => change(one, now)));
  }
}

const at = (now: number) => new Date(now).toISOString();
const order = (more: Partial<ClusterOrder> = {}): ClusterOrder => ({
  kind: 'cluster',
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
lines.push({ of: 'BurstPolicy', phase: 'nothing yet', receipt: storedReceipt(bought.receipt) });
bought.step('a cluster is ordered', (receipt, now) => buyCluster(receipt, order(), now));
bought.see('it is being made', (one) => seeCluster(one, 'uid-1'));
bought.step('it has joined', (receipt, now) =>
  noteStartup(
    withCluster(receipt, bought.last, (one) => joinHub(one, now)),
    'cloud',
    90_000,
  ),
);
bought.step('its price is known', (receipt, now) => setRate(receipt, bought.last, '0.68', now));
bought.see('it has work', haveWork);
bought.step('it is being emptied', (receipt, now) =>
  emptyCluster(receipt, { kind: 'empty', name: bought.last, why: 'little' }, now),
);
bought.step('it is left alone, as it could not be emptied', (receipt, now) =>
  keepCluster(receipt, { name: bought.last, why: 'no room elsewhere', isFailure: true }, now),
);
bought.step('it is given back', (receipt, now) =>
  returnCluster(receipt, { name: bought.last, why: 'no work', isFailure: false }, now),
);
bought.step('another is given back before anybody has seen it', (receipt, now) => {
  const again = buyCluster(receipt, order({ candidate: 'there' }), now);
  const { name } = clustersIn(again).at(-1)!;
  return returnCluster(again, { name, why: 'it will not come', isFailure: true }, now);
});
bought.step('one is of no use, and its candidate rests', (receipt, now) => {
  const again = buyCluster(receipt, order(), now);
  const seen = withCluster(again, clustersIn(again).at(-1)!.name, (one) =>
    becomeUseless(joinHub(seeCluster(one, 'uid-3'), now)),
  );
  return restCandidate(seen, 'cloud', { why: 'it got none of the work', at: at(now), revision: '0123456789ab' }, now);
});

const warm = new History();
warm.step('a cluster is ordered to wait warm', (receipt, now) =>
  buyCluster(receipt, order({ waits: 'warm', sources: [] }), now),
);
warm.see('it waits warm', (one, now) => becomeReady(seeCluster(one, 'uid-1'), now));
warm.step('it is opened', (receipt, now) =>
  openCluster(
    receipt,
    { kind: 'open', name: warm.last, candidate: 'cloud', sources: ['Deployment shop/web'], why: 'work' },
    now,
  ),
);

warm.step('it joins, and is of use late', (receipt, now) =>
  withCluster(receipt, warm.last, (one) => haveWork(becomeUseless(joinHub(one, now)), now)),
);
warm.step('it is emptied and given back in the middle of it', (receipt, now) => {
  const begun = emptyCluster(receipt, { kind: 'empty', name: warm.last, why: 'little' }, now);
  return returnCluster(begun, { name: warm.last, why: 'the policy is deleted', isFailure: false }, now);
});
warm.step('it is gone', (receipt, now) => forgetCluster(receipt, warm.last, now));

const byHand = new History();
byHand.step('another one is ordered to wait warm', (receipt, now) =>
  buyCluster(receipt, order({ waits: 'warm', sources: [] }), now),
);
byHand.see('it joins while it waits, as somebody opened it', (one, now) => joinHub(seeCluster(one, 'uid-1'), now));

const asleep = new History();
asleep.step('a cluster is ordered to wait asleep', (receipt, now) =>
  buyCluster(receipt, order({ waits: 'asleep', sources: [] }), now),
);
asleep.see('it waits asleep', (one, now) => becomeReady(seeCluster(one, 'uid-1'), now));
const waking = { hourly: 700_000n, most: 1_500_000n, counted: 0n, billing: undefined };
asleep.step('it is woken', (receipt, now) =>
  wakeCluster(
    receipt,
    { kind: 'wake', name: asleep.last, candidate: 'cloud', sources: ['Job shop/a'], why: 'work', waking },
    now,
  ),
);
asleep.step('it is back', (receipt, now) =>
  noteWaking(
    withCluster(receipt, asleep.last, (one) => joinHub(one, now)),
    'cloud',
    MINUTE,
  ),
);
asleep.step('it is put to sleep again', (receipt, now) =>
  putToSleep(receipt, { name: asleep.last, why: 'no work', isFailure: false }, now),
);
asleep.see('work comes before it sleeps', haveWork);
asleep.step('it is given back while it waits', (receipt, now) =>
  returnCluster(receipt, { name: asleep.last, why: 'its template changed', isFailure: false }, now),
);

const granted = new History();
granted.step('a cluster is ordered whose pool is granted nodes', (receipt, now) =>
  buyCluster(receipt, order({ granted: { a: { nodes: 3, each: 100_000n } }, mostNodes: 3 }), now),
);
granted.see('it is being made with what is granted', (one) => seeCluster(one, 'uid-1'));
granted.step('it has joined with what is granted', (receipt, now) =>
  noteStartup(
    withCluster(receipt, granted.last, (one) => joinHub(one, now)),
    'cloud',
    90_000,
  ),
);
granted.step('its pool is granted more for pods that wait', (receipt, now) =>
  raiseGrant(
    receipt,
    { kind: 'grant', cluster: `shop/${granted.last}`, pool: 'a', nodes: 2, each: 100_000n, why: 'pods wait' },
    'uid-1',
    now,
  ),
);
granted.step('its autoscaler has asked for them', (receipt, now) =>
  withGrantFacts(receipt, () => ({ maximum: 5, held: 5 }), now),
);
granted.step('nodes are added to it for work, and granted', (receipt, now) => {
  const own = {
    kind: 'nodes' as const,
    entry: undefined,
    cluster: `shop/${granted.last}`,
    pool: 'a',
    nodes: 1,
    each: 100_000n,
    granted: 1,
  };
  const added = addNodes(receipt, { ...own, sources: ['Job shop/b'], why: 'work' }, 'uid-1', 5, now);
  return grantMore(added, 'uid-1', 'a', 1, 100_000n, now);
});
granted.step('more is granted, for which nobody asks', (receipt, now) =>
  raiseGrant(
    receipt,
    { kind: 'grant', cluster: `shop/${granted.last}`, pool: 'a', nodes: 4, each: 100_000n, why: 'pods wait' },
    'uid-1',
    now,
  ),
);
granted.now += 2 * MINUTE;
granted.step('that is taken back, and the pool rests', (receipt, now) =>
  withGrantFacts(
    withNodesFacts(receipt, () => 'gone', now),
    () => ({ maximum: 6, held: 5 }),
    now,
  ),
);

const grown = new History();
const growth: NodesOrder = {
  kind: 'nodes',
  entry: 'private',
  cluster: 'shop/private',
  pool: 'a',
  nodes: 3,
  each: 100_000n,
  sources: ['Deployment shop/web'],
  why: '3 replicas have no place',
};
grown.step('nodes are ordered for a pool of others', (receipt, now) => addNodes(receipt, growth, 'uid-p', 2, now));
grown.step('they have come', (receipt, now) =>
  withNodesFacts(receipt, () => ({ count: 5, present: 5, isSoldOut: false }), now),
);
grown.step('one of them has gone', (receipt, now) =>
  withNodesFacts(receipt, () => ({ count: 4, present: 4, isSoldOut: false }), now),
);
grown.step('nodes are ordered for a pool of its own', (receipt, now) => {
  const { entry: _, ...own } = growth;
  return addNodes(receipt, { ...own, entry: undefined, cluster: 'shop/peak-cloud' }, 'uid-1', 0, now);
});
grown.step('they are sold out, and the pool rests', (receipt, now) =>
  withNodesFacts(receipt, () => ({ count: 4, present: 2, isSoldOut: true }), now),
);
grown.step('those of its own pool come after all', (receipt, now) =>
  withNodesFacts(receipt, () => ({ count: 5, present: 5, isSoldOut: false }), now),
);
grown.step('all of them are gone', (receipt, now) => withNodesFacts(receipt, () => 'gone', now));

const others = new History();
const named = { kind: 'wake', name: 'reserve', candidate: 'reserves', entry: 'reserves' } as const;
const opening = { ...named, sources: ['Job shop/a'], why: 'work', waking };
const known = { cluster: 'shop/reserve', uid: 'uid-r' };
const seen = { hasJoined: true, isIdle: false, waits: undefined, placedBy: undefined, ownerSays: undefined };
others.step("somebody's cluster is woken", (receipt, now) => wakeOthers(receipt, opening, known, now));
others.step('it is back and has work', (receipt, now) => withWakeFacts(receipt, () => seen, now));
others.step('it may sleep again', (receipt, now) =>
  letSleep(receipt, { name: 'reserve', why: 'no work', isFailure: false }, now),
);
others.step('it sleeps', (receipt, now) => forgetPurchase(receipt, wakesIn(receipt)[0]!, now));

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
