import { expect, it } from 'vitest';
import { ownedByOther, upgradeOf, versionProblem } from '../../../providers/adopted-cluster.ts';
import { refuseLosses } from '../../../providers/pulumi/adopted-layer.ts';

const owner = {
  technicalID: 'shoot--shop--one',
  uid: '2f6c1f0e-8f0a-4b57-9d3e-0d6a5b7c9e11',
  name: 'one',
  namespace: 'shop',
};
const adopt = { id: 'theirs', deletionPolicy: 'Release' as const };

it.each<[string, Record<string, string>, string | undefined]>([
  ['nobody', { team: 'shop' }, undefined],
  ['the owner, before a crash', { 'coppice-adopted-by': owner.uid }, undefined],
  ['another', { 'coppice-adopted-by': 'x', 'coppice-adopted-as': 'bank/two' }, 'taken over for WorkerCluster bank/two'],
  ['its maker', { 'coppice-uid': 'x', 'coppice-namespace': 'a', 'coppice-cluster': 'b' }, 'made for WorkerCluster a/b'],
  // Made by us: that is no cluster of others, not even of an earlier WorkerCluster of the name.
  ['us', { 'coppice-uid': owner.uid }, 'made for WorkerCluster'],
])('ownedByOther tells whether others own a cluster: tags of %s', (_, tags, expected) => {
  const why = ownedByOther(tags, owner);
  if (expected) expect(why).toContain(expected);
  else expect(why).toBeUndefined();
});

it.each([
  ['1.35', '', undefined],
  ['1.35', '1.35.4', undefined],
  ['1.35', '1.36', undefined],
  ['1.35', '1.37', 'more than one minor version ahead'],
  ['1.35', '1.34', 'older'],
])('versionProblem of a cluster at %s with desired version %s is %s', (running, version, expected) => {
  const why = versionProblem(running, version);
  if (expected) expect(why).toContain(expected);
  else expect(why).toBeUndefined();
});

it.each([
  ['1.35.4', '', undefined],
  ['1.35.4', '1.36', '1.36'],
  ['1.35.4-gke.1000', '1.35.5', '1.35.5'],
  ['1.35.4', '1.35', undefined],
  ['1.35.4-gke.1000', '1.35.4', undefined],
  ['1.35.4', '1.35.2', undefined],
])('upgradeOf a cluster at %s with desired version %s is %s', (running, wanted, expected) => {
  expect(upgradeOf(running, wanted)).toBe(expected);
});

it.each([
  ['update', undefined],
  ['replace', 'would replace it because of name'],
  ['create', 'would create it'],
  ['delete', 'would delete it'],
])('refuseLosses decides about a plan that would %s the adopted cluster', (operation, expected) => {
  const changes = [
    { operation: 'replace', resource: 'aws:eks/nodeGroup:NodeGroup pool-a' },
    { operation, resource: 'aws:eks/cluster:Cluster adopted', properties: ['name'] },
  ];
  if (expected) expect(() => refuseLosses(changes, adopt)).toThrow(expected);
  else refuseLosses(changes, adopt);
});
