import { describe, expect, it } from 'vitest';
import { ANNOTATIONS } from '../../../operator/api/group.ts';
import type { HubSpec } from '../../../operator/api/hub.ts';
import type { Membership } from '../../../operator/api/membership.ts';
import type { WorkerCluster } from '../../../operator/api/workercluster.ts';
import { selectMembers } from '../../../operator/controllers/membership/selection.ts';
import { buildHub, buildMembership, buildWorkerCluster } from '../../kit/builders/objects.ts';

const GONE = '2026-11-22T12:00:00Z';
const hub = (spec: Partial<HubSpec>, metadata: object = {}) =>
  buildHub({ metadata: { name: 'h', ...metadata }, spec: { type: 'ClusterProfile', ...spec } });
const cluster = (key: string, labels = {}, more: object = {}) => {
  const [namespace, name] = key.split('/');
  return buildWorkerCluster({ metadata: { namespace, name, labels, ...more } });
};
const membership = (key: string, more: object = {}) => {
  const [namespace, name] = key.split('/');
  return buildMembership({ metadata: { namespace, name: `${name}.h`, ...more }, spec: { cluster: name, hub: 'h' } });
};
const approved = { annotations: { [ANNOTATIONS.approveLeave]: 'true' } };
const names = (list: readonly { metadata: { name: string } }[]) => list.map(({ metadata }) => metadata.name).join(' ');

describe('the selection of a hub', () => {
  const clusters = [cluster('a/one', { fleet: 'x' }), cluster('b/two', { fleet: 'x' }), cluster('a/three')];
  it.each<[string, Partial<HubSpec>, string]>([
    ['nobody where no namespace is allowed', {}, ''],
    ['only those of allowed namespaces', { allowedNamespaces: ['a'] }, 'one three'],
    ['those of all namespaces', { allowedNamespaces: ['*'] }, 'one two three'],
    [
      'those with the labels',
      { allowedNamespaces: ['*'], clusterSelector: { matchLabels: { fleet: 'x' } } },
      'one two',
    ],
    [
      'those that the expressions let pass',
      { allowedNamespaces: ['*'], clusterSelector: { matchExpressions: [{ key: 'fleet', operator: 'DoesNotExist' }] } },
      'three',
    ],
  ])('%s', (_, spec, joins) => {
    expect(names(selectMembers(hub(spec), clusters, []).join)).toBe(joins);
  });

  it('excludes deleted clusters, present members, and everything when the hub is being deleted', () => {
    const seen = [...clusters, cluster('a/four', {}, { deletionTimestamp: GONE })];
    expect(names(selectMembers(hub({ allowedNamespaces: ['a'] }), seen, [membership('a/one')]).join)).toBe('three');
    expect(selectMembers(hub({ allowedNamespaces: ['a'] }, { deletionTimestamp: GONE }), seen, []).join).toEqual([]);
  });
});

it('excludes clusters that can never take work, without making members leave', () => {
  const all = ['a/paper', 'a/real'].map((key) => cluster(key));
  const isPaper = ({ metadata }: WorkerCluster) => metadata.name === 'paper';
  const everybody = hub({ allowedNamespaces: ['*'] });
  expect(names(selectMembers(everybody, all, [], isPaper).join)).toBe('real');
  expect(selectMembers(everybody, all, [membership('a/paper'), membership('a/real')], isPaper).leave).toEqual([]);
});

describe('a mistaken selector that would empty a fleet', () => {
  const clusters = ['a/one', 'a/two', 'a/three'].map((key) => cluster(key));
  const members = clusters.map(({ metadata }) => membership(`a/${metadata.name}`));
  const leaves = (spec: Partial<HubSpec>, memberships = members) => {
    const { leave, unapproved } = selectMembers(hub(spec), clusters, memberships);
    return [names(leave), names(unapproved)];
  };
  it.each<[string, Partial<HubSpec>, readonly Membership[], string[]]>([
    ['one alone leaves', {}, [membership('a/one')], ['one.h', '']],
    ['of more than may, none leaves', {}, members, ['', 'one.h two.h three.h']],
    ['as many as the hub allows', { maxConcurrentLeaves: 3 }, members, ['one.h two.h three.h', '']],
    [
      'those under way count',
      { maxConcurrentLeaves: 1 },
      [membership('a/one', { deletionTimestamp: GONE }), membership('a/two')],
      ['', 'two.h'],
    ],
    ['who was approved leaves', {}, [membership('a/one', approved), ...members.slice(1)], ['one.h', 'two.h three.h']],
  ])('%s', (_, spec, memberships, expected) => {
    expect(leaves(spec, [...memberships])).toEqual(expected);
  });

  it('is not assumed for deleted clusters', () => {
    const deleted = clusters.map(({ metadata }) => cluster(`a/${metadata.name}`, {}, { deletionTimestamp: GONE }));
    expect(selectMembers(hub({}), deleted, members)).toMatchObject({ leave: [], unapproved: [] });
  });
});
