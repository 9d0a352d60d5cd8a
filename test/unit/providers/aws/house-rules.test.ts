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

describe('the naming rules of AWS programs', () => {
  it('refuse a resource with a random name', async () => {
    await expect(declared(() => new iam.Role('x', { assumeRolePolicy: '{}' }))).rejects.toThrow(
      'aws:iam/role:Role x has no physical name: use physicalName',
    );
    await expect(declared(() => new iam.Role('x', { namePrefix: 'x', assumeRolePolicy: '{}' }))).rejects.toThrow(
      'has no physical name',
    );
  });

  it('refuse a name that AWS would reject', async () => {
    const name = 'x'.repeat(65);
    await expect(declared(() => new iam.Role('x', { name, assumeRolePolicy: '{}' }))).rejects.toThrow(
      'is longer than 64 characters',
    );
  });

  it('refuse a type without an entry in NAMING', async () => {
    await expect(declared(() => new sqs.Queue('x', { name: 'x' }))).rejects.toThrow('is not said in NAMING');
  });

  it('add missing tags, and override a foreign owner', async () => {
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

describe('physical names at AWS', () => {
  const long = { technicalID: `shoot--${'n'.repeat(56)}` };
  const named = Object.entries(NAMING).filter(([, naming]) => typeof naming === 'object');

  it.each(named)('of %s fit the limit, are stable, and differ by cluster and part', (type, naming) => {
    const name = physicalName(type, long, 'a-part-of-some-length');
    expect(name.length).toBeLessThanOrEqual((naming as { longest: number }).longest);
    expect(physicalName(type, long, 'a-part-of-some-length')).toBe(name);
    expect(physicalName(type, long, 'another-part-of-some-length')).not.toBe(name);
    expect(physicalName(type, { technicalID: `${long.technicalID.slice(0, -1)}m` }, 'a-part-of-some-length')).not.toBe(
      name,
    );
  });

  it('are refused for types that are not named', () => {
    expect(() => physicalName('aws:ec2/vpc:Vpc', owner)).toThrow('has no name of ours');
    expect(Object.keys(TAGGING).filter((type) => !(type in NAMING))).toEqual([]);
  });
});

it('AWS has a program for each layer', () => {
  expect(Object.keys(programs).sort()).toEqual([
    'adopted',
    'cluster',
    'control-plane',
    'endpoint',
    'machines',
    'network',
  ]);
});
