import { describe, expect, it } from 'vitest';
import { arnTypeOf, taggedResources } from '../../../../providers/aws/tagged.ts';
import { type Answer, type Asked, FakeAws, xml } from './fake-aws.ts';
import { owner, ownerTags } from './fixtures.ts';

const ARN = 'arn:aws:ec2:eu-central-1:123456789012';
const KEY = 'arn:aws:kms:eu-central-1:123456789012:key/k-1';

const mapping = (ResourceARN: string, tags: Record<string, string> = ownerTags) => ({
  ResourceARN,
  Tags: Object.entries(tags).map(([Key, Value]) => ({ Key, Value })),
});

/** AWS with these resources, two to a page. */
const cloud = (arns: string[], others: (asked: Asked) => Answer | undefined = () => undefined) =>
  FakeAws.start((asked) => {
    if (asked.action !== 'GetResources') return others(asked);
    const from = Number(asked.input.PaginationToken ?? 0);
    const next = from + 2 < arns.length ? String(from + 2) : '';
    const page = arns.slice(from, from + 2).map((arn) => mapping(arn));
    return { body: { PaginationToken: next, ResourceTagMappingList: page } };
  });

describe('taggedResources at AWS', () => {
  it('lists all pages, with the owner of each resource', async () => {
    const arns = [`${ARN}:vpc/vpc-1`, `${ARN}:subnet/subnet-1`, 'arn:aws:eks:eu-central-1:123456789012:cluster/one'];
    await using fake = await cloud(arns);
    expect(await taggedResources(fake.connection())).toEqual([
      { id: arns[0], type: 'ec2:vpc', region: 'eu-central-1', owner },
      { id: arns[1], type: 'ec2:subnet', region: 'eu-central-1', owner },
      { id: arns[2], type: 'eks:cluster', region: 'eu-central-1', owner },
    ]);
    expect(fake.asked.map(({ input }) => input.PaginationToken)).toEqual([undefined, '2']);
    expect(fake.asked[0]!.input.TagFilters).toEqual([{ Key: 'coppice-technical-id' }]);
  });

  it('rejects when AWS repeats the same page for ever', async () => {
    const page = { body: { PaginationToken: 'again', ResourceTagMappingList: [] } };
    await using fake = await FakeAws.start(() => page);
    await expect(taggedResources(fake.connection())).rejects.toThrow(
      'resources with our tags in eu-central-1: the list has more than 1000 pages',
    );
  });

  it('names the part of the cluster that a resource is', async () => {
    const named = (id: string, Name: string) => mapping(`${ARN}:launch-template/${id}`, { ...ownerTags, Name });
    const told = [named('lt-1', `${owner.technicalID}-pool-web`), named('lt-2', 'renamed-by-somebody')];
    await using fake = await FakeAws.start(() => ({ body: { ResourceTagMappingList: told } }));
    expect((await taggedResources(fake.connection())).map(({ part }) => part)).toEqual(['pool-web', undefined]);
  });

  it('returns type and creation time of machines, and skips terminated ones', async () => {
    await using fake = await cloud([`${ARN}:instance/i-1`, `${ARN}:instance/i-gone`], ({ input }) => {
      const states = Object.entries(input).filter(([name]) => name.startsWith('Filter.2.Value.'));
      expect(states.map(([, state]) => state)).not.toContain('terminated');
      const instance = (id: string) =>
        `<item><instancesSet><item><instanceId>${id}</instanceId><instanceType>m5.large</instanceType>
         <launchTime>2026-11-20T08:00:00.000Z</launchTime></item></instancesSet></item>`;
      const last = input.NextToken === 'more';
      const set = `<reservationSet>${instance(last ? 'i-1' : 'i-other')}</reservationSet>`;
      return xml('DescribeInstances', last ? set : `${set}<nextToken>more</nextToken>`);
    });
    expect(await taggedResources(fake.connection())).toEqual([
      {
        id: `${ARN}:instance/i-1`,
        type: 'ec2:instance',
        region: 'eu-central-1',
        owner,
        machineType: 'm5.large',
        createdAt: '2026-11-20T08:00:00.000Z',
      },
    ]);
  });

  it('skips deleted NAT gateways', async () => {
    await using fake = await cloud([`${ARN}:natgateway/nat-1`, `${ARN}:natgateway/nat-gone`], () =>
      xml('DescribeNatGateways', '<natGatewaySet><item><natGatewayId>nat-1</natGatewayId></item></natGatewaySet>'),
    );
    expect((await taggedResources(fake.connection())).map(({ id }) => id)).toEqual([`${ARN}:natgateway/nat-1`]);
  });

  it.each<[string, Answer, number]>([
    ['lives', { body: { KeyMetadata: { KeyState: 'Enabled', CreationDate: 1_700_000_000 } } }, 1],
    ['waits for its end', { body: { KeyMetadata: { KeyState: 'PendingDeletion' } } }, 0],
    ['is gone', { status: 400, body: { __type: 'NotFoundException', message: 'Key does not exist' } }, 0],
  ])('includes a key only while it %s', async (_what, answer, count) => {
    await using fake = await cloud([KEY], () => answer);
    expect(await taggedResources(fake.connection())).toHaveLength(count);
  });

  it('rejects without permission', async () => {
    await using fake = await FakeAws.start(() => ({
      status: 400,
      body: { __type: 'com.amazonaws.tagging#AccessDeniedException', Message: 'not authorized: tag:GetResources' },
    }));
    await expect(taggedResources(fake.connection())).rejects.toMatchObject({
      code: 'ERR_INFRA_UNAUTHORIZED',
      message: 'AWS refuses tag:GetResources: AccessDeniedException: not authorized: tag:GetResources',
    });
  });
});

it.each([
  ['arn:aws:kms:eu-central-1:1:key/k', 'kms:key'],
  ['arn:aws:autoscaling:eu-central-1:1:autoScalingGroup:u:autoScalingGroupName/n', 'autoscaling:autoScalingGroup'],
  ['arn:aws:elasticloadbalancing:eu-central-1:1:loadbalancer/net/n/1', 'elasticloadbalancing:loadbalancer'],
])('arnTypeOf %s is %s', (arn, type) => {
  expect(arnTypeOf(arn)).toBe(type);
});
