import { describe, expect, it } from 'vitest';
import type { Hub } from '../../../operator/api/hub.ts';
import type { Membership } from '../../../operator/api/membership.ts';
import type { WorkerCluster } from '../../../operator/api/workercluster.ts';
import {
  adviceFor,
  type GardenObjects,
  isOurs,
  type LabelledObject,
  leftOvers,
  whatOf,
  whoseOf,
} from '../../../operator/controllers/membership/left-overs.ts';
import { labelledOwnerOf, type MadeFor, ownerLabels } from '../../../operator/controllers/membership/ownership.ts';
import type { MembershipReceipt } from '../../../operator/controllers/membership/receipt.ts';
import { type KubeObject, SECRETS } from '../../../operator/kube/resources.ts';

const GARDEN = 'uid-of-garden';
const OWNER: MadeFor = {
  garden: GARDEN,
  membership: 'uid-of-membership',
  hub: 'production',
  cluster: { namespace: 'shop', name: 'demo', uid: 'uid-of-demo' },
  identity: 'uid-of-kube-system',
};

const seen = (
  labels: Record<string, string>,
  more: Partial<LabelledObject> = {},
  metadata: object = {},
): LabelledObject => ({
  on: 'hub',
  where: 'Hub production',
  identity: 'uid-of-hub',
  resource: SECRETS,
  object: {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { namespace: 'argocd', name: 'shop--demo', labels, ...metadata },
  },
  ...more,
});

const named = <T extends KubeObject>(name: string, uid: string, namespace?: string) =>
  ({ metadata: { name, uid, ...(namespace && { namespace }) } }) as T;
const receipt = (membership: string) =>
  ({
    membership: { namespace: 'shop', name: 'demo.production', uid: membership },
    cluster: 'demo',
    hub: { name: 'production', identity: 'uid-of-hub' },
    member: { name: 'shop--demo', id: 'uid-of-kube-system' },
  }) as MembershipReceipt;

const knows = (more: Partial<GardenObjects> = {}): GardenObjects => ({
  garden: GARDEN,
  hubs: [named<Hub>('production', 'uid-of-production')],
  memberships: [],
  clusters: [],
  receipts: [],
  ...more,
});
const said = (sightings: LabelledObject[], known: GardenObjects) =>
  leftOvers(sightings, known).map((one) => `${whatOf(one)} of ${whoseOf(one)}`);

describe('the left-overs of deleted memberships', () => {
  const old = { 'multi-cluster.demo.io/membership': OWNER.membership };
  const cases: [string, LabelledObject[], Partial<GardenObjects>, string[]][] = [
    ['nothing', [], {}, []],
    ['what nobody made for a membership', [seen({ app: 'web' })], {}, []],
    [
      'what its membership still needs',
      [seen(ownerLabels(OWNER))],
      { memberships: [named('demo', OWNER.membership)] },
      [],
    ],
    [
      'what an older operator wrote and its membership still needs',
      [seen(old)],
      { memberships: [named('demo', OWNER.membership)] },
      [],
    ],
    ['what another garden made', [seen(ownerLabels({ ...OWNER, garden: 'another' }))], {}, []],
    [
      'what a cluster that is gone has left',
      [seen(ownerLabels(OWNER))],
      {},
      ['Secret argocd/shop--demo of cluster shop/demo in Hub production; the cluster is gone'],
    ],
    [
      'what an earlier cluster of the same name has left',
      [seen(ownerLabels(OWNER))],
      {
        clusters: [named<WorkerCluster>('demo', 'another', 'shop')],
        memberships: [named<Membership>('demo', 'another')],
      },
      ['Secret argocd/shop--demo of cluster shop/demo in Hub production; the cluster is gone'],
    ],
    [
      'what a cluster has left that lives on',
      [seen(ownerLabels(OWNER))],
      { clusters: [named<WorkerCluster>('demo', 'uid-of-demo', 'shop')] },
      ['Secret argocd/shop--demo of cluster shop/demo, which has left Hub production'],
    ],
    [
      'what a Hub that is gone has left in a cluster',
      [seen(ownerLabels(OWNER), { on: 'member', where: 'cluster shop/demo' })],
      { hubs: [], clusters: [named<WorkerCluster>('demo', 'uid-of-demo', 'shop')] },
      ['Secret argocd/shop--demo of cluster shop/demo in Hub production; the Hub is gone'],
    ],
    [
      'what is seen by two Hubs that are one API server, once',
      [seen(ownerLabels(OWNER)), seen(ownerLabels(OWNER), { where: 'Hub other' })],
      {},
      ['Secret argocd/shop--demo of cluster shop/demo in Hub production; the cluster is gone'],
    ],
    [
      'what does not say its garden, as nobody knows whose it is',
      [seen(old)],
      {},
      ['Secret argocd/shop--demo of Membership with UID uid-of-membership, of which garden it does not say'],
    ],
    [
      'what does not say its garden and is on a receipt of ours, and the receipt',
      [seen(old)],
      { receipts: [{ key: 'kube-system/membership-1', receipt: receipt(OWNER.membership) }] },
      [
        'Secret argocd/shop--demo of cluster shop/demo in Hub production; the cluster is gone',
        'Secret kube-system/membership-1 of cluster shop/demo in Hub production; the cluster is gone',
      ],
    ],
    [
      'no receipt of a membership that lives',
      [],
      {
        memberships: [named('demo', OWNER.membership)],
        receipts: [{ key: 'kube-system/membership-1', receipt: receipt(OWNER.membership) }],
      },
      [],
    ],
  ];
  it.each(cases)('are found: %s', (_, sightings, known, expected) => {
    expect(said(sightings, knows(known))).toEqual(expected);
  });

  it("are deleted only with this garden's label", () => {
    expect(leftOvers([seen(ownerLabels(OWNER))], knows()).every(isOurs)).toBe(true);
    const [unknown] = leftOvers([seen(old)], knows());
    expect(isOurs(unknown!)).toBe(false);
    expect(adviceFor(unknown!, GARDEN)).toBe(
      'if it is of this garden: kubectl label secrets shop--demo -n argocd multi-cluster.demo.io/garden=uid-of-garden, and audit again',
    );
  });

  it("that are being deleted name their finalizer's holder", () => {
    const metadata = { deletionTimestamp: '2026-11-22T12:00:00Z', finalizers: ['karmada.io/cluster-controller'] };
    const [held] = leftOvers([seen(ownerLabels(OWNER), {}, metadata)], knows());
    expect(adviceFor(held!, GARDEN)).toContain('finalizer karmada.io/cluster-controller');
  });
});

it('tell their owner by labels', () => {
  expect(labelledOwnerOf(seen(ownerLabels(OWNER)).object)).toEqual(OWNER);
  expect(labelledOwnerOf(seen({}).object)).toBeUndefined();
});
