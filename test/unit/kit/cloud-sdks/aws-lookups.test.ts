import {
  DescribeListenersCommand,
  DescribeLoadBalancersCommand,
  DescribeTagsCommand,
  DescribeTargetGroupsCommand,
  ElasticLoadBalancingV2Client,
} from '@aws-sdk/client-elastic-load-balancing-v2';
import { DescribeKeyCommand, KMSClient, ListResourceTagsCommand } from '@aws-sdk/client-kms';
import {
  GetResourcesCommand,
  paginateGetResources,
  ResourceGroupsTaggingAPIClient,
} from '@aws-sdk/client-resource-groups-tagging-api';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { taggedResources } from '../../../../providers/aws/tagged.ts';
import type { Owner } from '../../../../providers/cloud.ts';
import { tagsOf } from '../../../../providers/tags.ts';
import { type FakeCloud, fakeCloud, type WebEndpoints } from '../../../kit/cloud/index.ts';
import { awsOptions, operationsOf } from './clouds.ts';

/** AWS' own clients for what Coppice only looks up ask the fake AWS (decision 41). */
let cloud: FakeCloud;
let web: WebEndpoints['aws'];
beforeAll(async () => {
  cloud = await fakeCloud();
  web = (await cloud.web()).aws;
});
afterAll(() => cloud?.close());
const options = (secret?: string) => awsOptions(cloud, web, { secret });
const region = 'eu-central-1';

it('the fake KMS describes keys, also by alias, and their tags, to the AWS SDK', async () => {
  const make = operationsOf(cloud, 'aws');
  const { id: KeyId, outputs } = await make.create('aws:kms/key:Key', 'key', { tags: { a: 'b' } });
  await make.create('aws:kms/alias:Alias', 'alias', { name: 'alias/ours', targetKeyId: KeyId });
  const client = new KMSClient(options());
  for (const named of [KeyId, outputs.arn as string, 'alias/ours']) {
    const { KeyMetadata } = await client.send(new DescribeKeyCommand({ KeyId: named }));
    expect(KeyMetadata).toMatchObject({ KeyId, KeyState: 'Enabled', CreationDate: expect.any(Date) });
  }
  const { Tags } = await client.send(new ListResourceTagsCommand({ KeyId }));
  expect(Tags).toEqual([{ TagKey: 'a', TagValue: 'b' }]);
  const absent = new DescribeKeyCommand({ KeyId: 'absent' });
  await expect(client.send(absent)).rejects.toMatchObject({ name: 'NotFoundException' });
  const wrong = new KMSClient(options('a guess'));
  await expect(wrong.send(absent)).rejects.toMatchObject({ name: 'UnrecognizedClientException' });
});

it('the fake tagging API lists all pages by tag, equally for SDK and product', async () => {
  const make = operationsOf(cloud, 'aws');
  const owner = { technicalID: 'shoot--shop--tagged', uid: 'uid-1', garden: 'g' } as unknown as Owner;
  const made: string[] = [];
  for (let count = 0; count < 7; count++) {
    const inputs = { cidrBlock: `10.${count}.0.0/16`, tags: tagsOf(owner) };
    made.push((await make.create('aws:ec2/vpc:Vpc', `vpc-${count}`, inputs)).outputs.arn as string);
  }
  await make.create('aws:ec2/vpc:Vpc', 'theirs', { cidrBlock: '10.9.0.0/16', tags: { Name: 'theirs' } });
  const client = new ResourceGroupsTaggingAPIClient(options());
  const [[key, value] = ['', '']] = Object.entries(tagsOf(owner));
  const TagFilters = [{ Key: key, Values: [value] }];
  const pages: (string | undefined)[][] = [];
  for await (const { ResourceTagMappingList = [] } of paginateGetResources({ client }, { TagFilters }))
    pages.push(ResourceTagMappingList.map(({ ResourceARN }) => ResourceARN));
  expect(pages.length).toBe(2);
  expect(pages.flat().sort()).toEqual(made.sort());
  const { key: accessKeyID, secret: secretAccessKey } = cloud.account('aws');
  const { signal } = new AbortController();
  const asked = { region, key: { accessKeyID, secretAccessKey }, endpoint: web, now: () => new Date(), signal };
  expect((await taggedResources(asked)).map(({ id }) => id).sort()).toEqual(made);
  cloud.faults.set({ throttle: { perSecond: 0 } });
  const again = new GetResourcesCommand({ TagFilters });
  await expect(client.send(again)).rejects.toMatchObject({ name: 'ThrottledException' });
  cloud.faults.clear();
});

it('the fake Elastic Load Balancing describes resources by name, with tags and listeners', async () => {
  const make = operationsOf(cloud, 'aws');
  const balancer = await make.create('aws:lb/loadBalancer:LoadBalancer', 'balancer', {
    name: 'control-plane',
    loadBalancerType: 'network',
    subnets: [],
    tags: { a: 'b' },
  });
  const { id: vpcId } = await make.create('aws:ec2/vpc:Vpc', 'vpc', { cidrBlock: '10.8.0.0/16' });
  const group = await make.create('aws:lb/targetGroup:TargetGroup', 'group', { name: 'servers', port: 6443, vpcId });
  const listener = await make.create('aws:lb/listener:Listener', 'listener', {
    loadBalancerArn: balancer.id,
    port: 443,
    defaultActions: [{ type: 'forward', targetGroupArn: group.id }],
  });
  const client = new ElasticLoadBalancingV2Client(options());
  const { LoadBalancers } = await client.send(new DescribeLoadBalancersCommand({ Names: ['control-plane'] }));
  expect(LoadBalancers).toMatchObject([{ LoadBalancerArn: balancer.id, LoadBalancerName: 'control-plane' }]);
  const { TargetGroups } = await client.send(new DescribeTargetGroupsCommand({ Names: ['servers'] }));
  expect(TargetGroups).toMatchObject([{ TargetGroupArn: group.id }]);
  const { Listeners } = await client.send(new DescribeListenersCommand({ LoadBalancerArn: balancer.id }));
  expect(Listeners).toMatchObject([{ ListenerArn: listener.id, Port: 443 }]);
  const { TagDescriptions } = await client.send(new DescribeTagsCommand({ ResourceArns: [balancer.id] }));
  expect(TagDescriptions).toMatchObject([{ ResourceArn: balancer.id, Tags: [{ Key: 'a', Value: 'b' }] }]);
  const absent = new DescribeLoadBalancersCommand({ Names: ['absent'] });
  await expect(client.send(absent)).rejects.toMatchObject({ name: 'LoadBalancerNotFoundException' });
});
