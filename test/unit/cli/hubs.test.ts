import { expect, it } from 'vitest';
import { HUBS_HEADER, hubRows, MEMBERSHIPS_HEADER, membershipRows } from '../../../operator/cli/render/hubs.ts';
import { renderTable } from '../../../operator/cli/render/table.ts';
import { buildHub, buildMembership } from '../../kit/builders/objects.ts';

const NOW = Date.parse('2026-11-22T12:00:00Z');
const at = (minutes: number) => new Date(NOW - minutes * 60_000).toISOString();

it('hubs shows the clusters of each hub, since when, and what each waits for', () => {
  const membership = (cluster: string, status?: object) =>
    buildMembership({
      metadata: { name: `${cluster}.inventory`, namespace: 'shop', creationTimestamp: at(9) },
      spec: { cluster, hub: 'inventory' },
      status,
    });
  const memberships = [
    membership('web', { state: 'Joined', since: at(5) }),
    membership('batch', { state: 'Leaving', since: at(1), waiting: 'PlacementDecision shop/a is placed' }),
    membership('new'),
  ];
  expect(renderTable(MEMBERSHIPS_HEADER, membershipRows(memberships, NOW))).toEqual([
    'NAMESPACE   NAME    HUB         STATE     SINCE   WAITING',
    'shop        web     inventory   Joined    5m',
    'shop        batch   inventory   Leaving   60s     PlacementDecision shop/a is placed',
    'shop        new     inventory   Pending   9m      the cluster is not ready for work yet',
  ]);
});

it('hubs shows why a hub accepts no clusters, and what waits for approval', () => {
  const hub = (name: string, ...conditions: object[]) =>
    buildHub({
      metadata: { name, creationTimestamp: at(60) },
      spec: { type: 'ClusterProfile' },
      status: { conditions, memberships: 3, joined: 2 },
    });
  const hubs = [
    hub('a', { type: 'Ready', status: 'True', message: 'clusters can join' }),
    hub('b', { type: 'Ready', status: 'False', message: 'the hub does not answer' }),
    hub('c', { type: 'Ready', status: 'True' }, { type: 'LeavesApproved', status: 'False', message: '3 wait' }),
  ];
  expect(renderTable(HUBS_HEADER, hubRows(hubs, NOW))).toEqual([
    'HUB   TYPE             READY   JOINED   AGE   MESSAGE',
    'a     ClusterProfile   True    2/3      60m',
    'b     ClusterProfile   False   2/3      60m   the hub does not answer',
    'c     ClusterProfile   True    2/3      60m   3 wait',
  ]);
});
