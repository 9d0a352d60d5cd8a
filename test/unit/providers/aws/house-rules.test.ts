import * as ec2 from '@pulumi/aws/ec2/index.js';
import * as iam from '@pulumi/aws/iam/index.js';
import * as sqs from '@pulumi/aws/sqs/index.js';
import { describe, expect, it } from 'vitest';
import { NAMING, physicalName } from '../../../../providers/aws/names.ts';
import { followHouseRules } from '../../../../providers/aws/programs/house-rules.ts';
import { programs } from '../../../../providers/aws/programs.ts';
import { TAGGING } from '../../../../providers/aws/tags.ts';
import { graphOf, owner, ownerTags } from './fixtures.ts';

const declared = (declare: () => unknown) =>
  graphOf(() => {
    followHouseRules(owner);
    declare();
    return {};
  }, {});

describe('house rules', () => {
  it('refuse a resource whose name would be random', async () => {
    await expect(declared(() => new iam.Role('x', { assumeRolePolicy: '{}' }))).rejects.toThrow(
      'aws:iam/role:Role x has no physical name: use physicalName',
    );
    await expect(declared(() => new iam.Role('x', { namePrefix: 'x', assumeRolePolicy: '{}' }))).rejects.toThrow(
      'has no physical name',
    );
  });

  it('refuse a name that AWS would not take', async () => {
    const name = 'x'.repeat(65);
    await expect(declared(() => new iam.Role('x', { name, assumeRolePolicy: '{}' }))).rejects.toThrow(
      'is longer than 64 characters',
    );
  });

  it('refuse a type of which nobody said how it is named', async () => {
    await expect(declared(() => new sqs.Queue('x', { name: 'x' }))).rejects.toThrow('is not said in NAMING');
  });

  it('tag what was forgotten, and let nobody claim it for others', async () => {
    const graph = await declared(() => {
      new ec2.Vpc('vpc', { tags: { 'coppice-uid': 'of another', team: 'web' } });
      new ec2.Route('route', { routeTableId: 'rtb-1' });
    });
    expect(graph.one('aws:ec2/vpc:Vpc').inputs.tags).toEqual({
      ...ownerTags,
      team: 'web',
      Name: 'shoot--shop--one-vpc',
    });
    expect(graph.one('aws:ec2/route:Route').inputs.tags).toBeUndefined();
  });
});

describe('names', () => {
  const long = { technicalID: `shoot--${'n'.repeat(56)}` };
  const named = Object.entries(NAMING).filter(([, naming]) => typeof naming === 'object');

  it.each(named)('of %s fit, are the same every time and differ by cluster and part', (type, naming) => {
    const name = physicalName(type, long, 'a-part-of-some-length');
    expect(name.length).toBeLessThanOrEqual((naming as { longest: number }).longest);
    expect(physicalName(type, long, 'a-part-of-some-length')).toBe(name);
    expect(physicalName(type, long, 'another-part-of-some-length')).not.toBe(name);
    expect(physicalName(type, { technicalID: `${long.technicalID.slice(0, -1)}m` }, 'a-part-of-some-length')).not.toBe(
      name,
    );
  });

  it('are said of no type that is not named', () => {
    expect(() => physicalName('aws:ec2/vpc:Vpc', owner)).toThrow('has no name of ours');
    expect(Object.keys(TAGGING).filter((type) => !(type in NAMING))).toEqual([]);
  });
});

it('there is a program for each layer', () => {
  expect(Object.keys(programs).sort()).toEqual([
    'adopted',
    'cluster',
    'control-plane',
    'endpoint',
    'machines',
    'network',
  ]);
});
